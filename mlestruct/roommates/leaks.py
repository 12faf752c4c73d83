"""Answers that say who shares: a room's number, a key, or a rule that all pairs keep.

A room's number is known only after the pairs, or decides them; learned from, it takes the place of
all that people could be matched by. A rule that all observed pairs keep, such as gender or a
building, says who may share, and a plan that breaks it is refused until somebody decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import ceil, log
from typing import Any, NamedTuple

import numpy as np

from mlestruct.roommates.cells import number, written
from mlestruct.roommates.columns import folded
from mlestruct.roommates.frames import Column, Table, missing
from mlestruct.roommates.words import CROSSED
from mlestruct.structures.base import Ints

LEAST = 6  # pairs that tell of a room
MOST = 0.8  # share of pairs that agree
BY_CHANCE, CROWD = 0.25, 4  # of two people in a group; people who have an answer that few have
KEPT = 0.95  # the share of pairs that keep a rule
RULE = 12  # pairs that tell of a rule
WOMEN = "f w k female weiblich woman girl frau dame femme mujer femenino donna kobieta vrouw"
MEN = "m h male mannlich man boy mann herr homme hombre masculino uomo mezczyzna"
UNLIKELY = log(4000.0)  # chance agrees less often than once in so many columns
RATHER = 0.25  # pairs that break a rule, of those that would by chance


class Agreement(NamedTuple):
    """A column in which (nearly) all observed pairs agree, far more than chance would.

    ``blocks`` are the values that go together, as text: one value each, or its spellings. With
    ``whole``, partners have the same value as it is written. With ``few``, hardly anybody but
    partners has the same, as with a room's number.
    """

    column: str
    blocks: tuple[tuple[str, ...], ...]
    agree: int
    pairs: int
    chance: float
    whole: bool = True
    few: bool = False

    def __str__(self) -> str:
        by = f"by chance {100 * self.chance:.0f} in 100 would"
        several = [", ".join(map(repr, block)) for block in self.blocks if len(block) > 1]
        alike = "" if self.whole or not several else f" where {' and '.join(several)} mean the same"
        return f"{self.agree} of {self.pairs} pairs agree in it ({by}){alike}"


class Crossed(ValueError):
    """A plan breaks what all observed pairs keep: (agreement, planned pairs that break it)."""

    def __init__(self, found: Sequence[tuple[Agreement, int]], planned: int) -> None:
        self.found, self.planned = tuple(found), planned
        super().__init__(self.words("fit"))

    def words(self, where: str) -> str:
        """What is broken, and how to say in a ``fit`` or on the ``page`` whether it is a rule."""
        return "\n".join(
            (CROSSED["found"] + CROSSED[where]).format(
                column=agreed.column,
                agreed=agreed,
                broken=broken,
                planned=self.planned,
                once="" if agreed.whole else CROSSED["once"],
            )
            for agreed, broken in self.found
        )


class Leak(NamedTuple):
    """A column, what pairs do in it, whether a rule would explain that, and how far they agree."""

    column: str
    words: str
    rule: bool
    agreed: Agreement | None = None


def leaks(columns: Mapping[str, Column], pairs: Ints, group: Ints) -> list[Leak]:
    """The columns in which partners agree far more than answers do; rows are people."""
    found = []
    for name, column in columns.items():
        known = ~missing(column)
        told = pairs[known[pairs].all(axis=1)]
        if len(told) < LEAST:
            continue
        texts = [str(written(v)) for v in column.tolist()]
        agreed = _agreement(name, texts, told, group)
        codes = np.unique(texts, return_inverse=True)[1]
        same = codes[told[:, 0]] == codes[told[:, 1]]
        chance = _expected(codes[told], told, group)
        both = group * len(codes) + codes
        alike = dict(zip(*np.unique(both[known], return_counts=True), strict=True))
        crowd = [alike[own] for own in both[told[same, 0]]]
        if same.mean() >= MOST and chance <= BY_CHANCE and np.median(crowd) <= CROWD:
            words = (
                f"{same.sum()} of {len(told)} pairs have the same (by chance {100 * chance:.0f} in "
                "100 would), and hardly anybody else has it: does it say who shares, such as a "
                "room?"
            )
            found.append(Leak(name, words, False, agreed and agreed._replace(few=True)))
        elif agreed:
            found.append(Leak(name, f"{agreed}: is that a rule?", True, agreed))
    return found


def _agreement(name: str, texts: Sequence[str], pairs: Ints, group: Ints) -> Agreement | None:
    """Whether pairs agree in a column's values, in values but for spelling, or in sets of values.

    Sets of words are found by joining those that are paired most often for their sizes, until
    hardly any pair is of two sets. Many sets of values could be found so; the more there are, the
    less does it say that one was.
    """
    held, places = np.unique([texts[row] for row in pairs.ravel().tolist()], return_inverse=True)
    ends = places.reshape(pairs.shape)
    alike, block = np.unique([_key(str(text)) for text in held], return_inverse=True)
    spellings = block

    def told(block: Ints, whole: bool, searched: float = 0.0) -> Agreement | None:
        own = block[ends]
        agree, chance = int((own[:, 0] == own[:, 1]).sum()), _expected(own, pairs, group)
        if not _beyond(agree, len(pairs), chance, searched):
            return None
        shown = spellings if whole else block
        sets = tuple(tuple(held[shown == k].tolist()) for k in np.unique(shown))
        return Agreement(name, sets, agree, len(pairs), chance, whole)

    gender = dict.fromkeys(WOMEN.split(), WOMEN) | dict.fromkeys(MEN.split(), MEN)
    sexes = [gender.get(own, own) for own in alike.tolist()]
    found = told(np.arange(len(held)), True) or told(block, False)
    found = found or told(np.unique(sexes, return_inverse=True)[1][block], False)
    if found or len(alike) > len(pairs) / 2 or all(number(text) is not None for text in held):
        return found  # numbers are answers on a scale: a strong taste pairs neighbours
    counts = np.zeros((len(alike), len(alike)))
    np.add.at(counts, tuple(block[ends].T), 1.0)
    counts += counts.T
    for left in range(len(alike) - 1, 1, -1):
        size = np.maximum(counts.sum(axis=1), 1.0)
        lift = np.triu(counts / np.outer(size, size), 1)
        one, other = np.unravel_index(int(lift.argmax()), lift.shape)
        if lift[one, other] == 0.0:
            return None
        counts[one] += counts[other]
        counts[:, one] += counts[:, other]
        counts[other] = counts[:, other] = 0.0
        block = np.where(block == other, one, block)
        found = told(block, False, len(alike) * log(left))
        if found:
            return found
    return None


def _key(text: str) -> str:
    """A text whatever its spelling; numbers differ by their signs, too."""
    return text if number(text) is not None else folded(text)


def _beyond(agree: int, pairs: int, chance: float, searched: float) -> bool:
    """Whether so many pairs agree that neither chance nor a taste explains it.

    The binomial tail's bound, exp(−pairs · KL(share, chance)), times the number of ways to join
    values that were tried (``searched``, its logarithm).
    """
    apart, share = pairs - agree, agree / pairs
    if pairs < RULE or apart > ceil((1.0 - KEPT) * pairs) or not 0.0 < chance < share:
        return False
    if 1.0 - share > RATHER * (1.0 - chance):
        return False
    kl = share * log(share / chance)
    kl += (1.0 - share) * log((1.0 - share) / (1.0 - chance)) if apart else 0.0
    return pairs * kl - searched >= UNLIKELY


def _expected(codes: Ints, pairs: Ints, group: Ints) -> float:
    """The share of pairs that would agree if partners were drawn within their groups.

    ``codes`` are those of both ends of every pair.
    """
    total = 0.0
    for own in np.unique(group[pairs[:, 0]]):
        mine = codes[group[pairs[:, 0]] == own]
        counts = np.unique(mine, return_counts=True)[1]
        total += len(mine) * (counts * (counts - 1)).sum() / (mine.size * (mine.size - 1))
    return float(total / len(pairs))


def refuse_crossed(agreed: Iterable[Agreement], table: Table, pairs: Ints) -> None:
    """Raise :class:`Crossed` if planned pairs (rows of the table) break an agreement.

    A pair of whom one has no value is not known to keep it; nor is any, without the column. For a
    room's number, which comes after a plan, only two different values count.
    """
    found = []
    for one in agreed:
        block: dict[str, Any] = {_key(w): k for k, texts in enumerate(one.blocks) for w in texts}
        cells = (
            table.columns[one.column] if one.column in table.names else np.full(len(table), np.nan)
        )
        keys = [_key(str(written(cell))) for cell in cells.tolist()]
        own = np.array([block.get(key, key) for key in keys], dtype=object)[pairs]
        known = ~missing(cells)[pairs].any(axis=1)
        broken = int((np.where(known, own[:, 0] != own[:, 1], not one.few)).sum())
        if broken:
            found.append((one, broken))
    if found:
        raise Crossed(found, len(pairs))


def in_words(found: Iterable[Leak]) -> list[str]:
    """As warnings of a fit."""
    rule = "same={0!r}; if partners may differ, mix={0!r}"
    return [
        f"{leak.column}: {leak.words} If so, say "
        f"{(rule if leak.rule else 'ignore={0!r}').format(leak.column)}"
        for leak in found
    ]

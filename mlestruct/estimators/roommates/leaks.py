"""Answers that say who shares: a room's number, a key, or a rule that all pairs keep.

Such a column is known only after the pairs, or decides them; learned from, it takes the place of
all that people could be matched by.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from mlestruct.structures.base import Ints
from mlestruct.tables import Column, missing
from mlestruct.tables.cells import written

LEAST = 6  # pairs that tell anything
MOST = 0.8  # share of pairs that agree, or are neighbours
BY_CHANCE, CROWD = 0.25, 4  # of two people in a group; people who have an answer that few have
RULE, KEPT, ALWAYS = 20, 0.95, 0.8  # pairs; their share that keeps a rule; at most, by chance


class Leak(NamedTuple):
    """A column, what pairs do in it, and whether a rule would explain that (``same``)."""

    column: str
    words: str
    rule: bool


def leaks(columns: Mapping[str, Column], pairs: Ints, group: Ints) -> list[Leak]:
    """The columns in which partners agree far more than answers do; rows are people."""
    found = []
    for name, column in columns.items():
        known = ~missing(column)
        told = pairs[known[pairs].all(axis=1)] if len(pairs) else pairs
        if len(told) >= LEAST:
            found += [leak for leak in (_leak(name, column, known, told, group),) if leak]
    return found


def _leak(name: str, column: Column, known: Column, pairs: Ints, group: Ints) -> Leak | None:
    codes = np.unique([str(written(v)) for v in column.tolist()], return_inverse=True)[1]
    same = codes[pairs[:, 0]] == codes[pairs[:, 1]]
    chance, crowd = _chance(codes, known, pairs, group)
    share, count = float(same.mean()), f"{int(same.sum())} of {len(pairs)} pairs"
    by = f"by chance {100 * chance:.0f} in 100 would"
    if share >= MOST and chance <= BY_CHANCE and np.median(crowd[same]) <= CROWD:
        words = f"{count} have the same ({by}), and hardly anybody else has it"
        return Leak(name, f"{words}: does it say who shares, such as a room?", False)
    if column.dtype.kind in "if" and _neighbours(column, known, pairs, group) >= MOST:
        words = "partners are next to each other in it, among all of their group"
        return Leak(name, f"{words}: does it say who shares, such as a room?", False)
    if share >= KEPT and len(pairs) >= RULE and chance < ALWAYS:
        return Leak(name, f"{count} agree in it ({by}): is that a rule?", True)
    return None


def _chance(codes: Ints, known: Column, pairs: Ints, group: Ints) -> tuple[float, Ints]:
    """(how often two of a group agree, how many of the first's group have the first's answer)."""
    agree = np.zeros(int(group.max()) + 1)
    crowd = np.zeros(len(codes), dtype=np.int64)
    for number in np.unique(group[pairs[:, 0]]):
        mine = np.flatnonzero((group == number) & known)
        counts = np.bincount(codes[mine])
        agree[number] = (counts * (counts - 1)).sum() / max(len(mine) * (len(mine) - 1), 1)
        crowd[mine] = counts[codes[mine]]
    return float(agree[group[pairs[:, 0]]].mean()), crowd[pairs[:, 0]]


def _neighbours(column: Column, known: Column, pairs: Ints, group: Ints) -> float:
    """The share of pairs at most two places apart in a column that few others share."""
    near, least = [], 2 * LEAST
    for number in np.unique(group[pairs[:, 0]]):
        mine = np.flatnonzero((group == number) & known)
        values = column[mine]
        if len(mine) < least or len(np.unique(values)) < len(mine) / 2:
            return 0.0
        place = np.empty(len(column))
        place[mine] = np.argsort(np.argsort(values, kind="stable"))
        own = pairs[group[pairs[:, 0]] == number]
        near += (np.abs(place[own[:, 0]] - place[own[:, 1]]) <= 2).tolist()
    return float(np.mean(near))


def in_words(found: Iterable[Leak]) -> list[str]:
    """As warnings of a fit."""
    return [
        f"{leak.column}: {leak.words} "
        + (f"If so, say same={leak.column}" if leak.rule else f"If so, say ignore={leak.column}")
        for leak in found
    ]

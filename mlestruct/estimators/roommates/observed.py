"""Observed pairs: checked against the people, weighted, and cut into examples to learn from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mlestruct.estimators.roommates.people import Group, People, are_ids
from mlestruct.structures.base import Array, Ints
from mlestruct.tables import Table, missing, table


@dataclass(frozen=True)
class Columns:
    """How a table of pairs names its columns; ``outcomes`` maps values of ``weight`` to numbers."""

    partners: tuple[str, str]
    cohort: str | None = None
    weight: str | None = None
    outcomes: Mapping[Any, float] | None = None


@dataclass(frozen=True)
class Observed:
    """(pairs × 2) rows of people, each pair's weight, and how many pairs were of other cohorts."""

    rows: Ints
    weight: Array
    skipped: int


@dataclass(frozen=True)
class Block:
    """The people of one group whose pairs have one weight, as an example to learn from.

    Given that these people were paired among themselves, their matching has the model's own
    distribution: so nobody is compared with people who were not paired, and a pair of weight ½
    counts half without changing what the rest says.
    """

    group: Group
    weight: float
    members: Ints = field(repr=False)
    pairs: Ints = field(repr=False)


def read_pairs(given: Any, people: People, columns: Columns) -> Observed:
    """Every pair within one group, nobody in two; pairs of cohorts without people are skipped."""
    pairs = _as_table(given, columns.partners)
    kept = _of_cohorts(pairs, people, columns.cohort)
    here = pairs.rows(kept)
    where = [f"pairs, row {row}" for row in kept.tolist()]
    first, second = (here[name].tolist() for name in columns.partners)
    rows = np.array(
        [
            (people.find(a, place), people.find(b, place))
            for a, b, place in zip(first, second, where, strict=True)
        ],
        dtype=np.int64,
    ).reshape(-1, 2)
    _refuse(rows, people, where)
    weight = _weights(here, columns, where)
    return Observed(rows, weight, len(pairs) - len(kept))


def blocks_of(observed: Observed, people: People) -> tuple[list[Block], list[str]]:
    """Examples by group and weight; and in words who is left out of them."""
    blocks, alone = [], 0
    group = people.group_of[observed.rows[:, 0]]
    for number, whole in enumerate(people.groups):
        mine = group == number
        for weight in np.unique(observed.weight[mine & (observed.weight > 0)]):
            pairs = observed.rows[mine & (observed.weight == weight)]
            alone += len(pairs) == 1
            if len(pairs) > 1:
                members = np.sort(pairs.ravel())
                local = np.searchsorted(members, pairs)
                blocks.append(Block(whole, float(weight), members, local))
    counts = (
        (len(people) - 2 * len(observed.rows), f"of {len(people)} people are in no pair"),
        (observed.skipped, "pairs are of cohorts that are not in the table of people"),
        (int((observed.weight == 0).sum()), "pairs have weight 0"),
        (alone, "pairs are alone in their group with their weight"),
    )
    notes = [f"left out: {count} {why}" for count, why in counts if count]
    if not blocks:
        raise ValueError("; ".join(["there is nothing to learn from", *notes]))
    return blocks, notes


def refuse_unpaired(people: People, observed: Observed) -> None:
    """For who wants to hear of it when somebody has no pair."""
    alone = np.setdiff1d(np.arange(len(people)), observed.rows)
    if len(alone):
        raise ValueError(
            f"{people.ids[alone[0]]!r} and {len(alone) - 1} more are in no pair; learn from the "
            "others by unpaired='leave_out'"
        )


def _as_table(given: Any, partners: tuple[str, str]) -> Table:
    """A table, or (id, id) tuples as one."""
    listed = isinstance(given, (Sequence, np.ndarray)) and not isinstance(given, str)
    if not listed or (len(given) and isinstance(given[0], Mapping)):
        return table(given)
    for row, pair in enumerate(given):
        if not are_ids(pair, 2):
            raise ValueError(f"pairs, row {row} is {pair!r}; expected two ids")
    return table({name: [pair[k] for pair in given] for k, name in enumerate(partners)})


def _of_cohorts(pairs: Table, people: People, cohort: str | None) -> Ints:
    """Rows whose cohort the people have; all, where pairs do not say."""
    if cohort is None or cohort not in pairs.names:
        return np.arange(len(pairs))
    known = set(people.table[cohort].tolist())
    return np.array([k for k, c in enumerate(pairs[cohort].tolist()) if c in known], dtype=np.int64)


def _refuse(rows: Ints, people: People, where: Sequence[str]) -> None:
    """Self-pairs, people in two pairs, and pairs across groups."""
    seen: dict[int, int] = {}
    for k, (a, b) in enumerate(rows.tolist()):
        if a == b:
            raise ValueError(f"{where[k]}: {people.ids[a]!r} is paired with themself")
        for person in (a, b):
            if seen.setdefault(person, k) != k:
                raise ValueError(
                    f"{where[k]}: {people.ids[person]!r} is in another pair too, in "
                    f"{where[seen[person]]}"
                )
        one, other = people.group_of[[a, b]]
        if one != other:
            raise ValueError(
                f"{where[k]}: {people.ids[a]!r} ({people.groups[one].label}) and "
                f"{people.ids[b]!r} ({people.groups[other].label}) are of different groups"
            )


def _weights(pairs: Table, columns: Columns, where: Sequence[str]) -> Array:
    if columns.weight is None:
        return np.ones(len(pairs))
    values = pairs[columns.weight]
    if columns.outcomes is not None:
        for value, place in zip(values.tolist(), where, strict=True):
            if value not in columns.outcomes:
                known = ", ".join(repr(v) for v in columns.outcomes)
                raise ValueError(f"{place}: outcome {value!r} has no weight; known are {known}")
        values = np.array([columns.outcomes[value] for value in values.tolist()], dtype=float)
    if values.dtype.kind == "O":
        raise ValueError(f"column {columns.weight!r} holds text; map it to weights by outcomes=")
    weight = np.asarray(values, dtype=float)
    wrong = np.flatnonzero(missing(values) | ~(np.isfinite(weight) & (weight >= 0)))
    if len(wrong):
        raise ValueError(f"{where[wrong[0]]}: weight {weight[wrong[0]]}; it must be 0 or more")
    return weight

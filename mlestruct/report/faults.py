"""What is wrong with tables and rules: every fault at once, before anything is learned."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from mlestruct.estimators.roommates import Plan
from mlestruct.estimators.roommates.people import People, label
from mlestruct.estimators.roommates.rules import Rule
from mlestruct.estimators.roommates.worth import Worth
from mlestruct.report.survey import infinite
from mlestruct.tables import Column, Table, missing

SHOWN = 5  # of each kind of fault


def faults(table: Table) -> Iterator[str]:
    """What is wrong with any table."""
    if len(table) == 0:
        yield "the table is empty"
    rows = list(zip(*map(_listed, table.columns.values()), strict=True))
    yield from _some(f"row {k} repeats an earlier one" for k in _repeats(rows))
    for name, column in table.columns.items():
        if infinite(column):
            yield f"column {name!r} holds infinite numbers"


def faults_of_people(table: Table, id_column: str, groups: Sequence[str]) -> Iterator[str]:
    """Ids missing or given twice; people without a group; groups that cannot be paired up."""
    for name in (id_column, *groups):
        gone = np.flatnonzero(missing(table[name]))
        yield from _some(f"row {row} has no {name!r}" for row in gone)
    ids = _listed(table[id_column])
    yield from _some(f"id {ids[k]!r} is in more than one row" for k in _repeats(ids))
    for group, count in Counter(group_labels(table, groups)).items():
        if count % 2:
            yield f"{group}: an odd number of people, {count}"


def group_labels(table: Table, groups: Sequence[str]) -> list[str]:
    """Each row's group in words."""
    keys = zip(*(_listed(table[name]) for name in groups), strict=True)
    return [label(groups, key) for key in (keys if groups else [()] * len(table))]


def faults_of_pairs(
    table: Table, partners: tuple[str, str], group: Mapping[Hashable, str], cohort: str | None
) -> Iterator[str]:
    """Ids unknown, of different groups, paired with themselves, or in two pairs of a cohort."""
    pairs = list(zip(*(_listed(table[name]) for name in partners), strict=True))
    within = [name for name in (cohort,) if name in table.names]
    when = _listed(table[within[0]]) if within else [None] * len(pairs)
    seats = [(row, who) for row, pair in enumerate(pairs) for who in dict.fromkeys(pair)]
    unknown = [(row, who) for row, who in seats if group and who not in group]
    yield from _some(f"row {row}: nobody has id {who!r}" for row, who in unknown)
    alone = [(row, a) for row, (a, b) in enumerate(pairs) if a == b]
    yield from _some(f"row {row}: {a!r} is paired with itself" for row, a in alone)
    of = [(row, a, b, group.get(a), group.get(b)) for row, (a, b) in enumerate(pairs)]
    apart = [found for found in of if None not in found[3:] and found[3] != found[4]]
    yield from _some(
        f"row {r}: {a!r} ({g}) and {b!r} ({h}) may not share" for r, a, b, g, h in apart
    )
    taken = [(who, when[row]) for row, who in seats]
    yield from _some(f"id {taken[k][0]!r} is in more than one pair" for k in _repeats(taken))


def faults_of_rules(
    people: Table,
    id_column: str,
    groups: Sequence[str],
    forbid: Sequence[Rule],
    require: Sequence[Rule],
) -> Iterator[str]:
    """Why nobody could keep these rules: the first contradiction, in few people where it can be."""
    try:
        read = People.read(people, id_column, groups, [], "refuse")
        alike = [Worth((), read.codes[group.members], {}) for group in read.groups]
        len(Plan.of(read, alike, forbid, require, None, "map", 0.5).pairs)  # solves every group
    except ValueError as error:
        yield str(error)


def _listed(column: Column) -> list[Any]:
    """Values with None for what is missing, so that equal is equal."""
    gone = missing(column).tolist()
    return [None if absent else v for v, absent in zip(column.tolist(), gone, strict=True)]


def _repeats(values: Sequence[Any]) -> Iterator[int]:
    """The places of values that came before."""
    seen: set[Any] = set()
    for place, value in enumerate(values):
        if value in seen and value is not None:
            yield place
        seen.add(value)


def _some(found: Iterable[str]) -> Iterator[str]:
    """The first few, and how many more."""
    listed = list(found)
    yield from listed[:SHOWN]
    if len(listed) > SHOWN:
        yield f"… and {len(listed) - SHOWN} more such rows"

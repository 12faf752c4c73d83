"""What is wrong with rows of tables and rules: every fault at once, before anything is learned."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from mlestruct.estimators.roommates import Plan
from mlestruct.estimators.roommates.pairing import Worth
from mlestruct.estimators.roommates.people import People, label
from mlestruct.estimators.roommates.questionnaire import some
from mlestruct.estimators.roommates.rules import Rule
from mlestruct.tables import Column, Table, missing
from mlestruct.tables.cells import written
from mlestruct.tables.frames import bare


def faults(table: Table) -> Iterator[str]:
    """What is wrong with any table."""
    if len(table) == 0:
        yield "the table is empty"
    rows = list(zip(*(_listed(table.as_names(name)) for name in table.names), strict=True))
    yield from some(f"{table.at(k)} repeats an earlier one" for k in repeats(rows))
    for name, column in table.columns.items():
        if column.dtype.kind == "f" and np.isinf(column).any():
            row = int(np.flatnonzero(np.isinf(column))[0])
            yield f"column {name!r} holds infinite numbers" + (
                f", the first in {table.at(row, name)}" if table.places else ""
            )


def faults_of_people(table: Table, id_column: str, groups: Sequence[str]) -> Iterator[str]:
    """Ids missing or given twice, and people without a group."""
    for name in (id_column, *groups):
        gone = np.flatnonzero(missing(bare(table.as_names(name))))
        yield from some(f"{table.at(int(row), name)} has no {name!r}" for row in gone)
    ids = _listed(table.as_names(id_column))
    first = {who: row for row, who in reversed(list(enumerate(ids)))}
    yield from some(
        f"id {ids[k]!r} is in more than one row"
        + (f": {table.both(first[ids[k]], k)}" if table.places else "")
        for k in repeats(ids)
    )


def remarks_on_groups(table: Table, groups: Sequence[str]) -> Iterator[str]:
    """Groups of one, who have nobody to share with, and odd ones, which leave one person over."""
    counts = Counter(group_labels(table, groups))
    for group, count in counts.items():
        if count == 1:
            yield f"{group}: one person, who has nobody to share with"
        elif count % 2:
            yield f"{group}: {count} people, an odd number, so one of them stays alone"


def group_labels(table: Table, groups: Sequence[str]) -> list[str]:
    """Each row's group in words."""
    keys = zip(*(_listed(bare(table.as_names(name))) for name in groups), strict=True)
    return [label(groups, key) for key in (keys if groups else [()] * len(table))]


def faults_of_pairs(
    table: Table,
    partners: Sequence[str],
    group: Mapping[Any, str],
    cohort: str | None,
) -> Iterator[str]:
    """Ids unknown, of different groups, paired with themselves, or in two pairs of a cohort."""
    named = {written(who): label for who, label in group.items()}
    pairs = list(zip(*(_listed(table.as_names(name)) for name in partners[:2]), strict=True))
    within = [name for name in (cohort,) if name in table.names]
    when = _listed(table.as_names(within[0])) if within else [None] * len(pairs)
    seats = [(row, who) for row, pair in enumerate(pairs) for who in dict.fromkeys(pair)]
    seats = [(row, who) for row, who in seats if who is not None]
    unknown = [(row, who) for row, who in seats if group and written(who) not in named]
    yield from some(f"{table.at(row)}: nobody has id {who!r}" for row, who in unknown)
    alone = [(row, a) for row, (a, b) in enumerate(pairs) if a == b and a is not None]
    yield from some(f"{table.at(row)}: {a!r} is paired with itself" for row, a in alone)
    of = [
        (row, a, b, named.get(written(a)), named.get(written(b)))
        for row, (a, b) in enumerate(pairs)
    ]
    apart = [found for found in of if None not in found[3:] and found[3] != found[4]]
    yield from some(
        f"{table.at(r)}: {a!r} ({g}) and {b!r} ({h}) may not share" for r, a, b, g, h in apart
    )
    again = set(repeats((frozenset(map(written, pair)), when[k]) for k, pair in enumerate(pairs)))
    seats = [(row, who) for row, who in seats if row not in again]  # a pair may be told twice
    taken = [(written(who), when[row]) for row, who in seats]
    places = {key: row for (row, _), key in reversed(list(zip(seats, taken, strict=True)))}
    yield from some(
        f"id {seats[k][1]!r} is in more than one pair"
        + (f": {table.both(places[taken[k]], seats[k][0])}" if table.places else "")
        for k in repeats(taken)
    )


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


def repeats(values: Iterable[Any]) -> Iterator[int]:
    """The places of values that came before."""
    seen: set[Any] = set()
    for place, value in enumerate(values):
        if value in seen and value is not None:
            yield place
        seen.add(value)

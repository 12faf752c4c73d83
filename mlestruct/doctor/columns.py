"""What looks odd in a column of answers: codes for none, spellings, values that tell nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from mlestruct.estimators.roommates.questionnaire import EACH, MOST_LEVELS
from mlestruct.tables import Table, missing
from mlestruct.tables.cells import number, written
from mlestruct.tables.suspicion import suspects, variants

NEAR_CONSTANT, MOSTLY_MISSING, NEAR_ID = 0.95, 0.5, 0.9


def codes(table: Table, name: str) -> Iterator[str]:
    """Values that probably mean that there is no answer, with the first places."""
    shown = [written(value) for value in table[name].tolist()]
    for suspect in suspects(table[name]):
        rows = [row for row, value in enumerate(shown) if value == suspect.value]
        where = ", ".join(table.at(row, name) for row in rows[:1])
        yield (
            f"column {name!r}: {suspect.value!r}, {suspect.given} times, the first in {where}, "
            f"looks like a code for no answer; if it is, say no_answer={name}={suspect.value}, "
            f"else trust={name}"
        )


def words_among_numbers(table: Table, name: str) -> Iterator[str]:
    """A few cells of text in a column of numbers."""
    column = table[name]
    if column.dtype.kind != "O":
        return
    known = {suspect.value for suspect in suspects(column)}
    cells = [(row, v) for row, v in enumerate(column.tolist()) if v is not None]
    odd = [(row, v) for row, v in cells if number(v) is None and number(v, ",") is None]
    if odd and len(odd) <= 0.2 * len(cells):
        rest = [(row, v) for row, v in odd if v not in known]
        for row, value in rest[:EACH]:
            yield f"column {name!r} holds numbers, and {value!r} in {table.at(row, name)}"


def spellings(table: Table, name: str) -> Iterator[str]:
    """One answer in several spellings."""
    counts = Counter(table.as_levels(name).tolist())
    for alike in variants(table.as_levels(name)):
        listed = ", ".join(f"{value!r} ({counts[value]})" for value in alike)
        yield f"column {name!r}: {listed} differ in case or signs only, and count as different"


def remarks(table: Table, name: str) -> Iterator[str]:
    """What makes a column of little use."""
    gone = missing(table[name])
    shown = [str(written(value)) for value in table[name][~gone].tolist()]
    counts = Counter(shown)
    if np.mean(gone) >= MOSTLY_MISSING:
        yield f"column {name!r}: {int(gone.sum())} of {len(gone)} cells are blank"
    if not counts:
        return
    value, most = counts.most_common(1)[0]
    if len(counts) == 1 and len(shown) > 1:
        yield f"column {name!r} is {value!r} for all {most} who answered: it tells nobody apart"
    elif len(shown) > 1 and most >= NEAR_CONSTANT * len(shown):
        yield f"column {name!r} is {value!r} for {most} of {len(shown)}: it tells few people apart"
    if len(counts) >= NEAR_ID * len(shown) and len(counts) > MOST_LEVELS:
        yield f"column {name!r} is different for nearly everybody, as an id or a free text is"

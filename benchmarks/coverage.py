"""Do the intervals hold? Debiased contrasts over generated years, beside the generator's weights.

``YEARS`` years of ``PEOPLE`` students each, new people every year, by
:func:`mlestruct.data.roommates`; from each year alone, the weights of |difference| for 14 questions
and their 95 % intervals. The surrogate's limit is a fit of ``LIMIT`` other years together, which is
far more certain than one.

The generator adds effects of single answers to four questions (``mlestruct.data.students.ANSWERS``)
that |difference| cannot express, so the limit is not its weights there; coverage of its own
weights is for the other ten. ``python -m benchmarks coverage --quick`` takes fewer years.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from mlestruct import RoommateModel, data
from mlestruct.data.students import ANSWERS, DIFFERENCE, QUESTIONS

PEOPLE, SEED = 400, 1
YEARS = {False: 240, True: 20}  # quick
LIMIT = {False: 240, True: 40}
ALPHA, RHOS = 1.0, (0.5, 1.0)
WITHIN = (0.93, 0.97)

Row = dict[str, Any]


def run(quick: bool) -> Iterator[Row]:
    """Coverage for ρ = ½ and for Bethe."""
    total = YEARS[quick] + LIMIT[quick]
    people, pairs, _ = data.roommates(PEOPLE, total, SEED)
    for rho in RHOS:
        yield from _coverage(people, pairs, YEARS[quick], rho, quick)


def _coverage(people: Any, pairs: Any, years: int, rho: float, quick: bool) -> Iterator[Row]:
    settings = {"cohort": "year", "same": "gender", "ordinal": "q*", "alpha": ALPHA, "rho": rho}
    rest = {name: column[people["year"] > years] for name, column in people.items()}
    limit = _estimates(RoommateModel(**settings).fit(rest, pairs))[:, 0]
    found = []
    for year in range(1, years + 1):
        mine = {name: column[people["year"] == year] for name, column in people.items()}
        found.append(_estimates(RoommateModel(**settings).fit(mine, pairs)))
    low, high = (np.array([one[:, k] for one in found]) for k in (1, 2))
    expressed = [q not in {name for name, _, _ in ANSWERS} for q in QUESTIONS]
    held = (low <= limit) & (limit <= high)
    own = ((low <= DIFFERENCE) & (high >= DIFFERENCE))[:, expressed]
    workload = f"{years} years of {PEOPLE} people, rho={rho:g}"
    share = float(held.mean())
    yield {
        "benchmark": "coverage",
        "workload": workload,
        "quantity": "95 % intervals with the limit",
        "ours": share,
        "target": f"{WITHIN[0]} to {WITHIN[1]}",
        "met": None if quick else WITHIN[0] <= share <= WITHIN[1],
    }
    for name, value in (
        ("lowest of a weight's", float(held.mean(axis=0).min())),
        ("highest of a weight's", float(held.mean(axis=0).max())),
        ("with the generator's weights", float(own.mean())),
        ("mean width over 3.92 SD", float((high - low).mean() / (3.92 * _spread(found)))),
    ):
        yield {"benchmark": "coverage", "workload": workload, "quantity": name, "ours": value}


def _estimates(model: RoommateModel) -> np.ndarray:
    """(weights × 3): debiased estimate and interval."""
    return np.array([(c.estimate, c.low, c.high) for c in model.summary().contrasts])


def _spread(found: list[np.ndarray]) -> float:
    """The estimates' own standard deviation over years, averaged over weights."""
    return float(np.array([one[:, 0] for one in found]).std(axis=0, ddof=1).mean())

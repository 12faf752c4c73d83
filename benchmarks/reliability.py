"""Faults on purpose, and what came of them: every wrong answer and every lost fit is counted.

Bad input, hostile oracles, damaged files, kills at any moment, lost workers; and random problems
small enough to be solved by listing. What goes wrong is named on the error stream.
"""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from benchmarks._faults import (
    bad_input,
    damage,
    hostile,
    instances,
    lost,
    odd_doors,
    ranges,
    refusal,
    silent,
    strangers,
)

Row = dict[str, Any]
WRONG, LOST, SILENT = "wrong answers", "fits lost or changed", "silent failures"


@dataclass(frozen=True)
class Trial:
    """``count`` faults of a kind; ``found`` says what of them went wrong, a ``failure`` each."""

    name: str
    count: int
    least: int
    found: Iterable[str]
    failure: str = WRONG

    def rows(self) -> Iterator[Row]:
        """How many were tried, and how many went wrong."""
        wrong = 0
        for why in self.found:
            wrong += 1
            print(f"{self.name}: {why}", file=sys.stderr)
        yield _row(self.name, "tried", self.count, f">= {self.least}", self.count >= self.least)
        yield _row(self.name, self.failure, wrong, "0", wrong == 0)


def run(quick: bool) -> Iterator[Row]:
    """Two rows a trial and two in all; --quick is the least a release has to show."""
    total = {WRONG: 0, LOST: 0}
    for trial in _trials(quick):
        tried, failed = trial.rows()
        total[trial.failure] += failed["ours"]
        yield tried
        yield failed
    for row in _ranged(500 if quick else 20_000):
        total[WRONG] += row["ours"] if row["quantity"] in (WRONG, SILENT) else 0
        yield row
    for failure, count in total.items():
        yield _row("all of the above", failure, count, "0", count == 0)


def _ranged(count: int) -> Iterator[Row]:
    """Answers to random problems at scores from 1e-3 to 1e6: wrong, silent, and what was said."""
    asked, small, found = 0, 0, Counter[str]()
    for seed in range(count):
        below, answers, said = ranges.told(seed)
        asked, small = asked + answers, small + below * answers
        found.update(one.kind for one in said)
        found["small"] += sum(one.kind == "flag" for one in said) * below
        for one in said:
            print(f"{one.kind}: {one.words}", file=sys.stderr)
    name = "random problems, scores 1e-3 to 1e6"
    yield _row(name, "tried", count, ">= 500", count >= 500)
    yield _row(name, "answers", asked, "", True)
    yield _row(name, WRONG, found["wrong"], "0", not found["wrong"])
    yield _row(name, SILENT, found["silent"], "0", not found["silent"])
    yield _row(name, "flags and refusals", found["flag"], "", True)
    most = small // 100
    share = f"<= {most} (1 % of {small})"
    yield _row(name, "of these below scores of 100", found["small"], share, found["small"] <= most)


def _trials(quick: bool) -> Iterator[Trial]:
    count = 200 if quick else 5000
    found = (why for seed in range(count) for why in instances.faults(seed))
    yield Trial("random problems against lists of all outcomes", count, 200, found)
    for name, law, most in (
        ("decoded labellings against lists, scores 1e-3 to 1e6", silent.decoded, 20_000),
        ("warm answers against cold ones", silent.warmed, 5000),
        ("columns in other units", silent.rescaled, 1000),
    ):
        count = 100 if quick else most
        found = (why for seed in range(count) for why in law(seed))
        yield Trial(name, count, 100, found)
    cases = bad_input.cases()
    yield Trial("bad inputs", len(cases), 60, _judged(cases, refusal.fault))
    right = list(odd_doors.odd())
    found = (f"{one}: {why}" for one in right if (why := odd_doors.misread(one)) is not None)
    yield Trial("odd inputs that are right", len(right), 50, found)
    cases = [*odd_doors.wrong(), *strangers.strange()]
    yield Trial("wrong inputs, invented", len(cases), 100, _judged(cases, refusal.fault))
    oracles = [*hostile.HOSTILE, *hostile.DEADLY]
    yield Trial("hostile oracles", len(oracles), 10, _judged(oracles, hostile.fault))
    files = list(damage.damaged(120 if quick else 5000))
    yield Trial("damaged and forged files", len(files), 120, _judged(files, damage.fault))
    each = 4 if quick else 167
    dead = (why for fit in lost.FITS if (why := lost.killed(fit, each)) is not None)
    yield Trial("kills at any moment, then on", each * len(lost.FITS), 20, dead, LOST)
    count = 4 if quick else 20
    if importlib.util.find_spec("distributed") is None:
        return
    from mlestruct.engine import Dask

    with closing(Dask(workers=2)) as engine:
        yield Trial("workers killed", count, 4, _worker_deaths(engine, count), LOST)


def _judged(cases: Iterable[Any], fault: Callable[[Any], str | None]) -> Iterator[str]:
    return (f"{case}: {why}" for case in cases if (why := fault(case)) is not None)


def _worker_deaths(engine: Any, count: int) -> Iterator[str]:
    return (why for k in range(count) if (why := lost.worker_killed(engine, k)) is not None)


def _row(workload: str, quantity: str, ours: int, target: str, met: bool) -> Row:
    row = {"workload": workload, "quantity": quantity, "ours": ours, "target": target, "met": met}
    return {"benchmark": "reliability", **row}

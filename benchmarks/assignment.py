"""The assignment oracle on the questions of real Frank-Wolfe runs, against scipy.

A run is recorded; then both answer its questions in the order they were asked, taking turns every
round, in processor time. Ours is the whole oracle (flat answers and proven bounds), scipy's the
bare call per table. *asked again* starts from the last round's duals, *cold* from nothing. Then
tables full of equal scores, and some without any, both bare: a search that takes the first nearest
column instead of a free one walks through all that are taken.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from mlestruct_oracles.native._door import assignment_solve
from scipy.optimize import linear_sum_assignment

from benchmarks.frank_wolfe import bipartite
from mlestruct.learning.dual import Dual
from mlestruct.learning.frank_wolfe import FrankWolfe
from mlestruct.oracle import Answers, load
from mlestruct.structures.base import Array
from mlestruct.structures.batch import Batch

REPEATS = 3
Row = dict[str, Any]


@dataclass
class Recorded:
    """Keeps every question on its way to an oracle."""

    oracle: Any
    asked: list[Array] = field(default_factory=list)

    @property
    def polytope(self) -> str:
        return str(self.oracle.polytope)

    def many(self, batch: Batch[Any], scores: Array) -> Answers:
        self.asked.append(scores.copy())
        answers: Answers = self.oracle.many(batch, scores)
        return answers

    def perturbable(self, batch: Batch[Any]) -> None:
        return None


def questions(dual: Dual, rounds: int) -> list[Array]:
    """What a run to gap 1e-3, or of so many rounds, asks; the kernel is compiled then."""
    recorder = Recorded(load("assignment"))
    FrankWolfe(tol=1e-3, rounds=rounds, shards=1).solve(dual, recorder)
    return recorder.asked


def scipys(tables: Array) -> Array:
    """The best score of every table."""
    rows = np.arange(tables.shape[1])
    columns = [linear_sum_assignment(table, maximize=True)[1] for table in tables]
    return np.array([table[rows, c].sum() for table, c in zip(tables, columns, strict=True)])


def seconds(batch: Batch[Any], asked: list[Array]) -> Array:
    """Processor time of the oracle asked again, of cold ones, and of scipy's calls alone."""
    shape = (len(batch), *batch.structures[0].shape)
    again, same, spent = load("assignment"), replace(batch), np.zeros(3)
    for scores in asked:
        tables, clock = scores.reshape(shape), [time.thread_time()]
        warm = again.many(same, scores)[1]
        clock.append(time.thread_time())
        cold = load("assignment").many(batch, scores)[1]
        clock.append(time.thread_time())
        for table in tables:
            linear_sum_assignment(table, maximize=True)
        clock.append(time.thread_time())
        spent += np.diff(clock)
        best = scipys(tables)
        np.testing.assert_allclose([warm, cold], [best, best], rtol=1e-9)
    return spent


def compared(n: int, count: int, rounds: int, most: float | None) -> Iterator[Row]:
    """Median ratios of a workload; ``most``: the largest allowed ours / scipy, asked again."""
    dual = bipartite(0, 1.0, n, count)
    asked = questions(dual, rounds)
    runs = np.array([seconds(dual.batch, asked) for _ in range(REPEATS)])
    runs *= 1e6 / (len(asked) * count)
    for number, name in enumerate(("asked again", "cold")):
        ratio = float(np.median(runs[:, number] / runs[:, 2]))
        wanted = most if number == 0 else None
        yield {
            "benchmark": "assignment",
            "workload": f"Frank-Wolfe, n={n}, M={count}, {len(asked)} rounds",
            "quantity": f"µs per table, {name}",
            "ours": float(np.median(runs[:, number])),
            "peer": float(np.median(runs[:, 2])),
            "peer_name": "scipy linear_sum_assignment",
            "ratio": ratio,
            "target": None if wanted is None else f"ratio ≤ {wanted:.2g}",
            "met": None if wanted is None else ratio <= wanted,
        }


def alike(n: int, rng: np.random.Generator) -> Iterator[tuple[str, Array]]:
    """Tables by how many of their scores are equal: all, many, none."""
    levels = rng.integers(0, 5, (2, n, 14))
    yield "zeros", np.zeros((n, n))
    yield "0/1", rng.integers(0, 2, (n, n)).astype(float)
    yield "one in a hundred", (rng.random((n, n)) < 0.01).astype(float)
    yield "0 to 9", rng.integers(0, 10, (n, n)).astype(float)
    yield "0 to 99", rng.integers(0, 100, (n, n)).astype(float)
    yield "0 to 9, twice as many columns", rng.integers(0, 10, (n, 2 * n)).astype(float)
    yield "row + column", 1.0 * (levels[0, :, :1] + levels[1, :, 0])
    yield "14 ordinal questions", -1.0 * np.abs(levels[0, :, None] - levels[1]).sum(axis=2)
    yield "untied: rank 8", rng.standard_normal((n, 8)) @ rng.standard_normal((8, n))
    yield "untied: uniform", rng.random((n, n))


def least_seconds(call: Callable[[], Any], repeats: int = 5) -> float:
    """The least processor time of some calls after one that may compile."""
    spent = []
    for _ in range(repeats + 1):
        start = time.thread_time()
        call()
        spent.append(time.thread_time() - start)
    return min(spent[1:])


def bare(table: Array) -> float:
    """The kernel without a start, its prices and bound included."""
    n, m = table.shape
    upper = np.empty(1)
    found = np.full((1, n), -1)
    assert assignment_solve(1, n, m, table, np.zeros((1, m)), found, upper) == -1
    return float(upper[0])


def equal_scores(n: int) -> Iterator[Row]:
    for name, table in alike(n, np.random.default_rng(0)):
        np.testing.assert_allclose(bare(table), scipys(table[None])[0], rtol=1e-9)
        ours = 1e3 * least_seconds(partial(bare, table))
        peer = 1e3 * least_seconds(partial(linear_sum_assignment, table, maximize=True))
        yield {
            "benchmark": "assignment",
            "workload": f"{name}, n={n}",
            "quantity": "ms per table, cold",
            "ours": ours,
            "peer": peer,
            "peer_name": "scipy linear_sum_assignment",
            "ratio": ours / peer,
            "target": "ratio ≤ 1.5",
            "met": ours / peer <= 1.5,
        }


def run(quick: bool) -> Iterator[Row]:
    """Quick: the first rounds only, in which scores change most."""
    yield from equal_scores(1000)
    yield from compared(30, 50, 60 if quick else 1000, 1 / 2)
    yield from compared(100, 10, 60 if quick else 400, 1 / 3)
    if not quick:
        yield from compared(10, 50, 1000, None)
        yield from compared(300, 2, 100, None)

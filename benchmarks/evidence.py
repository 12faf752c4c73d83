"""Do tested intervals of log Z hold? Random models whose outcomes can be summed, beside the sums.

``python -m benchmarks evidence``: perfect and one-sided matchings, bipartite or not, with scores
.1 to 10 apart, a third of them as large as exact sums allow; partial matchings and labelled graphs
with scores .1 to 3 apart; and perfect matchings of 200 people, in seconds. ``--quick`` draws
fewer.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import mlestruct as ms
from mlestruct.inference.exact import exact
from mlestruct.statistics import annealed
from mlestruct.statistics.affordability import NODES, SIDE
from mlestruct.structures.base import Structure

Row = dict[str, Any]
Random = np.random.Generator

PERFECT = [
    ms.BipartiteMatching(1),
    ms.BipartiteMatching(SIDE),
    ms.BipartiteMatching(4),
    ms.Matching(2),
    ms.Matching(NODES),
    ms.Matching(8),
    ms.BipartiteMatching(8),
    ms.BipartiteMatching(SIDE - 2, SIDE, "one_sided"),
    ms.BipartiteMatching(3, 5, "one_sided"),
]
OTHERS = [
    ms.BipartiteMatching(3, 3, "partial"),
    ms.BipartiteMatching(4, 6, "partial"),
    ms.Matching(6, kind="partial"),
    ms.Matching(9, kind="partial"),
    ms.chain(6, 3),
    ms.tree([(0, 1), (1, 2), (1, 3), (3, 4)], [2, 3, 2, 2, 3]),
    ms.grid(4, 4, 2),
]
MODELS = {False: (1000, 210), True: (54, 14)}
PEOPLE = 200


def trial(
    number: int, rng: Random, structures: Sequence[Structure] = PERFECT, most: float = 10.0
) -> tuple[bool, float]:
    """Whether a random model's interval holds, and its width; scores .1 to ``most`` apart."""
    structure = structures[number % len(structures)]
    score = 10 ** rng.uniform(-1, np.log10(most)) * rng.standard_normal(structure.size)
    found, log_z = annealed(structure, score, rng), exact(structure, score).log_z
    return bool(found.low - 1e-9 <= log_z <= found.high + 1e-9), found.high - found.low


def run(quick: bool) -> Iterator[Row]:
    """Coverage and width of both families; then a matching far beyond sums."""
    for structures, most, count in zip((PERFECT, OTHERS), (10.0, 3.0), MODELS[quick], strict=True):
        rng = np.random.default_rng(count)
        held, width = np.array([trial(k, rng, structures, most) for k in range(count)]).T
        kinds = "perfect and one-sided" if structures is PERFECT else "partial matchings, graphs"
        workload = f"{count} models, {kinds}, to {most:g} apart"
        met = None if quick else bool(held.mean() >= 0.93)
        yield _row(workload, "tested intervals that hold", held.mean(), "at least .93", met)
        yield _row(
            workload, "median width (nats)", np.median(width), "at most 1", np.median(width) <= 1
        )
        yield _row(workload, "widest (nats)", width.max())
    for apart in (1, 3):
        yield from _large(apart)


def _large(apart: float) -> Iterator[Row]:
    """A matching that no sum reaches."""
    rng, structure = np.random.default_rng(PEOPLE), ms.Matching(PEOPLE)
    score, begun = apart * rng.standard_normal(structure.size), time.process_time()
    found = annealed(structure, score, rng)
    spent, workload = time.process_time() - begun, f"K_{PEOPLE}, scores {apart:g} apart"
    yield _row(workload, "width (nats)", found.high - found.low)
    yield _row(workload, "seconds of the processor", spent, "at most 10", spent <= 10)


def _row(
    workload: str, quantity: str, value: Any, target: str | None = None, met: Any = None
) -> Row:
    return {
        "benchmark": "evidence",
        "workload": workload,
        "quantity": quantity,
        "ours": float(value),
        "target": target,
        "met": None if met is None else bool(met),
    }

"""Marginals of perfect matchings of K_n, beside the matrix product that builds their scores.

CPU milliseconds of one inference (ρ = ½ and Bethe; τ feasible, value included) over those of the
product of (n × 70) answers with their scores, and the sweeps to 1e-8, at two spreads of the scores.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import mlestruct as ms
from mlestruct.inference.matching import MatchingPrices, Scaling, live_edges
from mlestruct.native._door import MatchingAim, MatchingState, matching_infer

QUESTIONS, LEVELS = 14, 5
SIZES = (400, 1000, 2400)
SPREADS = (0.3, 1.0)  # of a question's level-pair scores; a pair adds fourteen
PRODUCTS = {0.5: 7.0, 1.0: 20.0}  # a prototype's worst, at scores like those of learned weights
SWEEPS = 41


def cpu(call: Callable[[], Any], times: int = 3) -> float:
    """The least CPU milliseconds of a few calls, after one that compiles."""
    call()
    seconds = []
    for _ in range(times):
        start = time.thread_time()
        call()
        seconds.append(time.thread_time() - start)
    return 1e3 * min(seconds)


def answers(n: int, spread: float) -> tuple[np.ndarray, np.ndarray]:
    """One-hot answers, and symmetric scores of level pairs, block by block."""
    rng = np.random.default_rng(n)
    chosen = rng.integers(0, LEVELS, (n, QUESTIONS))
    hot = np.zeros((n, QUESTIONS * LEVELS))
    hot[np.arange(n)[:, None], chosen + LEVELS * np.arange(QUESTIONS)] = 1.0
    blocks = np.zeros((QUESTIONS * LEVELS,) * 2)
    for q in range(QUESTIONS):
        part = spread * rng.standard_normal((LEVELS, LEVELS))
        blocks[LEVELS * q : LEVELS * (q + 1), LEVELS * q : LEVELS * (q + 1)] = (part + part.T) / 2
    return hot, blocks


def sweeps(structure: ms.Matching, score: np.ndarray, rho: float) -> int:
    """To 1e-8 from a cold start."""
    graph, _, _, centre = live_edges(structure)
    cold, aim = MatchingPrices.cold(graph, 1, rho), MatchingAim(rho, 1e-8, 500)
    sent, mode = cold.sent if cold.sent.size else None, cold.mode.view(np.uint8)
    state = MatchingState(1, graph.nodes, graph.live, cold.x, sent, mode, np.zeros(5))
    matching_infer(graph, aim, state, score, centre, np.empty(graph.live), np.empty(1))
    return int(state.report[1])


def run(quick: bool) -> Iterator[dict[str, Any]]:
    """The ratio to the product has a target at the smaller spread, whose scores are like fitted."""
    for n in SIZES[:1] if quick else SIZES:
        structure, upper = ms.Matching(n), np.triu_indices(n, 1)
        for spread in SPREADS:
            hot, blocks = answers(n, spread)
            product = cpu(lambda: hot @ (blocks @ hot.T), 5)  # noqa: B023
            score = (hot @ blocks @ hot.T)[upper]
            batch = ms.Batch.of(structure, count=1)
            for rho in (0.5, 1.0):
                routine = Scaling(rho, residual=1e-8)
                took = cpu(lambda: routine.many(batch, score))  # noqa: B023
                beliefs = routine.many(batch, score)
                proven = "proven" if structure.in_hull(beliefs.tau) else "not proven"
                place = f"K_{n}, spread {spread}, rho {rho}: hull {proven}"
                limit = PRODUCTS[rho] if n == SIZES[-1] and spread == SPREADS[0] else None
                yield row(place, "CPU ms of an inference / product", took, product, limit)
                if beliefs.warm[0].mode[0] == 1:
                    yield row(place, "sweeps to 1e-8", sweeps(structure, score, rho), None, SWEEPS)


def row(
    place: str, quantity: str, ours: float, product: float | None, limit: float | None
) -> dict[str, Any]:
    ratio = None if product is None else ours / product
    value = ours if ratio is None else ratio
    return {
        "benchmark": "matching",
        "workload": place,
        "quantity": quantity,
        "ours": ours,
        "peer": product,
        "peer_name": "one matrix product" if product else None,
        "ratio": ratio,
        "target": None if limit is None else f"at most {limit:g}",
        "met": None if limit is None else value <= limit,
    }

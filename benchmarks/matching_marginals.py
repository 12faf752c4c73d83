"""Marginals of matchings: K_n beside one matrix product, and learning on bipartite graphs.

``python -m benchmarks.matching_marginals`` prints, for perfect matchings of K_n, CPU milliseconds
of one inference (ρ = ½ and Bethe; τ feasible, value included) and its sweeps to 1e-8, beside the
product that builds the score matrix from the answers; then the fast route to a certified relative
gap of 1e-6 on n = 30, M = 50 (standard normal features, d = 60, θ* standard normal, Gumbel noise).
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import mlestruct as ms
from mlestruct.inference.matching_scale import scale
from mlestruct.inference.scaling import Scaling, prepared
from mlestruct.structures.odd_sets import odd_set_proof

QUESTIONS, LEVELS = 14, 5
SIZES = (400, 1000, 2400)
SPREADS = (0.3, 1.0)  # of a question's level-pair scores; a pair adds fourteen


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
    """To 1e-8 from a cold start; Bethe from the solution at ρ = ½, as inference does it."""
    graph, _ = prepared(structure)
    fixed = (graph.ptr, graph.head, graph.strict, graph.component, np.ones(graph.components))
    x, tau, report, total = np.zeros(graph.nodes), np.empty(graph.live), np.zeros(3), 0
    stages = [(0.5, 1e-8)] if rho == 0.5 else [(0.5, 1e-2), (rho, 1e-8)]
    for number, (stage, residual) in enumerate(stages):
        scale(
            score, *fixed, 1 - 2 * stage, stage, False, x, number == 0, residual, 500, tau, report
        )
        total += int(report[1])
    return total


def complete() -> None:
    print("K_n   spread  product ms | rho  ms  products  sweeps  largest tau  odd sets proven")
    for n in SIZES:
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
                vector = beliefs.warm[0].mode[0] == 1
                count = str(sweeps(structure, score, rho)) if vector else "messages"
                print(
                    f"{n:5d} {spread:6.1f} {product:9.1f}   | {rho:3.1f} {took:7.1f}"
                    f" {took / product:6.1f}   {count:>8s}  {beliefs.tau.max():8.3f}"
                    f"   {odd_set_proof(structure, beliefs.tau)}"
                )


def bipartite(n: int = 30, examples: int = 50, d: int = 60, lam: float = 1.0) -> None:
    """The fast route, compiled before it is timed."""
    from scipy.optimize import linear_sum_assignment

    rng = np.random.default_rng(0)
    X = rng.standard_normal((examples, n * n, d))
    truth = rng.standard_normal(d)
    noisy = (X @ truth + rng.gumbel(size=(examples, n * n))).reshape(examples, n, n)
    outcomes = [linear_sum_assignment(-table)[1] for table in noisy]
    batch = ms.Batch.of(ms.BipartiteMatching(n), outcomes)
    features = ms.Dense.of(batch, X.reshape(-1, d))
    for rho in (0.5, 1.0):
        for _ in range(2):
            start, cpu_start = time.perf_counter(), time.process_time()
            learner = ms.mle_struct(rho, regulariser=lam, solver=ms.FrankWolfe(tol=1e-6))
            model = learner.fit(batch, features)
            wall, used = time.perf_counter() - start, time.process_time() - cpu_start
        print(
            f"bipartite n={n} M={examples} rho={rho}: {wall:.3f} s wall, {used:.3f} s CPU, "
            f"{len(model.history)} evaluations; {model.certificate}"
        )


if __name__ == "__main__":
    complete()
    bipartite()

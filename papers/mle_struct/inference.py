"""Marginals of perfect matchings: Frank-Wolfe against matching BP, and perturb-and-MAP.

Scores of n × n tables are standard normal times ``SPREAD``. Reported: CPU seconds until the
largest error of any marginal is, and stays, below each level, the reference being the Bethe
optimum (ρ = 1) by messages to convergence. BP's budget grows by doubled sweeps, each from cold;
Frank-Wolfe's curve comes from one run. Perturb-and-MAP is another approximation, so its distance
from Bethe does not vanish: its error and time at ``DRAWS`` samples are given.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlestruct import Batch, BipartiteMatching, FrankWolfe, Regulariser
from mlestruct.dual import Dual
from mlestruct.entropy import Entropy
from mlestruct.features import NoFeatures
from mlestruct.inference.sampling import perturb_and_map
from mlestruct.inference.scaling import Scaling
from mlestruct.oracle import resolve
from papers._run import Row, Setting

Array = NDArray[np.float64]
SIZES, LEVELS, SEEDS, SPREAD = (20, 40, 60, 80, 100), (0.05, 0.01, 0.005, 0.001), 3, 2.0
DRAWS, ROUNDS, SWEEPS = 100, 3000, 4096
QUICK = (10, 200)  # size, rounds


def inference(setting: Setting) -> Iterator[Row]:
    """Every size: medians over seeds of the seconds to each level."""
    seeds, rounds = (1, QUICK[1]) if setting.quick else (SEEDS, ROUNDS)
    compile_all()
    for n in QUICK[:1] if setting.quick else SIZES:
        times: dict[str, list[list[float]]] = {"frank_wolfe": [], "bp": []}
        drawn = []
        for seed in range(seeds):
            batch, score = problem(n, seed)
            exact = Scaling(1.0).many(batch, score).tau
            times["frank_wolfe"].append(reached(frank_wolfe(batch, score, rounds), exact))
            times["bp"].append(reached(messages(batch, score), exact))
            drawn.append(perturbed(batch, score, exact, seed))
        for method, rows in times.items():
            middle = np.median(rows, axis=0)
            seconds = dict(zip((f"s to {level:g}" for level in LEVELS), middle, strict=True))
            yield {"n": n, "method": method, **{k: _known(v) for k, v in seconds.items()}}
        error, seconds_each = np.median(drawn, axis=0)
        yield {
            "n": n,
            "method": "perturb and MAP",
            "draws": DRAWS,
            "error": float(error),
            "seconds": float(seconds_each),
        }


def problem(n: int, seed: int) -> tuple[Batch[Any], Array]:
    rng = np.random.default_rng([20, n, seed])
    return Batch.of(BipartiteMatching(n), count=1), SPREAD * rng.standard_normal(n * n)


def frank_wolfe(batch: Batch[Any], score: Array, rounds: int) -> Iterator[tuple[float, Array]]:
    """(CPU seconds so far, τ) of every round."""
    plain = Batch.of(batch.structure(0), count=1, bias=score)
    entropy = Entropy.of(plain, 1.0)
    dual = Dual(plain, NoFeatures(plain.size, 1), entropy, Regulariser.of(0))
    start, away = time.process_time(), 0.0
    for state in FrankWolfe(tol=1e-9, rounds=rounds).run(dual, resolve(None, plain)):
        now = time.process_time()
        yield now - start - away, state.tau
        away += time.process_time() - now


def messages(batch: Batch[Any], score: Array) -> Iterator[tuple[float, Array]]:
    """(CPU seconds, τ) at sweeps 1, 2, 4, …, each run from cold."""
    for power in range(int(np.log2(SWEEPS)) + 1):
        start = time.process_time()
        tau = Scaling(1.0, sweeps=1 << power).many(batch, score).tau
        yield time.process_time() - start, tau


def reached(curve: Iterator[tuple[float, Array]], exact: Array) -> list[float]:
    """Seconds at the first point from which the error stays below each level; ∞ if never."""
    points = [(seconds, float(np.abs(tau - exact).max())) for seconds, tau in curve]
    found = []
    for level in LEVELS:
        above = [k for k, (_, error) in enumerate(points) if error > level]
        after = above[-1] + 1 if above else 0
        found.append(points[after][0] if after < len(points) else np.inf)
    return found


def perturbed(batch: Batch[Any], score: Array, exact: Array, seed: int) -> tuple[float, float]:
    rng, start = np.random.default_rng([1, seed]), time.process_time()
    drawn = perturb_and_map(batch.structure(0), score, DRAWS, rng)
    seconds = time.process_time() - start
    return float(np.abs(drawn.vertices.mean(axis=0) - exact).max()), seconds


def compile_all() -> None:
    """Kernels are compiled before any clock runs."""
    batch, score = problem(5, 0)
    for curve in (frank_wolfe(batch, score, 30), messages(batch, score)):
        for _ in curve:
            pass
    perturbed(batch, score, score, 0)


def _known(seconds: float) -> float | None:
    return float(seconds) if np.isfinite(seconds) else None

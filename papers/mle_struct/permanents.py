"""Random 10 × 10 matchings: what Bethe and ρ = ½ lose against exact maximum likelihood.

A weight per pair; the truth is 0 on the diagonal and −2 (high signal) or −.5 (low) elsewhere.
Outcomes are exact samples. ``likelihood`` is the exact expected log-likelihood of the learned
weights under the truth, per matching; ``violations`` counts breaks of the sandwich
log Z_Bethe ≤ log Z ≤ log Z_½ at any learned weights (Gurvits; the ½ surrogate is an upper bound).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlestruct import Batch, BipartiteMatching, Dense, FrankWolfe, marginals
from mlestruct.inference.exact import exact
from mlestruct.learners import exact_mle, mle_struct
from papers._run import Row, Setting
from papers.mle_struct.figure import lines
from papers.mle_struct.together import together

Array = NDArray[np.float64]
N, LAM = 10, 1.0  # λ on the sum over matchings, as weak as one more matching
SIGNALS = {"high": -2.0, "low": -0.5}
LEARNERS: dict[str, Any] = {
    "exact": lambda: exact_mle(regulariser=LAM, solver=FrankWolfe(tol=1e-9)),
    "bethe": lambda: mle_struct(1.0, regulariser=LAM, solver=FrankWolfe(tol=1e-9)),
    "half": lambda: mle_struct(0.5, regulariser=LAM, solver=FrankWolfe(tol=1e-9)),
}


def draw(weights: Array, count: int, rng: np.random.Generator) -> Array:
    """Exact samples, row after row: a column's chance is the permanent of what would be left."""
    n = len(weights)
    sums = np.zeros(1 << n)  # log-free permanents of the last rows on every set of columns
    sums[0] = 1.0
    factor = np.exp(weights)
    bits = np.array([bin(s).count("1") for s in range(1 << n)])
    for size in range(1, n + 1):
        sets = np.flatnonzero(bits == size)
        for column in range(n):
            inside = sets[(sets >> column) & 1 == 1]
            sums[inside] += factor[n - size, column] * sums[inside ^ (1 << column)]
    found = np.zeros((count, n), dtype=np.int64)
    for k in range(count):
        left = (1 << n) - 1
        for row in range(n):
            columns = [c for c in range(n) if left >> c & 1]
            chance = np.array([factor[row, c] * sums[left ^ (1 << c)] for c in columns])
            found[k, row] = rng.choice(columns, p=chance / chance.sum())
            left ^= 1 << int(found[k, row])
    return found


def permanents(setting: Setting) -> Iterator[Row]:
    """Both signals, growing samples, 20 seeds."""
    seeds, sizes = (2, (30,)) if setting.quick else (20, (10, 30, 100, 300, 1000))
    shown: dict[str, Any] = {}
    for signal, off in SIGNALS.items():
        truth = np.where(np.eye(N) > 0, 0.0, off)
        means: dict[str, list[float]] = {name: [] for name in LEARNERS}
        for size in sizes:
            found = [learned(truth, size, seed) for seed in range(seeds)]
            for name, values in means.items():
                values.append(float(np.mean([one.likelihood[name] for one in found])))
            yield {
                "signal": signal,
                "matchings": size,
                **{f"likelihood, {name}": values[-1] for name, values in means.items()},
                "bethe better than half": sum(
                    one.likelihood["bethe"] >= one.likelihood["half"] for one in found
                ),
                "seeds": seeds,
                "violations": sum(one.violations for one in found),
                "worst gap": max(one.worst for one in found),
            }
        shown[f"{signal} signal"] = {name: (sizes, values) for name, values in means.items()}
    lines(setting, "permanents", shown, "matchings", "exact expected log-likelihood", log=True)


class Learned(NamedTuple):
    """Of one sample: exact likelihoods by learner, breaks of the sandwich, the worst gap."""

    likelihood: dict[str, float]
    violations: int
    worst: float


def learned(truth: Array, size: int, seed: int) -> Learned:
    structure = BipartiteMatching(N, N)
    outcomes = draw(truth, size, np.random.default_rng([2016, seed, size]))
    batch = together(structure, [structure.encode(y) for y in outcomes])
    expected, likelihood, violations, worst = exact(structure, truth).tau, {}, 0, 0.0
    for name, make in LEARNERS.items():
        model = make().fit(batch, Dense.of(batch, np.eye(N * N)))
        log_z = exact(structure, model.theta).log_z
        likelihood[name] = float(model.theta @ expected) - log_z
        violations += broken(batch, model.theta, log_z)
        worst = max(worst, model.certificate.relative)
    return Learned(likelihood, violations, worst)


def broken(batch: Batch[Any], theta: Array, log_z: float) -> int:
    """How many of the two inequalities fail beyond rounding."""
    bethe, half = (marginals(batch, theta, rho=rho) for rho in (1.0, 0.5))
    slack = 1e-8 * max(1.0, abs(log_z))
    return int(bethe.lower[0] > log_z + slack) + int(half.upper[0] < log_z - slack)

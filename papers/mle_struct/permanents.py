"""Random 10 × 10 matchings: what Bethe and ρ = ½ lose against exact maximum likelihood.

A weight per pair; the truth is 0 on the diagonal and −2 (high signal) or −.5 (low) elsewhere.
Outcomes are exact samples. ``likelihood`` is the exact expected log-likelihood of the learned
weights under the truth, per matching; ``violations`` counts breaks of the sandwich
log Z_Bethe ≤ log Z ≤ log Z_½ at any learned weights (Gurvits; the ½ surrogate is an upper bound).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlestruct import Batch, BipartiteMatching, Dense, FrankWolfe, marginals
from mlestruct.inference.exact import exact
from mlestruct.learners import exact_mle, mle_struct
from papers._run import Row, Setting
from papers.mle_struct.figure import lines

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
    structure, seeds = BipartiteMatching(N, N), 2 if setting.quick else 20
    shown: dict[str, Any] = {}
    for signal, off in SIGNALS.items():
        truth = np.where(np.eye(N) > 0, 0.0, off)
        expected = exact(structure, truth).tau
        sizes = (30,) if setting.quick else (10, 30, 100, 300, 1000)
        means: dict[str, list[float]] = {name: [] for name in LEARNERS}
        for size in sizes:
            found: dict[str, list[float]] = {name: [] for name in LEARNERS}
            violations, worst = 0, 0.0
            for seed in range(seeds):
                outcomes = draw(truth, size, np.random.default_rng([2016, seed, size]))
                batch = together(structure, outcomes)
                features = Dense.of(batch, np.eye(N * N))
                for name, make in LEARNERS.items():
                    model = make().fit(batch, features)
                    log_z = exact(structure, model.theta).log_z
                    found[name].append(float(model.theta @ expected) - log_z)
                    violations += broken(batch, model.theta, log_z)
                    worst = max(worst, model.certificate.relative)
            for name, values in found.items():
                means[name].append(float(np.mean(values)))
            yield {
                "signal": signal,
                "matchings": size,
                **{f"likelihood, {name}": values[-1] for name, values in means.items()},
                "bethe better than half": int(
                    np.sum(np.array(found["bethe"]) >= np.array(found["half"]))
                ),
                "seeds": seeds,
                "violations": violations,
                "worst gap": worst,
            }
        shown[f"{signal} signal"] = {name: (sizes, values) for name, values in means.items()}
    lines(setting, "permanents", shown, "matchings", "exact expected log-likelihood", log=True)


def together(structure: BipartiteMatching, outcomes: Array) -> Batch[Any]:
    """One example that weighs as many as there are outcomes, its target their mean."""
    mean = np.mean([structure.encode(y) for y in outcomes], axis=0)
    batch = Batch.of([structure], [outcomes[0]], weight=[float(len(outcomes))])
    return replace(batch, target=mean)


def broken(batch: Batch[Any], theta: Array, log_z: float) -> int:
    """How many of the two inequalities fail beyond rounding."""
    bethe, half = (marginals(batch, theta, rho=rho) for rho in (1.0, 0.5))
    slack = 1e-8 * max(1.0, abs(log_z))
    return int(bethe.lower[0] > log_z + slack) + int(half.upper[0] < log_z - slack)

"""Planar Ising models learned through the matching oracle, beside exact maximum likelihood.

An open grid with two weights (right, down) and no field. Outcomes are exact samples. MLE-Struct
counts edges by spanning trees and is proven by a MAP solver (minimum-weight matching); exact
maximum likelihood sums variables out. ``likelihood`` is the exact one of new samples, per
outcome. The oracle learner starts where messages on the labelled grid end: over the local polytope,
which is larger than the mixtures of labellings, so that only the oracle can say whether it is done.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlestruct import Dense, FrankWolfe, Ising, grid, marginals, sample
from mlestruct.inference.exact import exact
from mlestruct.learners import exact_mle, mle_struct
from papers._run import Row, Setting
from papers.mle_struct.figure import lines
from papers.mle_struct.together import together

Array = NDArray[np.float64]
SIDE, COUNT, LAM = 8, 50, 1.0
TRUTH = {"weak": (0.3, 0.2), "strong": (1.0, 0.7)}  # scores of agreeing, right and down
LEARNERS: dict[str, Any] = {
    "exact": exact_mle(regulariser=LAM, solver=FrankWolfe(tol=1e-9)),
    "oracle": mle_struct(regulariser=LAM, solver=FrankWolfe(tol=1e-4, rounds=2000)),
}
MESSAGES = mle_struct("trees", regulariser=LAM, solver=FrankWolfe(tol=1e-12))


def planar(setting: Setting) -> Iterator[Row]:
    """Both strengths, both learners, five seeds."""
    side, seeds = (4, 1) if setting.quick else (SIDE, 5)
    ends = grid(side, side).scope.reshape(-1, 2)
    structure = Ising(side * side, ends)
    kind = np.stack([ends[:, 1] - ends[:, 0] == 1, ends[:, 1] - ends[:, 0] == side], axis=1)
    shown: dict[str, list[tuple[float, float]]] = {name: [] for name in LEARNERS}
    for strength, truth in TRUTH.items():
        found: dict[str, list[Any]] = {name: [] for name in LEARNERS}
        for seed in range(seeds):
            rng = np.random.default_rng([2016, seed])
            labels, fresh = (draw(side, kind @ np.array(truth), rng) for _ in range(2))
            batch = together(structure, agreements(side, labels))
            begin, test = messages(side, kind, labels), agreements(side, fresh)
            for name, learner in LEARNERS.items():
                features = Dense.of(batch, kind.astype(float))
                start = begin if name == "oracle" else None
                last = learner.fit(batch, features, start=start)
                score = kind @ last.theta
                likelihood = float(score @ test.mean(axis=0)) - exact(structure, score).log_z
                found[name].append((likelihood, *last.theta, last.certificate.relative, last.round))
        for name, rows in found.items():
            likelihood, right, down, gap, turns = np.mean(rows, axis=0)
            shown[name] += zip(truth, (right, down), strict=True)
            yield {
                "coupling": strength,
                "learner": name,
                "likelihood": float(likelihood),
                "right": float(right),
                "down": float(down),
                "true right": truth[0],
                "true down": truth[1],
                "worst gap": float(np.max(rows, axis=0)[3]),
                "mean gap": float(gap),
                "rounds": float(turns),
                "seeds": seeds,
            }
    series = {name: tuple(zip(*sorted(points), strict=True)) for name, points in shown.items()}
    axes = "true coupling", "learned coupling"
    lines(setting, "planar", {f"{side} × {side}": series}, *axes, diagonal=True)


def draw(side: int, score: Array, rng: np.random.Generator) -> Array:
    """Exact samples of the labelled grid, as its vertices."""
    graph = grid(side, side)
    tables = np.zeros((len(score), 4))
    tables[:, [0, 3]] = score[:, None]
    scores = np.concatenate([np.zeros(2 * side * side), tables.ravel()])
    return np.asarray(sample(graph, scores, COUNT, rng).vertices)


def agreements(side: int, vertices: Array) -> Array:
    """How often every edge's ends agree, by vertices or marginals of the labelled grid."""
    tables = vertices[..., 2 * side * side :].reshape(*vertices.shape[:-1], -1, 4)
    return np.asarray(tables[..., 0] + tables[..., 3])


def messages(side: int, kind: Array, labels: Array) -> Array:
    """Agreements by messages, at the weights that they learn."""
    batch, tables = together(grid(side, side), labels), np.zeros((len(kind), 4, 2))
    tables[:, [0, 3]] = kind[:, None]
    features = Dense.of(batch, np.concatenate([np.zeros((2 * side * side, 2)), *tables]))
    model = MESSAGES.fit(batch, features)
    return agreements(side, marginals(batch, features.potentials(model.theta), rho="trees").tau)

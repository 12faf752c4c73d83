"""Planar Ising models learned through the matching oracle, beside exact maximum likelihood.

An open grid with two weights (right, down) and no field. Outcomes are exact samples. MLE-Struct
sees only a MAP solver (minimum-weight matching) and counts edges by spanning trees; exact maximum
likelihood takes Kasteleyn's Pfaffian. ``likelihood`` is the exact one of new samples, per outcome.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlestruct import Dense, FrankWolfe, Ising, grid, sample
from mlestruct.inference.exact import exact
from mlestruct.learners import exact_mle, mle_struct
from papers._run import Row, Setting
from papers.mle_struct.figure import lines
from papers.mle_struct.together import together

Array = NDArray[np.float64]
SIDE, COUNT, LAM = 8, 50, 1.0
TRUTH = {"weak": (0.3, 0.2), "strong": (1.0, 0.7)}  # scores of agreeing, right and down
LEARNERS: dict[str, Any] = {
    "exact": lambda: exact_mle(regulariser=LAM, solver=FrankWolfe(tol=1e-9)),
    "oracle": lambda: mle_struct(regulariser=LAM, solver=FrankWolfe(tol=1e-4, rounds=2000)),
}


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
            train, test = (draw(structure, kind @ np.array(truth), rng) for _ in range(2))
            for name, make in LEARNERS.items():
                batch = together(structure, train)
                model = make().fit(batch, Dense.of(batch, kind.astype(float)))
                score = kind @ model.theta
                likelihood = float(score @ test.mean(axis=0)) - exact(structure, score).log_z
                found[name].append((likelihood, *model.theta, model.certificate.relative))
        for name, rows in found.items():
            likelihood, right, down, gap = np.mean(rows, axis=0)
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
                "seeds": seeds,
            }
    series = {name: tuple(zip(*sorted(points), strict=True)) for name, points in shown.items()}
    axes = "true coupling", "learned coupling"
    lines(setting, "planar", {f"{side} × {side}": series}, *axes, diagonal=True)


def draw(structure: Ising, score: Array, rng: np.random.Generator) -> Array:
    """Agreements of exact samples of the labelled graph."""
    graph = grid(*[int(np.sqrt(structure.n))] * 2)
    tables = np.zeros((structure.size, 4))
    tables[:, [0, 3]] = score[:, None]
    scores = np.concatenate([np.zeros(2 * structure.n), tables.ravel()])
    drawn = sample(graph, scores, COUNT, rng)
    return np.array([structure.encode(graph.decode(v)) for v in drawn.vertices])

"""A table of answers as an undirected model with an elastic net on couplings.

Every question is split at its median into two answers; every pair of questions has a coupling, of
which the l1 part of the regulariser keeps few. λ and l1 are fixed. Held-out log-likelihood per
person: exact (summed over all answers), the surrogate's own, and of independent questions.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlestruct import Batch, Dense, FactorGraph, FrankWolfe, Regulariser, marginals, tables
from mlestruct.inference.exact import exact
from mlestruct.learners import exact_mle, mle_struct
from papers._run import Row, Setting
from papers.mle_struct.figure import lines
from papers.mle_struct.together import together

Array = NDArray[np.float64]
LAM, SHARE, TRAIN, QUICK = 1.0, (0.0, 0.01, 0.02, 0.05), 640, 6  # l1 per person in training
SOLVER = FrankWolfe(tol=1e-4, rounds=500)
LEARNERS: dict[str, Any] = {"mle_struct": mle_struct, "exact_mle": exact_mle}


def indicators(folder: Path) -> NDArray[np.int64]:
    """(people × questions): 1 above the median."""
    people = tables.table(folder / "students.csv")
    names = [name for name in people.names if name.startswith("q")]
    answers = np.stack([np.asarray(people[name], dtype=float) for name in names], axis=1)
    above = answers > np.median(answers, axis=0)
    return above.astype(np.int64)


def density(setting: Setting) -> Iterator[Row]:
    """No couplings, all, few: by the surrogate and exactly."""
    answers = indicators(setting.data("roommates_semisynthetic"))
    answers = answers[:, :QUICK] if setting.quick else answers
    order = np.random.default_rng(67).permutation(len(answers))
    graph, rows = model_of(answers.shape[1])
    n = graph.n_nodes
    vertices = np.array([graph.encode(row) for row in answers])
    train, test = (together(graph, vertices[part]) for part in (order[:TRAIN], order[TRAIN:]))
    features = Dense.of(train, rows)
    kinds = [("independent", "exact_mle", None)]
    kinds += [("pairs", name, share) for name in LEARNERS for share in SHARE]
    shown: dict[str, list[tuple[int, float]]] = {}
    for model, name, share in kinds:
        d = features.d
        l1 = np.zeros(d)
        l1[n:] = (share or 0.0) * TRAIN
        off = {} if share is not None else dict.fromkeys(range(n, d), 0.0)
        regulariser = Regulariser.of(d, LAM, l1=l1, fixed=off)
        fitted = LEARNERS[name](regulariser=regulariser, solver=SOLVER).fit(train, features)
        score = rows @ fitted.theta
        assert test.target is not None
        reached = float(score @ test.target)
        believed = marginals(Batch.of(graph, count=1), score)
        held, couplings = reached - exact(graph, score).log_z, np.abs(fitted.theta[n:]) > 1e-6
        label = name if model == "pairs" else model
        shown.setdefault(label, []).append((int(couplings.sum()), held))
        yield {
            "model": model,
            "learner": name,
            "l1 per person": share,
            "couplings": int(couplings.sum()),
            "held out, exact": held,
            "held out, surrogate": reached - float(believed.upper[0]),
            "certificate": fitted.certificate.relative,
        }
    series = {label: tuple(zip(*points, strict=True)) for label, points in shown.items()}
    lines(setting, "density", {"14 questions": series}, "couplings", "held-out log-likelihood")


def model_of(n: int) -> tuple[FactorGraph, Array]:
    """All pairs; a weight for every question's 1, one for every pair of 1s."""
    pairs = np.stack(np.triu_indices(n, 1), axis=1)
    graph = FactorGraph([2] * n, pairs)
    rows = np.zeros((graph.size, n + len(pairs)))
    rows[2 * np.arange(n) + 1, np.arange(n)] = 1.0
    rows[graph.table_start[1:] - 1, n + np.arange(len(pairs))] = 1.0
    return graph, rows

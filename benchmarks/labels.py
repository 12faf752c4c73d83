"""Labels: what void nodes, the k best, constraints and several labels at once cost and keep.

Void: the shipped generator's noisy pictures of 10 × 10 pixels, three seeds. 30 % of the pixels of N
pictures are void; beside it stand 0.7 N complete pictures, as many labels, by their errors on 40
others, and the N pictures complete, by their time. k best: 10 against 1, of the same sequences in
one call each, the least of five. Several labels: 6 of them, decisions of every learner against all
64 sets. Then what our learners and their peers say of snakes, superpixels, several labels, letters
and WNUT-17 by one protocol, see :mod:`benchmarks._label_peers`. CPU seconds.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

import mlestruct as ms
from benchmarks._clock import least
from benchmarks._label_tasks import peers
from mlestruct import data
from mlestruct.readers.transitions import ForbiddenTags

Row = dict[str, Any]
VOID, PICTURES, SEEDS = 0.3, 40, 3
LEARNERS = ("mle_struct", "exact_mle", "pseudo_likelihood", "ssvm", "piecewise", "perceptron")


def run(quick: bool) -> Iterator[Row]:
    """Rows of errors, times and counts."""
    for unseen in ("hidden", "left_out"):
        yield from void(unseen, 10 if quick else PICTURES, 1 if quick else SEEDS)
    yield k_best(quick)
    yield broken(quick)
    for learner in LEARNERS[: 2 if quick else None]:
        yield sets(learner, 60 if quick else 300)
    yield from peers(quick)


def row(workload: str, quantity: str, ours: float, **more: Any) -> Row:
    return {"benchmark": "labels", "workload": workload, "quantity": quantity, "ours": ours} | more


def void(unseen: str, pictures: int, seeds: int) -> Iterator[Row]:
    """Error beside complete pictures with as many labels, and time beside the same complete."""
    errors, seconds = [], []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        train, _, test = data.grids(sizes=(pictures, 0, 40), side=10, seed=seed)
        y = [np.reshape(labels, (10, 10)) for labels in train.y]
        gone = [np.ma.masked_array(labels, rng.random(labels.shape) < VOID) for labels in y]
        fewer = round((1 - VOID) * pictures)
        fits = [
            fitted(ms.GridModel(alpha=0.1, unseen=unseen), train.X[:some], labels[:some])
            for labels, some in ((gone, pictures), (y, fewer), (y, pictures))
        ]
        errors.append([1 - model.score(test.X, test.y) for model, _ in fits])
        seconds.append([spent for _, spent in fits])
    (ours, fair, _), (spent, _, whole) = np.mean(errors, axis=0), np.mean(seconds, axis=0)
    name = f"grids, {VOID:.0%} void, {unseen}"
    yield row(name, "error", ours, peer=fair, peer_name="complete, as many labels",
              ratio=ours / fair, target="≤ 1.1", met=bool(ours <= 1.1 * fair))  # fmt: skip
    yield row(name, "CPU s", spent, peer=whole, peer_name="same pictures, complete",
              ratio=spent / whole, target="≤ 4", met=bool(spent <= 4 * whole))  # fmt: skip


def fitted(model: Any, X: Any, y: Any) -> tuple[Any, float]:
    """A fit and its CPU seconds, kernels compiled."""
    model.fit(X[:2], y[:2])
    begun = time.process_time()
    model.fit(X, y)
    return model, time.process_time() - begun


def k_best(quick: bool) -> Row:
    """Ten sequences and their probabilities against the best alone."""
    train, _, test = data.sequences(sizes=(40, 0, 50 if quick else 500))
    model = ms.SequenceModel().fit(train.X, train.y)
    ten, one = (least(lambda k=k: model.k_best(test.X, k)) for k in (10, 1))
    return row("sequences, k best", "CPU s of 10", ten, peer=one, peer_name="k = 1",
               ratio=ten / one, target="≤ 3", met=bool(ten <= 3 * one))  # fmt: skip


def broken(quick: bool) -> Row:
    """Predictions and samples that break constraints, of weights that would like to."""
    rng, tags = np.random.default_rng(0), ["B-a", "I-a", "B-b", "I-b", "O"]
    X = [rng.standard_normal((n, 3)) for n in rng.integers(1, 12, 30 if quick else 300)]
    model = ms.SequenceModel(constraints="bio").fit([np.zeros((5, 3))], [tags])
    model.coef_ = 5 * rng.standard_normal(len(model.coef_))
    rules = ForbiddenTags.of(model.classes_.tolist(), "bio")
    answers = [*model.predict(X), *(tags for found in model.k_best(X, 5) for tags, _ in found)]
    wrong = sum(rules.broken(np.searchsorted(model.classes_, one)) is not None for one in answers)
    return row(f"BIO, {len(answers)} answers", "violations", wrong, target="0", met=wrong == 0)


def sets(learner: str, count: int) -> Row:
    """Rows whose predicted set is the best of all 64 under the learned scores."""
    rng, labels = np.random.default_rng(0), 6
    X = rng.standard_normal((count, 4))
    pull = X @ rng.standard_normal((4, labels)) + rng.standard_normal((count, 1))
    model = ms.MultiLabelModel(learner=learner, tol=1e-2).fit(X, (pull > 0).astype(int))
    structure = model.structures(X[:1])[0]
    every = np.array([structure.encode(one) for one in product((0, 1), repeat=labels)])
    best = [float((every @ scores).max()) for scores in model.potentials(X)]
    reached = [
        float(scores @ structure.encode(one))
        for one, scores in zip(model.predict(X), model.potentials(X), strict=True)
    ]
    share = float(np.mean(np.isclose(reached, best, rtol=0, atol=1e-9)))
    return row(f"6 labels, {learner}", "share of best sets", share, target="1", met=share == 1.0)

"""What the thesis leaves open at 50 % noise: which images, which threshold, which schedule.

Univariate likelihood through messages, fitted from 0. ``choices`` first draws ten training and ten
test images of each digit by numpy default_rng([2009, seed]), noise by [2009, seed, 0 or 1]; then it
changes one thing at a time over the first three noise draws.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

import mlestruct as ms
from mlestruct import images
from mlestruct.families.fitting.truncated import (
    Messages,
    Sweep,
    beliefs,
    flooding,
    one_by_one,
    there_and_back,
)
from mlestruct.learners import LEARNERS
from papers._run import Row, Setting
from papers.fitting.digits import FIT, both, load, tied
from papers.fitting.methods import Array, Part, budget

SEEDS, DRAWS, INK = 10, 3, 127
Split = tuple[Part, Part]


def error(
    fit: dict[str, Any], split: Split, iterations: int = 4, lam: float = 0.1, **how: Any
) -> float:
    """On the second part, after fitting to the first."""
    (train, test), messages = split, Messages(**how)
    given = {**fit, "regulariser": lam, "method": messages, "iterations": iterations}
    learner = LEARNERS["procedural"](loss="ucl", begin=None, **given)
    theta = learner.fit(train.batch, train.features).theta
    scores = [test.scores(theta)]
    return test.errors(beliefs(test.batch, scores, messages, iterations, whole=False))


def inked(x: Array, rows: Sequence[Any], seed: int, threshold: int = INK) -> Split:
    """Pixels brighter than a threshold, then half of them coins."""
    ink = [(x[some] > threshold).astype(np.uint8) for some in rows]
    train, test = (
        tied(images.coin_noise(y, 0.5, [2009, seed, number]), y) for number, y in enumerate(ink)
    )
    return train, test


def random_split(x: Array, digit: Array, seed: int) -> Split:
    """Ten of each digit from 1 to 9 to train, ten others to test."""
    rng = np.random.default_rng([2009, seed])
    each = [rng.choice(np.flatnonzero(digit == d), 20, replace=False) for d in range(1, 10)]
    rows = np.array(each).reshape(9, 2, 10).swapaxes(0, 1).reshape(2, 90)
    return inked(x, list(rows), seed)


def by_direction(part: Part) -> Part:
    """A table for the edges along rows, another for those along columns."""
    ends = part.batch.structure(0).scope.reshape(-1, 2)
    along = (ends[:, 1] - ends[:, 0] == 1).astype(float)
    edges = np.tile(np.stack([along, 1 - along], axis=1), (len(part.batch), 1))
    return Part(part.batch, ms.Tied.of(part.batch, part.features.nodes, edges))


def half(graph: Any) -> Sweep:
    """The sweep without its way back."""
    return one_by_one(there_and_back(graph).factor[: graph.n_factors])


HOW: dict[str, dict[str, Any]] = {
    "as in digits": {},
    **{f"{k} iterations": {"iterations": k} for k in (3, 5, 8)},
    **{f"{k}, all factors at once": {"order": flooding, "iterations": k} for k in (4, 8, 16)},
    "half a sweep": {"order": half},
    "tree-reweighted, 1/2": {"rho": 0.5},
    **{f"lambda {lam:g}": {"lam": lam} for lam in (1e-3, 1.0, 10.0)},
}


def choices(setting: Setting) -> Iterator[Row]:
    """Errors over random choices of images, then over changes of the protocol."""
    with np.load(setting.data("mnist10k") / "mnist10k.npz") as file:
        x, digit = file["x"], file["y"]
    seeds, judged = range(2 if setting.quick else SEEDS), partial(error, budget(setting, FIT))
    yield row("images drawn at random", [judged(random_split(x, digit, seed)) for seed in seeds])
    arrays, draws = load(setting), range(1 if setting.quick else DRAWS)
    splits = [both(arrays, 50, draw) for draw in draws]
    for what, how in HOW.items():
        yield row(what, [judged(split, **how) for split in splits])
    aimed = [(by_direction(train), by_direction(test)) for train, test in splits]
    yield row("a table per direction", [judged(split) for split in aimed])
    yield row("training and test images exchanged", [judged(split[::-1]) for split in splits])
    for threshold in (0, INK, 200):
        rows = arrays["train_index"], arrays["test_index"]
        found = [judged(inked(x, rows, draw, threshold)) for draw in draws]
        yield row(f"white above {threshold}", found)


def row(what: str, errors: list[float]) -> Row:
    """Mean, spread and range."""
    return {
        "what": what,
        "runs": len(errors),
        "error": float(np.mean(errors)),
        "spread": float(np.std(errors)),
        "least": min(errors),
        "most": max(errors),
    }

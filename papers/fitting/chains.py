"""Sequences seen through coins, of a model's own kind and not: what each loss learns from them.

The thesis's section 3.7. Well specified: every input is a coin, labels are drawn from a CRF with
random weights (standard normal, one CRF for all sequences). Semi: tens of one value, then of the
other; 60 % of the inputs are coins, the rest show the label. Misspecified: one random value with
five variables flipped; 75 % are coins. What is not convex starts from the conditional likelihood.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import mlestruct as ms
from mlestruct import images
from mlestruct.families.fitting.losses import LOSSES
from mlestruct.inference.forests import ForwardBackward
from mlestruct.inference.sampling import sample
from mlestruct.learners import LEARNERS
from papers._run import Row, Setting
from papers.fitting.methods import Array, Ints, Part, truncated_beliefs

LENGTH, FLIPS = 50, 5
TRAIN, TEST, SIZES, SETS = 20, 200, (1, 3, 10, 30), 100
TRAINED = ("likelihood", "pseudo", *LOSSES)
FIT: dict[str, Any] = {"regulariser": 0.1, "solver": ms.FrankWolfe(tol=1e-4, rounds=100)}


def alternating(rng: np.random.Generator) -> Ints:
    """Tens of one value, then of the other."""
    return np.asarray((np.arange(LENGTH) // 10 + rng.integers(2)) % 2, dtype=np.int64)


def flipped(rng: np.random.Generator) -> Ints:
    """One random value with five flips."""
    y = np.full(LENGTH, rng.integers(2))
    y[rng.choice(LENGTH, FLIPS, replace=False)] ^= 1
    return y


SHOWN: dict[str, tuple[Callable[[np.random.Generator], Ints], float]] = {
    "semi": (alternating, 0.6),
    "misspecified": (flipped, 0.75),
}
"""Labels, and the share of inputs that are coins instead."""
KINDS = ("well specified", *SHOWN)


def sequences(kind: str, count: int, *seed: int) -> Part:
    """Labels, and two indicators of every input."""
    rng = np.random.default_rng([37, KINDS.index(kind), *seed])
    if kind not in SHOWN:
        return own(rng, count)
    draw, coins = SHOWN[kind]
    labels = [draw(rng) for _ in range(count)]
    return part(np.stack([images.coin_noise(y, coins, rng) for y in labels]), labels)


def own(rng: np.random.Generator, count: int) -> Part:
    """Coins for inputs, labels from the CRF whose weights are the first draws of seed 37."""
    x = rng.integers(0, 2, (count, LENGTH)).astype(float)
    blank = part(x)
    scores = blank.scores(np.random.default_rng(37).standard_normal(blank.features.d))
    drawn = sample(blank.batch, scores, 1, rng)
    return part(x, [np.asarray(one.outcomes()[0]) for one in drawn])


def part(x: Array, labels: list[Ints] | None = None) -> Part:
    """Chains with a 2 × 2 table per input and label, and one per pair of neighbours."""
    chain = ms.chain(LENGTH, 2)
    batch = ms.Batch.of(chain, count=len(x)) if labels is None else ms.Batch.of(chain, labels)
    return Part(batch, ms.Tied.of(batch, np.stack([1 - x.ravel(), x.ravel()], axis=1)))


def learn(loss: str, train: Part) -> Array:
    """One sweep there and back is exact on a chain, so marginal losses are fitted through it."""
    names = {"likelihood": "mle_struct", "pseudo": "pseudo_likelihood"}
    if loss in names:
        return LEARNERS[names[loss]](**FIT).fit(train.batch, train.features).theta
    learner = LEARNERS["procedural"](loss=loss, iterations=1, **FIT)
    return learner.fit(train.batch, train.features).theta


def judged(part: Part, theta: Array) -> dict[str, float]:
    """Every test loss per variable, beliefs exact."""
    scores = part.scores(theta)
    found = ForwardBackward().many(part.batch, scores)
    reached = part.batch.totals(scores * part.batch.target)
    count = len(part.batch) * LENGTH
    values = {"likelihood": float((found.log_z - reached).sum()) / count}
    for name, loss in LOSSES.items():
        values[name] = loss(found.tau, loss.units(part.batch))[0] / count
    return {**values, "error": part.errors(found.tau)}


def chains(setting: Setting) -> Iterator[Row]:
    """Train loss × test loss on the three kinds of sequence."""
    for kind in KINDS:
        test, train = sequences(kind, TEST), sequences(kind, TRAIN, 1)
        for loss in TRAINED:
            yield {"set": kind, "trained on": loss, **judged(test, learn(loss, train))}


def curves(setting: Setting) -> Iterator[Row]:
    """Mean test error over many training sets, by their size."""
    sets = 2 if setting.quick else SETS
    for kind in KINDS:
        test = sequences(kind, TEST)
        for size in SIZES[:2] if setting.quick else SIZES:
            found = [errors_of(test, sequences(kind, size, 2, size, draw)) for draw in range(sets)]
            mean = dict(zip(TRAINED, np.mean(found, axis=0).tolist(), strict=True))
            yield {"set": kind, "sequences": size, "sets": sets, **mean}


def errors_of(test: Part, train: Part) -> list[float]:
    """Test errors of everything that learns from these."""
    exact = truncated_beliefs(1)
    return [test.errors(exact(test, learn(loss, train))) for loss in TRAINED]

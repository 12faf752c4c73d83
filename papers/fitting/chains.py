"""Sequences seen through noise, of a model's own kind and not: what each loss learns from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import mlestruct as ms
from mlestruct.families.fitting.condensed import Newton
from mlestruct.families.fitting.losses import LOSSES
from mlestruct.learners import LEARNERS
from papers._run import Row, Setting
from papers.fitting.methods import Array, Ints, Part, truncated_beliefs

LENGTH, NOISE, FLIPS, STAY = 50, 1.0, 5, 0.8
TRAIN, TEST, SIZES, SETS = 20, 200, (1, 3, 10, 30), 100
TRAINED = ("likelihood", "pseudo", "ucl", "uquad", "uclass", "ccl", "cquad")
TESTED = ("ucl", "uquad", "ccl", "cquad")
FIT: dict[str, Any] = {"regulariser": 0.1, "solver": ms.FrankWolfe(tol=1e-4, rounds=100)}


def well(rng: np.random.Generator) -> Ints:
    """A Markov chain that stays with chance .8: the model's own kind."""
    moves = np.concatenate([[rng.integers(2)], rng.random(LENGTH - 1) > STAY])
    return np.asarray(np.cumsum(moves) % 2, dtype=np.int64)


def alternating(rng: np.random.Generator) -> Ints:
    """Tens of one value, then of the other."""
    return np.asarray((np.arange(LENGTH) // 10 + rng.integers(2)) % 2, dtype=np.int64)


def flipped(rng: np.random.Generator) -> Ints:
    """One random value with five flips."""
    y = np.full(LENGTH, rng.integers(2))
    y[rng.choice(LENGTH, FLIPS, replace=False)] ^= 1
    return y


KINDS: dict[str, Callable[[np.random.Generator], Ints]] = {
    "well specified": well,
    "semi": alternating,
    "misspecified": flipped,
}


def sequences(kind: str, count: int, *seed: int) -> Part:
    """Labels, and observations with a constant."""
    rng = np.random.default_rng([37, list(KINDS).index(kind), *seed])
    labels = [KINDS[kind](rng) for _ in range(count)]
    x = np.concatenate(labels) + NOISE * rng.standard_normal(count * LENGTH)
    batch = ms.Batch.of(ms.chain(LENGTH, 2), labels)
    return Part(batch, ms.Tied.of(batch, np.stack([x, np.ones(len(x))], axis=1)))


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
    found = Newton(1.0).many(part.batch, scores)
    reached = part.batch.totals(scores * part.batch.target)
    count = len(part.batch) * LENGTH
    values = {"likelihood": float((found.log_z - reached).sum()) / count}
    for name in TESTED:
        loss = LOSSES[name]
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

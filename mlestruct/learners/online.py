"""Averaged perceptron: online updates towards what was observed, through any oracle."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from mlestruct.batch import Batch
from mlestruct.checkpoint import Keeping, Loop, begin
from mlestruct.digest import name_of, named
from mlestruct.dual import Certificate
from mlestruct.errors import counting_from
from mlestruct.features import Features
from mlestruct.features.weighed import coordinate_weights
from mlestruct.frank_wolfe import Cost, FrankWolfe, State, noted
from mlestruct.inference.choose import DEFAULT, Inference
from mlestruct.kernels import clock
from mlestruct.learners.convex import AnyOracle
from mlestruct.learners.model import Model, Runs, Through, along
from mlestruct.learners.problem import check_problem, ridge_of
from mlestruct.oracle import Oracle, Validated, memory, remember, resolve
from mlestruct.regulariser import Regulariser
from mlestruct.structures.base import Array
from mlestruct.trees import Tree

WHY = "an averaged perceptron minimises no objective that bounds its error"


@dataclass(frozen=True)
class Perceptron:
    """θ ← θ + w_m (φ_m − φ(ŷ)) for one example after another; the answer is the mean of all θ.

    On separable examples it makes finitely many mistakes, whatever their order (Novikoff); else
    it stops after ``epochs``. One oracle call per example and epoch, nothing is certified.
    """

    oracle: AnyOracle = None
    epochs: int = 20
    seed: int = 0
    seconds: float | None = None
    name: str = "perceptron"
    checkpoint: Keeping = None
    inference: Inference = DEFAULT

    def states(self, batch: Batch[Any], features: Features) -> Iterator[State]:
        """A state per epoch: its objective is the share of examples it was wrong about."""
        check_problem(self.name, batch, features)
        oracle = Validated(resolve(self.oracle, batch))
        loop = begin(self.checkpoint, self.name, partial(self._setting, batch, features, oracle))
        yield from noted(loop, partial(self._epochs, batch, features, oracle, loop))

    def _setting(
        self, batch: Batch[Any], features: Features, oracle: Oracle[Any]
    ) -> dict[str, Any]:
        own = {"epochs": self.epochs, "seed": self.seed, "seconds": self.seconds}
        none = Regulariser.of(0)
        return {**named(batch, features, none), "oracle": name_of(oracle), **own}

    def _epochs(
        self,
        batch: Batch[Any],
        features: Features,
        oracle: Oracle[Any],
        loop: Loop,
        spent: float,
    ) -> Iterator[State]:
        began, count = clock() - spent, len(batch)
        ones = [(batch.select([m]), features.select(np.array([m]))) for m in range(count)]
        rng, theta = np.random.default_rng(self.seed), np.zeros(features.d)
        first, total = 0, np.zeros(features.d)
        if loop.tree is not None:
            first, theta, total, rng.bit_generator.state, memories = loop.tree
            for (one, _), kept in zip(ones, memories, strict=True):
                remember(oracle, one, kept)

        def where() -> Tree:
            memories = [memory(oracle, one) for one, _ in ones]
            return epoch + 1, theta, total, rng.bit_generator.state, memories

        for epoch in range(first, self.epochs):
            mistakes = 0
            for m in rng.permutation(count):
                with counting_from(int(m)):
                    step = _step(ones[m], oracle, theta)
                mistakes += bool(step.any())
                theta = theta + step
                total = total + theta
            seconds = clock() - began
            late = self.seconds is not None and seconds > self.seconds
            calls, none = (epoch + 1) * count, np.zeros(0)
            proof = Certificate(np.inf, 0.0, mistakes / count, oracle.polytope, "not used", WHY)
            done = mistakes == 0 or late or epoch + 1 == self.epochs
            cost, mean = Cost(self.epochs, count, 0.0), np.asarray(total / calls)
            short = "" if mistakes == 0 else "seconds" if late else "epochs"
            ends = (none, none, cost, done, "online")
            yield State(epoch, calls, seconds, proof, mean, *ends, short=short if done else "")
            if done:
                return
            loop.save(where)

    def path(
        self,
        batch: Batch[Any],
        features: Features,
        regularisers: Sequence[Any],
        through: Through = iter,
    ) -> Iterator[Model]:
        """The same model for every regulariser: it has none, and minds none that is possible."""
        for given in regularisers:
            if given is not None and given != 0:
                ridge_of(given, features.d)

        def states(given: None, last: State | None, loop: Loop) -> Iterator[State]:
            return replace(self, checkpoint=loop).states(batch, features)

        (model,) = along(Runs(self.name, self.checkpoint, states), [None], through)
        return iter([model] * len(regularisers))

    def fit(self, batch: Batch[Any], features: Features) -> Model:
        """Epochs until one is without mistakes, or their number is spent."""
        return next(self.path(batch, features, [None]))


def _step(example: tuple[Batch[Any], Features], oracle: Oracle[Any], theta: Array) -> Array:
    one, features = example
    vertex, _ = oracle.many(one, features.potentials(theta) + one.bias)
    assert one.target is not None
    off, weight = one.target - vertex, coordinate_weights(one)
    if not off.any():
        return np.zeros(len(theta))
    off = off if weight is None else off * weight
    return np.asarray(one.weight[0] * features.moments(off))


def perceptron(
    rho: None = None,
    regulariser: Any = None,
    oracle: AnyOracle = None,
    route: str = "auto",
    solver: FrankWolfe | None = None,
    epochs: int = 20,
    seed: int = 0,
) -> Perceptron:
    """The mean of online updates θ ← θ + φ_m − φ(ŷ); early stopping is all its regularisation.

    It takes no ``rho``, ignores ``regulariser``, and uses ``solver``'s ``seconds`` and
    ``checkpoint``.
    """
    if rho is not None:
        raise ValueError(f"a perceptron has no entropy to reweight, got rho={rho!r}")
    if route not in ("auto", "frank_wolfe"):
        raise ValueError(f"a perceptron asks its oracle; there is no {route} route")
    if solver is None:
        return Perceptron(oracle, epochs, seed)
    return Perceptron(oracle, epochs, seed, solver.seconds, checkpoint=solver.checkpoint)

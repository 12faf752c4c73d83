"""Pseudo-likelihood: no inference at all, and convex, but every label must see its neighbours."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mlestruct.batch import Batch
from mlestruct.dual import Certificate
from mlestruct.features import Features
from mlestruct.frank_wolfe import Cost, FrankWolfe, State
from mlestruct.learners.convex import Model, collect
from mlestruct.objectives.base import Head, Sum, parts
from mlestruct.objectives.pseudo_likelihood import PseudoLikelihood
from mlestruct.regulariser import Regulariser
from mlestruct.structures import FactorGraph
from mlestruct.structures.base import Array
from mlestruct.train import bracket, descend


@dataclass(frozen=True)
class Conditional:
    """Σ_m Σ_i log p(y_i | the rest; θ) − R(θ), maximised by L-BFGS; the gap is Fenchel's.

    Bounds, λ per group and l1 as in every learner. ``solver`` gives tolerance and budget only.
    """

    regulariser: float | Regulariser = 1.0
    solver: FrankWolfe = field(default=FrankWolfe())
    name: str = "pseudo_likelihood"

    def states(
        self, batch: Batch[Any], features: Features, start: Array | None = None
    ) -> Iterator[State]:
        """One state per iteration; every one is certified, for the objective is convex."""
        if batch.target is None:
            raise ValueError(f"{self.name} learns from outcomes, and this batch has none")
        given, clock = self.regulariser, time.perf_counter()
        ridge = given if isinstance(given, Regulariser) else Regulariser.of(features.d, given)
        heads = {"score": Head(features, batch.bias)}
        total = Sum(parts(PseudoLikelihood(), batch, heads))
        theta = ridge.weights(np.zeros(features.d)) if start is None else start
        for number, (at, value, slope, moved) in enumerate(descend(total, ridge, theta)):
            gap = bracket(ridge, at, -slope)
            proof = Certificate(gap, 0.0, -value, "pseudo-likelihood", "not used")
            seconds = time.perf_counter() - clock
            late = self.solver.seconds is not None and seconds > self.solver.seconds
            spent = not moved or number >= self.solver.rounds or late
            done = spent or proof.relative <= self.solver.tol
            none, cost = np.zeros(0), Cost(self.solver.rounds, len(batch), 0.0)
            yield State(
                number, (number + 1) * len(batch), seconds, proof, at, none, none, cost, done
            )
            if done:
                return

    def path(
        self,
        batch: Batch[Any],
        features: Features,
        regularisers: Sequence[float | Regulariser],
        through: Callable[[Iterator[State]], Iterator[State]] = iter,
    ) -> Iterator[Model]:
        """A model per regulariser, each starting from the one before."""
        start = None
        for given in regularisers:
            states = replace(self, regulariser=given).states(batch, features, start)
            model = collect(through(states))
            start = model.theta
            yield replace(model, route="direct")

    def fit(self, batch: Batch[Any], features: Features) -> Model:
        """Run to the tolerance or the budget of ``solver``."""
        return next(self.path(batch, features, [self.regulariser]))


def pseudo_likelihood(
    rho: None = None,
    regulariser: float | Regulariser = 1.0,
    solver: FrankWolfe | None = None,
    oracle: None = None,
    route: str = "auto",
) -> Conditional:
    """Σ_m Σ_i log p(y_i | the rest; θ) − R(θ): consistent where the model is true, and fast.

    It asks no oracle and has no entropy, so it refuses both.
    """
    for name, value in (("rho", rho), ("oracle", oracle)):
        if value is not None:
            raise ValueError(f"pseudo-likelihood has no use for {name}={value!r}")
    if route == "frank_wolfe":
        raise ValueError("pseudo-likelihood has a direct route only")
    return Conditional(regulariser, FrankWolfe() if solver is None else solver)


def partly_observed(
    graphs: FactorGraph | Sequence[FactorGraph], outcomes: Sequence[ArrayLike]
) -> Batch[FactorGraph]:
    """A batch whose outcomes have −1 where a label is missing; those tables are 0 in its target.

    For pseudo-likelihood only: it omits every term that holds an unobserved variable.
    """
    states = [np.asarray(outcome) for outcome in outcomes]
    batch = Batch.of(graphs, [np.maximum(one, 0) for one in states])
    target = batch.target
    assert target is not None
    for m, one in enumerate(states):
        graph, part = batch.structure(m), batch.coordinates(m)
        entry, _, slot = graph.below
        hidden = one < 0
        if (one < -1).any():
            raise ValueError(f"example {m}: a state is at least 0, or −1 where it is missing")
        gone = np.zeros(graph.size, dtype=bool)
        gone[: graph.node_start[-1]] = np.repeat(hidden, graph.cards)
        gone[entry[hidden[graph.scope[slot]]]] = True
        target[part] = np.where(gone, 0.0, target[part])
    return batch

"""What every primal learner shares: L-BFGS on an objective of the weights, and Fenchel's gap."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mlestruct.batch import Batch
from mlestruct.dual import Certificate
from mlestruct.engine import engine_of
from mlestruct.features import Features
from mlestruct.frank_wolfe import Cost, FrankWolfe, State
from mlestruct.learners.convex import Model, collect
from mlestruct.learners.problem import check_problem, ridge_of
from mlestruct.objectives import Head, Objective, Sum
from mlestruct.objectives.base import parts
from mlestruct.objectives.slopes import Slopes
from mlestruct.regulariser import Regulariser
from mlestruct.structures.base import Array
from mlestruct.train import SmallBatches, Step, descend, evaluated

Doubt = Callable[[int], str]
"""Why the objective proves nothing, with inference stalled on so many examples."""
Heads = Callable[[Batch[Any], Features], Mapping[str, Head]]


def scored(batch: Batch[Any], features: Features) -> dict[str, Head]:
    """One score per coordinate, and the batch's bias."""
    return {"score": Head(features, batch.bias)}


@dataclass(frozen=True)
class Primal:
    """min over θ of R(θ) + Σ w_m ℓ_m(θ), by L-BFGS with bounds, λ per group and l1.

    The gap is Fenchel's for R: it bounds the error of a convex objective whose gradient is exact.
    Elsewhere ``doubt`` says why nothing is certified. L-BFGS that finds no step is begun again
    from where it stopped, with inference afresh, as long as that helps, ``restarts`` times at
    most. Where the gradient is not the value's own, steps are judged by slopes alone; ``small``
    takes stochastic ones instead, and a round is an epoch. θ holds the weights of all ``heads``,
    one after the other, and starts where ``begin`` says (default: the regulariser's optimum). Of
    ``solver`` it takes ``tol``, ``rounds``, ``seconds``, ``workers`` and ``engine``.
    """

    name: str
    objective: Callable[[Batch[Any]], Objective]
    polytope: str
    bound: str
    regulariser: float | Regulariser = 1.0
    solver: FrankWolfe = field(default=FrankWolfe())
    doubt: Doubt | None = None
    restarts: int = 0
    small: SmallBatches | None = None
    heads: Heads = scored
    begin: Callable[[Batch[Any], Features], Array] | None = None
    believe: Callable[[Batch[Any], Array], Array] | None = None
    """Beliefs of flat scores, where predictions need the learner's own inference."""

    def states(
        self, batch: Batch[Any], features: Features, start: Array | None = None
    ) -> Iterator[State]:
        """One state per iteration."""
        check_problem(self.name, batch, features)
        clock = time.perf_counter()
        heads = self.heads(batch, features)
        d = sum(head.features.d for head in heads.values())
        ridge = ridge_of(self.regulariser, d)
        if start is None and self.begin is not None:
            start = self.begin(batch, features)
        theta = ridge.weights(np.zeros(d)) if start is None else start
        solver, none, count = self.solver, np.zeros(0), len(batch)
        cost = Cost(solver.rounds, count, 0.0)
        for number, (proof, at, moved) in enumerate(self._run(batch, heads, ridge, theta)):
            seconds = time.perf_counter() - clock
            late = solver.seconds is not None and seconds > solver.seconds
            met = proof.relative <= solver.tol
            done = met or late or not moved or number >= solver.rounds
            if self.doubt is not None:
                proof = replace(proof, gap=np.inf)
            calls = (number + 1) * count
            yield State(number, calls, seconds, proof, at, none, none, cost, done)
            if done:
                return

    def _run(
        self, batch: Batch[Any], heads: Mapping[str, Head], ridge: Regulariser, theta: Array
    ) -> Iterator[tuple[Certificate, Array, bool]]:
        objective = self.objective(batch)
        engine = engine_of(self.solver.engine, self.solver.workers)
        makers = parts(objective, batch, heads)
        for attempt in range(self.restarts + 1):
            with engine.start(makers) as running:
                total = Sum(running)
                steps = self._steps(objective, batch, heads, total, ridge, theta)
                for number, step in enumerate(steps):
                    theta, moved = step[0], step[3]
                    if not moved and number > 1 and attempt < self.restarts:
                        break
                    yield self._proof(step, ridge, total), theta, moved
                else:
                    return

    def _steps(
        self,
        objective: Objective,
        batch: Batch[Any],
        heads: Mapping[str, Head],
        total: Sum,
        ridge: Regulariser,
        theta: Array,
    ) -> Iterator[Step]:
        if self.small is not None:
            epochs = self.small.run(objective, batch, heads, ridge, theta)
            yield from (evaluated(total, ridge, at) for at in epochs)
        elif objective.exact_gradient:
            yield from descend(total, ridge, theta)
        else:
            slopes = Slopes(total)
            for at, _, gradient, moved in descend(slopes, ridge, theta):
                yield at, slopes.settle(at) + ridge.value(at), gradient, moved

    def _proof(self, step: Step, ridge: Regulariser, total: Sum) -> Certificate:
        theta, value, slope, _ = step
        gap = ridge.bracket(theta, -slope)
        why = None if self.doubt is None else self.doubt(total.stalled)
        return Certificate(gap, 0.0, -value, self.polytope, self.bound, why)

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


def refuse(name: str, route: str, **unused: Any) -> None:
    """A ValueError for settings that a primal learner would not heed."""
    for setting, value in unused.items():
        if value is not None:
            raise ValueError(f"{name} has no use for {setting}={value!r}")
    if route not in ("auto", "direct"):
        raise ValueError(f"{name} has a direct route only, not route={route!r}")

"""What every primal learner shares: L-BFGS on an objective of the weights, and Fenchel's gap."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import astuple, dataclass, field, replace
from functools import partial
from itertools import count
from typing import Any

import numpy as np

from mlestruct.batch import Batch
from mlestruct.checkpoint import Loop, begin
from mlestruct.digest import digest, named
from mlestruct.dual import Certificate
from mlestruct.engine import engine_of
from mlestruct.features import Features
from mlestruct.frank_wolfe import Cost, FrankWolfe, State, noted
from mlestruct.inference.choose import DEFAULT, Inference
from mlestruct.kernels import clock
from mlestruct.lbfgs import Descent, Step, next_step
from mlestruct.learners.model import Fits, Model, Runs
from mlestruct.learners.problem import check_problem, ridge_of
from mlestruct.objectives import Head, Objective, Sum
from mlestruct.objectives.base import parts, places
from mlestruct.regulariser import Regulariser
from mlestruct.structures.base import Array
from mlestruct.train import SmallBatches, descend, descend_slopes
from mlestruct.train.units import columns, units
from mlestruct.trees import Tree

Doubt = Callable[[int], str]
"""Why the objective proves nothing, with inference stalled on so many examples."""
Heads = Callable[[Batch[Any], Features], Mapping[str, Head]]


def scored(batch: Batch[Any], features: Features) -> dict[str, Head]:
    """One score per coordinate, and the batch's bias."""
    return {"score": Head(features, batch.bias)}


@dataclass(frozen=True)
class Primal(Fits):
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
    inference: Inference = DEFAULT
    """What its models predict with."""

    def states(
        self, batch: Batch[Any], features: Features, start: Array | None = None
    ) -> Iterator[State]:
        """One state per iteration."""
        check_problem(self.name, batch, features)
        heads = self.heads(batch, features)
        ridge = _ridge(self.regulariser, heads)
        setting = partial(self._setting, batch, heads, ridge, start)
        loop = begin(self.solver.checkpoint, self.name, setting, batch.size)
        if loop.tree is None and start is None and self.begin is not None and not loop.done:
            start = self.begin(batch, features)
        theta = ridge.weights(np.zeros(len(ridge))) if start is None else start
        yield from noted(loop, partial(self._states, batch, heads, ridge, theta, loop))

    def _setting(
        self,
        batch: Batch[Any],
        heads: Mapping[str, Head],
        ridge: Regulariser,
        start: Array | None,
    ) -> dict[str, Any]:
        solver = self.solver
        return {
            **named(batch, heads, ridge),
            "objective": digest(self.objective(batch)),
            "start": digest(start),
            "tol": solver.tol,
            "rounds": solver.rounds,
            "seconds": solver.seconds,
            "restarts": self.restarts,
            "small": repr(self.small),
        }

    def _states(
        self,
        batch: Batch[Any],
        heads: Mapping[str, Head],
        ridge: Regulariser,
        theta: Array,
        loop: Loop,
        spent: float,
    ) -> Iterator[State]:
        began = clock() - spent
        solver, none, examples = self.solver, np.zeros(0), len(batch)
        cost = Cost(solver.rounds, examples, 0.0)
        first, since = (0, None) if loop.tree is None else loop.tree
        steps = self._run(batch, heads, ridge, theta, since)
        for number, (proof, at, moved, where) in enumerate(steps, first):
            seconds = clock() - began
            late = solver.seconds is not None and seconds > solver.seconds
            met = proof.relative <= solver.tol
            done = met or late or not moved or number >= solver.rounds
            if self.doubt is not None:
                proof = replace(proof, gap=np.inf)
            calls = (number + 1) * examples
            short = "" if met or not done else "seconds" if late else "rounds" if moved else "step"
            ends = (none, none, cost, done, "direct")
            learned = _besides(heads, at)
            yield State(number, calls, seconds, proof, at, *ends, short=short, learned=learned)
            if done:
                return
            loop.save(partial(_after, number, where))

    def _run(
        self,
        batch: Batch[Any],
        heads: Mapping[str, Head],
        ridge: Regulariser,
        theta: Array,
        since: Tree,
    ) -> Iterator[tuple[Certificate, Array, bool, Callable[[], Tree]]]:
        objective = self.objective(batch)
        engine = engine_of(self.solver.engine, self.solver.workers)
        makers = parts(objective, batch, heads)
        start: Tree = (0, 0, 0, None, []) if since is None else since
        first, taken, stalled, within, memory = start

        def where() -> Tree:
            return attempt, number + 1, total.stalled, stands(), running.memory()

        for attempt in range(first, self.restarts + 1):
            with engine.start(makers) as running:
                total = Sum(running)
                if within is not None:
                    running.remember(memory)
                    total.stalled = stalled
                descent = self._descent(objective, batch, heads, ridge, theta, within)
                for number in count(taken):
                    step = next_step(descent, total)
                    if step is None:
                        return
                    theta, moved, stands = step.theta, step.moved, step.where
                    if not moved and number > 1 and attempt < self.restarts:
                        break
                    yield self._proof(step, ridge, total), theta, moved, where
            taken, within = 0, None

    def _descent(
        self,
        objective: Objective,
        batch: Batch[Any],
        heads: Mapping[str, Head],
        ridge: Regulariser,
        theta: Array,
        since: Tree,
    ) -> Descent:
        if self.small is not None:
            return self.small.run(objective, batch, heads, ridge, theta, since)
        scale = _units(batch, heads, ridge)
        if objective.exact_gradient:
            return descend(ridge, theta, since=since, scale=scale)
        return descend_slopes(ridge, theta, since, scale)

    def _proof(self, step: Step, ridge: Regulariser, total: Sum) -> Certificate:
        theta, value, slope, *_ = step
        gap = ridge.bracket(theta, -slope)
        why = None if self.doubt is None else self.doubt(total.stalled)
        return Certificate(gap, 0.0, -value, self.polytope, self.bound, why)

    def runs(self, batch: Batch[Any], features: Features) -> Runs:
        """Each starts from the weights of the one before."""

        def states(given: float | Regulariser, last: State | None, loop: Loop) -> Iterator[State]:
            solver = replace(self.solver, checkpoint=loop)
            one = replace(self, regulariser=given, solver=solver)
            return one.states(batch, features, None if last is None else last.theta)

        return Runs(self.name, self.solver.checkpoint, states, self.inference)

    def fit(self, batch: Batch[Any], features: Features) -> Model:
        """Run to the tolerance or the budget of ``solver``."""
        return next(self.path(batch, features, [self.regulariser]))


def _ridge(given: float | Regulariser, heads: Mapping[str, Head]) -> Regulariser:
    """The regulariser of all heads; one for the scores alone gives others its mean λ."""
    each = {name: head.features.d for name, head in heads.items()}
    total = sum(each.values())
    if not isinstance(given, Regulariser) or len(given) == total or len(given) != each["score"]:
        return ridge_of(given, total)
    more = Regulariser.of(total - len(given), float(given.lam.mean()))
    parts = zip(astuple(given), astuple(more), strict=True)
    return Regulariser(*(np.concatenate(pair) for pair in parts))


def _besides(heads: Mapping[str, Head], theta: Array) -> Tree:
    """The weights of heads that are not scores, by name; None where there are no others."""
    found = {name: theta[part] for name, part in places(heads).items() if name != "score"}
    return found or None


def _units(batch: Batch[Any], heads: Mapping[str, Head], ridge: Regulariser) -> Array | None:
    """Of a single head on the coordinates; weights of entropies are all of one kind."""
    if list(heads) != ["score"] or heads["score"].exponential:
        return None
    return units(columns(batch, heads["score"].features), ridge.lam)


def _after(number: int, where: Callable[[], Tree]) -> Tree:
    return number + 1, where()


def refuse(name: str, route: str, **unused: Any) -> None:
    """A ValueError for settings that a primal learner would not heed."""
    for setting, value in unused.items():
        if value is not None:
            raise ValueError(f"{name} has no use for {setting}={value!r}")
    if route not in ("auto", "direct"):
        raise ValueError(f"{name} has a direct route only, not route={route!r}")

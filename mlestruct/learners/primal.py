"""What every primal learner shares: L-BFGS on an objective of the weights, and Fenchel's gap."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from mlestruct.batch import Batch
from mlestruct.checkpoint import Loop
from mlestruct.digest import digest, named
from mlestruct.drive import drive
from mlestruct.dual import Certificate
from mlestruct.engine import engine_of
from mlestruct.features import Features
from mlestruct.frank_wolfe import FrankWolfe
from mlestruct.inference.choose import DEFAULT, Inference
from mlestruct.lbfgs import Descent, Step, next_step
from mlestruct.learners.model import Fits, check_problem, ridge_of
from mlestruct.method import Progress
from mlestruct.objectives import Head, Objective, Sum
from mlestruct.objectives.base import Share, places
from mlestruct.objectives.difference import of_seen
from mlestruct.regulariser import Regulariser
from mlestruct.structures.base import Array
from mlestruct.train.descents import columns, descend, units
from mlestruct.train.slopes import descend_slopes
from mlestruct.train.small_batches import SmallBatches
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
    from where it stopped as long as that helps, ``restarts`` times at most, and from then on
    inference begins anew at every evaluation: warm starts are what the objective jumps by. Where
    the gradient is not the value's own, steps are judged by slopes alone; ``small`` takes
    stochastic ones instead, and a round is an epoch. θ holds the weights of all ``heads``, one
    after the other, and starts where ``begin`` says (default: the regulariser's optimum). Of
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
    partly: bool = False
    """It learns from outcomes of which a part was seen: ℓ is log Z less its observed score."""

    def states(
        self, batch: Batch[Any], features: Features, start: Array | None = None
    ) -> Iterator[Progress]:
        """Every iteration."""
        check_problem(self.name, batch, features)
        heads = self.heads(batch, features)
        known = self, batch, features, heads, _ridge(self.regulariser, heads), start
        method = _Iterations(*known, self.name, batch.size)
        return drive(method, self.solver.budget, self.solver.checkpoint)

    def run(self, problem: Any, given: Any, last: Any, loop: Loop) -> Iterator[Progress]:
        """From the weights of the one before."""
        one = replace(self, regulariser=given, solver=replace(self.solver, checkpoint=loop))
        batch, features = problem
        return one.states(batch, features, None if last is None else last.theta)


@dataclass(frozen=True)
class _Iterations:
    """A primal learner on its examples, as a method for the loop."""

    learner: Primal
    batch: Batch[Any]
    features: Features
    heads: Mapping[str, Head]
    ridge: Regulariser
    start: Array | None
    name: str
    size: int

    def setting(self) -> dict[str, Any]:
        learner, solver = self.learner, self.learner.solver
        return {
            **named(self.batch, self.heads, self.ridge),
            "objective": digest(learner.objective(self.batch)),
            "start": digest(self.start),
            "tol": solver.tol,
            "rounds": solver.rounds,
            "seconds": solver.seconds,
            "restarts": learner.restarts,
            "small": repr(learner.small),
        }

    def rounds(self, loop: Loop) -> Iterator[Progress]:
        """L-BFGS; where it finds no step, again from there, by cold inference from then on."""
        learner = self.learner
        objective = learner.objective(self.batch)
        engine = engine_of(learner.solver.engine, learner.solver.workers)
        makers, descents = self._makers(objective), self._descents(objective)
        number, attempt, taken, stalled, theta, since, memory = (
            (0, 0, 0, 0, None, None, []) if loop.tree is None else loop.tree
        )
        theta = self._begin() if theta is None else theta

        def where() -> Tree:
            kept = number, attempt, taken, total.stalled
            return *kept, theta, within(), running.memory()

        while True:
            with engine.start(makers) as running:
                total = Sum(running)
                total.cold = attempt > 0
                if since is not None:
                    running.remember(memory)
                    total.stalled = stalled
                descent = descents(theta, since=since)
                while (step := next_step(descent, total)) is not None:
                    theta, within = step.theta, step.where
                    if not step.moved and taken > 1 and attempt < learner.restarts:
                        break
                    yield self._progress(number, step, total)
                    number, taken = number + 1, taken + 1
                    loop.save(where)
            attempt, taken, since = attempt + 1, 0, None

    def _makers(self, objective: Objective) -> Sequence[Any]:
        if self.batch.partly:
            return of_seen(self.learner.objective, self.batch, self.heads)
        return Share.whole(objective, self.batch, self.heads).split()

    def _begin(self) -> Array:
        """The weights to begin with."""
        if self.start is not None:
            return self.start
        if self.learner.begin is not None:
            return self.learner.begin(self.batch, self.features)
        return self.ridge.weights(np.zeros(len(self.ridge)))

    def _descents(self, objective: Objective) -> Callable[..., Descent]:
        if self.learner.small is not None:
            return partial(self.learner.small.run, objective, self.batch, self.heads, self.ridge)
        scale = _units(self.batch, self.heads, self.ridge)
        by = descend if objective.exact_gradient else descend_slopes
        return partial(by, self.ridge, scale=scale)

    def _progress(self, number: int, step: Step, total: Sum) -> Progress:
        learner, doubt = self.learner, self.learner.doubt
        gap = self.ridge.bracket(step.theta, -step.gradient)
        claimed, why = (gap, None) if doubt is None else (np.inf, doubt(total.stalled))
        if self.batch.partly:
            also = "" if why is None else f"; {why}"
            claimed, why = np.inf, f"with labels missing it is not convex{also}"
        words = learner.polytope, learner.bound, why
        return Progress(
            round=number,
            calls=(number + 1) * len(self.batch),
            examples=len(self.batch),
            certificate=Certificate(claimed, 0.0, -step.value, *words),
            theta=step.theta,
            route="direct",
            learned=_besides(self.heads, step.theta),
            left=gap / max(1.0, abs(step.value)),
            over="" if step.moved else "step",
        )


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


def refuse(name: str, route: str, **unused: Any) -> None:
    """A ValueError for settings that a primal learner would not heed."""
    for setting, value in unused.items():
        if value is not None:
            raise ValueError(f"{name} has no use for {setting}={value!r}")
    if route not in ("auto", "direct"):
        raise ValueError(f"{name} has a direct route only, not route={route!r}")

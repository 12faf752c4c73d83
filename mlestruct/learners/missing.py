"""Missing labels and hidden variables: EM/CCCP rounds around a likelihood learner."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mlestruct.batch import Batch
from mlestruct.checkpoint import Loop, begin
from mlestruct.digest import digest
from mlestruct.dual import Certificate, Dual
from mlestruct.errors import counting_from
from mlestruct.features import Features
from mlestruct.frank_wolfe import Cost, State, noted
from mlestruct.inference import Marginals, marginals
from mlestruct.inference.choose import Inference
from mlestruct.kernels import clock
from mlestruct.learners.convex import Learner
from mlestruct.learners.model import Fits, Model, Runs, collect
from mlestruct.regulariser import Regulariser
from mlestruct.structures.base import Array
from mlestruct.trees import Tree


@dataclass(frozen=True)
class Partial:
    """An outcome of which only a part was seen: what the structure's ``clamp`` takes."""

    observed: Any


@dataclass(frozen=True)
class Round:
    """Weights after a round, with what is proven of them.

    ``lower ≤ Σ w_m [log Z(clamped) − log Z(full)] − R(θ) ≤ upper``, both log Z the surrogate's.
    ``certificate`` is that of the round's convex problem (None before the first);
    ``stationarity`` bounds what the next round can gain: 0 only at a stationary point.
    """

    number: int
    theta: Array
    lower: float
    upper: float
    stationarity: float
    certificate: Certificate | None
    target: Array
    done: bool = False

    def settled(self, tol: float) -> bool:
        """Another round gains no more than ``tol`` relative."""
        return self.stationarity <= tol * max(1.0, abs(self.lower))

    def __str__(self) -> str:
        return (
            f"objective in [{self.lower:.6g}, {self.upper:.6g}]; another round gains at most "
            f"{self.stationarity:.2g}. With labels missing the problem is not convex: this is a "
            f"stationary point, no optimum is claimed. The last round's problem: "
            f"{self.certificate or 'none yet'}"
        )


@dataclass(frozen=True)
class Missing(Fits):
    """Rounds of inference under what was observed, then ``learner`` on the means it gives.

    Each round maximises a concave minorant that touches the objective, so the objective never
    falls by more than the certificates leave open. Stops when another round can gain no more
    than ``tol`` relative. Any structure with ``clamp``, by either route.
    """

    learner: Learner
    tol: float = 1e-4
    rounds: int = 100

    def fit(
        self,
        batch: Batch[Any],
        observed: Sequence[Any],
        features: Features,
        start: Array | None = None,
    ) -> Round:
        """The last of :meth:`states`."""
        *_, last = self.states(batch, observed, features, start)
        return last

    def states(
        self,
        batch: Batch[Any],
        observed: Sequence[Any],
        features: Features,
        start: Array | None = None,
    ) -> Iterator[Round]:
        """Every round; ``observed[m]`` is what ``clamp`` takes of example m (−1 where unseen).

        ``batch`` needs no outcomes. Hidden variables that are exchangeable need a ``start`` that
        tells them apart: weights of 0 are stationary then. A checkpoint's rounds do not come again.
        """
        yield from self._rounds(batch, clamp(batch, observed), features, start, self._loop(start))

    @property
    def name(self) -> str:
        return f"{self.learner.name} with labels missing"

    @property
    def inference(self) -> Inference:
        """The learner's."""
        return self.learner.inference

    def runs(self, batch: Batch[Any], features: Features) -> Runs:
        """As :meth:`Learner.runs`, for a batch of :func:`seen`; no optimum is claimed."""
        clamped = _pinned(batch)

        def states(given: float | Regulariser, last: State | None, loop: Loop) -> Iterator[State]:
            one = replace(self, learner=replace(self.learner.within(loop), regulariser=given))
            return one._states(batch, clamped, features, None if last is None else last.theta)

        return Runs(self.name, self.learner.solver.checkpoint, states, self.inference)

    def _loop(self, start: Array | None) -> Loop:
        setting = {"rounds": self.rounds, "tol": self.tol, "start": digest(start)}
        return begin(self.learner.solver.checkpoint, self.name, lambda: setting)

    def _states(
        self, batch: Batch[Any], clamped: Batch[Any], features: Features, start: Array | None
    ) -> Iterator[State]:
        """A state per round: what is known of the whole problem, not of its own."""
        loop, count = self._loop(start), len(batch)

        def states(spent: float) -> Iterator[State]:
            began = clock() - spent
            for one in self._rounds(batch, clamped, features, start, loop):
                proof = Certificate(
                    one.stationarity, 0.0, one.lower, "surrogate", "not convex", withheld=str(one)
                )
                yield State(
                    round=one.number,
                    calls=one.number,
                    seconds=clock() - began,
                    certificate=proof,
                    theta=one.theta,
                    tau=one.target,
                    at=one.target,
                    cost=Cost(self.rounds, count, 0.0),
                    done=one.done,
                    route="rounds of inference",
                    short=self._short(one, loop),
                )

        return noted(loop, states)

    def _short(self, one: Round, loop: Loop) -> str:
        if not one.done or one.settled(self.tol):
            return ""
        return "seconds" if loop.over(self.learner.solver.seconds) else "rounds"

    def _rounds(
        self,
        batch: Batch[Any],
        clamped: Batch[Any],
        features: Features,
        start: Array | None,
        loop: Loop,
    ) -> Iterator[Round]:
        proof, target, inside = None, np.zeros(batch.size), self.learner.within(loop)
        closer = min(inside.solver.tol, 0.1 * self.tol)  # else a round may end at its start
        dual = self.learner.dual(replace(batch, target=target), features)
        if dual.entropy.temperature != 1:
            raise ValueError(f"{self.learner.name} is no likelihood: missing labels need one")
        theta = dual.regulariser.weights(np.zeros(features.d)) if start is None else start
        first = 0
        if loop.tree is not None:
            first, theta, proof = loop.tree[0], loop.tree[1], Certificate(*loop.tree[2])

        def where() -> Tree:
            assert proof is not None
            return number + 1, theta, astuple(proof)

        for number in range(first, self.rounds + 1):
            seen, full = (self._infer(dual, b, theta, loop) for b in (clamped, batch))
            dual = self.learner.dual(replace(batch, target=seen.tau), features)
            state = _round(number, dual, theta, seen, full, proof)
            late = loop.over(self.learner.solver.seconds)
            if state.settled(self.tol) or late or number == self.rounds:
                yield replace(state, done=True)
                return
            yield state
            enough = max(closer, 0.1 * state.stationarity / _size(dual, theta, full))
            inside = replace(inside, solver=replace(inside.solver, tol=enough))
            model = _onward(inside, replace(batch, target=seen.tau), features, theta)
            theta, proof = model.theta, model.certificate
            loop.save(where)

    def _infer(self, dual: Dual, batch: Batch[Any], theta: Array, loop: Loop) -> Marginals:
        """Marginals and log Z of both kinds of examples under the same entropy."""
        learner, solver = self.learner, None
        if learner.oracle is not None or learner.route == "frank_wolfe":
            tol = min(learner.solver.tol, 0.1 * self.tol)
            solver = replace(learner.solver, tol=tol, checkpoint=loop)
        scores, rho = dual.scores(theta), dual.entropy.rho
        return marginals(batch, scores, learner.oracle, rho=rho, solver=solver)


def _size(dual: Dual, theta: Array, full: Marginals) -> float:
    """What the tolerance of a round's problem is relative to, at the weights it begins with."""
    each = dual.batch.observed(dual.scores(theta)) - full.lower
    value = float(dual.batch.weight @ each) - dual.regulariser.value(theta)
    return max(1.0, abs(value))


def _onward(learner: Learner, batch: Batch[Any], features: Features, theta: Array) -> Model:
    """A round's model; on the direct route from the weights before it, so that late rounds are few.

    Frank-Wolfe begins at points, and those of the round before have other targets: it begins anew.
    """
    if learner.messages(learner.dual(batch, features)) is None:
        return learner.fit(batch, features)
    return collect(learner.states(batch, features, theta), learner.inference)


def missing(learner: Any, tol: float) -> Missing:
    """Rounds around a convex learner; others are refused."""
    if not isinstance(learner, Learner):
        raise ValueError(f"{learner.name} cannot learn from Partial outcomes: use mle_struct")
    return Missing(learner, tol)


def seen(structures: Any, outcomes: Sequence[Any], weight: ArrayLike | None = None) -> Batch[Any]:
    """A batch of whole outcomes and :class:`Partial` ones: its target is NaN where unseen."""
    batch = Batch.of(structures, count=len(outcomes), weight=weight)
    target = np.empty(batch.size)
    for m, outcome in enumerate(outcomes):
        with counting_from(m):
            target[batch.coordinates(m)] = _known(batch.structure(m), outcome)
    return replace(batch, target=target)


def _known(structure: Any, outcome: Any) -> Array | None:
    """The target of one example; NaN where it was not seen."""
    if not isinstance(outcome, Partial):
        return Batch.of(structure, [outcome]).target
    fixed = clamp(Batch.of(structure), [outcome.observed]).fixed
    return np.where(fixed < 0, np.nan, fixed)


def _pinned(batch: Batch[Any]) -> Batch[Any]:
    """Every example restricted to what its target knows."""
    assert batch.target is not None
    known = np.where(np.isnan(batch.target), -1, batch.target).astype(np.int8)
    pinned = [batch.structure(m).refix(known[batch.coordinates(m)]) for m in range(len(batch))]
    return Batch.of(pinned, weight=batch.weight, bias=batch.bias)


def clamp(batch: Batch[Any], observed: Sequence[Any]) -> Batch[Any]:
    """The same examples, each restricted to the outcomes that agree with what was observed."""
    if len(observed) != len(batch):
        raise ValueError(f"{len(batch)} examples but {len(observed)} observations")
    structures = []
    for m, seen in enumerate(observed):
        try:
            structures.append(batch.structure(m).clamp(seen))
        except (ValueError, TypeError, IndexError) as error:
            raise ValueError(f"example {m}: {error}") from error
    return Batch.of(structures, weight=batch.weight, bias=batch.bias)


def _round(
    number: int,
    dual: Dual,
    theta: Array,
    seen: Marginals,
    full: Marginals,
    proof: Certificate | None,
) -> Round:
    weight, cost = dual.batch.weight, dual.regulariser.value(theta)
    lower = float(weight @ (seen.lower - full.upper)) - cost
    upper = float(weight @ (seen.upper - full.lower)) - cost
    inside = float(weight @ (seen.upper - seen.lower + full.upper - full.lower))
    left = inside + dual.regulariser.bracket(theta, dual.residual(full.tau))
    return Round(number, theta, lower, upper, left, proof, seen.tau)

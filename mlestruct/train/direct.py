"""The direct route: minimise the surrogate in θ by its marginals, then certify both ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cholesky

from mlestruct.checkpoint import Keeping, Loop, begin
from mlestruct.digest import digest, name_of
from mlestruct.dual import Certificate, Dual
from mlestruct.engine import Engine, Running, Serial, engine_of
from mlestruct.frank_wolfe import Cost, FrankWolfe, State, noted
from mlestruct.inference.routine import Routine
from mlestruct.kernels import clock
from mlestruct.lbfgs import Descent, next_step
from mlestruct.objectives import Head, Sum, Surrogate
from mlestruct.oracle import Oracle
from mlestruct.regulariser import Regulariser
from mlestruct.structures.base import Array
from mlestruct.train.descents import descend
from mlestruct.train.proofs import judges, proven
from mlestruct.train.small_batches import SmallBatches
from mlestruct.train.units import columns, units
from mlestruct.trees import Tree

INNER = 1e-3  # inference may stop at this share of the outer relative gap
COARSEST = 1e-5  # a coarser residual makes the value too rough for the line search
TIGHTER, FINEST = 0.03, 1e-9  # where one still is, a finer one, as long as that is not in earnest
PROOF = 0.5  # of the tolerance: what inference may leave open before an oracle is asked
AGAIN = 0.1  # of the gap: if the weights' own part is more, a descent can still lower a proof
NONE = np.zeros(0)


@dataclass
class _Standing:
    """Where a run stands beside its descent.

    ``value`` is the start's; ``share`` of the tolerance is what the weights' own gap may take.
    """

    number: int = 0
    loose: bool = False
    cold: bool = False
    seconds_per_call: float = 0.0
    value: float = np.inf
    share: float = 1.0


class End(NamedTuple):
    """What a run ends in: see :class:`State`."""

    proof: Certificate
    theta: Array = NONE
    tau: Array = NONE
    cut: bool = False
    short: str = ""


@dataclass(frozen=True)
class Task:
    """A problem as the route sees it: shards that evaluate and prove, and what they have in common.

    ``loose``: inference may be coarse at first.
    ``keep``: the last state is to hold τ. ``given`` are the weights to begin with.
    """

    running: Running
    regulariser: Regulariser
    examples: int
    bound: str
    loose: bool
    descent: Callable[..., Descent]
    keep: bool = True
    given: Array | None = None

    def start(self) -> Array:
        """The weights to begin with: the regulariser's optimum, where none are given."""
        ridge = self.regulariser
        return ridge.weights(np.zeros(len(ridge))) if self.given is None else self.given


@dataclass(frozen=True)
class Direct:
    """Minimises R(θ) + Σ w_m [log Z(θ) − ⟨θ, φ_m⟩] through marginals, for every regulariser.

    Stops when the Fenchel gap of R, which bounds the error once inference has converged, is below
    ``tol`` relative; the last state carries the proof by one oracle call per example. Examples
    are evaluated in fixed shards on an engine: any gives the same bits.
    ``small`` takes stochastic steps instead; a round is then an epoch.
    """

    tol: float = 1e-6
    rounds: int = 1000
    seconds: float | None = None
    memory: int = 10
    engine: Engine = field(default_factory=Serial)
    small: SmallBatches | None = None
    checkpoint: Keeping = None

    @classmethod
    def of(cls, solver: FrankWolfe, small: SmallBatches | None = None) -> Direct:
        """With a solver's tolerance, limits, engine and checkpoint."""
        engine = engine_of(solver.engine, solver.workers)
        return cls(
            solver.tol, solver.rounds, solver.seconds,
            engine=engine, small=small, checkpoint=solver.checkpoint,
        )  # fmt: skip

    def run(
        self, dual: Dual, oracle: Oracle[Any], routine: Routine, start: Array | None = None
    ) -> Iterator[State]:
        """One state per iteration; estimates (with no τ) until the last, which is certified."""
        setting = partial(self._setting, dual, oracle, routine, start)
        loop = begin(self.checkpoint, "direct", setting, dual.batch.size)

        def rounds(spent: float) -> Iterator[State]:
            with self.engine.start(judges(dual, oracle, routine)) as running:
                task = Task(
                    running=running,
                    regulariser=dual.regulariser,
                    examples=len(dual.batch),
                    bound=str(dual.entropy.bound),
                    loose=routine.loosened(COARSEST) is not routine,
                    descent=self._descent(dual, routine),
                    given=start,
                )
                yield from self.follow(task, loop, spent)

        yield from noted(loop, rounds)

    def _setting(
        self, dual: Dual, oracle: Oracle[Any], routine: Routine, start: Array | None
    ) -> dict[str, Any]:
        return {
            "start": digest(start),
            **dual.named(),
            "oracle": name_of(oracle),
            "routine": digest(routine),
            **self.limits(),
        }

    def limits(self) -> dict[str, Any]:
        """The settings that a fit which goes on must share."""
        return {
            "tol": self.tol,
            "rounds": self.rounds,
            "seconds": self.seconds,
            "memory": self.memory,
            "small": repr(self.small),
        }

    def _descent(self, dual: Dual, routine: Routine) -> Callable[..., Descent]:
        ridge, scale = dual.regulariser, None
        if self.small is not None:
            heads = {"score": Head(dual.features, dual.batch.bias)}
            return partial(self.small.run, Surrogate(routine), dual.batch, heads, ridge)
        factor = natural(dual, routine)
        if factor is None or not ridge.plain:
            scale = units(columns(dual.batch, dual.features), ridge.lam)
        return partial(descend, ridge, memory=self.memory, factor=factor, scale=scale)

    def follow(self, task: Task, loop: Loop, spent: float) -> Iterator[State]:
        """The iterations of any task."""
        began, ridge = clock() - spent, task.regulariser
        total, now, theta, since = Sum(task.running), _Standing(), task.start(), None
        if loop.tree is None:
            now.loose = task.loose
            total.tol = COARSEST if now.loose else 0.0
        else:
            standing, total.tol, theta, since, memory = loop.tree
            now = _Standing(*standing)
            total.cold = now.cold
            task.running.remember(memory)
        descent = task.descent(theta, since=since)

        def where() -> Tree:
            return astuple(now), total.tol, theta, within(), total.running.memory()

        while (step := next_step(descent, total)) is not None:
            theta, value, gradient, moved, within = step
            elapsed = clock() - began
            if now.number == 0:
                now.seconds_per_call, now.value = elapsed / task.examples, value
            gap = ridge.bracket(theta, -gradient)
            met = gap <= self.tol * max(1.0, abs(value))
            if now.loose and not (met or moved) and TIGHTER * total.tol >= FINEST:
                total.tol, moved = TIGHTER * total.tol, True  # another descent from here
            elif now.loose and (met or not moved):
                now.loose, moved, total.tol = False, True, 0.0  # from here on inference in earnest
                gap = ridge.bracket(theta, -total(theta)[1])
            elif not (met or moved or now.cold):
                now.cold = moved = True  # another descent, by inference without warm starts
                total.forget()
            relative = gap / max(1.0, abs(value))
            late = self.seconds is not None and elapsed > self.seconds
            ended = "seconds" if late else "rounds" if now.number >= self.rounds else ""
            ended = ended if moved else "step"
            if now.loose:
                total.tol = min(total.tol, INNER * relative)
            found = End(_estimate(gap, -value, task.bound))
            done = relative <= now.share * self.tol or ended != ""
            if done:
                found = self._end(task, total, theta, (value, now.value), ended)
                if not ended and found.short and gap > AGAIN * found.proof.gap:
                    done, now.share = False, AGAIN * now.share  # the weights' part is in the way
                theta = found.theta if done else theta
            yield State(
                round=now.number,
                calls=(now.number + 1) * task.examples,
                seconds=clock() - began,
                certificate=found.proof,
                theta=theta,
                tau=found.tau,
                at=found.tau,
                cost=Cost(self.rounds, task.examples, now.seconds_per_call),
                done=done,
                route="direct",
                cut=found.cut,
                short=found.short if done else "",
            )
            if done:
                return
            if not step.moved:  # another descent from here
                descent, within = task.descent(theta), lambda: None
            now.number += 1
            loop.save(where)

    def _end(
        self, task: Task, total: Sum, theta: Array, values: tuple[float, float], ended: str
    ) -> End:
        """What is proven of θ, or of the start where that is no worse and tol is not reached.

        ``values`` are those at both.
        """
        value, least = values
        found = self._proven(task, total, theta, value, ended)
        if not found.short or found.proof.gap - found.proof.objective <= least:
            return found
        start, again = task.start(), []
        for at in (start, theta):
            total.forget()
            again.append(total(at)[0] + task.regulariser.value(at))
        return found if again[1] <= again[0] else self._proven(task, total, start, least, ended)

    def _proven(self, task: Task, total: Sum, theta: Array, value: float, ended: str) -> End:
        enough = PROOF * self.tol * max(1.0, abs(value)) / task.examples
        proof, found = proven(total.running, task.regulariser, theta, enough, keep=task.keep)
        tau = np.concatenate([part.tau for part in found]) if task.keep else NONE
        cut = any(part.moved for part in found)
        short = "" if proof.relative <= self.tol else ended or "proof"
        return End(proof, theta, tau, cut, short)


def _estimate(gap: float, objective: float, bound: str) -> Certificate:
    why = "an estimate until the last round"
    return Certificate(gap, 0.0, objective, "surrogate", bound, why)


def natural(dual: Dual, routine: Routine) -> Array | None:
    """Cholesky's factor of the Hessian at scores that are all alike, where it has a closed form."""
    if not hasattr(dual.features, "gram"):
        return None
    alike = routine.alike(dual.batch)
    if alike is None:
        return None
    hessian = dual.features.gram(*alike)
    hessian[np.diag_indices(len(hessian))] += dual.regulariser.lam
    return np.asarray(cholesky(hessian, lower=True))

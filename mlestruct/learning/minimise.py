"""Minimise R(θ) + Σ over examples by L-BFGS, and prove what was reached."""

from __future__ import annotations

from contextlib import closing
from dataclasses import astuple, dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from mlestruct import limits
from mlestruct.engine import Engine
from mlestruct.inference.routine import Routine
from mlestruct.learning.dual import Dual
from mlestruct.learning.lbfgs import descents
from mlestruct.learning.loop import Found, Loop
from mlestruct.learning.problem import LikelihoodPart, Problem, Proof, SurrogateProblem
from mlestruct.oracle import Oracle
from mlestruct.storage.trees import Tree
from mlestruct.structures.base import Array

INNER = 1e-3  # inference may stop at this share of the outer relative gap
PROOF = 0.5  # of the tolerance: what inference may leave open before an oracle is asked
PATIENCE, LONG = 30, 120  # rounds without a lower value: to the first proof, and the last
STILL = 1e-3  # of the tolerance is no fall
AGAIN = 0.1  # of the gap: if the weights' own part is more, a descent can still lower a proof


def minimise(problem: Problem, loop: Loop, start: Array | None = None) -> Found:
    """Minimise the problem from ``start``, by default the regulariser's optimum.

    It stops where the Fenchel gap of R, which bounds the error once inference has converged, is at
    most the loop's ``tol`` relative to the value, and the proof agrees, if the problem has one.
    Rounds before are estimates without τ.
    """
    if loop.found is not None:
        return loop.found
    ridge, now = problem.regulariser, Standing()
    here: Reached | None = None
    start = ridge.weights(np.zeros(len(ridge.lam))) if start is None else start
    theta, steps = start, None
    if loop.state is not None:
        now, (memory, theta, steps) = Standing(*loop.state[0]), loop.state[1:]
        problem.remember(memory)

    def where() -> Tree:
        return astuple(now), problem.memory(), theta, descent.state()

    with closing(problem):
        descent = problem.steps(problem.value_and_gradient, ridge, theta, steps)
        while True:
            try:
                moved = descent.step()
            except limits.OutOfTime:  # the last point stands
                if here is None:
                    raise
            else:
                here = now.look(problem, descent.point(), moved, loop.tol)
            theta, learned = here.theta, {n: here.theta[at] for n, at in problem.others.items()}
            said = Found(
                theta, problem.claim(here.value, here.gap), round=now.number,
                calls=(now.number + 1) * problem.examples, examples=problem.examples,
                route="direct", learned=learned or None,
            )  # fmt: skip
            why, met = loop.over(said, here.stuck), here.left <= loop.tol
            if problem.provable and (why or met):
                point, found = now.proven(problem, here, start, loop.tol, why in ("", "step"))
                proof, tau, odd = found.certificate, found.tau, found.moved
                said = replace(said, theta=point, certificate=proof, tau=tau, at=tau, moved=odd)
                met = proof.relative <= loop.tol
                why = why or ("" if met else now.settled(here, proof.gap))
            if why or met:
                return loop.end(said, "" if met else why)
            loop.tell(said)
            # Where no step led on inference has changed: another descent from here.
            descent = descent if moved else problem.steps(problem.value_and_gradient, ridge, theta)
            now.number, descent.late = now.number + 1, loop.late
            loop.save(where)


class Reached(NamedTuple):
    """Weights, the value there, and ``gap``, how far they are from the best at most by their slope.

    ``left`` is what is left of that gap, relative. ``still``: values have not fallen for as many
    rounds as there was patience. ``unsure``: inference was coarse so far, so a proof may tell
    another gap. ``stuck`` is "step" if no way leads on.
    """

    theta: Array
    value: float
    gap: float
    left: float
    still: bool
    unsure: bool
    stuck: str


@dataclass
class Standing:
    """Where a fit by descent stands, beside its descent and its problem.

    ``start`` is the value it began with, ``share`` that of the tolerance which the weights' own gap
    may take. Values fell last below ``low``, at round ``since``.
    """

    number: int = 0
    start: float = np.inf
    share: float = 1.0
    low: float = np.inf
    since: int = 0
    patience: int = PATIENCE

    def look(
        self, problem: Problem, point: tuple[Array, float, Array], moved: bool, tol: float
    ) -> Reached:
        """See how far a new point is from the best, and have inference finer where that is due.

        Where a search has ended, as weights are as good as inference can tell or no step was found,
        inference becomes exact, and then cold, as often as that helps.
        """
        ridge, (theta, value, lack) = problem.regulariser, point
        self.start = value if self.number == 0 else self.start
        gap, size, coarse = ridge.bracket(theta, -lack), max(1.0, abs(value)), problem.coarse
        met = gap <= tol * size
        if value < self.low - max(STILL * tol, 1e-13) * size:
            self.low, self.since = value, self.number
        # Of columns beyond all sizes the gap of the weights is rounding, times their squares.
        still = self.number - self.since >= self.patience
        if still:
            self.since, self.patience = self.number, 2 * self.patience
        still = still and moved and not met and problem.provable
        stuck = "" if moved else "step"
        if problem.coarse and (met or still or not moved):
            problem.coarse, problem.tol, stuck = False, 0.0, ""
        elif not (met or still or moved) and problem.colder():
            stuck = ""
        problem.taken += moved
        unsure = bool(coarse and met and problem.provable)
        if coarse and not (problem.coarse or unsure):
            gap = ridge.bracket(theta, -problem.value_and_gradient(theta)[1])
        if problem.coarse:
            problem.tol = min(problem.tol, INNER * (gap / size))
        left = 0.0 if still else gap / size / self.share
        return Reached(theta, value, gap, left, still, unsure, stuck)

    def proven(
        self, problem: Problem, here: Reached, start: Array, tol: float, balance: bool
    ) -> tuple[Array, Proof]:
        """What is proven of these weights, or of those to begin with if these are better."""
        given = PROOF * tol / problem.examples
        found = problem.prove(here.theta, given * max(1.0, abs(here.value)), balance=balance)
        proof, values = found.certificate, []
        if proof.relative <= tol or not proof.gap - proof.objective > self.start:
            return here.theta, found
        for theta in (start, here.theta):  # both evaluated anew
            problem.forget()
            values.append(problem.value_and_gradient(theta)[0] + problem.regulariser.value(theta))
        if values[1] <= values[0]:
            return here.theta, found
        return start, problem.prove(start, given * max(1.0, abs(self.start)), balance=balance)

    def settled(self, here: Reached, gap: float) -> str:
        """Return "proof" if no descent can make a proof's gap smaller."""
        if here.unsure or (here.still and self.patience <= LONG):
            return ""
        if not here.still and here.gap > AGAIN * gap:
            self.share = AGAIN * self.share
            return ""
        return "proof"


def likelihood(
    dual: Dual, routine: Routine, engine: Engine, oracle: Oracle[Any]
) -> SurrogateProblem:
    """Minus the surrogate likelihood of a dual problem, whose τ the routine computes."""
    ridge, alike = dual.regulariser, routine.alike
    steps = descents(dual.batch, dual.features, ridge, alike, dear=not routine.exact)
    part = part_of(dual, routine, oracle)
    problem = SurrogateProblem(part, ridge, engine, steps, routine.first, 1)
    problem.bound = str(dual.entropy.bound)
    return problem


def part_of(dual: Dual, routine: Routine, oracle: Oracle[Any] | None = None) -> LikelihoodPart:
    """All examples of a dual problem, by cheaper sums where transitions of chains are tied."""
    of = {"batch": dual.batch, "bias": dual.batch.bias, "features": dual.features}
    part = LikelihoodPart(**of, routine=routine, entropy=dual.entropy, oracle=oracle)  # type: ignore[arg-type]
    if type(routine).__name__ != "ForwardBackward":
        return part
    from mlestruct.learning.tied import tied

    return tied(part)

"""Minimise R(θ) + Σ over examples by L-BFGS, and prove what was reached."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace

import numpy as np

from mlestruct import limits
from mlestruct.learning.descents import WeightDescent
from mlestruct.learning.dual import Certificate
from mlestruct.learning.loop import Found, Loop
from mlestruct.learning.problem import Problem
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
    said: Found | None = None
    start = ridge.weights(np.zeros(len(ridge))) if start is None else start
    theta, steps = start, None
    if loop.state is not None:
        now, (memory, theta, steps) = Standing(*loop.state[0]), loop.state[1:]
        problem.remember(memory)

    def where() -> Tree:
        return now.tree(), problem.memory(), theta, descent.state()

    with closing(problem):
        descent = problem.steps(problem.value_and_gradient, ridge, theta, steps)
        while True:
            try:
                moved = descent.step()
            except limits.OutOfTime:  # the last point stands
                if said is None:
                    raise
            else:
                now.look(problem, descent, moved, loop.tol)
            theta, calls = now.theta, (now.number + 1) * problem.examples
            said = Found(
                theta, problem.claim(now.value, now.gap), round=now.number, calls=calls,
                examples=problem.examples, route="direct", learned=problem.learned(theta),
            )  # fmt: skip
            why, met = loop.over(said, now.stuck), now.left <= loop.tol
            if problem.provable and (why or met):
                # What is proven of these weights, or of those to begin with if these are better.
                given, balance = PROOF * loop.tol / problem.examples, why in ("", "step")
                found, point = problem.prove(theta, given * now.size, balance=balance), theta
                if now.worse(found.certificate, loop.tol) and not problem.improves(theta, start):
                    size, point = max(1.0, abs(now.start)), start
                    found = problem.prove(start, given * size, balance=balance)
                proof, tau, moves = found.certificate, found.tau, found.moved
                said = replace(said, theta=point, certificate=proof, tau=tau, at=tau, moved=moves)
                met = proof.relative <= loop.tol
                if not (why or met):
                    why = now.settled(said.gap)
            if why or met:
                return loop.end(said, "" if met else why)
            loop.tell(said)
            # Where no step led on inference has changed: another descent from here.
            descent = descent if moved else problem.steps(problem.value_and_gradient, ridge, theta)
            now.number, descent.late = now.number + 1, loop.late
            loop.save(where)


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

    def tree(self) -> Tree:
        return self.number, self.start, self.share, self.low, self.since, self.patience

    def look(self, problem: Problem, descent: WeightDescent, moved: bool, tol: float) -> None:
        """See how far a new point is from the best, and have inference finer where that is due.

        ``still``: values have not fallen for as many rounds as there is patience, which then
        doubles. ``unsure``: inference was coarse so far, so a proof may tell another gap. ``stuck``
        is "step" if no way leads on, ``left`` what is left of the weights' own gap, relative.
        """
        ridge = problem.regulariser
        self.theta, self.value, lack = descent.point()
        self.start = self.value if self.number == 0 else self.start
        self.gap, self.size = ridge.bracket(self.theta, -lack), max(1.0, abs(self.value))
        met, coarse = self.gap <= tol * self.size, problem.coarse
        if self.value < self.low - max(STILL * tol, 1e-13) * self.size:
            self.low, self.since = self.value, self.number
        # Of columns beyond all sizes the gap of the weights is rounding, times their squares.
        self.still = self.number - self.since >= self.patience
        if self.still:
            self.since, self.patience = self.number, 2 * self.patience
        self.still = self.still and moved and not met and problem.provable
        self.stuck = "" if problem.refine(met or self.still, moved) else "step"
        self.unsure = coarse and met and problem.provable
        if coarse and not (problem.coarse or self.unsure):
            self.gap = ridge.bracket(self.theta, -problem.value_and_gradient(self.theta)[1])
        if problem.coarse:
            problem.tol = min(problem.tol, INNER * (self.gap / self.size))
        self.left = 0.0 if self.still else self.gap / self.size / self.share

    def worse(self, proof: Certificate, tol: float) -> bool:
        """Whether the start may be better than the weights of which this is proven."""
        return not proof.relative <= tol and proof.gap - proof.objective > self.start

    def settled(self, gap: float) -> str:
        """Return "proof" if no descent can make a proof's gap smaller."""
        if self.unsure or (self.still and self.patience <= LONG):
            return ""
        if not self.still and self.gap > AGAIN * gap:
            self.share = AGAIN * self.share
            return ""
        return "proof"

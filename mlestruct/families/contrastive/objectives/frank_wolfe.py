"""CF_k over any polytope: k Frank-Wolfe steps of any entropy, from the smoothed data point."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mlestruct import Batch, Entropy
from mlestruct.dual import interior
from mlestruct.families.contrastive.objectives.base import BeforeAfter, clamped
from mlestruct.oracle import Oracle, Validated, memory, remember, resolve
from mlestruct.structures.base import Array
from mlestruct.structures.entropy import Rho
from mlestruct.trees import Tree

CLAMPED = 20  # steps of hidden variables given what was seen
MOST = 1 - 1e-3  # of the way to a vertex: slopes are infinite there
HALVINGS = 40


class InnerProblem(NamedTuple):
    """A batch with its entropy, its oracle, and a point inside."""

    batch: Batch[Any]
    entropy: Entropy
    oracle: Oracle[Any]
    inside: Array

    def free_energy(self, scores: Array, tau: Array) -> Array:
        """F = −⟨score, τ⟩ − H(τ) of every example."""
        return -self.batch.totals(scores * tau) - self.entropy.each(tau)

    def relax(self, scores: Array, tau: Array, steps: int) -> Array:
        """τ after these steps: each example by its own line search, F never rising."""
        reached = self.free_energy(scores, tau)
        for _ in range(steps):
            vertex, _ = self.oracle.many(self.batch, scores + self.entropy.grad(tau))
            delta = vertex - tau
            length = self._longest_downhill(scores, tau, delta)
            for _ in range(HALVINGS):
                moved = tau + length[self.batch.owner] * delta
                after = self.free_energy(scores, moved)
                if (after <= reached).all():
                    break
                length = np.where(after <= reached, length, 0.5 * length)
            fell = after < reached
            tau = np.where(fell[self.batch.owner], moved, tau)
            reached = np.where(fell, after, reached)
        return tau

    def _longest_downhill(self, scores: Array, tau: Array, delta: Array) -> Array:
        """The step at which F's slope turns along the line, by bisection; MOST where none does."""
        low, high = np.zeros(len(self.batch)), np.full(len(self.batch), MOST)
        length = high
        for _ in range(HALVINGS):
            slope = scores + self.entropy.grad(tau + length[self.batch.owner] * delta)
            down = self.batch.totals(slope * delta) > 0
            low, high = np.where(down, length, low), np.where(down, high, length)
            length = 0.5 * (low + high)
        return low


Problems = tuple[InnerProblem, InnerProblem | None]
"""With everything free, and with what was seen held where something is hidden."""


@dataclass(frozen=True)
class FrankWolfeSteps:
    """Any structure, any number of labels and any order, wherever an oracle answers.

    The entropy is the structure's own with counting numbers ``rho``: 1 is Bethe's, or Kikuchi's
    on region graphs; it need not be concave. Starts at (1−ε)y + εu with u inside. An oracle call
    per step and example.
    """

    steps: int = 10
    epsilon: float = 1e-2
    rho: Rho = 1.0
    oracle: Oracle[Any] | Callable[..., Any] | str | None = None
    exact: bool = False

    def __call__(self, batch: Batch[Any], scores: Array, warm: Problems | None) -> BeforeAfter:
        assert batch.target is not None
        whole, given = self._problems(batch) if warm is None else warm
        data = batch.target
        if given is not None:
            data = given.relax(scores, given.inside, CLAMPED)
        begin = (1 - self.epsilon) * data + self.epsilon * whole.inside
        tau = whole.relax(scores, begin, self.steps)
        start, end = whole.free_energy(scores, begin), whole.free_energy(scores, tau)
        return BeforeAfter(start, end, data, tau, (whole, given))

    def pack(self, warm: Problems) -> Tree:
        return [None if p is None else memory(p.oracle, p.batch) for p in warm]

    def unpack(self, batch: Batch[Any], tree: Tree) -> Problems:
        warm = self._problems(batch)
        for problem, kept in zip(warm, tree, strict=True):
            if problem is not None:
                remember(problem.oracle, problem.batch, kept)
        return warm

    def _problems(self, batch: Batch[Any]) -> Problems:
        held = clamped(batch)
        return self._problem(batch), None if held is None else self._problem(held)

    def _problem(self, batch: Batch[Any]) -> InnerProblem:
        oracle = Validated(resolve(self.oracle, batch))
        entropy = Entropy.of(batch, self.rho, allow_nonconvex=True)
        inside = interior(batch, oracle, entropy)
        return InnerProblem(batch, inside.entropy, oracle, inside.tau)

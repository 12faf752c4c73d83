"""A point of Frank-Wolfe and its active sets: the arrays that the native steps work on."""

from __future__ import annotations

from math import isqrt

import numpy as np

from mlestruct.learning.dual import Dual
from mlestruct.learning.regulariser import Regulariser
from mlestruct.native._door import (
    ActiveSets,
    DualPoint,
    DualProblem,
    StepTurn,
    active_sets_new,
    read_slot,
    rebuild_point,
    refresh_slopes,
    scale_atoms,
    step_among,
    step_jointly,
    step_plainly,
    step_towards,
    tangent_slopes,
    write_slot,
)
from mlestruct.storage.trees import Tree, like
from mlestruct.structures.base import Array, Ints

CAP = 256  # atoms kept per example at most
SPARSE = 0.25  # moments with a smaller share of entries that are not zero are kept as these
BUDGET = 512 * 2**20  # bytes for all atoms together
KEPT = "tau", "r", "moment", "known", "base", "rest", "interior"


class Iterate:
    """A feasible τ, kept either alone (plain steps) or as weights of bounded active sets.

    Memory per example: (support · 4 or 12 + moments · 8, sparse ones · 12) bytes per atom, at most
    ``CAP`` atoms and ``BUDGET`` bytes in all; a full set merges its lightest atom into the base.
    ``x`` are the point's arrays, ``u`` is the interior point, ``floor`` its least weight, ``more``
    the steps a block takes besides for as many vertices as it has coordinates. ``regulariser`` is
    that of the steps: the dual's own, or one with a moved centre.
    """

    def __init__(self, dual: Dual, tau: Array, u: Array) -> None:
        batch, entropy, columns = dual.batch, dual.entropy, dual.features.columns
        mixed, blocks, d = entropy.mixed, len(dual.batch), dual.features.d
        self.dual, self.u = dual, u
        self.all, self.floor, self.more = np.arange(blocks), 0.0, 0
        self.sets: ActiveSets | None = None
        self.limits = 0, False  # of the sets: atoms at most, and whether moments are sparse
        problem = DualProblem(
            blocks, batch.size, len(mixed.c0), len(mixed.value), len(columns.index), d,
            batch.offsets, batch.weight, batch.bias, entropy.a, entropy.b,
            mixed.start, mixed.ptr, mixed.place, mixed.value, mixed.c0, mixed.a,
            columns.start, columns.index, dual.regulariser.plain, bool(entropy.flat),
            np.empty((5, d)),
        )  # fmt: skip
        smooth, rough, stiff, held = np.zeros((4, batch.size))
        self.x = DualPoint(
            problem, tau.copy(), smooth, rough, stiff, held, np.zeros(d), np.zeros(d),
            self.moments(tau), np.zeros(blocks, dtype=np.int64), tau.copy(), np.ones(blocks),
            np.ones(blocks),
        )  # fmt: skip
        self.regularise(dual.regulariser)
        self.synchronise()

    def activate(self, cap: int, sparse: bool) -> None:
        """Keep τ as weights of at most ``cap`` atoms and a base, which it is now."""
        self.limits, self.sets = (cap, sparse), active_sets_new(self.x, cap, sparse)

    def synchronise(self) -> None:
        """Recompute τ from its atoms, r from τ, θ and all slopes: no drift survives."""
        x = self.x
        if self.sets is not None:
            rebuild_point(x, self.sets)
        x.r[:] = self.dual.residual(x.tau)
        x.theta[:] = self.regulariser.weights(x.r)
        if self.sets is None:
            x.moment[:] = self.moments(x.tau)
        refresh_slopes(x)

    def regularise(self, given: Regulariser) -> None:
        """Step by this regulariser from here on; θ follows it."""
        self.regulariser = given
        rows = given.lam, given.prior, given.l1, given.lower, given.upper
        self.x.p.terms[:] = np.array(rows)
        self.x.theta[:] = given.weights(self.x.r)

    def tangent(self, share: float, theta: Array) -> tuple[Array, Array, Array, Array]:
        """Return a point, what the oracle is asked there, and what the examples' entropies are.

        The point is (1 − share)τ + share·u, the score Φθ + bias + ∇H there; per example H(τ) +
        ⟨bias, τ⟩ and what leaving τ costs.
        """
        at, score = np.empty((2, len(self.u)))
        energy, spread = out = np.empty((2, len(self.all)))
        tangent_slopes(self.x, share, self.u, at, score, out)
        score += self.dual.features.potentials(theta)
        return at, score, energy, spread

    def moments(self, vertices: Array) -> Array:
        """Return every example's moments at its vertex."""
        return np.ascontiguousarray(self.dual.features.each(vertices))

    def plainly(self, order: Ints, vertices: Array, moments: Array, gamma: float = -1.0) -> None:
        """Step to these examples' vertices in turn, exactly, or by γ where that is not negative."""
        step_plainly(self.x, len(order), order, vertices, moments, gamma)

    def jointly(self, vertices: Array, number: int, gamma: float) -> None:
        """Step with all of τ, by γ, or exactly and by −γ at most where that is negative."""
        taken = np.empty(1)
        step_jointly(self.x, vertices, self.x.r - self.dual.residual(vertices), gamma, taken)
        if self.sets is not None:
            self.scale(vertices, number, float(taken[0]))
        self.synchronise()

    def scale(self, vertices: Array, number: int, gamma: float) -> None:
        """Give these vertices the weight γ, and shrink that of all other atoms."""
        assert self.sets is not None
        scale_atoms(self.x, self.sets, vertices, self.moments(vertices), number, gamma)

    def towards(self, order: Ints, vertices: Array, number: int) -> float:
        """Make these examples' vertices atoms and step to them; return what that gains."""
        assert self.sets is not None
        turn, gained = StepTurn(len(order), order, number, self.floor, self.more), np.empty(1)
        step_towards(self.x, self.sets, turn, vertices, self.moments(vertices), gained)
        return float(gained[0])

    def among(self, number: int, passes: int, gained: float) -> None:
        """Step between known atoms; ``gained`` is what the round's new vertices gained."""
        assert self.sets is not None
        turn = StepTurn(len(self.all), self.all, number, self.floor, self.more)
        step_among(self.x, self.sets, turn, passes, gained)

    def tree(self) -> Tree:
        """Return what the next rounds depend on: live arrays. The rest follows from τ and r."""
        return self.floor, self.limits, tuple(getattr(self.x, name) for name in KEPT), self._slots()

    def _slots(self) -> Tree:
        """Return per slot of the active sets its vertices, weights, stiffness and last uses."""
        slots = []
        for slot in range(int(self.x.known.max())):
            vertices, numbers = np.zeros(len(self.u)), np.zeros((len(self.all), 3))
            read_slot(self.x, self.sets, slot, vertices, numbers)  # type: ignore[arg-type]
            where = np.flatnonzero(vertices)
            amount = vertices[where]
            slots.append((where.astype(np.int32), None if (amount == 1).all() else amount, numbers))
        return slots

    def recall(self, tree: Tree) -> None:
        """Stand where another iterate of the same problem stood."""
        self.floor, (cap, sparse), arrays, slots = tree
        own = [getattr(self.x, name) for name in KEPT]
        for mine, kept in zip(own, like(arrays, own), strict=True):
            mine[:] = kept
        known = self.x.known
        if not (0 <= known.min() <= known.max() == len(slots) <= cap <= CAP):
            raise ValueError("an active set of another problem")
        if cap:
            self.activate(cap, sparse)
        for slot, (where, amount, numbers) in enumerate(slots):
            vertices = np.zeros(len(self.u))
            vertices[where] = 1.0 if amount is None else amount
            given = vertices, self.moments(vertices), numbers
            write_slot(self.x, self.sets, slot, *given)  # type: ignore[arg-type]
        refresh_slopes(self.x)


def capacity(dual: Dual, vertices: Array, moments: Array) -> tuple[int, bool]:
    """Return how many atoms like these there is room for, and whether moments are sparse."""
    count, used = len(dual.batch), int(np.count_nonzero(moments))
    sparse = used < SPARSE * len(moments)
    part = 4 if ((vertices == 0) | (vertices == 1)).all() else 12
    each = part * int(np.count_nonzero(vertices)) + (12 * used if sparse else 8 * len(moments))
    most = BUDGET // max(each, 1)
    if dual.entropy.flat:  # with the products of moments
        most = min(most, isqrt(BUDGET // (8 * count)))
    return int(np.clip(most, 4, CAP)), sparse

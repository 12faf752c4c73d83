"""The state of a Frank-Wolfe run as flat arrays: the point, its atoms, and room to work in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mlestruct.dual import Dual
from mlestruct.frank_wolfe import atoms as sets
from mlestruct.frank_wolfe import slopes, steps
from mlestruct.structures.base import Array
from mlestruct.trees import Tree

CAP = 256  # atoms kept per example at most
BUDGET = 512 * 2**20  # bytes for all atoms together
PER_SLOT = ("length", "weight", "stiff", "used", "tag")


@dataclass(frozen=True)
class Tangent:
    """The score Φθ + bias + ∇H(at); per example H(τ) + ⟨bias, τ⟩ and what leaving τ costs."""

    at: Array
    score: Array
    energy: Array
    spread: Array


@dataclass
class Iterate:
    """A feasible τ, kept either alone (plain steps) or as weights of a bounded active set.

    Memory per example: (support · 16 + columns · 8 bytes) per atom, at most ``CAP`` atoms and
    ``BUDGET`` bytes in all; a full set pours its lightest atom into the base point.
    """

    dual: Dual
    u: Array  # the interior point
    p: Any
    x: Any
    s: Any
    atoms: Any | None = None
    floor: float = 0.0  # the interior point's least weight

    @classmethod
    def start(cls, dual: Dual, tau: Array, u: Array, *, active: bool) -> Iterate:
        batch, columns = dual.batch, dual.features.columns
        d, flat = dual.features.d, [np.zeros(batch.size) for _ in range(4)]
        x = slopes.Point._make(
            [tau.copy(), *flat, np.zeros(d), np.zeros(d), dual.features.each(tau)]
        )
        size = int(np.diff(batch.offsets).max())
        terms = 2 * size + int(np.diff(dual.entropy.mixed.start).max(initial=0))
        width = int(np.diff(columns.start).max(initial=0))
        lengths = [size, width, terms, terms, terms, width, CAP, CAP, CAP]
        delta, *rest = (np.zeros(length) for length in lengths)
        s = steps.Scratch._make([delta, np.zeros(size, dtype=np.int64), *rest])
        iterate = cls(dual, u, _problem(dual), x, s)
        if active:
            iterate.atoms = _atoms(dual, tau, x.moment, np.zeros(len(batch), dtype=np.int64), 1)
        iterate.synchronise()
        return iterate

    def synchronise(self) -> None:
        """Recompute τ from its atoms, r from τ, θ and all slopes: no drift survives."""
        if self.atoms is not None:
            sets.rebuild(self.x.tau, self.p, self.atoms)
        self.x.r[:] = self.dual.residual(self.x.tau)
        self.x.theta[:] = self.dual.regulariser.weights(self.x.r)
        if self.atoms is None:
            self.x.moment[:] = self.dual.features.each(self.x.tau)
        slopes.refresh(self.p, self.x)

    def tangent(self, share: float) -> Tangent:
        """What the oracle is asked, taken at (1 − share)τ + share·u."""
        blocks, size = len(self.dual.batch), self.dual.batch.size
        at, slope = np.empty(size), np.empty(size)
        energy, spread = np.empty(blocks), np.empty(blocks)
        slopes.tangent(share, self.u, self.p, self.x, at, slope, energy, spread)
        slope += self.dual.features.potentials(self.x.theta)
        return Tangent(at, slope, energy, spread)

    def tree(self) -> Tree:
        """What the next rounds depend on: live arrays. Slopes and weights follow from τ and r."""
        if self.atoms is None:
            return self.floor, self.x.tau, self.x.r, self.x.moment
        return self.floor, self.x.tau, self.x.r, _occupied(self.dual, self.atoms)

    def recall(self, tree: Tree) -> None:
        """Stand where another iterate of the same problem stood."""
        self.floor, self.x.tau[:], self.x.r[:], rest = tree
        if isinstance(rest, tuple):
            self.atoms = _recalled(self.dual, rest)
        else:
            self.x.moment[:] = rest
        slopes.refresh(self.p, self.x)

    def make_room(self, vertices: Array) -> None:
        """Widen the atoms' slots when a vertex has a larger support than any before."""
        if self.atoms is None:
            return
        support = np.add.reduceat(vertices != 0, self.dual.batch.offsets[:-1]).astype(np.int64)
        if (support <= self.atoms.width).all():
            return
        width = np.maximum(support, self.atoms.width)
        cap = _capacity(self.dual, width)
        if not self.atoms.known.any():
            self.atoms = _atoms(self.dual, self.atoms.base, self.atoms.base_moment, width, cap)
        else:
            self.atoms = _widen(self.atoms, width)


def _capacity(dual: Dual, width: Array) -> int:
    per_atom = 16 * int(width.sum()) + 8 * len(dual.features.columns.index)
    return int(np.clip(BUDGET // max(per_atom, 1), 4, CAP))


def _problem(dual: Dual) -> Any:
    batch, entropy, columns = dual.batch, dual.entropy, dual.features.columns
    mixed, regulariser = entropy.mixed, dual.regulariser
    terms = (
        regulariser.lam,
        regulariser.prior,
        regulariser.l1,
        regulariser.lower,
        regulariser.upper,
    )
    return slopes.Problem(
        batch.offsets,
        batch.weight,
        batch.bias,
        entropy.a,
        entropy.b,
        mixed.start,
        mixed.ptr,
        mixed.index,
        mixed.value,
        mixed.c0,
        mixed.a,
        columns.start,
        columns.index,
        regulariser.plain,
        np.array(terms).reshape(5, -1),
    )


def _atoms(dual: Dual, base: Array, moment: Array, width: Any, cap: int) -> Any:
    blocks = len(dual.batch)
    start = np.concatenate([[0], np.cumsum(cap * width)]).astype(np.int64)
    return sets.Atoms(
        cap,
        np.zeros(blocks, dtype=np.int64),
        start,
        np.asarray(width, dtype=np.int64),
        np.zeros(int(start[-1]), dtype=np.int64),
        np.zeros(int(start[-1])),
        np.zeros((blocks, cap), dtype=np.int64),
        np.zeros(cap * len(dual.features.columns.index)),
        np.zeros((blocks, cap)),
        np.zeros((blocks, cap)),
        np.zeros((blocks, cap), dtype=np.int64),
        np.zeros((blocks, cap), dtype=np.int64),
        base.copy(),
        moment.copy(),
        np.ones(blocks),
        np.ones(blocks),
    )


def _widen(atoms: Any, width: Any) -> Any:
    start = np.concatenate([[0], np.cumsum(atoms.cap * width)]).astype(np.int64)
    place, amount = np.zeros(int(start[-1]), dtype=np.int64), np.zeros(int(start[-1]))
    for m in range(len(width)):
        old = slice(atoms.support_start[m], atoms.support_start[m + 1])
        shape = (atoms.cap, int(atoms.width[m]))
        for new, kept in ((place, atoms.place), (amount, atoms.amount)):
            rows = new[start[m] : start[m + 1]].reshape(atoms.cap, int(width[m]))
            rows[:, : shape[1]] = kept[old].reshape(shape)
    return atoms._replace(support_start=start, width=width, place=place, amount=amount)


def _occupied(dual: Dual, atoms: Any) -> Tree:
    """The slots in use; most are not."""
    slots, entries, moments = _in_use(dual, atoms)
    kept = atoms._replace(
        support_start=None,
        place=atoms.place[entries],
        amount=atoms.amount[entries],
        moment=atoms.moment[moments],
        **{name: getattr(atoms, name)[slots] for name in PER_SLOT},
    )
    return tuple(kept)


def _recalled(dual: Dual, tree: Tree) -> Any:
    kept = sets.Atoms._make(tree)
    atoms = _atoms(dual, kept.base, kept.base_moment, kept.width, kept.cap)
    atoms.known[:], atoms.rest[:], atoms.interior[:] = kept.known, kept.rest, kept.interior
    slots, entries, moments = _in_use(dual, atoms)
    atoms.place[entries], atoms.amount[entries] = kept.place, kept.amount
    atoms.moment[moments] = kept.moment
    for name in PER_SLOT:
        getattr(atoms, name)[slots] = getattr(kept, name)
    return atoms


def _in_use(dual: Dual, atoms: Any) -> tuple[Any, Any, Any]:
    """Masks of the slots that hold a vertex, and of their entries and moments."""
    slots = np.arange(atoms.cap) < atoms.known[:, None]
    entries = np.repeat(slots, np.repeat(atoms.width, atoms.cap))
    columns = np.diff(dual.features.columns.start)
    return slots, entries, np.repeat(slots, np.repeat(columns, atoms.cap))

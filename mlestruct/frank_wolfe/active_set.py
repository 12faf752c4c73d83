"""The state of a Frank-Wolfe run as flat arrays: the point, its atoms, and room to work in."""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt
from typing import Any

import numpy as np

from mlestruct.dual import Dual
from mlestruct.frank_wolfe import atoms as sets
from mlestruct.frank_wolfe import slopes, steps
from mlestruct.frank_wolfe.slots import (
    CAP,
    Widths,
    empty_atoms,
    occupied,
    recalled,
    widened,
    with_amounts,
)
from mlestruct.regulariser import Regulariser
from mlestruct.structures.base import Array
from mlestruct.trees import Tree, like

BUDGET = 512 * 2**20  # bytes for all atoms together
FLAT = 44  # numbers per coordinate at the peak, which the first rounds' joint searches are


@dataclass(frozen=True)
class Tangent:
    """The score Φθ + bias + ∇H(at); per example H(τ) + ⟨bias, τ⟩ and what leaving τ costs."""

    theta: Array
    at: Array
    score: Array
    energy: Array
    spread: Array


@dataclass
class Iterate:
    """A feasible τ, kept either alone (plain steps) or as weights of a bounded active set.

    Memory per example: (support · 4 or 12 + moments · 8, sparse ones · 24) bytes per atom,
    at most ``CAP`` atoms and ``BUDGET`` bytes in all; a full set merges its lightest atom into the
    base point.
    """

    dual: Dual
    u: Array  # the interior point
    regulariser: Regulariser  # of the steps: the dual's own, or one with a moved centre
    p: Any
    x: Any
    s: Any
    atoms: Any | None = None
    gram: Any | None = None  # products of the atoms' moments, where there is no entropy
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
        place, column = (np.zeros(length, dtype=np.int64) for length in (size, width))
        s = steps.Scratch._make([delta, place, column, *rest])
        iterate = cls(dual, u, dual.regulariser, _problem(dual), x, s)
        if active:
            none = np.zeros(len(batch), dtype=np.int64)
            widths = Widths(none, np.diff(columns.start), False, True)
            iterate.atoms = empty_atoms(tau, x.moment, widths, 1)
        iterate.synchronise()
        return iterate

    def synchronise(self) -> None:
        """Recompute τ from its atoms, r from τ, θ and all slopes: no drift survives."""
        if self.atoms is not None:
            sets.rebuild(self.x.tau, self.p, self.atoms)
        self.x.r[:] = self.dual.residual(self.x.tau)
        self.x.theta[:] = self.regulariser.weights(self.x.r)
        if self.atoms is None:
            self.x.moment[:] = self.dual.features.each(self.x.tau)
        slopes.refresh(self.p, self.x)

    def regularise(self, regulariser: Regulariser) -> None:
        """Step by another regulariser from here on; θ follows it."""
        self.regulariser = regulariser
        self.p = self.p._replace(terms=_terms(regulariser))
        self.x.theta[:] = regulariser.weights(self.x.r)

    def tangent(self, share: float, theta: Array) -> Tangent:
        """What the oracle is asked, taken at (1 − share)τ + share·u and at θ."""
        blocks, size = len(self.dual.batch), self.dual.batch.size
        at, slope = np.empty(size), np.empty(size)
        energy, spread = np.empty(blocks), np.empty(blocks)
        slopes.tangent(share, self.u, self.p, self.x, at, slope, energy, spread)
        slope += self.dual.features.potentials(theta)
        return Tangent(theta, at, slope, energy, spread)

    def tree(self) -> Tree:
        """What the next rounds depend on: live arrays. Slopes and weights follow from τ and r."""
        if self.atoms is None:
            return self.floor, self.x.tau, self.x.r, self.x.moment
        return self.floor, self.x.tau, self.x.r, occupied(self.atoms)

    def recall(self, tree: Tree) -> None:
        """Stand where another iterate of the same problem stood."""
        self.floor, tau, r, rest = tree
        self.x.tau[:], self.x.r[:] = like((tau, r), (self.x.tau, self.x.r))
        if isinstance(rest, tuple):
            self.atoms = recalled(self.dual, rest)
        else:
            self.x.moment[:] = rest
        slopes.refresh(self.p, self.x)

    def make_room(self, vertices: Array, moments: Array) -> None:
        """Widen the atoms' slots when a vertex or its moments have more entries than any before."""
        atoms = self.atoms
        if atoms is None:
            return
        widths = Widths.of(self.dual, vertices, moments)
        if atoms.known.any():
            sizes = np.diff(self.dual.batch.offsets), np.diff(self.dual.features.columns.start)
            vertex = widened(atoms.vertex, widths.vertex, atoms.known, sizes[0])
            moment = widened(atoms.moment, widths.moment, atoms.known, sizes[1])
            vertex = vertex if widths.ones else with_amounts(vertex, atoms.known)
            self.atoms = atoms._replace(vertex=vertex, moment=moment)
        else:
            cap, most = _capacity(self.dual, widths), np.diff(self.dual.features.columns.start)
            wide = np.minimum((1 + widths.sparse) * widths.moment, most)
            widths = widths._replace(moment=wide)
            self.atoms = empty_atoms(atoms.base, atoms.base_moment, widths, cap)

    def bases_to_atoms(self, vertices: Array) -> None:
        """Every base, a vertex itself, becomes an atom."""
        moments = self.dual.features.each(vertices)
        self.make_room(vertices, moments)
        sets.scaled_pass(vertices, moments, 0, 1.0, self.p, self.atoms)


def footprint(dual: Dual, vertices: Array, moments: Array, *, active: bool) -> int:
    """Bytes of a run's arrays beside its problem, if vertices stay as large as these."""
    batch, columns = dual.batch, len(dual.features.columns.index)
    flat = 8 * (FLAT * batch.size + 2 * columns)
    if not active:
        return flat
    widths = Widths.of(dual, vertices, moments)
    slots = _capacity(dual, widths) * (widths.bytes + 48 * len(batch))
    return flat + slots + 8 * batch.size


def capacity(dual: Dual, vertices: Array, moments: Array) -> int:
    """Atoms an example that memory has room for, if vertices stay as large as these."""
    return _capacity(dual, Widths.of(dual, vertices, moments))


def _capacity(dual: Dual, widths: Widths) -> int:
    """Atoms that ``BUDGET`` has room for, and without entropy for their products too."""
    most = BUDGET // max(widths.bytes, 1)
    if dual.entropy.flat:
        most = min(most, isqrt(BUDGET // (8 * len(dual.batch))))
    return int(np.clip(most, 4, CAP))


def _problem(dual: Dual) -> Any:
    batch, entropy, columns = dual.batch, dual.entropy, dual.features.columns
    mixed, regulariser = entropy.mixed, dual.regulariser
    return slopes.Problem(
        batch.offsets,
        batch.weight,
        batch.bias,
        entropy.a,
        entropy.b,
        *mixed,
        columns.start,
        columns.index,
        regulariser.plain,
        _terms(regulariser),
    )


def _terms(reg: Regulariser) -> Array:
    return np.array((reg.lam, reg.prior, reg.l1, reg.lower, reg.upper)).reshape(5, -1)

"""The state of a Frank-Wolfe run as flat arrays: the point, its atoms, and room to work in."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass
from math import isqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlestruct.dual import Dual
from mlestruct.native._door import (
    AtomProducts,
    AtomRows,
    AtomSet,
    DualIterate,
    DualPoint,
    DualProblem,
    StepRoom,
    rebuild_point,
    refresh_slopes,
    tangent_slopes,
)
from mlestruct.regulariser import Regulariser
from mlestruct.structures.base import Array, Ints
from mlestruct.trees import Tree, like

CAP = 256  # atoms kept per example at most
SPARSE = 0.25  # moments with a smaller share of entries that are not zero are kept as these
PER_SLOT = ("weight", "stiff", "used", "tag")
# What checkpoints keep of an AtomSet and of its AtomRows
Atoms = namedtuple(
    "Atoms", "cap known vertex moment weight stiff used tag base base_moment rest interior"
)
Rows = namedtuple("Rows", "start width length place amount")


def plain(values: Array) -> Array:
    """As the kernels read them, which may be the same array."""
    return np.ascontiguousarray(values, dtype=np.float64)


def extent(flat: Array, edges: Ints) -> Ints:
    """How many entries of every block are not zero."""
    before = np.concatenate([[0], np.cumsum(flat != 0)])
    return np.asarray(before[edges[1:]] - before[edges[:-1]])


class Widths(NamedTuple):
    """Entries of each block's ``vertex``, which are all ``ones`` or not, and of its ``moment``.

    Moments are kept ``sparse``, or all of them.
    """

    vertex: Ints
    moment: Ints
    sparse: bool
    ones: bool

    @classmethod
    def of(cls, dual: Dual, vertices: Array, moments: Array) -> Widths:
        """As these would be kept."""
        edges = dual.features.columns.start
        sparse = int(np.count_nonzero(moments)) < SPARSE * len(moments)
        wide = extent(moments, edges) if sparse else np.diff(edges)
        ones = bool(((vertices == 0) | (vertices == 1)).all())
        return cls(extent(vertices, dual.batch.offsets), wide, sparse, ones)

    @property
    def bytes(self) -> int:
        """Of one atom per example; sparse moments get room to spare."""
        part, moment = 4 if self.ones else 12, 24 if self.sparse else 8
        return part * int(self.vertex.sum()) + moment * int(self.moment.sum())


def empty_atoms(base: Array, moment: Array, widths: Widths, cap: int) -> AtomSet:
    """Empty slots for vertices of so many entries, and moments of so many."""
    blocks = len(widths.vertex)
    return AtomSet(
        blocks,
        cap,
        len(base),
        len(moment),
        _rows(widths.vertex, cap, True, widths.ones),
        _rows(widths.moment, cap, widths.sparse),
        np.zeros(blocks, dtype=np.int64),
        np.zeros((blocks, cap)),
        np.zeros((blocks, cap)),
        np.zeros((blocks, cap), dtype=np.int64),
        np.zeros((blocks, cap), dtype=np.int64),
        base.copy(),
        moment.copy(),
        np.ones(blocks),
        np.ones(blocks),
    )


def _rows(width: Ints, cap: int, sparse: bool, ones: bool = False) -> AtomRows:
    width = np.maximum(width, int(sparse))  # empty matchings too: rows without places are dense
    start = np.concatenate([[0], np.cumsum(cap * width)]).astype(np.int64)
    size, length = int(start[-1]), np.zeros((len(width), cap), dtype=np.int64)
    place = np.zeros(size * sparse, dtype=np.int32)  # a batch of 2³¹ parts has no room anyway
    return _rows_of(start, width, length, place, np.zeros(0 if ones else size))


def _rows_of(start: Ints, width: Ints, length: Ints, place: Any, amount: Array) -> AtomRows:
    blocks, cap = length.shape
    return AtomRows(blocks, cap, len(place), len(amount), start, width, length, place, amount)


def with_amounts(rows: AtomRows, known: Ints) -> AtomRows:
    """The rows with an amount per entry, for entries that may be other than 1."""
    if len(rows.amount):
        return rows
    amount = np.zeros(len(rows.place))  # memory that is not touched costs nothing
    for start, used in zip(rows.start, known * rows.width, strict=False):
        amount[start : start + used] = 1.0
    return _rows_of(rows.start, rows.width, rows.length, rows.place, amount)


def widened(rows: AtomRows, needed: Ints, known: Ints, size: Ints) -> AtomRows:
    """The same rows in slots that hold ``needed`` entries; those that grow get some to spare.

    Where one grows the others of up to ``size`` entries are likely to: all are copied once.
    """
    if len(rows.place) == 0 or (needed <= rows.width).all():
        return rows
    cap, width = rows.length.shape[1], rows.width
    ones, spare = len(rows.amount) == 0, np.maximum(width, np.minimum(width + width // 2, size))
    new = _rows(np.where(needed > width, needed + needed // 2, spare), cap, True, ones)
    for m, used in enumerate(known):
        old, fresh = (slice(r.start[m], r.start[m] + used * r.width[m]) for r in (rows, new))
        shape = used, int(width[m])
        for to, kept in ((new.place, rows.place), (new.amount, rows.amount))[: 2 - ones]:
            to[fresh].reshape(used, int(new.width[m]))[:, : shape[1]] = kept[old].reshape(shape)
    return _rows_of(new.start, new.width, rows.length, new.place, new.amount)


def occupied(atoms: AtomSet) -> Tree:
    """The slots in use; most are not."""
    slots = _used(atoms)
    kept = {name: getattr(atoms, name) for name in Atoms._fields}
    kept |= {name: kept[name][slots] for name in PER_SLOT}
    kept |= {name: tuple(_packed(kept[name], slots)) for name in ("vertex", "moment")}
    return tuple(Atoms(**kept))


def _packed(rows: AtomRows, slots: NDArray[np.bool_]) -> Any:
    entries = np.repeat(slots, np.repeat(rows.width, slots.shape[1]))
    place = rows.place[entries] if len(rows.place) else None
    ones = len(rows.place) > len(rows.amount)
    return Rows(None, rows.width, rows.length[slots], place, None if ones else rows.amount[entries])


def recalled(dual: Dual, tree: Tree) -> AtomSet:
    """The same slots again; kernels trust them, so a tree that is no active set is refused."""
    kept = Atoms._make(tree)
    kept = kept._replace(vertex=Rows._make(kept.vertex), moment=Rows._make(kept.moment))
    _refuse_foreign(dual, kept)
    sparse, ones = kept.moment.place is not None, kept.vertex.amount is None
    widths = Widths(kept.vertex.width, kept.moment.width, sparse, ones)
    atoms = empty_atoms(kept.base, kept.base_moment, widths, kept.cap)
    atoms.known[:], atoms.rest[:], atoms.interior[:] = kept.known, kept.rest, kept.interior
    slots = _used(atoms)
    for name in PER_SLOT:
        getattr(atoms, name)[slots] = getattr(kept, name)
    for rows, old in ((atoms.vertex, kept.vertex), (atoms.moment, kept.moment)):
        entries = np.repeat(slots, np.repeat(rows.width, atoms.cap))
        rows.length[slots] = old.length
        for own, part in ((rows.place, old.place), (rows.amount, old.amount)):
            if part is not None:
                own[entries] = part
    return atoms


def _used(atoms: Any) -> NDArray[np.bool_]:
    return np.asarray(np.arange(atoms.cap) < atoms.known[:, None])


def _refuse_foreign(dual: Dual, kept: Any) -> None:
    """ValueError unless every entry that a kernel would follow leads into its own example."""
    batch, columns, blocks = dual.batch, dual.features.columns, len(dual.batch)
    numbers = np.zeros(blocks)
    like(kept.known, np.zeros(blocks, dtype=np.int64)), like(kept.base, batch.bias)
    like(
        (kept.rest, kept.interior, kept.base_moment),
        (numbers, numbers, np.zeros(len(columns.index))),
    )
    fits = 0 <= kept.known.min() <= kept.known.max() <= kept.cap <= CAP
    if not fits or kept.vertex.place is None or kept.moment.amount is None:
        raise ValueError("an active set of another problem")
    _refuse_astray(kept.vertex, kept.known, batch.offsets)
    _refuse_astray(kept.moment, kept.known, columns.start)


def _refuse_astray(rows: Any, known: Ints, edges: Ints) -> None:
    """ValueError unless every entry lies within the edges of its own block."""
    like(rows.width, np.zeros(len(known), dtype=np.int64))
    dense, size = rows.place is None, np.diff(edges)
    most = np.maximum(size + size // 2, 1)  # what grows gets half as much to spare
    fits = rows.width == size if dense else (rows.width > 0) & (rows.width <= most)
    if not fits.all():
        raise ValueError("an active set of another problem")
    owner, width = np.repeat(np.arange(len(known)), known), np.repeat(rows.width, known)
    like(rows.length, 0 * owner)
    inside = np.ones(int(width.sum()), dtype=bool)
    if rows.amount is not None:
        like(rows.amount, np.zeros(len(inside)))
    if not dense:
        like(rows.place, np.zeros(len(inside), dtype=np.int32))
        first, last = (np.repeat(edge[owner], width) for edge in (edges[:-1], edges[1:]))
        number = np.arange(len(inside)) - np.repeat(np.cumsum(width) - width, width)
        unread = number >= np.repeat(rows.length, width)
        inside = unread | ((rows.place >= first) & (rows.place < last))
    if (rows.length > width).any() or not inside.all():
        raise ValueError("an active set of another problem")


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
    at: DualIterate
    atoms: AtomSet | None = None
    gram: AtomProducts | None = None  # products of the atoms' moments, where there is no entropy
    floor: float = 0.0  # the interior point's least weight

    @classmethod
    def start(cls, dual: Dual, tau: Array, u: Array, *, active: bool) -> Iterate:
        batch, columns = dual.batch, dual.features.columns
        d = dual.features.d
        moment = plain(dual.features.each(tau))
        smooth, rough, stiff, held = np.zeros((4, batch.size))
        x = DualPoint(
            batch.size, d, len(moment), tau.copy(), smooth, rough, stiff, held,
            np.zeros(d), np.zeros(d), moment,
        )  # fmt: skip
        size = int(np.diff(batch.offsets).max())
        terms = 2 * size + int(np.diff(dual.entropy.mixed.start).max(initial=0))
        width = int(np.diff(columns.start).max(initial=0))
        eights = -(-terms // 8)
        place, column = (np.zeros(length, dtype=np.int64) for length in (size, width))
        lengths = [width, *3 * [8 * eights], width, CAP, CAP, CAP]
        rest = [np.zeros(length) for length in lengths]
        s = StepRoom(size, width, eights, CAP, np.zeros(size), place, column, *rest)
        iterate = cls(dual, u, dual.regulariser, DualIterate(_problem(dual), x, s))
        if active:
            none = np.zeros(len(batch), dtype=np.int64)
            widths = Widths(none, np.diff(columns.start), False, True)
            iterate.atoms = empty_atoms(tau, x.moment, widths, 1)
        iterate.synchronise()
        return iterate

    @property
    def p(self) -> DualProblem:
        """The problem."""
        return self.at.p

    @property
    def x(self) -> DualPoint:
        """The point."""
        return self.at.x

    def synchronise(self) -> None:
        """Recompute τ from its atoms, r from τ, θ and all slopes: no drift survives."""
        if self.atoms is not None:
            rebuild_point(self.p, self.atoms, self.x.tau)
        self.x.r[:] = self.dual.residual(self.x.tau)
        self.x.theta[:] = self.regulariser.weights(self.x.r)
        if self.atoms is None:
            self.x.moment[:] = self.dual.features.each(self.x.tau)
        refresh_slopes(self.p, self.x)

    def regularise(self, regulariser: Regulariser) -> None:
        """Step by another regulariser from here on; θ follows it."""
        self.regulariser = regulariser
        self.p.terms[:] = _terms(regulariser)
        self.x.theta[:] = regulariser.weights(self.x.r)

    def tangent(self, share: float, theta: Array) -> Tangent:
        """What the oracle is asked, taken at (1 − share)τ + share·u and at θ."""
        blocks, size = len(self.dual.batch), self.dual.batch.size
        at, slope = np.empty(size), np.empty(size)
        energy, spread = out = np.empty((2, blocks))
        tangent_slopes(self.p, self.x, share, plain(self.u), at, slope, out)
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
        refresh_slopes(self.p, self.x)

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
            if vertex is not atoms.vertex or moment is not atoms.moment:
                self.atoms = AtomSet(
                    atoms.blocks, atoms.cap, atoms.size, atoms.columns, vertex, moment,
                    atoms.known, atoms.weight, atoms.stiff, atoms.used, atoms.tag,
                    atoms.base, atoms.base_moment, atoms.rest, atoms.interior,
                )  # fmt: skip
        else:
            cap, most = capacity(self.dual, widths), np.diff(self.dual.features.columns.start)
            wide = np.minimum((1 + widths.sparse) * widths.moment, most)
            widths = widths._replace(moment=wide)
            self.atoms = empty_atoms(atoms.base, atoms.base_moment, widths, cap)


def footprint(dual: Dual, widths: Widths | None = None) -> int:
    """Bytes of a run's arrays beside its problem, with atoms of these widths if it keeps any."""
    batch, columns = dual.batch, len(dual.features.columns.index)
    flat = 8 * (FLAT * batch.size + 2 * columns)
    if widths is None:
        return flat
    return flat + capacity(dual, widths) * (widths.bytes + 48 * len(batch)) + 8 * batch.size


def capacity(dual: Dual, widths: Widths) -> int:
    """Atoms that ``BUDGET`` has room for, and without entropy for their products too."""
    most = BUDGET // max(widths.bytes, 1)
    if dual.entropy.flat:
        most = min(most, isqrt(BUDGET // (8 * len(dual.batch))))
    return int(np.clip(most, 4, CAP))


def _problem(dual: Dual) -> DualProblem:
    batch, entropy, columns = dual.batch, dual.entropy, dual.features.columns
    mixed, regulariser = entropy.mixed, dual.regulariser
    views, entries, wide = len(mixed.c0), len(mixed.value), len(columns.index)
    return DualProblem(
        len(batch), batch.size, views, entries, wide, dual.features.d,
        batch.offsets, plain(batch.weight), plain(batch.bias), plain(entropy.a), plain(entropy.b),
        mixed.start, mixed.ptr, mixed.place, mixed.value, mixed.c0, mixed.a,
        columns.start, columns.index, bool(regulariser.plain), _terms(regulariser),
    )  # fmt: skip


def _terms(reg: Regulariser) -> Array:
    return np.array((reg.lam, reg.prior, reg.l1, reg.lower, reg.upper)).reshape(5, -1)

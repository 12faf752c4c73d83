"""Room for active sets: made, widened, and packed into the slots that are in use."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlestruct.dual import Dual
from mlestruct.frank_wolfe.atoms import Atoms, Rows
from mlestruct.structures.base import Array, Ints
from mlestruct.trees import Tree, like

CAP = 256  # atoms kept per example at most
SPARSE = 0.25  # moments with a smaller share of entries that are not zero are kept as these
PER_SLOT = ("weight", "stiff", "used", "tag")


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


def empty_atoms(base: Array, moment: Array, widths: Widths, cap: int) -> Any:
    """Empty slots for vertices of so many entries, and moments of so many."""
    blocks = len(widths.vertex)
    return Atoms(
        cap,
        np.zeros(blocks, dtype=np.int64),
        _rows(widths.vertex, cap, True, widths.ones),
        _rows(widths.moment, cap, widths.sparse),
        np.zeros((blocks, cap)),
        np.zeros((blocks, cap)),
        np.zeros((blocks, cap), dtype=np.int64),
        np.zeros((blocks, cap), dtype=np.int64),
        base.copy(),
        moment.copy(),
        np.ones(blocks),
        np.ones(blocks),
    )


def _rows(width: Ints, cap: int, sparse: bool, ones: bool = False) -> Any:
    width = np.maximum(width, int(sparse))  # empty matchings too: rows without places are dense
    start = np.concatenate([[0], np.cumsum(cap * width)]).astype(np.int64)
    size, length = int(start[-1]), np.zeros((len(width), cap), dtype=np.int64)
    place = np.zeros(size * sparse, dtype=np.int32)  # a batch of 2³¹ parts has no room anyway
    return Rows(start, width, length, place, np.zeros(0 if ones else size))


def with_amounts(rows: Any, known: Ints) -> Any:
    """The rows with an amount per entry, for entries that may be other than 1."""
    if len(rows.amount):
        return rows
    amount = np.zeros(len(rows.place))  # memory that is not touched costs nothing
    for start, used in zip(rows.start, known * rows.width, strict=False):
        amount[start : start + used] = 1.0
    return rows._replace(amount=amount)


def widened(rows: Any, needed: Ints, known: Ints, size: Ints) -> Any:
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
    return new._replace(length=rows.length)


def occupied(atoms: Any) -> Tree:
    """The slots in use; most are not."""
    slots = _used(atoms)
    kept = {name: getattr(atoms, name)[slots] for name in PER_SLOT}
    rows = {name: tuple(_packed(getattr(atoms, name), slots)) for name in ("vertex", "moment")}
    return tuple(atoms._replace(**kept, **rows))


def _packed(rows: Any, slots: NDArray[np.bool_]) -> Any:
    entries = np.repeat(slots, np.repeat(rows.width, slots.shape[1]))
    place = rows.place[entries] if len(rows.place) else None
    ones = len(rows.place) > len(rows.amount)
    return Rows(None, rows.width, rows.length[slots], place, None if ones else rows.amount[entries])


def recalled(dual: Dual, tree: Tree) -> Any:
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

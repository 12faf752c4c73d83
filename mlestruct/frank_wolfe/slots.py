"""Room for active sets: made, widened, and packed into the slots that are in use."""

from __future__ import annotations

from typing import Any

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


def widths(dual: Dual, vertices: Array, moments: Array) -> tuple[Ints, Ints, bool]:
    """Entries of each block's vertex and of its moments as they would be kept: sparse, or all."""
    edges = dual.features.columns.start
    sparse = int(np.count_nonzero(moments)) < SPARSE * len(moments)
    wide = extent(moments, edges) if sparse else np.diff(edges)
    return extent(vertices, dual.batch.offsets), wide, sparse


def empty_atoms(base: Array, moment: Array, width: Ints, wide: Ints, sparse: bool, cap: int) -> Any:
    """Empty slots for vertices of so many entries, and moments of so many."""
    blocks = len(width)
    return Atoms(
        cap,
        np.zeros(blocks, dtype=np.int64),
        _rows(width, True, cap),
        _rows(wide, sparse, cap),
        np.zeros((blocks, cap)),
        np.zeros((blocks, cap)),
        np.zeros((blocks, cap), dtype=np.int64),
        np.zeros((blocks, cap), dtype=np.int64),
        base.copy(),
        moment.copy(),
        np.ones(blocks),
        np.ones(blocks),
    )


def _rows(width: Ints, sparse: bool, cap: int) -> Any:
    width = np.maximum(width, int(sparse))  # empty matchings too: rows without places are dense
    start = np.concatenate([[0], np.cumsum(cap * width)]).astype(np.int64)
    size, length = int(start[-1]), np.zeros((len(width), cap), dtype=np.int64)
    return Rows(start, width, length, np.zeros(size * sparse, dtype=np.int64), np.zeros(size))


def widened(rows: Any, needed: Ints, known: Ints) -> Any:
    """The same rows in slots that hold ``needed`` entries; those that grow get some to spare."""
    if len(rows.place) == 0 or (needed <= rows.width).all():
        return rows
    cap, width = rows.length.shape[1], rows.width
    new = _rows(np.where(needed > width, needed + needed // 2, width), True, cap)
    for m, used in enumerate(known):
        old, fresh = (slice(r.start[m], r.start[m] + used * r.width[m]) for r in (rows, new))
        shape = used, int(width[m])
        for to, kept in ((new.place, rows.place), (new.amount, rows.amount)):
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
    return Rows(None, rows.width, rows.length[slots], place, rows.amount[entries])


def recalled(dual: Dual, tree: Tree) -> Any:
    """The same slots again; kernels trust them, so a tree that is no active set is refused."""
    kept = Atoms._make(tree)
    kept = kept._replace(vertex=Rows._make(kept.vertex), moment=Rows._make(kept.moment))
    _refuse_foreign(dual, kept)
    sparse = kept.moment.place is not None
    width, wide = kept.vertex.width, kept.moment.width
    atoms = empty_atoms(kept.base, kept.base_moment, width, wide, sparse, kept.cap)
    atoms.known[:], atoms.rest[:], atoms.interior[:] = kept.known, kept.rest, kept.interior
    slots = _used(atoms)
    for name in PER_SLOT:
        getattr(atoms, name)[slots] = getattr(kept, name)
    for rows, old in ((atoms.vertex, kept.vertex), (atoms.moment, kept.moment)):
        entries = np.repeat(slots, np.repeat(rows.width, atoms.cap))
        rows.length[slots], rows.amount[entries] = old.length, old.amount
        if old.place is not None:
            rows.place[entries] = old.place
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
    if not fits or kept.vertex.place is None:
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
    like((rows.length, rows.amount), (0 * owner, np.zeros(width.sum())))
    inside = np.ones(int(width.sum()), dtype=bool)
    if not dense:
        like(rows.place, np.zeros(len(inside), dtype=np.int64))
        first, last = (np.repeat(edge[owner], width) for edge in (edges[:-1], edges[1:]))
        number = np.arange(len(inside)) - np.repeat(np.cumsum(width) - width, width)
        unread = number >= np.repeat(rows.length, width)
        inside = unread | ((rows.place >= first) & (rows.place < last))
    if (rows.length > width).any() or not inside.all():
        raise ValueError("an active set of another problem")

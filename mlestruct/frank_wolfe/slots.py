"""Room for active sets: made, widened, and packed into the slots that are in use."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlestruct.dual import Dual
from mlestruct.frank_wolfe.atoms import Atoms
from mlestruct.structures.base import Array
from mlestruct.trees import Tree, like

CAP = 256  # atoms kept per example at most
PER_SLOT = ("length", "weight", "stiff", "used", "tag")


def room(dual: Dual, base: Array, moment: Array, width: Any, cap: int) -> Any:
    blocks = len(dual.batch)
    start = np.concatenate([[0], np.cumsum(cap * width)]).astype(np.int64)
    return Atoms(
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


def widened(atoms: Any, width: Any) -> Any:
    start = np.concatenate([[0], np.cumsum(atoms.cap * width)]).astype(np.int64)
    place, amount = np.zeros(int(start[-1]), dtype=np.int64), np.zeros(int(start[-1]))
    for m in range(len(width)):
        old = slice(atoms.support_start[m], atoms.support_start[m + 1])
        shape = (atoms.cap, int(atoms.width[m]))
        for new, kept in ((place, atoms.place), (amount, atoms.amount)):
            rows = new[start[m] : start[m + 1]].reshape(atoms.cap, int(width[m]))
            rows[:, : shape[1]] = kept[old].reshape(shape)
    return atoms._replace(support_start=start, width=width, place=place, amount=amount)


def occupied(dual: Dual, atoms: Any) -> Tree:
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


def recalled(dual: Dual, tree: Tree) -> Any:
    """The same slots again; kernels trust them, so a tree that is no active set is refused."""
    kept = Atoms._make(tree)
    _refuse_foreign(dual, kept)
    atoms = room(dual, kept.base, kept.base_moment, kept.width, kept.cap)
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


def _refuse_foreign(dual: Dual, kept: Any) -> None:
    """ValueError unless every entry that a kernel would follow leads into its own example."""
    batch, blocks = dual.batch, len(dual.batch)
    whole, numbers = np.zeros(blocks, dtype=np.int64), np.zeros(blocks)
    columns = np.zeros(len(dual.features.columns.index))
    like(kept.known, whole), like(kept.width, whole), like(kept.base, batch.bias)
    like((kept.rest, kept.interior, kept.base_moment), (numbers, numbers, columns))
    fits = 0 <= kept.known.min() <= kept.known.max() <= kept.cap <= CAP
    size = np.diff(batch.offsets)
    if not fits or not ((kept.width >= 0) & (kept.width <= size)).all():
        raise ValueError("an active set of another problem")
    owner, width = np.repeat(np.arange(blocks), kept.known), np.repeat(kept.width, kept.known)
    like((kept.length, kept.place), (0 * owner, np.zeros(width.sum(), dtype=np.int64)))
    place = np.arange(len(kept.place)) - np.repeat(np.cumsum(width) - width, width)
    followed = place < np.repeat(kept.length, width)
    first, last = (
        np.repeat(edge[owner], width) for edge in (batch.offsets[:-1], batch.offsets[1:])
    )
    inside = (kept.place >= first) & (kept.place < last)
    if (kept.length > width).any() or not inside[followed].all():
        raise ValueError("an active set of another problem")

"""General matchings: a τ of the degrees, looked up in the hull of matchings or moved into it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mlestruct.batch import Batch
from mlestruct.oracle import HULL, Oracle
from mlestruct.structures.base import Array, one_of

if TYPE_CHECKING:
    from mlestruct.structures.matching import Matching

PROVEN = "convex hull of matchings, odd sets proven"
LITTLE = np.array([1e-9, 1e-7, 1e-5, 1e-3])  # of the way from a τ outside to an interior point
HALVINGS = 8  # of what is left of it


def relaxed(batch: Batch[Any], oracle: Oracle[Any]) -> bool:
    """True where the degrees alone allow more than the oracle does: matchings with odd cycles."""
    return HULL in oracle.polytope and any(
        one_of(s, "Matching") and s.graph.sides is None for s in batch.structures
    )


def into_hull(batch: Batch[Any], tau: Array, inside: Array, outside: Any = None) -> Array:
    """τ where it is a mixture of matchings, else as far towards it as is proven to be one.

    ``outside`` flags the examples where it is none, if that is known.
    """
    out = tau
    for structure, members in batch.groups():
        if outside is None:
            far = members[~structure.in_hull(batch.rows(tau, members))]
        else:
            far = members[outside[members]]
        for m in far:
            part = batch.coordinates(m)
            out = tau.copy() if out is tau else out
            out[part] = _between(structure, inside[part], tau[part])
    return out


def _between(structure: Matching, inside: Array, outside: Array) -> Array:
    """A point in the hull: as near to τ as a power of ten, else the last one of a bisection."""
    for share in 1.0 - LITTLE:
        if structure.in_hull(point := inside + share * (outside - inside)):
            return np.asarray(point)
    share, step = 0.0, 0.5
    for _ in range(HALVINGS):
        trial = share + step
        if structure.in_hull(inside + trial * (outside - inside)):
            share = trial
        step /= 2
    return np.asarray(inside + share * (outside - inside))

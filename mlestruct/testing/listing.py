"""Every vertex of a small structure, by listing its outcomes."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import numpy as np

from mlestruct.inference.exact.enumeration import LISTABLE
from mlestruct.inference.exact.enumeration import outcomes as every
from mlestruct.structures.base import Array, Structure

LISTED = 20  # coordinates up to which every 0/1 vector of an unknown structure is tried


def vertices(structure: Structure, outcomes: Iterable[Any] | None = None) -> Array:
    """Every outcome that respects the fixed coordinates, encoded, one per row.

    Structures of the library list their own outcomes; others need ``outcomes``, or a size of at
    most 20 and a ``contains`` that tells outcomes from other 0/1 vectors. O(outcomes · size).
    """
    if outcomes is None and isinstance(structure, LISTABLE):
        return every(structure)
    if outcomes is None:
        if structure.size > LISTED:
            raise ValueError(f"{structure.size} coordinates are too many to try: pass outcomes")
        rows = np.array(list(itertools.product((0.0, 1.0), repeat=structure.size)))
    else:
        rows = np.array([structure.encode(y) for y in outcomes]).reshape(-1, structure.size)
    return np.asarray(rows[structure.contains(rows)])


def hold(true: bool, law: str, detail: str) -> None:
    if not true:
        raise AssertionError(f"{law}: {detail}")


def inside(found: Array, count: int, rng: np.random.Generator) -> Array:
    """Means of all outcomes, none of them with no weight."""
    return rng.dirichlet(np.ones(len(found)), count) @ found

"""Every vertex of a small structure, by listing its outcomes."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from mlestruct.structures import BipartiteMatching, FactorGraph, Paths
from mlestruct.structures.base import Array, Structure

LISTED = 20  # coordinates up to which every 0/1 vector of an unknown structure is tried


def vertices(structure: Structure, outcomes: Iterable[Any] | None = None) -> Array:
    """Every outcome that respects the fixed coordinates, encoded, one per row.

    Structures of the library list their own outcomes; others need ``outcomes``, or a size of at
    most 20 and a ``contains`` that tells outcomes from other 0/1 vectors. O(outcomes · size).
    """
    known = _outcomes(structure) if outcomes is None else outcomes
    if known is None:
        if structure.size > LISTED:
            raise ValueError(f"{structure.size} coordinates are too many to try: pass outcomes")
        rows = np.array(list(itertools.product((0.0, 1.0), repeat=structure.size)))
    else:
        rows = np.array([structure.encode(y) for y in known]).reshape(-1, structure.size)
    return np.asarray(rows[structure.contains(rows)])


def _outcomes(structure: Structure) -> Iterator[Any] | None:
    if isinstance(structure, FactorGraph):
        return itertools.product(*(range(int(k)) for k in structure.cards))
    if isinstance(structure, BipartiteMatching):
        return _matchings(structure)
    if isinstance(structure, Paths):
        return _paths(structure, structure.source)
    return None


def _matchings(structure: BipartiteMatching) -> Iterator[tuple[int, ...]]:
    lowest = -1 if structure.kind == "partial" else 0
    for partner in itertools.product(range(lowest, structure.columns), repeat=structure.rows):
        used = [column for column in partner if column >= 0]
        if len(set(used)) == len(used):
            yield partner


def _paths(structure: Paths, node: int) -> Iterator[list[int]]:
    if node == structure.sink:
        yield []
        return
    for arc in np.flatnonzero(structure.arcs[:, 0] == node).tolist():
        for rest in _paths(structure, int(structure.arcs[arc, 1])):
            yield [arc, *rest]


def hold(true: bool, law: str, detail: str) -> None:
    if not true:
        raise AssertionError(f"{law}: {detail}")


def inside(found: Array, count: int, rng: np.random.Generator) -> Array:
    """Means of all outcomes, none of them with no weight."""
    return rng.dirichlet(np.ones(len(found)), count) @ found

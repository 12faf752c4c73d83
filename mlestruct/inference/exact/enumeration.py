"""All outcomes of a small structure, listed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mlestruct.inference.exact.common import refuse_large
from mlestruct.structures import BipartiteMatching, FactorGraph, Matching, Paths
from mlestruct.structures.base import Array, Structure

LISTABLE = FactorGraph | BipartiteMatching | Matching | Paths


def outcomes(structure: Structure) -> Array:
    """Every vertex that respects the fixed coordinates, one per row, in lexicographic order."""
    if isinstance(structure, FactorGraph):
        rows = _labellings(structure)
    elif isinstance(structure, BipartiteMatching):
        rows = _bipartite_outcomes(structure)
    elif isinstance(structure, Matching):
        rows = matchings(structure.n_nodes, structure.ends, perfect=structure.kind == "perfect")
    elif isinstance(structure, Paths):
        rows = np.array([structure.encode(path) for path in _paths(structure, structure.source)])
        rows = rows.reshape(-1, structure.size)
    else:
        raise ValueError(f"outcomes of a {type(structure).__name__} cannot be listed")
    return rows[structure.contains(rows)]


def _paths(structure: Paths, node: int) -> Iterator[list[int]]:
    if node == structure.sink:
        yield []
        return
    for arc in np.flatnonzero(structure.arcs[:, 0] == node).tolist():
        for rest in _paths(structure, int(structure.arcs[arc, 1])):
            yield [arc, *rest]


def _labellings(graph: FactorGraph) -> Array:
    count = float(np.prod(graph.cards.astype(float)))
    refuse_large(count * graph.size, "entries of all labellings")
    states = np.stack(
        [axis.ravel() for axis in np.indices(tuple(graph.cards))]
        if graph.n_nodes
        else [np.zeros(0)],
        axis=1,
    )
    return np.array([graph.encode(row) for row in states]).reshape(-1, graph.size)


def count_matchings(structure: BipartiteMatching) -> int:
    """How many outcomes a bipartite structure without fixed pairs has."""
    rows, columns = structure.shape
    if (structure.fixed >= 0).any():
        return len(outcomes(structure))
    if structure.kind == "perfect":
        return math.factorial(rows)
    if structure.kind == "one_sided":
        return math.perm(columns, rows)
    return sum(math.comb(rows, k) * math.perm(columns, k) for k in range(min(rows, columns) + 1))


def _bipartite_outcomes(structure: BipartiteMatching) -> Array:
    rows, columns = structure.shape
    refuse_large(
        float(count_matchings(BipartiteMatching(rows, columns, structure.kind))) * structure.size,
        "entries of all matchings",
    )
    found: list[Array] = []
    partner = np.full(rows, -1)

    def place(row: int) -> None:
        if row == rows:
            found.append(structure.encode(partner))
            return
        for column in range(-1 if structure.kind == "partial" else 0, columns):
            if column < 0 or column not in partner[:row]:
                partner[row] = column
                place(row + 1)
        partner[row] = -1

    place(0)
    return np.array(found)


def matchings(n: int, edges: ArrayLike, *, perfect: bool = True, limit: int = 1 << 18) -> Array:
    """All (perfect) matchings of a general graph as 0/1 rows over its edges.

    Stops with a ValueError beyond ``limit`` of them.

    >>> len(matchings(4, [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]))
    3
    """
    pairs = np.asarray(edges, dtype=np.int64).reshape(-1, 2)
    at: list[list[tuple[int, int]]] = [[] for _ in range(n)]
    for e, (i, j) in enumerate(pairs.tolist()):
        at[i].append((e, j))
        at[j].append((e, i))
    found: list[Any] = []
    chosen = np.zeros(len(pairs))
    taken = [False] * n

    def extend(node: int) -> None:
        while node < n and taken[node]:
            node += 1
        if node == n:
            if len(found) >= limit:
                raise ValueError(f"the graph has more than {limit} matchings; too many to list")
            found.append(chosen.copy())
            return
        taken[node] = True
        for e, other in at[node]:
            if not taken[other]:
                taken[other], chosen[e] = True, 1.0
                extend(node + 1)
                taken[other], chosen[e] = False, 0.0
        if not perfect:
            extend(node + 1)
        taken[node] = False

    extend(0)
    return np.array(found).reshape(-1, len(pairs))

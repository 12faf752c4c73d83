"""All outcomes of a small structure, listed."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from mlestruct.inference.exact.common import refuse_large, two_to
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
        rows = np.array([structure.encode(path) for path in _paths(structure)])
        rows = rows.reshape(-1, structure.size)
    else:
        raise ValueError(f"outcomes of a {type(structure).__name__} cannot be listed")
    return rows[structure.contains(rows)]


def _paths(structure: Paths) -> Iterator[list[int]]:
    """All paths in lexicographic order, on a stack: they may be longer than recursion is deep."""
    stack: list[tuple[int, list[int]]] = [(structure.source, [])]
    while stack:
        node, path = stack.pop()
        if node == structure.sink:
            yield path
            continue
        for arc in np.flatnonzero(structure.arcs[:, 0] == node)[::-1].tolist():
            stack.append((int(structure.arcs[arc, 1]), [*path, arc]))


def _labellings(graph: FactorGraph) -> Array:
    count = two_to(float(np.log2(graph.cards).sum()))
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
    count = count_matchings(BipartiteMatching(rows, columns, structure.kind))
    refuse_large(float(min(count, 10**300)) * structure.size, "entries of all matchings")
    choices = range(-1 if structure.kind == "partial" else 0, columns)
    found: list[list[int]] = [[]]
    for _ in range(rows):
        found = [[*row, c] for row in found for c in choices if c < 0 or c not in row]
    return np.array([structure.encode(partner) for partner in found])


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
    found: list[list[int]] = []
    stack: list[tuple[int, int, list[int]]] = [(0, 0, [])]  # a node, bits of those taken, edges
    while stack:
        node, taken, chosen = stack.pop()
        while node < n and taken >> node & 1:
            node += 1
        if node == n:
            if len(found) >= limit:
                raise ValueError(f"the graph has more than {limit} matchings; too many to list")
            found.append(chosen)
            continue
        taken |= 1 << node
        if not perfect:
            stack.append((node + 1, taken, chosen))
        for e, other in reversed(at[node]):
            if not taken >> other & 1:
                stack.append((node + 1, taken | 1 << other, [*chosen, e]))
    rows = np.zeros((len(found), len(pairs)))
    for row, chosen in zip(rows, found, strict=True):
        row[chosen] = 1.0
    return rows

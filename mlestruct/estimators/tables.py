"""Tables of two labels or more: their weights, what these are called, their features."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, Literal, get_args

import numpy as np
import scipy.sparse as sp

from mlestruct.readers import Graph
from mlestruct.structures.base import Array

Table = Literal["full", "symmetric", "potts"]  # of two labels
CliqueTable = Literal["potts", "counts", "full"]


def check_kind(given: Any, kinds: Any, what: str) -> Any:
    """A kind of table by name."""
    *first, last = map(repr, get_args(kinds))
    if given not in get_args(kinds):
        raise ValueError(f"{what} is {', '.join(first)} or {last}, not {given!r}")
    return given


def table_spread(kind: Table, states: int) -> sp.csr_array:
    """(K² × weights): the weight of each entry of a full table.

    >>> table_spread("symmetric", 2).toarray().tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    first, second = np.divmod(np.arange(states**2), states)
    if kind == "full":
        return sp.csr_array(sp.eye_array(states**2, format="csr"))
    if kind == "potts":
        return sp.csr_array((first == second).astype(float)[:, None])
    pair = np.minimum(first, second) * states + np.maximum(first, second)
    _, weight = np.unique(pair, return_inverse=True)
    rows = np.arange(states**2)
    return sp.csr_array((np.ones(states**2), (rows, weight)))


def table_names(kind: Table, labels: Sequence[str]) -> list[str]:
    """What the weights of a table are called, in order.

    >>> table_names("symmetric", ["a", "b"]), table_names("potts", ["a", "b"])
    (['a – a', 'a – b', 'b – b'], ['same label'])
    """
    if kind == "potts":
        return ["same label"]
    if kind == "full":
        return [f"{a} → {b}" for a in labels for b in labels]
    return [f"{a} – {b}" for i, a in enumerate(labels) for b in labels[i:]]


def _entries(kind: CliqueTable, states: int, order: int) -> list[Any]:
    """The weight that each configuration has, by a key; None for no weight."""
    every = product(range(states), repeat=order)
    if kind == "potts":
        return ["alike" if len(set(one)) == 1 else None for one in every]
    return [tuple(sorted(one)) if kind == "counts" else one for one in every]


def clique_spread(kind: CliqueTable, states: int, order: int) -> sp.csr_array:
    """(K^order × weights): the weight of each entry of a full table, in C order.

    >>> clique_spread("counts", 2, 3).toarray().argmax(axis=1).tolist()
    [0, 1, 1, 2, 1, 2, 2, 3]
    """
    keys = _entries(kind, states, order)
    place = {key: k for k, key in enumerate(dict.fromkeys(key for key in keys if key is not None))}
    rows = [row for row, key in enumerate(keys) if key is not None]
    where = (rows, [place[keys[row]] for row in rows])
    return sp.csr_array((np.ones(len(rows)), where), shape=(len(keys), len(place)))


def clique_names(kind: CliqueTable, labels: Sequence[str], order: int) -> list[str]:
    """What the weights of a table are called, in order.

    >>> clique_names("counts", ["a", "b"], 3)
    ['a, a, a', 'a, a, b', 'a, b, b', 'b, b, b']
    >>> clique_names("potts", ["a", "b"], 4)
    ['all 4 alike']
    """
    if kind == "potts":
        return [f"all {order} alike"]
    keys = dict.fromkeys(_entries(kind, len(labels), order))
    sign = ", " if kind == "counts" else " → "
    return [sign.join(labels[k] for k in key) for key in keys]


def clique_contrasts(
    kind: CliqueTable, labels: Sequence[str], order: int, ref: int
) -> list[tuple[str, Array]]:
    """What a person asks of a clique's weights, as combinations of them, by label against ``ref``.

    All alike against mixed is what no weights of single nodes can say; what a label is worth in
    cliques is told apart from its own worth by nodes that are in fewer of them.
    """
    if kind == "potts":
        return [(f"all {order} alike", np.ones(1))]
    every = np.array(list(product(range(len(labels)), repeat=order)))
    spread, found = clique_spread(kind, len(labels), order), []
    for k in (k for k in range(len(labels)) if k != ref):
        own, other = (every == k).all(axis=1), (every == ref).all(axis=1)
        mixed = np.isin(every, (k, ref)).all(axis=1) & ~own & ~other
        together = (own + 0.0 + other) / 2 - mixed / mixed.sum()
        one, two = labels[k], labels[ref]
        found += [
            (f"all {order} alike against mixed, of {one} and {two}", spread.T @ together),
            (
                f"{one} against {two}, in cliques of {order}",
                spread.T @ (own / order - other / order),
            ),
        ]
    return found


def by_size(graph: Graph) -> list[int]:
    """The numbers of a graph's cliques, small ones first: the order of their tables."""
    return sorted(range(len(graph.cliques)), key=lambda c: len(graph.cliques[c]))


def scopes(graph: Graph) -> list[tuple[int, ...]]:
    """The nodes of every table: edges, then cliques by size."""
    edges: list[tuple[int, ...]] = [(i, j) for i, j in graph.edges.tolist()]
    return edges + [graph.cliques[c] for c in by_size(graph)]


def rows_of(
    graph: Graph,
    nodes: Any,
    edges: Array,
    tables: Sequence[Table],
    cliques: tuple[CliqueTable, Sequence[int], bool],
    states: int,
) -> sp.csr_array:
    """(coordinates × weights) of one graph: node features, edges' tables, cliques' tables.

    ``cliques``: the kind of their tables, the sizes that have weights, and whether to add a
    constant feature.
    """
    kind, orders, intercept = cliques
    pairs = [table_spread(table, states) for table in tables]
    spread = sp.block_diag(pairs) if pairs else sp.csr_array((0, 0))
    blocks: list[Any] = [
        sp.kron(nodes, sp.eye_array(states)),
        sp.kron(edges, sp.eye_array(states**2)) @ spread,
    ]
    listed = by_size(graph)
    given = graph.clique_ties
    width = 0 if given is None else given.shape[1]
    for order in orders:
        chosen = [c for c in listed if len(graph.cliques[c]) == order]
        own = np.zeros((len(chosen), width)) if given is None else given[chosen]
        own = np.hstack([np.ones((len(chosen), int(intercept))), own])
        blocks.append(sp.kron(own, clique_spread(kind, states, order)))
    return sp.csr_array(sp.block_diag(blocks, format="csr"))

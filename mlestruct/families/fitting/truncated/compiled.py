"""A graph compiled for truncated messages: its plan, and one iteration's visits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from mlestruct import FactorGraph
from mlestruct.errors import Unserved
from mlestruct.native._door import TruncatedGraph
from mlestruct.structures.base import Array, Ints, kept
from mlestruct.structures.graph import only_graphs


class Sweep(NamedTuple):
    """One iteration: factors of one group read the same state, then all send at once."""

    group: Ints
    """Visits group[g]:group[g + 1] form group g."""
    factor: Ints


Order = Callable[[FactorGraph], Sweep]


def one_by_one(factors: Sequence[int] | Ints) -> Sweep:
    """Each visit a group of its own."""
    return Sweep(np.arange(len(factors) + 1), np.asarray(factors, dtype=np.int64))


def there_and_back(graph: FactorGraph) -> Sweep:
    """On a grid: vertical factors in raster order, horizontal ones, then exactly the reverse.

    On other graphs factors whose variables lie farthest apart come first.
    """
    first = np.minimum.reduceat(graph.scope, graph.scope_start[:-1])
    last = np.maximum.reduceat(graph.scope, graph.scope_start[:-1])
    order = np.lexsort((first, first - last))
    return one_by_one(np.concatenate([order, order[::-1]]))


def flooding(graph: FactorGraph) -> Sweep:
    """All factors at once."""
    return Sweep(np.array([0, graph.n_factors]), np.arange(graph.n_factors))


class CompiledGraph(NamedTuple):
    """One graph, compiled for truncated iterations."""

    kernel: TruncatedGraph
    start: Ints
    """Where every table begins, of nodes, then of factors."""
    table_of: Ints
    counts: Array
    """The counting number of every entry of a factor's table, as a column."""
    whole: Array
    """c_i + Σ c_α around the node of every node's entry, as a column."""
    home: Ints
    """Every slot's states among those of nodes."""
    first: Ints
    """Where the pairs of every factor's entry with its nodes' states begin."""
    node: Ints
    sent: Ints
    """Which states of nodes and of slots these are."""
    by_sent: Ints
    entry: Ints
    """Pairs in the order of slots' states, and the factors' entries they belong to."""
    sent_first: Ints
    bethe: bool
    """All numbers count 1: belief propagation."""


@kept
def compiled(graph: FactorGraph, numbers: bytes, order: Order) -> CompiledGraph:
    """For counting numbers that are positive on factors."""
    counting = np.frombuffer(numbers)
    if (counting[graph.n_nodes :] <= 0).any():
        f = int(np.argmin(counting[graph.n_nodes :]))
        number = counting[graph.n_nodes + f]
        raise Unserved(f"factor {f} counts {number:g}; messages need it positive")
    n, scope, scope_start = graph.n_nodes, graph.scope, graph.scope_start
    counts, sweep = np.ascontiguousarray(counting[n:]), order(graph)
    owner = np.repeat(np.arange(graph.n_factors), np.diff(scope_start))
    whole = counting[:n] + np.bincount(scope, weights=counts[owner], minlength=n)
    place = np.append(0, np.cumsum(graph.cards[scope]))
    width = place[scope_start[1:]] - place[scope_start[:-1]]
    entry, node, slot = map(np.ascontiguousarray, graph.below)
    sent = place[slot] + node - graph.node_start[scope[slot]]
    sizes = np.diff(graph.table_start) * np.diff(scope_start)
    kernel = TruncatedGraph(
        n,
        graph.n_factors,
        len(sweep.factor),
        len(sweep.group) - 1,
        graph.node_start,
        graph.table_start,
        scope_start,
        scope,
        place,
        np.append(0, np.cumsum(sizes)),
        sent - place[scope_start[owner[slot]]],
        node,
        np.searchsorted(np.sort(scope), np.arange(n + 1)),
        np.argsort(scope, kind="stable"),
        owner,
        sweep.group,
        sweep.factor,
        np.append(0, np.cumsum(width[sweep.factor])),
        counts,
        counts[owner] / whole[scope],
        whole,
    )
    by_sent, nodes = np.argsort(sent, kind="stable"), int(graph.node_start[-1])
    return CompiledGraph(
        kernel,
        np.concatenate([graph.node_start[:-1], graph.table_start[:-1]]),
        graph.table_of,
        counts[graph.table_of[nodes:] - n][:, None],
        np.repeat(whole, graph.cards)[:, None],
        np.arange(place[-1]) + np.repeat(graph.node_start[scope] - place[:-1], np.diff(place)),
        np.flatnonzero(np.diff(entry, prepend=-1)),
        node,
        sent,
        by_sent,
        entry[by_sent] - nodes,
        np.flatnonzero(np.diff(sent[by_sent], prepend=-1)),
        bool((counts == 1).all() and (whole == 1).all()),
    )


def refuse(graph: Any) -> None:
    """A ValueError for what truncated inference cannot take."""
    only_graphs([graph], "truncated inference")
    if (graph.fixed >= 0).any():
        k = int(np.argmax(graph.fixed >= 0))
        raise Unserved(f"coordinate {k} is fixed; truncated inference takes free graphs only")

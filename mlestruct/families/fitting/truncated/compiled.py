"""A graph compiled for truncated messages: its plan, and one iteration's visits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from mlestruct import FactorGraph
from mlestruct.errors import Unserved
from mlestruct.inference.graph.plan import MessagePlan, plan
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


class Visits(NamedTuple):
    """A sweep, where each visit's cavities lie on the tape, and what a slot's variable is."""

    group: Ints
    factor: Ints
    tape: Ints
    home: Ints
    """Where the variable of every slot begins."""
    share: Array
    """c_α over that variable's c_i + Σ c_α."""


class CompiledGraph(NamedTuple):
    """One graph, compiled for messages."""

    plan: MessagePlan
    visits: Visits
    bethe: bool
    """All numbers count 1: belief propagation."""
    binary: bool
    """Two states each, and pairs."""


@kept
def compiled(graph: FactorGraph, numbers: bytes, order: Order) -> CompiledGraph:
    """For counting numbers that are positive on factors."""
    counting = np.frombuffer(numbers)
    if (counting[graph.n_nodes :] <= 0).any():
        f = int(np.argmin(counting[graph.n_nodes :]))
        number = counting[graph.n_nodes + f]
        raise Unserved(f"factor {f} counts {number:g}; messages need it positive")
    full, sweep = plan(graph, counting), order(graph)
    width = full.place[full.scope_start[1:]] - full.place[full.scope_start[:-1]]
    tape = np.concatenate([[0], np.cumsum(width[sweep.factor])])
    share = full.counts[full.owner] / full.whole[full.scope]
    visits = Visits(*sweep, tape, full.node_start[full.scope], share)
    bethe = bool((full.counts == 1).all() and (full.whole == 1).all())
    binary = graph.is_pairwise and bool((graph.cards == 2).all())
    return CompiledGraph(full, visits, bethe, binary)


def refuse(graph: Any) -> None:
    """A ValueError for what truncated inference cannot take."""
    only_graphs([graph], "truncated inference")
    if (graph.fixed >= 0).any():
        k = int(np.argmax(graph.fixed >= 0))
        raise Unserved(f"coordinate {k} is fixed; truncated inference takes free graphs only")

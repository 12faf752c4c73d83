"""networkx graphs as matching structures, and matchings as networkx graphs."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from mlestruct.structures.base import as_numbers
from mlestruct.structures.bipartite import BipartiteMatching
from mlestruct.structures.matching import Matching


def from_networkx(
    graph: Any,
    kind: Literal["perfect", "partial"] = "perfect",
    nodes: Sequence[Hashable] | None = None,
) -> tuple[Matching, list[Hashable]]:
    """The matchings of an undirected graph, and its nodes in the structure's order.

    Node v of the structure is ``nodes[v]`` (default: the graph's own order), and coordinate k its
    k-th edge in the graph's order. Multiple edges and loops are refused.

    >>> import networkx as nx
    >>> matching, nodes = from_networkx(nx.path_graph(["a", "b", "c", "d"]))
    >>> [nodes[v] for v in matching.decode([1, 0, 1])]
    ['b', 'a', 'd', 'c']
    """
    if graph.is_directed() or graph.is_multigraph():
        raise ValueError(
            f"matchings live in simple undirected graphs, not a {type(graph).__name__}"
        )
    order = list(graph.nodes) if nodes is None else list(nodes)
    place = {node: v for v, node in enumerate(order)}
    strange = [node for node in graph.nodes if node not in place]
    if strange or len(place) != graph.number_of_nodes():
        raise ValueError(
            f"nodes lists {len(order)} names for {graph.number_of_nodes()} nodes"
            + (f"; {strange[0]!r} is not among them" if strange else "")
        )
    ends = np.array([(place[u], place[v]) for u, v in graph.edges], dtype=np.int64).reshape(-1, 2)
    return Matching(len(order), ends, kind), order


def to_networkx(
    structure: Matching | BipartiteMatching,
    probability: ArrayLike,
    outcome: ArrayLike | None = None,
    nodes: Sequence[Hashable] | None = None,
    *,
    least: float = 0.0,
) -> Any:
    """The pairs as edges with ``probability`` and, given an outcome, whether they are ``matched``.

    ``nodes`` names the structure's nodes, of bipartite ones rows then columns (with their side as
    ``bipartite``). Pairs below ``least`` that are not matched are left out.
    """
    import networkx as nx

    rows = structure.rows if isinstance(structure, BipartiteMatching) else None
    count = structure.n_nodes
    names = list(range(count)) if nodes is None else list(nodes)
    if len(names) != count or len(set(names)) < count:
        raise ValueError(f"nodes lists {len(set(names))} different names for {count} nodes")
    tau = as_numbers(probability, "probabilities").reshape(-1)
    if tau.shape != (structure.size,):
        raise ValueError(f"{len(tau)} probabilities for {structure.size} pairs")
    if not np.isfinite(tau).all():
        raise ValueError(f"the probability of pair {(~np.isfinite(tau)).argmax()} is not finite")
    matched = np.zeros(structure.size) if outcome is None else structure.encode(outcome)
    graph = nx.Graph()
    for v, name in enumerate(names):
        graph.add_node(name, **({} if rows is None else {"bipartite": int(v >= rows)}))
    for k in np.flatnonzero((tau >= least) | (matched > 0)):
        u, v = map(int, structure.nodes_of(k))
        given = {} if outcome is None else {"matched": bool(matched[k])}
        graph.add_edge(names[u], names[v], probability=float(tau[k]), **given)
    return graph

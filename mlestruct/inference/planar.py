"""Exact log Z and agreement probabilities of planar Ising models without field: a Pfaffian.

Make the graph a triangulation by edges of score 0. A face of three edges has none or two whose ends
disagree, so labellings (up to a flip) are the perfect matchings of a graph of half-edges: the two
halves of an edge are joined (matched where its ends agree), and the three around a face. Oriented
so that every node of the triangulation has an odd number of edges going in, its signed adjacency
matrix K has |Pf K| = Σ over matchings (Kasteleyn; Schraudolph and Kamenetsky, NIPS 2008).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from mlestruct.structures.base import Array, Ints, kept
from mlestruct.structures.ising import Ising

CHUNK = 8  # columns of the inverse at a time: wider blocks wake BLAS threads, and are slower


@dataclass(frozen=True)
class PlanarSums:
    """log Z over outcomes (labellings up to flips: add log 2 per component), and agreements.

    ``doubt`` is how much refinement last changed a probability: tiny for scores up to about 40,
    large where couplings are so strong that probabilities and log Z may be lost to rounding.
    """

    log_z: float
    agree: Array
    doubt: float


def kasteleyn(graph: Ising, score: Array) -> PlanarSums:
    """log Σ over outcomes of exp⟨score, outcome⟩, and its gradient: O(n^1.5) and O(n²).

    >>> found = kasteleyn(Ising(2, [(0, 1)]), np.array([1.0]))
    >>> round(float(np.exp(found.log_z)), 6), found.agree.round(6).tolist()
    (3.718282, [0.731059])
    """
    gadget, values, K, factor, log_z = _factored(graph, score)
    first, second = gadget.halves[gadget.given].T
    inverse, change = _entries(K, factor, second, first)
    own = values[gadget.given]
    doubt = float(np.abs(own * change).max(initial=0.0))
    return PlanarSums(log_z, np.clip(own * inverse, 0.0, 1.0), doubt)


def _factored(graph: Ising, score: Array) -> tuple[_Gadget, Array, Any, Any, float]:
    from scipy.sparse.linalg import splu

    if (graph.fixed >= 0).any():
        raise ValueError("the Pfaffian counts all labellings; clamp by large scores instead")
    gadget = _gadget(graph)
    weight = np.zeros(len(gadget.edge))
    weight[gadget.given] = score
    tails, heads = np.concatenate([gadget.halves, gadget.turn]).T
    logs, size = np.concatenate([weight, np.zeros(len(gadget.turn))]), 2 * len(weight)
    shift = _balance(tails, heads, logs, size)
    values = np.exp(logs + shift[tails] + shift[heads])
    upper = sp.coo_array((values, (tails, heads)), shape=(size, size))
    K = sp.csc_array(upper - upper.T)
    factor = splu(K)
    log_pfaffian = 0.5 * float(np.log(np.abs(factor.U.diagonal())).sum())
    copies = gadget.nodes - 1 - (graph.n - len(np.unique(graph.component)))
    return gadget, values, K, factor, log_pfaffian - float(shift.sum()) - math.log(2.0) * copies


def _balance(tails: Ints, heads: Ints, logs: Array, size: int) -> Array:
    """What to add at both ends of every log entry so that none is above 0, a permutation's are 0.

    The duals of the heaviest permutation (averaged with its inverse): its pivots keep an LU
    decomposition of K accurate however strong the couplings.
    """
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching

    rows, columns = np.r_[tails, heads], np.r_[heads, tails]
    cost = np.tile(logs.max(initial=0.0) - logs, 2)
    matrix = sp.csr_array((cost + 1.0, (rows, columns)), shape=(size, size))  # zeros are no entries
    row, match = min_weight_full_bipartite_matching(matrix)
    chosen = np.empty(size, dtype=np.int64)
    chosen[row] = match
    own = np.empty(size)
    hit = chosen[rows] == columns
    own[rows[hit]] = cost[hit]
    price = np.zeros(size)
    for _ in range(size):
        before = price.copy()
        np.minimum.at(price, columns, cost - own[rows] + before[chosen[rows]])
        if (price >= before - 1e-12).all():
            break
    share = (own - price[chosen] + price) / 2
    return np.asarray(share - logs.max(initial=0.0) / 2)


def _entries(K: Any, factor: Any, rows: Ints, columns: Ints) -> tuple[Array, Array]:
    """Entries of the inverse, refined: strong couplings make K nearly singular; the last change."""
    found, change = np.empty(len(rows)), np.empty(len(rows))
    for start in range(0, len(rows), CHUNK):
        part = slice(start, start + CHUNK)
        place = np.arange(len(rows[part]))
        unit = np.zeros((K.shape[0], len(place)), order="F")
        unit[columns[part], place] = 1.0
        answer = factor.solve(unit)
        refined = answer + factor.solve(unit - K @ answer)
        found[part] = refined[rows[part], place]
        change[part] = found[part] - answer[rows[part], place]
    return found, change


@dataclass(frozen=True)
class _Gadget:
    edge: Ints  # ends of the triangulation's edges
    given: Ints  # which of them are the graph's, in its order
    halves: Ints  # each edge's two half-edges, in its orientation
    turn: Ints  # half-edge and the next one around its face
    nodes: int  # at least three, in one component


@kept
def _gadget(given: Ising) -> _Gadget:
    import networkx as nx
    from networkx.algorithms.planar_drawing import triangulate_embedding

    graph, nodes = nx.Graph(), max(given.n, 3)
    graph.add_nodes_from(range(nodes))
    graph.add_edges_from(given.edges.tolist())
    planar, embedding = nx.check_planarity(graph)
    if not planar:
        raise ValueError("the graph is not planar, and only planar ones have a Pfaffian")
    whole, _ = triangulate_embedding(embedding, fully_triangulate=True)
    edge = np.array([(u, v) for u, v in whole.edges() if u < v], dtype=np.int64)
    number = {(u, v): e for e, (u, v) in enumerate(edge.tolist())}
    half = {(u, v): 2 * e for (u, v), e in number.items()}
    half |= {(v, u): 2 * e + 1 for (u, v), e in number.items()}
    turn = [(h, half[whole.next_face_half_edge(u, v)]) for (u, v), h in half.items()]
    forward = _odd_inwards(nodes, edge)
    halves = 2 * np.arange(len(edge))[:, None] + np.where(forward[:, None], [[0, 1]], [[1, 0]])
    own = [number[min(u, v), max(u, v)] for u, v in given.edges.tolist()]
    return _Gadget(edge, np.array(own, dtype=np.int64), halves, np.array(turn), nodes)


def _odd_inwards(n: int, edge: Ints) -> Any:
    """Directions (True: first to second) with an odd number of edges into every node.

    Edges off a spanning tree go forward; each node's tree edge then settles its own parity, from
    the leaves up. The root's is right because a triangulation has 3n − 6 edges.
    """
    from scipy.sparse.csgraph import breadth_first_order

    graph = sp.csr_array((np.arange(1, len(edge) + 1), (edge[:, 0], edge[:, 1])), shape=(n, n))
    both = sp.csr_array(graph + graph.T)
    order, parent = breadth_first_order(both, 0, directed=False)
    forward = np.ones(len(edge), dtype=bool)
    tree = {int(v): int(both[v, parent[v]]) - 1 for v in order[1:]}
    inwards = np.bincount(np.delete(edge[:, 1], list(tree.values())), minlength=n)
    for v in order[:0:-1].tolist():
        e, up = tree[v], int(parent[v])
        into = inwards[v] % 2 == 0
        forward[e] = (edge[e, 1] == v) == into
        inwards[v if into else up] += 1
    return forward

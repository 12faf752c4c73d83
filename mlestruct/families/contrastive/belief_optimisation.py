"""Belief optimisation: descent on the Bethe free energy of binary pairwise graphs, pairs solved."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mlestruct import Batch, FactorGraph
from mlestruct.native._door import BetheGraphs, BetheState, PairEnds, descend_bethe, fill_pairs
from mlestruct.structures.base import Array, Flags, Ints, Marks, as_numbers

TOL = 1e-9
STEPS = 10_000
CLIP = 500.0  # logits beyond are probabilities without a float
ENTRIES = 1_000_000  # edges times evaluations of one example in one call of the kernel


def cells(W: Any, p: Any, p0: Any, q: Any, q0: Any) -> Array:
    """[P11, P10, P01, P00] with ends p, q minimising −W·P11 − H; p0 = 1 − p, q0 = 1 − q.

    Each cell has full relative precision at any W.
    """
    ends = [np.ascontiguousarray(x, float).ravel() for x in np.broadcast_arrays(W, p, p0, q, q0)]
    found = np.empty((4, len(ends[0])))
    fill_pairs(PairEnds(len(ends[0]), *ends), found)
    return found.reshape(4, *np.shape(W))


class Couplings(NamedTuple):
    """Nodes and edges of all examples of a batch, one after the other."""

    size: int  # of the batch's vectors
    node_start: Ints  # the first of every example
    edge_start: Ints
    left: Ints  # the nodes of every edge
    right: Ints
    place: Ints  # the coordinate of x_i = 1
    table: Ints  # the first coordinate of every edge
    fixed: Flags  # per node: the state the structure clamps it to, or −1


class Stationary(NamedTuple):
    """−F per example, τ, the largest |∂F/∂logit| left there, and how many steps it took."""

    log_z: Array
    tau: Array
    residual: Array
    steps: Ints


def belief_optimisation(
    batch: Batch[FactorGraph],
    scores: Array,
    *,
    start: Array | None = None,
    steps: int = STEPS,
    tol: float = TOL,
) -> Stationary:
    """A stationary point of the Bethe free energy, which never rises on the way.

    Welling & Teh's: node marginals q = σ(a) are the only unknowns, for the best table of an edge
    given its ends is in closed form. On forests −F is log Z and τ exact; with cycles ``start`` (a
    τ; default uniform) decides which point is found. O(edges) per step.
    """
    graph = couplings(batch)
    scores, q = batch.vector(scores, "scores"), np.full(len(graph.place), 0.5)
    q = q if start is None else batch.vector(start, "start")[graph.place]
    a = np.where(graph.fixed < 0, logits(q), CLIP * np.sign(graph.fixed - 0.5))
    found = descend(graph, scores, a, graph.fixed >= 0, steps, tol)
    return Stationary(-found.after, tables(graph, scores, found.a), found.residual, found.taken)


def bethe(batch: Batch[FactorGraph], scores: Array, a: Array) -> tuple[Array, Array, Array]:
    """F of every example, ∂F/∂q of every node, and τ, at marginals q = σ(a)."""
    graph = couplings(batch)
    scores, a = batch.vector(scores, "scores"), as_numbers(a, "a")
    found = descend(graph, scores, a, graph.fixed >= 0, 0, TOL)
    return found.after, found.slope, tables(graph, scores, a)


def couplings(batch: Batch[FactorGraph]) -> Couplings:
    """The batch's graphs in one piece; refuses what is not binary, pairwise and unforbidden."""
    listed = [batch.structures[k] for k in batch.which]
    clamps = {structure: _clamped(structure) for structure in batch.structures}
    nodes = np.array([structure.n_nodes for structure in listed])
    edges = np.array([structure.n_factors for structure in listed])
    owner, edge_owner = (np.repeat(np.arange(len(listed)), counts) for counts in (nodes, edges))
    node_start, edge_start = (np.append(0, np.cumsum(counts)) for counts in (nodes, edges))
    node, edge = node_start[:-1], edge_start[:-1]
    place = (batch.offsets[:-1] - 2 * node)[owner] + 2 * np.arange(len(owner)) + 1
    table = (batch.offsets[:-1] + 2 * nodes - 4 * edge)[edge_owner] + 4 * np.arange(edges.sum())
    ends = np.concatenate([structure.scope for structure in listed]).reshape(-1, 2)
    left, right = (ends + node[edge_owner, None]).T
    fixed = np.concatenate([clamps[structure] for structure in listed])
    left, right = map(np.ascontiguousarray, (left, right))
    return Couplings(batch.size, node_start, edge_start, left, right, place, table, fixed)


def _clamped(graph: FactorGraph) -> Flags:
    """The state each node is clamped to, or −1."""
    if not isinstance(graph, FactorGraph) or not graph.is_pairwise or (graph.cards != 2).any():
        raise ValueError(
            "belief optimisation is for graphs of binary variables in pairs; for other labelled "
            "graphs take free_energy='mean_field'"
        )
    shut = graph.closed()
    node = shut[: 2 * graph.n_nodes].reshape(-1, 2)
    ends = graph.scope.reshape(-1, 2)
    implied = node[ends[:, 0], :, None] | node[ends[:, 1], None, :]
    if (shut[2 * graph.n_nodes :].reshape(-1, 2, 2) & ~implied).any():
        raise ValueError("belief optimisation takes clamped variables, but no forbidden pairs")
    return np.where(node.any(axis=1), node[:, 0], -1).astype(np.int8)


def logits(q: Array) -> Array:
    """log q/(1−q), clipped."""
    with np.errstate(divide="ignore"):
        return np.clip(np.log(q) - np.log1p(-q), -CLIP, CLIP)


def _pairwise(graph: Couplings, scores: Array) -> tuple[Array, Array, Array]:
    """Scores as −E = constant + Σ θ_i x_i + Σ W x_i x_j of every example: (θ, W, constants)."""
    none, right, left, both = scores[graph.table + np.arange(4)[:, None]]
    one, zero = scores[graph.place], scores[graph.place - 1]
    theta = one - zero + np.bincount(graph.left, left - none, len(one))
    theta += np.bincount(graph.right, right - none, len(one))
    constant = np.zeros(len(graph.node_start) - 1)
    for part, start in ((zero, graph.node_start), (none, graph.edge_start)):
        owner = np.repeat(np.arange(len(constant)), np.diff(start))
        constant += np.bincount(owner, part, len(constant))
    return theta, (both - left) - (right - none), constant


def descend(
    graph: Couplings, scores: Array, a: Array, held: Marks, steps: int, tol: float,
    plain: bool = False,
) -> BetheState:  # fmt: skip
    """``steps`` steps on the logits of nodes not held; F never rises.

    The direction is −∂F/∂q, or, of ``plain`` ones, the slope by logits, as in the paper. Every
    example has a length of its own, shortened until F falls as far as its slope promises.
    """
    theta, W, constant = _pairwise(graph, scores)
    count, nodes, edges = len(constant), len(theta), len(W)
    starts = graph.node_start, graph.edge_start
    given = BetheGraphs(
        count, nodes, edges, *starts, graph.left, graph.right, theta, W, constant, held
    )
    before, after, residual, length = np.zeros((4, count))
    taken, slope = np.zeros(count, dtype=np.int64), np.empty(nodes)
    state = BetheState(count, nodes, a.copy(), slope, before, after, residual, length, taken)
    turns = max(1, ENTRIES // max(edges // count, 1))
    while descend_bethe(given, steps, tol, plain, turns, state):
        pass  # a signal may come between two calls
    return state


def tables(graph: Couplings, scores: Array, a: Array) -> Array:
    """Node and edge tables τ at q = σ(a)."""
    tau, i, j = np.empty(graph.size), graph.left, graph.right
    q, q0 = 1.0 / (1.0 + np.exp(-a)), 1.0 / (1.0 + np.exp(a))
    tau[graph.place], tau[graph.place - 1] = q, q0
    found = cells(_pairwise(graph, scores)[1], q[i], q0[i], q[j], q0[j])
    tau[graph.table + np.arange(4)[:, None]] = found[::-1]
    return tau

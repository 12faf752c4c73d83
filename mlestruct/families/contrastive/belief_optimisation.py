"""Belief optimisation: descent on the Bethe free energy of binary pairwise graphs, pairs solved."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mlestruct import Batch, FactorGraph
from mlestruct.structures.base import Array, Flags, Ints, Marks, as_numbers


def cells(W: Any, p: Any, p0: Any, q: Any, q0: Any) -> Array:
    """[P11, P10, P01, P00] with ends p, q minimising −W·P11 − H; p0 = 1 − p, q0 = 1 − q.

    Each cell to relative precision at any W: repelling pairs are attracting ones with an end
    flipped, and from there on every formula adds positive terms only. With α = e^|W| − 1, which
    may be infinite, everything is divided by max(α, 1): c stands for 1, and s for α.
    """
    flipped = np.less(W, 0.0)
    q, q0 = np.where(flipped, q0, q), np.where(flipped, q, q0)
    with np.errstate(all="ignore"):  # of what is not selected
        alpha = np.expm1(np.abs(W))
        c, s = 1.0 / np.maximum(alpha, 1.0), np.minimum(alpha, 1.0)
        d = s * np.where(p + q < 1.0, p - q, q0 - p0)
        R = np.sqrt(c * (c + 2.0 * s * (p * q0 + q * p0)) + d * d)
        found = np.array([
            2.0 * (c + s) * p * q / (c + s * (p + q) + R),
            np.where(c > d, 2.0 * c * p * q0 / (c - d + R), 0.5 * (R - c + d) / s),
            np.where(c > -d, 2.0 * c * q * p0 / (c + d + R), 0.5 * (R - c - d) / s),
            2.0 * (c + s) * p0 * q0 / (c + s * (p0 + q0) + R),
        ])  # fmt: skip
    return np.where(flipped, found[[1, 0, 3, 2]], found)


TOL = 1e-9
STEPS = 10_000
CLIP = 500.0  # logits beyond are probabilities without a float
TINY = 1e-300
ENOUGH = 1e-4  # share of the promised decrease that a step must keep
SHORTEST = 1e-12
NOISE = 1e-13  # of F, below which its rounding hides a decrease


class Couplings(NamedTuple):
    """Nodes and edges of all examples of a batch, one after the other."""

    size: int  # of the batch's vectors
    nodes: Ints  # the first of every example
    owner: Ints  # the example of every node
    edge_owner: Ints
    left: Ints  # the nodes of every edge
    right: Ints
    place: Ints  # the coordinate of x_i = 1
    table: Ints  # the first coordinate of every edge
    fixed: Flags  # per node: the state the structure clamps it to, or −1

    def totals(self, nodes: Array, edges: Array) -> Any:
        """Sums over every example's nodes and edges."""
        count = len(self.nodes)
        over = np.bincount(self.owner, nodes, count)
        return over + np.bincount(self.edge_owner, edges, count)

    def around(self, left: Array, right: Array) -> Any:
        """Sums over every node's edges of what they hold for their left and right ends."""
        count = len(self.owner)
        return np.bincount(self.left, left, count) + np.bincount(self.right, right, count)


class Descent(NamedTuple):
    """Logits at the end; of every example F before and after, what is left of the slope, steps."""

    a: Array
    before: Array
    after: Array
    residual: Array
    steps: Ints


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
    return Stationary(-found.after, tables(graph, scores, found.a), found.residual, found.steps)


def bethe(batch: Batch[FactorGraph], scores: Array, a: Array) -> tuple[Array, Array, Array]:
    """F of every example, ∂F/∂q of every node, and τ, at marginals q = σ(a)."""
    graph = couplings(batch)
    scores, a = batch.vector(scores, "scores"), as_numbers(a, "a")
    F, slope, _ = ScoredGraphs(graph, scores).energy(a)
    return F, slope, tables(graph, scores, a)


def couplings(batch: Batch[FactorGraph]) -> Couplings:
    """The batch's graphs in one piece; refuses what is not binary, pairwise and unforbidden."""
    listed = [batch.structures[k] for k in batch.which]
    clamps = {structure: _clamped(structure) for structure in batch.structures}
    nodes = np.array([structure.n_nodes for structure in listed])
    edges = np.array([structure.n_factors for structure in listed])
    owner, edge_owner = (np.repeat(np.arange(len(listed)), counts) for counts in (nodes, edges))
    node, edge = np.cumsum(nodes) - nodes, np.cumsum(edges) - edges
    place = (batch.offsets[:-1] - 2 * node)[owner] + 2 * np.arange(len(owner)) + 1
    table = (batch.offsets[:-1] + 2 * nodes - 4 * edge)[edge_owner] + 4 * np.arange(edges.sum())
    ends = np.concatenate([structure.scope for structure in listed]).reshape(-1, 2)
    left, right = (ends + node[edge_owner, None]).T
    fixed = np.concatenate([clamps[structure] for structure in listed])
    return Couplings(batch.size, node, owner, edge_owner, left, right, place, table, fixed)


def _clamped(graph: FactorGraph) -> Flags:
    """The state each node is clamped to, or −1."""
    if not isinstance(graph, FactorGraph) or not graph.is_pairwise or (graph.cards != 2).any():
        raise ValueError(
            "belief optimisation is for graphs of binary variables in pairs; for others take "
            "free_energy='mean_field' (labelled graphs) or 'polytope'"
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


class ScoredGraphs:
    """Scores as −E = constant + Σ θ_i x_i + Σ W x_i x_j of every example."""

    def __init__(self, graph: Couplings, scores: Array) -> None:
        none, right, left, both = scores[graph.table + np.arange(4)[:, None]]
        one, zero = scores[graph.place], scores[graph.place - 1]
        self.graph, self.W = graph, (both - left) - (right - none)
        self.theta = one - zero + graph.around(left - none, right - none)
        self.constant = graph.totals(zero, none)

    def energy(self, a: Array) -> tuple[Array, Array, Array]:
        """F of every example, ∂F/∂q and q (1 − q) of every node, at q = σ(a).

        F = −Σ θ q − Σ W P11 + Σ_edges Σ P log P + Σ_i (1 − degree) [q log q + (1−q) log(1−q)]
        """
        graph, i, j = self.graph, self.graph.left, self.graph.right
        small = np.exp(-np.abs(a))
        likely, rare = 1.0 / (1.0 + small), small / (1.0 + small)
        q, q0 = np.where(a > 0.0, (likely, rare), (rare, likely))
        entropy = likely * np.log1p(small) + rare * (np.log1p(small) + np.abs(a))
        P = cells(self.W, q[i], q0[i], q[j], q0[j])
        logs = np.log(np.maximum(P, TINY))
        slope = a - self.theta + graph.around(logs[1] - logs[3] - a[i], logs[2] - logs[3] - a[j])
        pairs = (P * logs).sum(axis=0) - self.W * P[0] + entropy[i] + entropy[j]
        F = graph.totals(-self.theta * q - entropy, pairs) - self.constant
        return F, slope, q * q0


def descend(
    graph: Couplings, scores: Array, a: Array, held: Marks, steps: int, tol: float,
    plain: bool = False,
) -> Descent:  # fmt: skip
    """``steps`` steps on the logits of nodes not held; F never rises.

    The direction is −∂F/∂q: the gradient by logits divided by q(1−q), so that a marginal close to
    0 or 1 moves as far as any other, and alone arrives in one step of length 1. A ``plain`` one is
    not divided, and no logit moves by more than 1 in the first: further out all slopes vanish.
    Every example has a length of its own, shortened until F falls as far as its slope promises.
    """
    model, owner, count = ScoredGraphs(graph, scores), graph.owner, len(graph.nodes)
    F, slope, spread = model.energy(a)
    first, taken, length = F, np.zeros(count, dtype=np.int64), np.ones(count)
    if plain:
        length /= np.maximum(np.maximum.reduceat(np.abs(spread * slope), graph.nodes), TINY)
    while True:
        pull = np.where(held, 0.0, spread * slope)  # ∂F/∂logit
        residual = np.maximum.reduceat(np.abs(pull), graph.nodes)
        down = pull if plain else np.where(held, 0.0, slope)
        promise = np.bincount(owner, down * pull, count)
        # close to 0 and 1 every slope by a logit is small: a start there is no end
        trying = (taken < steps) & ((taken == 0) | (residual > tol)) & (length >= SHORTEST)
        if not trying.any():
            return Descent(a, first, F, residual, taken)
        trial = np.where(trying[owner], np.clip(a - length[owner] * down, -CLIP, CLIP), a)
        reached, fresh, near = model.energy(trial)
        turned = np.bincount(owner, down * near * fresh, count)  # minus F's slope there
        fell = trying & np.where(
            length * promise > NOISE * np.abs(F),
            reached <= F - ENOUGH * length * promise,
            turned >= -0.9 * promise,  # too little for F to show: ask whether the slope has turned
        )
        # aim where a straight slope would be flat
        bent = fell & (promise > turned)
        aim = np.divide(promise, promise - turned, out=np.full(count, np.inf), where=bent)
        length = np.where(fell, length * np.clip(aim, 0.25, 4.0), 0.5 * length)
        F, taken = np.where(fell, np.minimum(F, reached), F), taken + fell
        here = fell[owner]
        a, slope, spread = (
            np.where(here, new, old) for new, old in ((trial, a), (fresh, slope), (near, spread))
        )


def tables(graph: Couplings, scores: Array, a: Array) -> Array:
    """Node and edge tables τ at q = σ(a)."""
    tau = np.empty(graph.size)
    q, q0 = 1.0 / (1.0 + np.exp(-a)), 1.0 / (1.0 + np.exp(a))
    i, j, model = graph.left, graph.right, ScoredGraphs(graph, scores)
    tau[graph.place], tau[graph.place - 1] = q, q0
    found = cells(model.W, q[i], q0[i], q[j], q0[j])
    tau[graph.table + np.arange(4)[:, None]] = found[::-1]
    return tau

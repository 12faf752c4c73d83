"""Belief optimisation: descent on the Bethe free energy of binary pairwise graphs, pairs solved.

Marginals q = σ(a) are the only unknowns (Welling and Teh 2001), since the best table P of an edge,
given its ends, is in closed form:

    F = − Σ θ q − Σ W P11 + Σ over edges of P log P + Σ_i (1 − degree) (−H(q_i))
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mlestruct import Batch, FactorGraph
from mlestruct.structures.base import Array, Flags, Ints, Marks, as_numbers

TOL = 1e-9
STEPS = 10_000
CLIP = 500.0  # logits beyond are probabilities without a float
TINY = 1e-300  # of a cell
ENOUGH = 1e-4  # share of the promised decrease that a step must keep
FLAT = 0.9  # share of a slope that may be left where F shows nothing
SHORTEST = 1e-12  # of a step
NOISE = 1e-13  # of F, below which its rounding hides a decrease


def cells(W: Any, p: Any, p0: Any, q: Any, q0: Any) -> Array:
    """[P11, P10, P01, P00] with ends p, q minimising −W·P11 − H; p0 = 1 − p, q0 = 1 − q.

    Each cell has full relative precision at any W: repelling pairs are attracting ones with an end
    flipped, and from there on every formula adds positive terms only. With α = e^|W| − 1 everything
    is divided by max(α, 1): c stands for 1, and s for α.
    """
    flipped, e = np.less(W, 0), np.exp(-np.abs(W))
    rest = 1.0 - e
    most = np.maximum(rest, e)
    c, s = e / most, rest / most
    q, q0 = np.where(flipped, q0, q), np.where(flipped, q, q0)
    d = s * np.where(p + q < 1.0, p - q, q0 - p0)
    R = np.sqrt(c * (c + 2.0 * s * (p * q0 + q * p0)) + d * d)
    both = 2.0 * (c + s)
    with np.errstate(divide="ignore", invalid="ignore"):  # of what is not chosen
        one = np.where(c > d, 2.0 * c * p * q0 / (c - d + R), 0.5 * (R - c + d) / s)
        other = np.where(c > -d, 2.0 * c * q * p0 / (c + d + R), 0.5 * (R - c - d) / s)
    each = both * p * q / (c + s * (p + q) + R), both * p0 * q0 / (c + s * (p0 + q0) + R)
    found = np.array([each[0], one, other, each[1]])
    return np.where(flipped, found[[1, 0, 3, 2]], found)


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
    scores, q = as_numbers(scores, "scores", batch.size), np.full(len(graph.place), 0.5)
    q = q if start is None else as_numbers(start, "start", batch.size)[graph.place]
    a = np.where(graph.fixed < 0, logits(q), CLIP * np.sign(graph.fixed - 0.5))
    found = descend(graph, scores, a, graph.fixed >= 0, steps, tol)
    return Stationary(-found.after, tables(graph, scores, found.a), found.residual, found.taken)


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


class Energy:
    """The Bethe free energy of a batch at given scores."""

    def __init__(self, graph: Couplings, scores: Array) -> None:
        self.theta, self.W, self.constant = _pairwise(graph, scores)
        self.graph, count = graph, np.arange(len(self.constant))
        self.node_of = np.repeat(count, np.diff(graph.node_start))
        self.edge_of = np.repeat(count, np.diff(graph.edge_start))

    def totals(self, values: Array) -> Array:
        """The sums over the nodes of every example."""
        return np.asarray(np.bincount(self.node_of, values, len(self.constant)), dtype=float)

    def __call__(self, a: Array, wanted: Marks) -> tuple[Array, Array, Array]:
        """F of wanted examples, its slopes by marginals q, and the widths q (1 − q)."""
        size = np.abs(a)
        small = np.exp(-size)
        likely, rare, log = 1.0 / (1.0 + small), small / (1.0 + small), np.log1p(small)
        q, q0 = np.where(a > 0, likely, rare), np.where(a > 0, rare, likely)
        entropy = likely * log + rare * (log + size)
        edges = np.flatnonzero(wanted[self.edge_of])
        i, j, W = self.graph.left[edges], self.graph.right[edges], self.W[edges]
        table = cells(W, q[i], q0[i], q[j], q0[j])
        logs = np.log(np.maximum(table, TINY))
        slope = a - self.theta
        slope += np.bincount(i, logs[1] - logs[3] - a[i], len(a))
        slope += np.bincount(j, logs[2] - logs[3] - a[j], len(a))
        pairs = (table * logs).sum(axis=0) + entropy[i] + entropy[j] - W * table[0]
        value = np.bincount(self.edge_of[edges], pairs, len(self.constant)) - self.constant
        return value - self.totals(self.theta * q + entropy), slope, likely * rare


class Descent(NamedTuple):
    """Where descents end: logits, slopes by marginals there, and F before and after."""

    a: Array
    slope: Array
    before: Array
    after: Array
    residual: Array  # the largest slope by a logit
    taken: Ints  # steps


def descend(
    graph: Couplings,
    scores: Array,
    a: Array,
    held: Marks,
    steps: int,
    tol: float,
    plain: bool = False,
) -> Descent:
    """``steps`` steps on the logits of nodes not held; F never rises.

    The direction is −∂F/∂q, the slope by logits divided by q (1 − q): a marginal close to 0 or 1
    moves as far as any other. Of ``plain`` ones it is the slope by logits, as in the paper, and no
    logit moves by more than 1 in the first step. Every example has a length of its own, shortened
    until F falls as far as its slope promises.
    """
    energy = Energy(graph, scores)
    owner, count = energy.node_of, len(energy.constant)
    taken, length = np.zeros(count, dtype=np.int64), np.ones(count)
    going = np.ones(count, dtype=bool)
    F, slope, width = energy(a, going)
    before = F
    while True:
        near, residual = np.where(held, 0.0, width * slope), np.zeros(count)
        np.maximum.at(residual, owner, np.abs(near))
        if plain and F is before:
            length = 1.0 / np.maximum(residual, TINY)
        # close to 0 and 1 every slope by a logit is small: a start there is no end
        going = (taken < steps) & ((taken == 0) | (residual > tol)) & (length >= SHORTEST)
        if not going.any():
            return Descent(a, slope, before, F, residual, taken)
        down = near if plain else np.where(held, 0.0, slope)
        promise = energy.totals(near * down)
        trial = np.where(going[owner], np.clip(a - length[owner] * down, -CLIP, CLIP), a)
        reached, fresh, wide = energy(trial, going)
        turned = energy.totals(down * wide * fresh)
        # where a decrease is too little for F to show, ask whether the slope has turned
        shows = length * promise > NOISE * np.abs(F)
        enough = np.where(
            shows, reached <= F - ENOUGH * length * promise, turned >= -FLAT * promise
        )
        # aim where a straight slope would be flat
        with np.errstate(divide="ignore", invalid="ignore"):
            aim = np.where(promise > turned, promise / (promise - turned), np.inf)
        length *= np.where(going, np.where(enough, np.clip(aim, 0.25, 4.0), 0.5), 1.0)
        moved = going & enough
        F, taken, at = np.where(moved, np.minimum(F, reached), F), taken + moved, moved[owner]
        a, slope, width = (
            np.where(at, new, old) for new, old in ((trial, a), (fresh, slope), (wide, width))
        )


def tables(graph: Couplings, scores: Array, a: Array) -> Array:
    """Node and edge tables τ at q = σ(a)."""
    tau, i, j = np.empty(graph.size), graph.left, graph.right
    q, q0 = 1.0 / (1.0 + np.exp(-a)), 1.0 / (1.0 + np.exp(a))
    tau[graph.place], tau[graph.place - 1] = q, q0
    found = cells(_pairwise(graph, scores)[1], q[i], q0[i], q[j], q0[j])
    tau[graph.table + np.arange(4)[:, None]] = found[::-1]
    return tau

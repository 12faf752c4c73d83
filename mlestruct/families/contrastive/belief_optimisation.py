"""Belief optimisation: descent on the Bethe free energy of binary pairwise graphs, pairs solved."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mlestruct import Batch, FactorGraph
from mlestruct.kernels import kernel
from mlestruct.structures.base import Array, Flags, Ints, as_numbers


@kernel(error_model="numpy")
def cells(W: float, p: float, p0: float, q: float, q0: float) -> tuple[float, float, float, float]:
    """(P11, P10, P01, P00) with ends p, q minimising −W·P11 − H; p0 = 1 − p, q0 = 1 − q.

    Each cell to relative precision at any W: repelling pairs are attracting ones with an end
    flipped, and from there on every formula adds positive terms only.
    """
    if W < 0.0:
        P11, P10, P01, P00 = _attracting(np.expm1(-W), p, p0, q0, q)
        return P10, P11, P00, P01
    return _attracting(np.expm1(W), p, p0, q, q0)


@kernel(error_model="numpy")
def _attracting(
    alpha: float, p: float, p0: float, q: float, q0: float
) -> tuple[float, float, float, float]:
    """The same for e^W − 1 = alpha ≥ 0; above 1 divided by it, so that it may be infinite."""
    d = p - q if p + q < 1.0 else q0 - p0
    apart = p * q0 + q * p0
    if alpha <= 1.0:
        R = np.sqrt(1.0 + alpha * (2.0 * apart + alpha * d * d))
        P11 = 2.0 * (1.0 + alpha) * p * q / (1.0 + alpha * (p + q) + R)
        P00 = 2.0 * (1.0 + alpha) * p0 * q0 / (1.0 + alpha * (p0 + q0) + R)
        return P11, 2.0 * p * q0 / (1.0 - alpha * d + R), 2.0 * q * p0 / (1.0 + alpha * d + R), P00
    c = 1.0 / alpha
    R = np.sqrt(c * c + 2.0 * c * apart + d * d)
    P11 = 2.0 * (1.0 + c) * p * q / (c + p + q + R)
    P00 = 2.0 * (1.0 + c) * p0 * q0 / (c + p0 + q0 + R)
    P10 = 2.0 * c * p * q0 / (c - d + R) if c > d else 0.5 * (R - c + d)
    P01 = 2.0 * c * q * p0 / (c + d + R) if c > -d else 0.5 * (R - c - d)
    return P11, P10, P01, P00


TOL = 1e-9
STEPS = 10_000
CLIP = 500.0  # logits beyond are probabilities without a float
TINY = 1e-300
ENOUGH = 1e-4  # share of the promised decrease that a step must keep
SHORTEST = 1e-12
NOISE = 1e-13  # of F, below which its rounding hides a decrease


class Couplings(NamedTuple):
    """Nodes and edges of all examples of a batch, one after the other; ends count within each."""

    offsets: Ints
    nodes: Ints
    edges: Ints
    ends: Ints
    place: Ints  # the coordinate of x_i = 1
    fixed: Flags  # per node: the state the structure clamps it to, or −1


class Descent(NamedTuple):
    """Free energies of every example before and after, what is left of the slope, and steps."""

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
    found = descend(graph, scores, a, (graph.fixed >= 0).astype(np.int8), steps, tol, False)
    tau = np.empty(batch.size)
    write(graph, scores, a, tau)
    return Stationary(-found.after, tau, found.residual, found.steps)


def bethe(batch: Batch[FactorGraph], scores: Array, a: Array) -> tuple[Array, Array, Array]:
    """F of every example, ∂F/∂q of every node, and τ, at marginals q = σ(a)."""
    graph, tau = couplings(batch), np.empty(batch.size)
    scores, a = batch.vector(scores, "scores"), as_numbers(a, "a")
    F, slope = np.empty(len(batch)), np.empty(len(a))
    _evaluate(graph, scores, a, F, slope)
    write(graph, scores, a, tau)
    return F, slope, tau


def couplings(batch: Batch[FactorGraph]) -> Couplings:
    """The batch's graphs in one piece; refuses what is not binary, pairwise and unforbidden."""
    listed = [batch.structures[k] for k in batch.which]
    clamps = {structure: _clamped(structure) for structure in batch.structures}
    nodes = np.array([structure.n_nodes for structure in listed])
    edges = np.array([structure.n_factors for structure in listed])
    ends = np.concatenate([structure.scope for structure in listed]).reshape(-1, 2)
    fixed = np.concatenate([clamps[structure] for structure in listed])
    node, edge = (np.concatenate([[0], np.cumsum(counts)]) for counts in (nodes, edges))
    place = np.repeat(batch.offsets[:-1] - 2 * node[:-1], nodes) + 2 * np.arange(node[-1]) + 1
    return Couplings(batch.offsets, node, edge, ends, place, fixed)


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


@kernel(error_model="numpy")
def _read(m: int, graph: Any, score: Any, field: Any, W: Any) -> float:
    """Scores of an example as −E = constant + Σ θ_i x_i + Σ W x_i x_j; returns the constant."""
    at, constant = graph.offsets[m], 0.0
    n = graph.nodes[m + 1] - graph.nodes[m]
    for i in range(n):
        field[i] = score[at + 1] - score[at]
        constant += score[at]
        at += 2
    for e in range(graph.edges[m], graph.edges[m + 1]):
        i, j = graph.ends[e]
        none, right, left = score[at], score[at + 1], score[at + 2]
        W[e - graph.edges[m]] = (score[at + 3] - left) - (right - none)
        field[i] += left - none
        field[j] += right - none
        constant += none
        at += 4
    return constant


@kernel(error_model="numpy")
def _energy(ends: Any, W: Any, field: Any, a: Any, q: Any, q0: Any, slope: Any) -> float:
    """F at q = σ(a), without the constant; also fills q, 1 − q and ∂F/∂q.

    F = −Σ θ q − Σ W P11 + Σ_edges Σ P log P + Σ_i (1 − degree) [q log q + (1−q) log(1−q)]
    """
    total = 0.0
    for i in range(len(a)):
        small = np.exp(-abs(a[i]))
        likely, rare = 1.0 / (1.0 + small), small / (1.0 + small)
        q[i], q0[i] = (likely, rare) if a[i] > 0.0 else (rare, likely)
        # minus the node's entropy, once here, and once less for every edge below
        slope[i] = likely * np.log1p(small) + rare * (np.log1p(small) + abs(a[i]))
        total -= field[i] * q[i] + slope[i]
    for e in range(len(W)):
        total += slope[ends[e, 0]] + slope[ends[e, 1]]
    for i in range(len(a)):
        slope[i] = a[i] - field[i]
    for e in range(len(W)):
        i, j = ends[e]
        P11, P10, P01, P00 = cells(W[e], q[i], q0[i], q[j], q0[j])
        log11, log10 = np.log(max(P11, TINY)), np.log(max(P10, TINY))
        log01, log00 = np.log(max(P01, TINY)), np.log(max(P00, TINY))
        total += P11 * (log11 - W[e]) + P10 * log10 + P01 * log01 + P00 * log00
        slope[i] += log10 - log00 - a[i]
        slope[j] += log01 - log00 - a[j]
    return total


@kernel(error_model="numpy")
def _evaluate(graph: Any, scores: Any, a: Any, F: Any, slope: Any) -> None:
    n, most = np.diff(graph.nodes).max(), max(1, np.diff(graph.edges).max())
    field, W, q = np.empty(n), np.empty(most), np.empty((2, n))
    for m in range(len(F)):
        here = slice(graph.nodes[m], graph.nodes[m + 1])
        edges = slice(graph.edges[m], graph.edges[m + 1])
        constant = _read(m, graph, scores, field, W)
        links = W[: edges.stop - edges.start]
        F[m] = _energy(graph.ends[edges], links, field, a[here], q[0], q[1], slope[here]) - constant


@kernel(error_model="numpy")
def descend(
    graph: Any, scores: Any, a: Any, held: Any, steps: int, tol: float, plain: bool
) -> Descent:
    """``steps`` steps on the logits of nodes not held, in place; F never rises.

    ``plain`` ones go down the gradient by the logits themselves.
    """
    count = len(graph.offsets) - 1
    before, after, residual = np.empty(count), np.empty(count), np.empty(count)
    taken = np.empty(count, dtype=np.int64)
    n, most = np.diff(graph.nodes).max(), max(1, np.diff(graph.edges).max())
    field, W, work = np.empty(n), np.empty(most), np.empty((6, n))
    for m in range(count):
        here = slice(graph.nodes[m], graph.nodes[m + 1])
        edges = slice(graph.edges[m], graph.edges[m + 1])
        constant = _read(m, graph, scores, field, W)
        model = graph.ends[edges], W[: edges.stop - edges.start], field
        found = _relax(model, a[here], held[here], steps, tol, plain, work)
        before[m], after[m], residual[m], taken[m] = found
        before[m] -= constant
        after[m] -= constant
    return Descent(before, after, residual, taken)


@kernel(error_model="numpy")
def _relax(
    model: Any, a: Any, held: Any, steps: int, tol: float, plain: bool, work: Any
) -> tuple[float, float, float, int]:
    """(F before, F after, residual, steps taken) of one example.

    The direction is −∂F/∂q: the gradient by logits divided by q(1−q), so that a marginal close to
    0 or 1 moves as far as any other, and alone arrives in one step of length 1. A ``plain`` one is
    not divided, and no logit moves by more than 1 in the first: further out all slopes vanish.
    """
    trial, q, q0, slope, fresh, scale = work[:, : len(a)]
    first = F = _energy(*model, a, q, q0, slope)  # type: ignore[call-arg]
    scale[:] = 1.0
    length, taken = 1.0 / max(np.abs(q * q0 * slope).max(), TINY) if plain else 1.0, 0
    while True:
        promise, residual = 0.0, 0.0
        for i in range(len(a)):
            if not held[i]:
                if plain:
                    scale[i] = q[i] * q0[i]
                pull = q[i] * q0[i] * abs(slope[i])
                residual = max(residual, pull)
                promise += scale[i] * pull * abs(slope[i])
        # close to 0 and 1 every slope by a logit is small: a start there is no end
        if taken >= steps or (taken > 0 and residual <= tol):
            break
        fell = False
        while length >= SHORTEST and not fell:
            reached, turned = _try(model, a, held, length, scale, trial, q, q0, slope, fresh)
            if length * promise > NOISE * abs(F):
                fell = reached <= F - ENOUGH * length * promise
            else:  # too little for F to show: ask whether the slope has turned
                fell = turned >= -0.9 * promise
            tried, length = length, 0.5 * length
        if not fell:
            break
        # aim where a straight slope would be flat
        aim = tried * promise / (promise - turned) if promise > turned else np.inf
        length = min(max(aim, 0.25 * tried), 4.0 * tried)
        a[:] = trial
        slope, fresh = fresh, slope
        F = min(F, reached)
        taken += 1
    return first, F, residual, taken


@kernel(error_model="numpy")
def _try(
    model: Any, a: Any, held: Any, length: float, scale: Any,
    trial: Any, q: Any, q0: Any, slope: Any, fresh: Any,
) -> tuple[float, float]:  # fmt: skip
    """F after a step of this length, and minus its slope along the direction there."""
    for i in range(len(a)):
        move = 0.0 if held[i] else length * scale[i] * slope[i]
        trial[i] = min(max(a[i] - move, -CLIP), CLIP)
    reached, turned = _energy(*model, trial, q, q0, fresh), 0.0  # type: ignore[call-arg]
    for i in range(len(a)):
        if not held[i]:
            turned += scale[i] * q[i] * q0[i] * fresh[i] * slope[i]
    return reached, turned


@kernel(error_model="numpy")
def write(graph: Any, scores: Any, a: Any, tau: Any) -> None:
    """Node and edge tables at q = σ(a)."""
    most = max(1, np.diff(graph.edges).max())
    field, W = np.empty(np.diff(graph.nodes).max()), np.empty(most)
    for m in range(len(graph.offsets) - 1):
        _read(m, graph, scores, field, W)
        first = graph.nodes[m]
        at, nodes = graph.offsets[m], a[first : graph.nodes[m + 1]]
        for i in range(len(nodes)):
            tau[at], tau[at + 1] = 1.0 / (1.0 + np.exp(nodes[i])), 1.0 / (1.0 + np.exp(-nodes[i]))
            at += 2
        for e in range(graph.edges[m], graph.edges[m + 1]):
            i, j = graph.ends[e]
            start = graph.offsets[m]
            tau[at + 3], tau[at + 2], tau[at + 1], tau[at] = cells(
                W[e - graph.edges[m]],
                tau[start + 2 * i + 1], tau[start + 2 * i],
                tau[start + 2 * j + 1], tau[start + 2 * j],
            )  # fmt: skip
            at += 4

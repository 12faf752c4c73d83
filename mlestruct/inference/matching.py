"""Matching marginals by scaling and by messages, for any common ρ, made exactly feasible.

First the part of a matching that is left to infer, then Newton's steps to the least of the
node-wise bound in node prices (``native/matching_inference.cpp`` has the formula, the bound and
its derivatives), then the routine.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components, maximum_bipartite_matching

from mlestruct.errors import Infeasible
from mlestruct.inference.routine import Beliefs, Routine
from mlestruct.limits import late, parts, turns
from mlestruct.native._door import (
    MatchingAim,
    MatchingGraph,
    MatchingResponse,
    MatchingState,
    matching_bound,
    matching_infer,
    matching_mend,
    matching_respond,
)
from mlestruct.storage.trees import Tree, like
from mlestruct.structures.base import Array, Ints, Marks, as_numbers, kept
from mlestruct.structures.batch import Batch
from mlestruct.structures.entropy import Entropy
from mlestruct.structures.matching import BipartiteMatching, Matching

NEWTON = 5e-6  # seconds an edge that are left at least for Newton's steps, which cannot be stopped
LOOSE = 1e-8  # relative; a bound that is looser is worth better prices
DENSE = 300  # nodes up to which Newton's prices are looked for, O(nodes³) a step
LOST, AGREE = 1e-16, 1e-7  # of a score, in every sum of prices; what an answer is proven to
PATIENCE = 6  # sweeps before Newton's steps
COLD, SPLIT = 0, 4  # modes: start anew; the nodes' own bounds are to be minimised here
SHORT = (0.1, 0.01, 1e-3, 1e-4, 1e-5, 1e-6)  # of ρ = 1, where D has kinks and plateaus
LEAST = 1e-10  # damping; prices that trade with each other leave the Hessian singular
AnyMatching = BipartiteMatching | Matching


class LiveEdges(NamedTuple):
    """Edges that some fractional matching uses, sorted by tail, then head, as kernels take them.

    ``edge`` holds their coordinates, and ``base`` the τ of every other coordinate, which is known;
    both are None where all are live, in order. Nodes that are ``strict`` are saturated, others may
    stay single. ``centre`` is feasible, and positive on every live edge.
    """

    graph: MatchingGraph
    edge: Ints | None
    base: Array | None
    centre: Array


@kept
def live_edges(structure: Any) -> LiveEdges:
    """What is left of the structure once dead and forced edges are known. O(edges · √nodes)."""
    nodes, whole = structure.n_nodes, isinstance(structure, Matching) and structure.graph.complete
    strict = np.ones(nodes, dtype=bool)
    strict[structure.optional] = False
    edge, base, size = None, None, (0, 0)
    if whole and nodes > 2 and not (structure.fixed >= 0).any():  # all pairs u < v
        degree = np.arange(nodes)[::-1]
        two_sided, ptr = False, np.concatenate([[0], np.cumsum(degree)])
        head = np.arange(ptr[-1], dtype=np.int32)
        head -= np.repeat((ptr[:-1] - np.arange(nodes) - 1).astype(np.int32), degree)
    else:
        two_sided = isinstance(structure, BipartiteMatching) or structure.graph.sides is not None
        tail, head = _ends(structure)
        edge, strict, base = _alive(structure, tail, head, strict)
        edge = edge[np.lexsort((head[edge], tail[edge]))]
        tail, head = tail[edge], head[edge].astype(np.int32)
        ptr = np.concatenate([[0], np.cumsum(np.bincount(tail, minlength=nodes))])
        if len(edge) == structure.size and (np.diff(edge) == 1).all():
            edge = base = None
            if isinstance(structure, BipartiteMatching):
                size = structure.rows, structure.columns
    graph = MatchingGraph(nodes, len(head), ptr, head, strict, two_sided, *size)
    degree = np.diff(ptr) + np.bincount(head, minlength=nodes)
    centre = np.full(len(head), 0.5 / max(degree.max(), 1))
    if strict.any() and edge is None and structure.interior() is not None:
        centre[:] = 1.0 / degree[strict].max()
    elif strict.any():
        given, point, aim = np.zeros(len(head)), np.empty(len(head)), MatchingAim(0.5, 1e-13, 10**5)
        x, _, mode = MatchingPrices.cold(graph, 1, 0.5)
        start = MatchingState(1, nodes, graph.live, x, None, mode.view(np.uint8), np.zeros(5))
        matching_infer(graph, aim, start, given, centre, point, np.empty(1))
        centre = point
    return LiveEdges(graph, edge, base, centre)


def _ends(structure: AnyMatching) -> tuple[Any, Any]:
    """Tails, on one side where there are two, and heads."""
    if isinstance(structure, BipartiteMatching):
        return structure.nodes_of(np.arange(structure.size, dtype=np.int32))
    tail, head = structure.ends.T
    sides = structure.graph.sides
    swap = tail > head if sides is None else sides[tail] == 1
    return np.where(swap, head, tail), np.where(swap, tail, head)


def _alive(
    structure: AnyMatching, tail: Any, head: Any, strict: Marks
) -> tuple[Ints, Marks, Array]:
    """Edges that some fractional matching uses, nodes that they saturate, and all others' τ.

    An edge that no perfect matching uses has τ = 0, and scaling would approach it only as 1/k.
    Fractional matchings are the symmetric mixtures of perfect matchings of two copies of the nodes,
    where a node's slack joins its copies. Dulmage and Mendelsohn: such a matching uses the pairs
    that lie on a cycle which alternates with any one of them.
    """

    def degree(weight: Any) -> Any:
        return np.bincount(ends, weights=np.r_[weight, weight], minlength=nodes)

    nodes, ends = len(strict), np.r_[tail, head]
    live, base = structure.fixed == -1, (structure.fixed == 1).astype(float)
    strict = strict & (degree(base) == 0)
    plain = isinstance(structure, BipartiteMatching) and structure.interior() is not None
    if strict.any() and not plain:
        alone, free = np.flatnonzero(~strict), np.flatnonzero(live)
        row = np.r_[tail[free], head[free], alone]
        column = np.r_[head[free], tail[free], alone]
        graph = sp.csr_array((np.ones(len(row)), (row, column)), shape=(nodes, nodes))
        mate = maximum_bipartite_matching(graph, perm_type="column")  # each row's column
        if (mate < 0).any():
            raise Infeasible(structure.impossible() or "no matching saturates every node")
        owner = np.argsort(mate)
        turn = sp.csr_array((np.ones(len(row)), (row, owner[column])), shape=(nodes, nodes))
        _, label = connected_components(turn, directed=True, connection="strong")
        used = label[row] == label[owner[column]]
        live[free] = used[: len(free)]
        strict[alone[~used[2 * len(free) :]]] = True  # a node whose slack is dead
    single = strict & (degree(live) == 1)
    base[live & (single[tail] | single[head])] = 1.0  # some saturated node's only edge
    live &= base == 0
    return np.flatnonzero(live), strict & (degree(live) > 0) & (degree(base) == 0), base


def price_bounds(graph: MatchingGraph, rho: float, scores: Array, x: Array) -> Array:
    """Return a bound on max ⟨score, τ⟩ + H over the degrees for each row of scores and prices."""
    values = np.empty(len(scores))
    matching_bound(graph, rho, len(scores), scores, x, values)
    return values


def approach(
    graph: MatchingGraph, rho: float, score: Array, x: Array, residual: float, rounds: int
) -> tuple[Array, float]:
    """Find the least bound in x; return τ and its error, which is the mean of both ends'.

    Up to ρ = 1 through smaller ρ, each from the last's x, by damped Newton steps: O(nodes³) each.
    The damping falls as long as the bound does, so that steps become Newton's.
    """
    n, m = graph.nodes, graph.live
    now, new = (
        MatchingResponse(n, m, np.empty(m), np.empty(n), np.empty((n, n)), np.empty(1))
        for _ in range(2)
    )
    for short in SHORT:
        given, damping = (graph, min(rho, 1.0 - short), score), 1e-3
        matching_respond(*given, x, now)
        for _ in range(rounds):
            if np.abs(now.slope).max() <= residual or damping > 1e12 or late():
                break
            damped = now.curvature + damping * np.eye(n)
            trial = x - np.linalg.solve(damped, now.slope)
            matching_respond(*given, trial, new)
            if new.value <= now.value:
                damping = max(0.1 * damping, LEAST)
                x[:], now, new = trial, new, now
            else:
                damping *= 10.0
    return now.tau, float(np.abs(now.slope).max())


class MatchingPrices(NamedTuple):
    """Where the next inference starts: node duals, messages, and which of the two were in use."""

    x: Array
    sent: Array
    mode: Any

    @classmethod
    def cold(cls, graph: MatchingGraph, count: int, rho: float) -> MatchingPrices:
        """Where inference starts that knows nothing."""
        sent = np.empty((count, 2, graph.live if rho > 0.5 else 0))
        return cls(np.zeros((count, graph.nodes)), sent, np.zeros(count, np.int8))


@dataclass(frozen=True)
class Scaling(Routine):
    """max ⟨W, τ⟩ + H_ρ(τ) over the degrees of a matching: bipartite or not, nodes single or not.

    log Z is a dual value. For ρ ≤ ½ it bounds the surrogate from above wherever inference stopped;
    for ρ > ½ it does so once a node's error exceeds 1e-7, and is within second order before.
    ``residual`` is the largest error of a node's degree left before τ is repaired; the certificate
    at the repaired τ pays for it. O(edges) per sweep, at most ``sweeps``.

    On a graph with odd cycles the matchings' hull is smaller than the degree polytope; what this
    gives there counts for the hull once :mod:`mlestruct.inference.proof` has it inside.
    """

    rho: float = 0.5
    residual: float = 1e-11
    sweeps: int = 10_000
    first = 1e-5

    @classmethod
    def serve(cls, entropy: Entropy) -> Self | None:
        """Matchings of any graph, with one ρ common to all nodes."""
        kinds = {type(part.structure) for part in entropy.parts}
        if entropy.temperature != 1 or not entropy.concave or kinds - {BipartiteMatching, Matching}:
            return None
        rho = float(entropy.parts[0].counting[-1])
        alike = (
            np.array_equal(part.counting, part.structure.counting(rho)) for part in entropy.parts
        )
        return cls(rho) if 0 <= rho <= 1 and all(alike) else None

    def alike(self, batch: Batch[Any]) -> tuple[Array, Array] | None:
        """(w, s): the Hessian at equal scores is Σ w Φᵀ[I − Bᵀ(sI + BBᵀ)⁻¹B]Φ on complete graphs.

        B are the nodes' edges. Exact where nothing stays single, near it else.
        """
        weight, slack = batch.weight.copy(), np.zeros(len(batch))
        for structure, members in batch.groups():
            if not (isinstance(structure, Matching) and structure.graph.complete):
                return None
            t = 1.0 / max(structure.n_nodes - 1, 2)
            t *= 1.0 if structure.kind == "perfect" else 0.5
            curvature = 1.0 / t + (1.0 - 2.0 * self.rho) / (1.0 - t)
            weight[members] /= max(curvature, 1.0)
            if structure.kind == "partial":
                alone = 1.0 - t * (structure.n_nodes - 1)
                slack[members] = curvature * alone / max(self.rho, 1e-3)
        return weight, slack

    def many(self, batch: Batch[Any], scores: Array, warm: Any = None) -> Beliefs:
        """The next call starts from this one's dual variables and messages."""
        scores = as_numbers(scores, "scores", batch.size)
        tau, log_z, prices = np.empty(batch.size), np.empty(len(batch)), []
        for number, (structure, members) in enumerate(batch.groups()):
            graph, edge, base, _ = known = live_edges(structure)
            rows, cold = batch.rows(scores, members), warm is None
            live = np.ascontiguousarray(rows if edge is None else rows[:, edge])
            kept = () if cold else warm[number]
            state = MatchingPrices.cold(graph, len(rows), self.rho)
            state = state if cold else MatchingPrices(*(numbers.copy() for numbers in kept))
            found = np.empty(live.shape)
            for some in parts(len(members)):
                now = MatchingPrices(*(each[some] for each in state))
                log_z[members[some]] = self._infer(known, live[some], now, found[some])
            if edge is not None and base is not None:
                log_z[members] += rows @ base
                whole = np.tile(base, (len(rows), 1))
                whole[:, edge] = found
                found = whole
            tau[batch.index(members)] = found.ravel()
            prices.append(state)
        return Beliefs(log_z, tau, prices)

    def coarser(self, tol: float) -> Self:
        """Stopping at a larger error of the nodes' degrees."""
        return self if tol <= self.residual else replace(self, residual=min(tol, 1e-3))

    def above(self, batch: Batch[Any], scores: Array, warm: Any, value: Array) -> Array:
        """By the nodes' prices, which bound the maximum over the degrees at every ρ. O(edges).

        For ρ ≤ ½ the dual value; above, the sum of the nodes' own bounds, and better prices first,
        by Newton's steps of O(nodes³), where that is far from ``value``.
        """
        scores, value = as_numbers(scores, "scores", batch.size), as_numbers(value, "values")
        upper = np.empty(len(batch))
        for (structure, members), prices in zip(batch.groups(), warm, strict=True):
            graph, edge, base, _ = live_edges(structure)
            rows = batch.rows(scores, members)
            sure = np.zeros(len(rows)) if base is None else rows @ base
            live = np.ascontiguousarray(rows if edge is None else rows[:, edge])
            bound, reached = price_bounds(graph, self.rho, live, prices.x), value[members] - sure
            far = ~(bound - reached <= LOOSE * (1.0 + np.abs(reached)))
            for k in np.flatnonzero(far & (self.rho > 0.5) & (graph.nodes <= DENSE)):
                if late():
                    break
                better, score = prices.x[k].copy(), live[k]
                approach(graph, self.rho, score, better, 1e-9, 100)
                found = price_bounds(graph, self.rho, score[None], better[None])[0]
                bound[k] = min(bound[k], found)
            upper[members] = sure + bound
        return upper

    def pack(self, warm: list[MatchingPrices]) -> Tree:
        return [tuple(state) for state in warm]

    def unpack(self, batch: Batch[Any], tree: Tree) -> Any:
        groups = [(live_edges(one).graph, len(members)) for one, members in batch.groups()]
        cold = [tuple(MatchingPrices.cold(*group, self.rho)) for group in groups]
        return [MatchingPrices(*arrays) for arrays in like(tree, cold)]

    def _infer(
        self, known: LiveEdges, score: Array, state: MatchingPrices, tau: Array, again: bool = True
    ) -> Array:
        """log Z; ``again`` from a cold start where a warm one, far away, has led to no number."""
        graph, log_z, sweeps = known.graph, np.zeros(len(score)), turns(self.sweeps, score.size)
        if not graph.live:
            return log_z
        if late(NEWTON * score.size):
            sweeps = min(sweeps, PATIENCE - 1)
        # Beyond ½ nothing stops a kernel: what is late has the prices of ½, which bound it, too.
        rough = self.rho > 0.5 and late()
        aim = MatchingAim(0.5 if rough else self.rho, self.residual, sweeps)
        sent, mode = state.sent if state.sent.size else None, state.mode.view(np.uint8)
        size = len(score), graph.nodes, graph.live
        native = MatchingState(*size, state.x, sent, mode, np.zeros(5))
        matching_infer(graph, aim, native, score, known.centre, tau, log_z)
        for m in np.flatnonzero(state.mode == SPLIT):  # by the nodes' own bound
            x, enough = state.x[m], max(self.residual, LOST * float(np.abs(score[m]).max()), AGREE)
            for rounds in (12, 100):
                tau[m], error = approach(graph, self.rho, score[m], x, enough, rounds)
                if error <= enough:
                    break
            matching_mend(graph, tau[m], known.centre)
            log_z[m] = price_bounds(graph, self.rho, score[m : m + 1], x[None])[0]
        if rough:
            state.mode[:] = COLD
            log_z[:] = price_bounds(graph, self.rho, score, state.x)
        lost = np.flatnonzero(~np.isfinite(log_z)) if again else ()
        if len(lost):
            cold, own = MatchingPrices.cold(graph, len(lost), self.rho), tau[lost]
            log_z[lost] = self._infer(known, score[lost], cold, own, again=False)
            tau[lost] = own
            for mine, fresh in zip(state, cold, strict=True):
                mine[lost] = fresh
        gone = ~np.isfinite(state.x).all(axis=1)
        state.x[gone], state.mode[gone] = 0.0, COLD
        return log_z

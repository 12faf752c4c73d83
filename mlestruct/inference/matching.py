"""Matching marginals by scaling and by messages, for any common ρ, made exactly feasible.

First the part of a matching that is left to infer, then Newton's steps to the least of the
node-wise bound in node prices (``native/matching_beyond_half.cpp`` has the formula, the bound and
its derivatives), then the routine.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components, maximum_bipartite_matching

from mlestruct.errors import Infeasible
from mlestruct.inference.routine import Beliefs, Routine
from mlestruct.limits import late, left, parts, turns
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
PATIENCE = 40  # sweeps before Newton's steps
COLD, SPLIT = 0, 4  # modes: start anew; the nodes' own bounds are to be minimised here
SHORT = (0.1, 0.01, 1e-3, 1e-4, 1e-5, 1e-6)  # of ρ = 1, where D has kinks and plateaus
LEAST = 1e-10  # damping; prices that trade with each other leave the Hessian singular
AnyMatching = BipartiteMatching | Matching


@dataclass(frozen=True)
class Layout:
    """Live edges sorted by tail, then head; τ of every other coordinate is known: ``base``.

    Edges of tail u are ptr[u]:ptr[u+1]; ``edge`` holds their coordinates (None: all, in order).
    ``strict`` nodes are saturated, others may stay single. A fractional degree vector with every
    live edge positive exists. On ``two_sided`` graphs every tail is on one side, every head on
    the other. ``component`` numbers the nodes' connected components.
    """

    ptr: Ints
    head: NDArray[np.int32]
    edge: Ints | None
    strict: Marks
    base: Array | None
    component: Ints
    two_sided: bool
    table: tuple[int, int] | None

    @property
    def nodes(self) -> int:
        return len(self.strict)

    @property
    def live(self) -> int:
        return len(self.head)

    @cached_property
    def native(self) -> MatchingGraph:
        """The arrays as kernels take them; it points to them, and is neither copied nor pickled."""
        rows, columns = self.table or (0, 0)
        return MatchingGraph(self.nodes, self.live, self.ptr, self.head, self.strict,
                             self.component, self.two_sided, rows, columns)  # fmt: skip

    def gather(self, rows: Array) -> Array:
        return np.ascontiguousarray(rows if self.edge is None else rows[:, self.edge])

    def spread(self, live: Array) -> Array:
        """Every coordinate's τ, from the live edges'."""
        if self.edge is None:
            return live
        assert self.base is not None
        out = np.tile(self.base, (len(live), 1))
        out[:, self.edge] = live
        return out


def layout(structure: AnyMatching) -> Layout:
    """What is left of the structure once dead and forced edges are known. O(edges · √nodes)."""
    nodes = structure.n_nodes
    strict = np.ones(nodes, dtype=bool)
    strict[structure.optional] = False
    whole = isinstance(structure, Matching) and structure.graph.complete
    if whole and not (structure.fixed >= 0).any():
        return _complete(nodes, strict)
    tail, head = _ends(structure)
    free, base = structure.fixed == -1, (structure.fixed == 1).astype(float)
    strict &= _degree(base, tail, head, nodes) == 0
    live, strict = _alive(structure, tail, head, free, strict)
    single = strict & (_degree(live, tail, head, nodes) == 1)
    base[live & (single[tail] | single[head])] = 1.0  # some saturated node's only edge
    live &= base == 0
    done = _degree(base, tail, head, nodes) > 0
    used = _degree(live, tail, head, nodes) > 0
    return _arrange(structure, tail, head, live, strict & used & ~done, base)


def _degree(weight: Any, tail: Any, head: Any, nodes: int) -> Any:
    """What the edges of every node weigh together."""
    ends = np.r_[tail, head]
    return np.bincount(ends, weights=np.r_[weight, weight], minlength=nodes)


def _complete(nodes: int, strict: Marks) -> Layout:
    """All pairs u < v, without listing their ends."""
    degree = np.arange(nodes - 1, -1, -1)
    ptr = np.concatenate([[0], np.cumsum(degree)]).astype(np.int64)
    head = np.arange(ptr[-1], dtype=np.int32)
    head -= np.repeat((ptr[:-1] - np.arange(nodes) - 1).astype(np.int32), degree)
    zeros = np.zeros(nodes, dtype=np.int64)
    if nodes == 2 and strict.all():
        return Layout(np.zeros(3, np.int64), head[:0], np.zeros(0, np.int64), strict & False,
                      np.ones(1), zeros, True, None)  # fmt: skip
    return Layout(ptr, head, None, strict, None, zeros, nodes == 2, None)


def _ends(structure: AnyMatching) -> tuple[NDArray[Any], NDArray[Any]]:
    if isinstance(structure, BipartiteMatching):
        return structure.nodes_of(np.arange(structure.size, dtype=np.int32))
    tail, head = structure.ends.T
    sides = structure.graph.sides
    swap = tail > head if sides is None else sides[tail] == 1
    return np.where(swap, head, tail), np.where(swap, tail, head)


def _alive(
    structure: AnyMatching, tail: Any, head: Any, free: Marks, strict: Marks
) -> tuple[Marks, Marks]:
    """Edges and slacks that some fractional matching uses; a node whose slack is dead is strict.

    An edge that no perfect matching uses has τ = 0, and scaling would approach it only as 1/k.
    Fractional matchings are the symmetric mixtures of perfect matchings of two copies of the nodes,
    where a node's slack joins its copies. Dulmage and Mendelsohn: such a matching uses the pairs
    that lie on a cycle which alternates with any one of them.
    """
    plain = isinstance(structure, BipartiteMatching) and structure.interior() is not None
    if plain or not strict.any():
        return free.copy(), strict
    nodes = len(strict)
    alone = np.flatnonzero(~strict)
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
    live, strict = free.copy(), strict.copy()
    live[free] = used[: np.sum(free)]
    strict[alone[~used[2 * np.sum(free) :]]] = True
    return live, strict


def _arrange(
    structure: AnyMatching, tail: Any, head: Any, live: Any, strict: Any, base: Array
) -> Layout:
    kept = np.flatnonzero(live)
    kept = kept[np.lexsort((head[kept], tail[kept]))]
    nodes, t, h = len(strict), tail[kept], head[kept]
    ptr = np.concatenate([[0], np.cumsum(np.bincount(t, minlength=nodes))]).astype(np.int64)
    graph = sp.csr_array((np.ones(len(t)), (t, h)), shape=(nodes, nodes))
    _, component = connected_components(graph, directed=False)
    two_sided = isinstance(structure, BipartiteMatching) or structure.graph.sides is not None
    whole = len(kept) == structure.size and bool((np.diff(kept) == 1).all())
    table = None
    if whole and isinstance(structure, BipartiteMatching):
        table = structure.rows, structure.columns
    return Layout(
        ptr,
        h.astype(np.int32),
        None if whole else kept,
        strict,
        None if whole else base,
        component.astype(np.int64),
        two_sided,
        table,
    )


def price_bound(graph: Layout, rho: float, score: Array, x: Array) -> float:
    """Return a bound on max ⟨score, τ⟩ + H over the degrees at these prices."""
    value = np.empty(1)
    matching_bound(graph.native, rho, score, x, value)
    return float(value[0])


def approach(
    graph: Layout, rho: float, score: Array, x: Array, tau: Array, residual: float, rounds: int
) -> float:
    """Find the least bound in x, and τ; return the error of τ, the mean of both ends'.

    Up to ρ = 1 through smaller ρ, each from the last's x, by damped Newton steps: O(nodes³) each.
    The damping falls as long as the bound does, so that steps become Newton's.
    """
    now, new = (_response(graph) for _ in range(2))
    for short in SHORT:
        given, damping = (graph.native, min(rho, 1.0 - short), score), 1e-3
        matching_respond(*given, x, now)
        for _ in range(rounds):
            if np.abs(now.slope).max() <= residual or damping > 1e12 or late():
                break
            damped = now.curvature + damping * np.eye(graph.nodes)
            trial = x - np.linalg.solve(damped, now.slope)
            matching_respond(*given, trial, new)
            if new.value <= now.value:
                damping = max(0.1 * damping, LEAST)
                x[:], now, new = trial, new, now
            else:
                damping *= 10.0
    tau[:] = now.tau
    return float(np.abs(now.slope).max())


def _response(graph: Layout) -> MatchingResponse:
    n = graph.nodes
    tau, slope, curvature = np.empty(graph.live), np.empty(n), np.empty((n, n))
    return MatchingResponse(n, graph.live, tau, slope, curvature, np.empty(1))


@kept
def prepared(structure: Any) -> tuple[Layout, Array]:
    """The live graph, and a feasible point that is positive on all of it."""
    graph = layout(structure)
    degree = np.diff(graph.ptr) + np.bincount(graph.head, minlength=graph.nodes)
    if not graph.strict.any():
        return graph, np.full(graph.live, 0.5 / max(degree.max(), 1))
    if graph.edge is None and structure.interior() is not None:
        return graph, np.full(graph.live, 1.0 / degree[graph.strict].max())
    point, given = np.empty(graph.live), np.zeros(graph.live)
    centre, state = np.full(graph.live, 0.5 / max(degree.max(), 1)), cold_state(graph, 1)
    aim = MatchingAim(0.5, 1e-13, 100_000)
    matching_infer(graph.native, aim, state.native(graph), given, centre, point, np.empty(1))
    return graph, point


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

    @classmethod
    def serve(cls, entropy: Entropy) -> Scaling | None:
        """Matchings of any graph, with one ρ common to all nodes."""
        if entropy.temperature != 1 or not entropy.concave:
            return None
        found = set()
        for part in entropy.parts:
            if type(part.structure) not in (BipartiteMatching, Matching):
                return None
            rho = float(part.counting[-1])
            if not 0 <= rho <= 1 or not np.array_equal(part.counting, part.structure.counting(rho)):
                return None
            found.add(rho)
        return cls(found.pop()) if len(found) == 1 else None

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
        scores = batch.vector(scores, "scores")
        tau, log_z, kept = np.empty(batch.size), np.empty(len(batch)), []
        for number, (structure, members) in enumerate(batch.groups()):
            graph, centre = prepared(structure)
            rows = batch.rows(scores, members)
            state = self._state(graph, len(members)) if warm is None else deepcopy(warm[number])
            place = batch.index(members)
            direct = graph.edge is None and isinstance(place, slice)
            live = (
                tau[place].reshape(len(members), -1)
                if direct
                else np.empty((len(members), graph.live))
            )
            asked = graph.gather(rows)
            for some in parts(len(members)):
                now = state.at(some)
                log_z[members[some]] = self._infer(graph, centre, asked[some], now, live[some])
            if graph.base is not None:
                log_z[members] += rows @ graph.base
            if not direct:
                tau[place] = graph.spread(live).reshape(-1)
            kept.append(state)
        return Beliefs(log_z, tau, kept)

    def coarser(self, tol: float) -> Scaling:
        """Stopping at a larger error of the nodes' degrees."""
        return self if tol <= self.residual else replace(self, residual=min(tol, 1e-3))

    def above(
        self, batch: Batch[Any], scores: Array, warm: list[WarmPrices], value: Array
    ) -> Array:
        """By the nodes' prices, which bound the maximum over the degrees at every ρ. O(edges).

        For ρ ≤ ½ the dual value; above, the sum of the nodes' own bounds, and better prices first
        where that is far from ``value``.
        """
        scores = batch.vector(scores, "scores")
        value = as_numbers(value, "values")
        upper = np.empty(len(batch))
        for number, (structure, members) in enumerate(batch.groups()):
            graph, _ = prepared(structure)
            asked, prices = batch.rows(scores, members), warm[number].x
            sure = asked @ graph.base if graph.base is not None else np.zeros(len(members))
            for m, row, x, base in zip(members, graph.gather(asked), prices, sure, strict=True):
                upper[m] = base + _above(row, graph, self.rho, x, value[m] - base)
        return upper

    def pack(self, warm: list[WarmPrices]) -> Tree:
        return [tuple(state) for state in warm]

    def unpack(self, batch: Batch[Any], tree: Tree) -> list[WarmPrices]:
        cold = [self._state(prepared(one)[0], len(members)) for one, members in batch.groups()]
        return [WarmPrices(*arrays) for arrays in like(tree, self.pack(cold))]

    def _state(self, graph: Layout, count: int) -> WarmPrices:
        return cold_state(graph, count, self.rho > 0.5)

    def _infer(
        self,
        graph: Layout,
        centre: Array,
        score: Array,
        state: WarmPrices,
        tau: Array,
        again: bool = True,
    ) -> Array:
        """log Z; ``again`` from a cold start where a warm one, far away, has led to no number."""
        log_z, sweeps = np.zeros(len(score)), turns(self.sweeps, score.size)
        if left() < NEWTON * score.size:
            sweeps = min(sweeps, PATIENCE - 1)
        # Beyond ½ nothing stops a kernel: what is late has the prices of ½, which bound it, too.
        rough = self.rho > 0.5 and late()
        rho = 0.5 if rough else self.rho
        if graph.live:
            aim, now = MatchingAim(rho, self.residual, sweeps), state.native(graph)
            matching_infer(graph.native, aim, now, score, centre, tau, log_z)
        for m in np.flatnonzero(state.mode == SPLIT):
            log_z[m] = self._split(graph, centre, score[m], state.x[m], tau[m])
        if graph.live and rough:
            state.mode[:] = COLD
            log_z[:] = [
                _above(row, graph, self.rho, x, -np.inf)
                for row, x in zip(score, state.x, strict=True)
            ]
        lost = np.flatnonzero(~np.isfinite(log_z)) if again else ()
        if len(lost):
            cold, own = self._state(graph, len(lost)), tau[lost]
            log_z[lost] = self._infer(graph, centre, score[lost], cold, own, again=False)
            tau[lost] = own
            state.put(lost, cold)
        gone = ~np.isfinite(state.x).all(axis=1)
        state.x[gone], state.mode[gone] = 0.0, COLD
        return log_z

    def _split(self, graph: Layout, centre: Array, score: Array, x: Array, tau: Array) -> float:
        """One example's log Z, prices and τ by its nodes' own bound."""
        enough = max(self.residual, LOST * float(np.abs(score).max()), AGREE)
        for rounds in (12, 100):
            if approach(graph, self.rho, score, x, tau, enough, rounds) <= enough:
                break
        matching_mend(graph.native, tau, centre)
        return price_bound(graph, self.rho, score, x)


def _above(score: Array, graph: Layout, rho: float, x: Array, value: float) -> float:
    """One example's bound; Newton's prices, O(nodes³) a step, where it is far from ``value``."""
    bound = price_bound(graph, rho, score, x)
    near = bound - value <= LOOSE * (1.0 + abs(value))
    if rho <= 0.5 or near or graph.nodes > DENSE or late():
        return bound
    better, tau = x.copy(), np.empty(graph.live)
    approach(graph, rho, score, better, tau, 1e-9, 100)
    return min(bound, price_bound(graph, rho, score, better))


class WarmPrices(NamedTuple):
    """Where the next inference starts: node duals, messages, and which of the two were in use."""

    x: Array
    sent: Array
    mode: Any

    def at(self, rows: Any) -> WarmPrices:
        """Those of some examples."""
        return WarmPrices(*(kept[rows] for kept in self))

    def native(self, graph: Layout) -> MatchingState:
        """The same arrays as kernels take them."""
        size, sent = (len(self.x), graph.nodes, graph.live), self.sent if self.sent.size else None
        return MatchingState(*size, self.x, sent, self.mode.view(np.uint8), np.zeros(5))

    def put(self, rows: Any, others: WarmPrices) -> None:
        """Others' in their place."""
        for known, fresh in zip(self, others, strict=True):
            known[rows] = fresh


def cold_state(graph: Layout, count: int, messages: bool = False) -> WarmPrices:
    """Return where inference starts that knows nothing."""
    sent = np.empty((count, 2, graph.live if messages else 0))
    return WarmPrices(np.zeros((count, graph.nodes)), sent, np.zeros(count, np.int8))

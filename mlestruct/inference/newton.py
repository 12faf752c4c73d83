"""Newton's method on messages: the maximum of ⟨score, τ⟩ + H(τ) over the local polytope.

A node has log-beliefs w, a factor α of counting number c_α one vector u of every node in its scope:

    q_i ∝ exp(w_i),    τ_α ∝ exp(t score_α / c_α + Σ_i u_αi).

At t = 1 they are optimal where tables agree with nodes, Σ τ_α = q_i, and slopes of the Lagrangian
vanish: score_i = c_i w_i + Σ_α c_α u_αi up to a constant. A step solves the linearised equations

    [ c_i Cov(q_i)⁻¹      c_α     ] [dq]   [ slope        ]
    [      c_α      −c_α Cov(τ_α) ] [du] = [ c_α (τ − q)  ]

in units of √q, so that correlations stand on the lower diagonal. Covariances of peaked tables are
nearly singular; they are never inverted, and a ridge fixes what no table notices.

Where scores are large, t doubles from mild scores to 1. Optimal w and u grow nearly in proportion
to t, so they are scaled with it, and three or four steps correct them: 20 to 40 steps in all.
"""

from __future__ import annotations

from time import perf_counter
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from mlestruct.limits import late
from mlestruct.structures.base import Array, Flags, Ints, kept
from mlestruct.structures.graph import FactorGraph

RIDGE, STIFF = 1e-13, 0.05  # of a correlation: at least, and times what a factor's tables lack
LONGEST = 4.0  # nats that a logarithm may move in one step
MET, NEAR = 1e-11, 3e-2  # nats that slopes and tables may lack at t = 1, and before it
SETTLED = 1e-6  # nats: what is left then may be rounding's
CLOSE = 1.0  # nats: messages that lack more are no start
WARM, FEW, MOST = 12, 20, 60  # steps from given messages, at one t, and at t = 1
MILD = 2.0  # nats: of scores to begin with
FACTOR = 2.0  # by which t grows
LEAST = 1e-150  # a state's √q that the system's units go down to


class SlotLayout(NamedTuple):
    """Where states of slots, a variable in a factor's scope, and pairs of them lie."""

    state: Ints  # of every slot's state, the node's state
    table: Ints  # of every entry of a table, its factor
    entry: Ints  # (entry, slot's state) for every slot of every entry
    slot: Ints
    pair_entry: Ints  # entry that two states of slots have in common, and the number of that pair
    pair: Ints
    first: Ints  # both states of every pair within one factor
    second: Ints
    node_first: Ints  # both states of every pair within one node
    node_second: Ints


class MessagePoint(NamedTuple):
    """Log-beliefs of nodes and parameters of tables."""

    w: Array
    u: Array


@kept
def layout(structure: FactorGraph) -> SlotLayout:
    """Return the indices that every step on this structure needs."""
    scope, cards = structure.scope, structure.cards
    sizes = cards[scope]
    place = np.concatenate([[0], np.cumsum(sizes)])
    shift = np.repeat(structure.node_start[scope] - place[:-1], sizes)
    entry, node, owner = structure.below
    nodes = int(structure.node_start[-1])
    entry, slot = entry - nodes, node - structure.node_start[scope[owner]] + place[owner]
    order = np.argsort(entry, kind="stable")
    entry, slot = entry[order], slot[order]
    # All pairs of slots' states of one factor, row by row; the same of one node.
    widths = np.add.reduceat(sizes, structure.scope_start[:-1])
    first, second = _squares(widths)
    row = np.concatenate([[0], np.cumsum(np.repeat(widths, widths))])
    begin = np.repeat(np.cumsum(widths) - widths, widths)  # of the factor, by slot's state
    a, b = _squares(np.bincount(entry))  # slots of one entry
    pair = row[slot[a]] + slot[b] - begin[slot[a]]
    table = structure.table_of[nodes:] - structure.n_nodes
    state = np.arange(int(place[-1])) + shift
    return SlotLayout(state, table, entry, slot, entry[a], pair, first, second, *_squares(cards))


def _squares(sizes: Ints) -> tuple[Ints, Ints]:
    """Rows and columns of all entries of blocks of these sizes on a diagonal."""
    begin, size = np.cumsum(sizes) - sizes, np.repeat(sizes, sizes)
    rows = np.repeat(np.arange(len(size)), size)
    starts = np.cumsum(size) - size
    return rows, np.arange(len(rows)) - np.repeat(starts - np.repeat(begin, sizes), size)


class MessageNewton:
    """The equations of one example."""

    def __init__(self, structure: FactorGraph, counting: Array, score: Array, open_: Flags) -> None:
        self.at, nodes = layout(structure), int(structure.node_start[-1])
        self.start = structure.node_start[:-1]
        self.tables = structure.table_start[:-1] - structure.table_start[0]
        owner = np.repeat(np.arange(structure.n_factors), np.diff(structure.scope_start))
        sizes = structure.cards[structure.scope]
        self.node = np.repeat(np.arange(structure.n_nodes), structure.cards)
        self.factor = np.repeat(owner, sizes)  # of a slot's state
        self.own = counting[: structure.n_nodes][self.node]  # c of a node, by state
        counts = counting[structure.n_nodes :]
        self.count = np.repeat(counts[owner], sizes)  # c of a factor, by slot's state
        self.score = np.where(open_[:nodes], score[:nodes], 0.0)
        with np.errstate(invalid="ignore"):
            scaled = score[nodes:] / counts[self.at.table]
        self.table = np.where(open_[nodes:], scaled, 0.0)
        self.open, self.inside = open_[:nodes], open_[nodes:]

    def nodes(self, w: Array) -> Array:
        """Return q."""
        return _normal(np.where(self.open, w, -np.inf), self.start, self.node)

    def factors(self, u: Array, t: float) -> Array:
        """Return τ of all tables."""
        at = self.at
        log = t * self.table + np.bincount(at.entry, u[at.slot], len(self.table))
        return _normal(np.where(self.inside, log, -np.inf), self.tables, at.table)

    def step(self, x: MessagePoint, t: float) -> tuple[MessagePoint, float]:
        """Return Newton's step, and what slopes and tables lack at ``x``."""
        at, q, tau = self.at, self.nodes(x.w), self.factors(x.u, t)
        sums = np.bincount(at.slot, tau[at.entry], len(at.state))
        marginal = np.asarray(sums, dtype=float)
        likeliest = _likeliest(q, self.start)[self.node]
        free = self.open.copy()
        free[likeliest] = False  # a likeliest state is 1 less the others
        unit = np.maximum(np.sqrt(q), LEAST)
        slope = t * self.score - self.own * x.w
        slope -= np.bincount(at.state, self.count * x.u, len(q))
        slope -= slope[likeliest]
        units, frees = np.maximum(np.sqrt(marginal), LEAST), free[at.state]
        ratio = units / unit[at.state]
        apart = 2.0 * np.log(ratio)
        lacks = max(_largest(slope[free]), _largest(apart[frees]))
        # A ridge as large as what is wrong keeps steps along nearly fixed directions in bounds.
        wrong = np.zeros(len(self.tables))
        np.maximum.at(wrong, self.factor[frees], np.abs(units * apart)[frees])
        ridge = np.maximum(RIDGE, STIFF * np.minimum(wrong, 1.0))[self.factor]
        # c Cov(q)⁻¹ is diag(1 / q) + 1 / q of the likeliest state; the slots' blocks are −c Cov(τ).
        i, j, a, b = at.node_first, at.node_second, at.first, at.second
        own = self.own[i] * ((i == j) + unit[i] * unit[j] / q[likeliest][i])
        together = np.bincount(at.pair, tau[at.pair_entry], len(a))
        covariance = (together - marginal[a] * marginal[b]) / (units[a] * units[b])
        slots = -self.count[a] * (covariance + ridge[a] * (a == b))
        n, below = len(q), len(q) + np.arange(len(at.state))
        rows = np.concatenate([i, n + a, at.state, below])
        columns = np.concatenate([j, n + b, below, at.state])
        values = np.concatenate([own, slots, self.count / ratio, self.count * ratio])
        right = np.concatenate([unit * slope, self.count * units * apart])
        found = _solve(np.concatenate([free, frees]), rows, columns, values, right)
        dq, du = unit * found[:n], found[n:] / units
        rest = np.bincount(self.node, dq)[self.node] / q[likeliest]
        return MessagePoint(np.where(free, dq / unit**2 + rest, 0.0), du), lacks

    def run(self, x: MessagePoint, t: float, tol: float, most: int) -> tuple[MessagePoint, float]:
        """Take steps until nothing lacks more than ``tol``, or until they gain nothing."""
        best, least, idle = x, np.inf, 0
        for _ in range(most):
            began = perf_counter()
            step, lacks = self.step(x, t)
            idle = idle + 1 if least / 2 <= lacks < SETTLED else 0
            if lacks < least:
                best, least = x, lacks
            if least <= tol or idle > 2 or not np.isfinite(lacks) or late(perf_counter() - began):
                break
            longest = max(_largest(step.w), _largest(step.u))
            if not np.isfinite(longest):  # the system is singular here
                break
            share = LONGEST / max(LONGEST, longest)
            x = MessagePoint(x.w + share * step.w, x.u + share * step.u)
        return best, least

    def follow(self) -> tuple[MessagePoint, float]:
        """Follow the optima from mild scores to these."""
        scores = (self.score, self.table)
        t = min(1.0, MILD / max(max(float(np.ptp(x)) for x in scores if len(x)), MILD))
        x = MessagePoint(np.zeros(len(self.score)), np.zeros(len(self.at.state)))
        while t < 1.0 and not late():
            x, _ = self.run(x, t, NEAR, FEW)
            before, t = t, min(1.0, FACTOR * t)
            x = MessagePoint(x.w * (t / before), x.u * (t / before))
        return self.run(x, 1.0, MET, MOST)


def settle(
    structure: FactorGraph, counting: Array, score: Array, open_: Flags, start: tuple[Array, Array]
) -> tuple[Array, Array, Array, float]:
    """Return the messages and log-beliefs where sweeps would end, τ there, and what they lack.

    From the messages and log-beliefs ``start`` if they are near, else from mild scores.
    """
    newton = MessageNewton(structure, counting, score, open_ != 0)
    state, (message, belief) = newton.at.state, start
    inside = newton.open[state]
    best = MessagePoint(np.where(newton.open, belief, 0.0), np.zeros(len(state)))
    best.u[inside] = belief[state[inside]] - message[inside]
    lacks = newton.step(best, 1.0)[1]
    if lacks <= CLOSE:
        best, lacks = newton.run(best, 1.0, MET, WARM)
    if not lacks <= SETTLED and not late():
        found, less = newton.follow()
        best, lacks = (best, lacks) if lacks <= less else (found, less)
    tau = np.concatenate([newton.nodes(best.w), newton.factors(best.u, 1.0)])
    message = np.where(inside, best.w[state] - best.u, message)
    return message, np.where(newton.open, best.w, belief), tau, lacks


def _solve(free: Flags, rows: Ints, columns: Ints, values: Array, right: Array) -> Array:
    """Solve the system in its free unknowns, with one step of refinement; others are 0."""
    from scipy.sparse.linalg import splu

    found, size, number = np.zeros(len(free)), int(free.sum()), np.cumsum(free) - 1
    if not size:
        return found
    inside = free[rows] & free[columns]
    where = (number[rows[inside]], number[columns[inside]])
    matrix = sp.csc_array((values[inside], where), shape=(size, size))
    try:
        factors = splu(matrix, permc_spec="MMD_ATA")  # 2/3 of the default's time on grids
    except RuntimeError:  # singular to the last digit
        return np.full(len(free), np.nan)
    x = factors.solve(right[free])
    found[free] = x + factors.solve(right[free] - matrix @ x)
    return found


def _normal(log: Array, start: Ints, owner: Ints) -> Array:
    """exp(log), scaled to sum to 1 in every table that begins at ``start``."""
    if not len(start):
        return log
    value = np.exp(log - np.maximum.reduceat(log, start)[owner])
    return value / np.add.reduceat(value, start)[owner]


def _likeliest(q: Array, start: Ints) -> Ints:
    """The first largest entry of every node."""
    top = np.maximum.reduceat(q, start)
    hits = np.flatnonzero(q == np.repeat(top, np.diff(np.append(start, len(q)))))
    return hits[np.searchsorted(hits, start)]


def _largest(values: Array) -> float:
    return float(np.abs(values).max()) if len(values) else 0.0

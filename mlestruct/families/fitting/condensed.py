"""Beliefs that minimise Σ w b log b − ⟨score, b⟩ over the local polytope, and how they move.

Majorisation (Domke 2009, algorithm 1), then Newton's method, then interior points where that fails:
all three are steps of one kind of linear system, in which tables are eliminated and variables left.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import solveh_banded
from scipy.sparse.csgraph import reverse_cuthill_mckee

from mlestruct import Batch, FactorGraph
from mlestruct.errors import Unserved
from mlestruct.inference.layouts import neighbours
from mlestruct.storage.trees import Tree, like
from mlestruct.structures.base import Array, Ints, as_numbers, kept
from mlestruct.structures.entropy import Rho, counting_numbers
from mlestruct.structures.graph import only_graphs

STEPS = 150
STALLED = 1e-6  # of a value's size: what is missing is more where inference has failed
NEAR, TURN = 0.05, 20  # an entry's last majorising move, and how many, before Newton's method
PATIENCE = 4  # Newton steps that come no closer, before it is given up
PROVEN = 1e-7  # of a value's size: what may be missing where Newton's method ends
ROUNDING = 1e-5  # relative: Newton steps below this are squared by the next
FAINT = 1e-8  # marginals below this are only known absolutely
LEAST, STEADY = 1e-10, 1e-4  # the last μ of the path, and a relative move at its end
BACK = 0.01  # of the way to the path's start, from another optimum
SHORT = 0.99  # of the way to the nearest entry that would become zero
TINY = 1e-300
TOGETHER = 1 << 16  # numbers of the rows that take steps together


class Optima(NamedTuple):
    """Beliefs, what each example's value lacks at most in units of its size, slacks of entries.

    Slacks are 0 but where the path of interior points led to the optimum: there F has −μ log b
    beside it, whose curvature (w + z)/b is that of the beliefs' derivatives.
    """

    tau: Array
    gap: Array
    slack: Array

    @property
    def stalled(self) -> NDArray[np.bool_]:
        """Examples whose beliefs are no optimum: nothing that is computed from them holds."""
        return np.asarray(~(self.gap <= STALLED))


@dataclass(frozen=True)
class Condensed:
    """Minimise free energies with a weight per coordinate, and differentiate the minimisers.

    Factors of any order and cards. ``weight`` per coordinate: positive on factors; negative on
    variables as far as the whole stays convex on the local polytope. ``tol`` is the largest
    relative change of Newton's last step; what is missing is bounded by duality. ``early`` stops
    after so many majorising steps from uniform tables, the thesis's algorithm 1 cut short.
    """

    tol: float = 1e-9
    steps: int = STEPS
    early: int | None = None

    def weights(self, batch: Batch[FactorGraph], rho: Rho) -> Array:
        """The counting numbers of ρ as a weight per coordinate."""
        only_graphs(batch.structures, "implicit fitting")
        each = [counting_numbers(s, rho)[s.table_of] for s in batch.structures]
        return np.concatenate([each[k] for k in batch.which])

    def minimise(
        self, batch: Batch[FactorGraph], score: Array, weight: Array, start: Optima | None = None
    ) -> Optima:
        """From uniform tables, or from the optima of nearby scores."""
        score, weight = (
            as_numbers(score, "scores", batch.size),
            as_numbers(weight, "weights", batch.size),
        )
        found = Optima(np.empty(batch.size), np.empty(len(batch)), np.empty(batch.size))
        for graph, members in batch.groups():
            share = max(8, TOGETHER // graph.size)
            for some in np.split(members, range(share, len(members), share)):
                given = batch.rows(score, some), batch.rows(weight, some)
                rows = OptimaSearch(graph, *given, self.tol, self.steps)
                with np.errstate(all="ignore"):  # of steps that lead nowhere
                    if self.early is not None:
                        rows.majorise(np.arange(len(some)), self.early, -1.0)
                    elif start is None:
                        rows.resume(rows.b, rows.slack, np.full(len(some), np.inf))
                    else:
                        tau, slack = (batch.rows(part, some) for part in (start.tau, start.slack))
                        rows.resume(tau, slack, start.gap[some])
                    found.gap[some] = rows.gaps()
                where = batch.index(some)
                found.tau[where], found.slack[where] = rows.b.ravel(), rows.slack.ravel()
        return found

    def failed(self, optima: Optima) -> NDArray[np.bool_]:
        """Examples whose beliefs are not what was asked for; those cut short on purpose are."""
        return optima.stalled & (self.early is None)

    def respond(self, batch: Batch[FactorGraph], weight: Array, tau: Array, slope: Array) -> Array:
        """−∂L/∂score at an optimum, ``slope`` being b·∂L/∂b."""
        out, weight = np.empty(batch.size), as_numbers(weight, "weights", batch.size)
        tau, slope = as_numbers(tau, "tau", batch.size), as_numbers(slope, "slopes", batch.size)
        for graph, members in batch.groups():
            rows = (batch.rows(part, members) for part in (tau, slope / tau, weight / tau))
            out[batch.index(members)] = compiled(graph).step(*rows)[0].ravel()
        return out


class LocalPolytope:
    """A graph as steps need it, and the constraints of tables: A b = d.

    Rows of A are the states of all slots: a factor's sum less the variable's marginal. ``even`` has
    uniform tables, which begin at ``tables``.

    Each variable's likeliest state follows from its others: with a rare one in its place small
    differences of large numbers would decide. Steps therefore turn the states, the likeliest last.
    A table follows from the sums z of its entries with every other state, its rows. As a
    distribution 1 / curve has a covariance C of what indicates them; times its mass, z less their
    means costs ½ zᵀ C⁻¹ z. Variables take turns such that the systems left are narrow bands.
    """

    def __init__(self, graph: FactorGraph) -> None:
        interior = graph.interior()
        assert interior is not None
        n, cards, start, scope = graph.n_nodes, graph.cards, graph.node_start, graph.scope
        self.even, self.A = interior, graph.constraints().A[n:]
        self.transposed = sp.csr_array(self.A.T)
        self.tables = np.concatenate([start[:-1], graph.table_start[:-1]])
        self.nodes, self.start = int(start[-1]), start[:-1]
        own = np.arange(self.nodes)
        self.node = np.repeat(np.arange(n), cards)
        self.state, self.last = own - start[self.node], start[1:] - 1
        free = self.state < cards[self.node] - 1
        self.free = np.flatnonzero(free)
        # The coordinate that takes a place where states are turned: linear in the turned states.
        entry, below, slot = graph.below
        strides = np.append(np.ones(self.nodes, int), graph.strides[slot])
        places = np.append(own, entry), np.append(own, below)
        self.turn = sp.csr_array((strides, places), (graph.size, self.nodes))
        self.factor_of = graph.table_of[self.nodes :] - n
        self.firsts = graph.table_start[:-1] - self.nodes
        self.base = np.append(start[self.node], graph.table_start[self.factor_of])
        # Rows: the states of slots but the last.
        sizes, orders = cards[scope], np.diff(graph.scope_start)
        factor = np.repeat(np.arange(graph.n_factors), orders)
        place, of = np.cumsum(sizes) - sizes, np.repeat(np.arange(len(scope)), sizes)
        home = start[scope[of]] + np.arange(len(of)) - place[of]
        rows = np.flatnonzero(free[home])
        self.home, self.place, self.factor = home[rows], place[of[rows]], factor[of[rows]]
        count, number = len(rows), np.cumsum(free[home]) - 1
        ones = free[below]
        each = number[(place[slot] + self.state[below])[ones]], entry[ones] - self.nodes
        self.sums = sp.csr_array((np.ones(len(each[0])), each), (count, len(self.factor_of)))
        owners = self.factor, np.arange(count)
        self.owners = sp.csr_array((np.ones(count), owners), (graph.n_factors, count))
        # Pairs of rows of one factor, in blocks of equal sizes.
        pairs = sp.csr_array(self.owners.T @ self.owners)
        pairs.sort_indices()
        self.first, (self.one, self.other) = pairs.indptr[:-1], pairs.nonzero()
        self.both = sp.csr_array(self.sums[self.one].multiply(self.sums[self.other]))
        wide = np.diff(pairs.indptr)[self.one]
        self.blocks = [np.flatnonzero(wide == k).reshape(-1, k, k) for k in np.unique(wide)]
        self._number(graph)

    def _number(self, graph: FactorGraph) -> None:
        """Number the unknowns; find where parts of a system lie in its band, diagonal first."""
        n, cards, count = graph.n_nodes, graph.cards, len(self.home)
        near_start, near = neighbours(graph)
        beside = sp.csr_array((np.ones(len(near)), near, near_start), shape=(n, n))
        order = reverse_cuthill_mckee(beside, symmetric_mode=True)
        begin = np.empty(n, dtype=np.int64)
        begin[order] = np.cumsum(cards[order] - 1) - cards[order] + 1
        at, size = begin[self.node] + self.state, len(self.free)
        self.unknown, self.unknown_of = at[self.free], at[self.home]
        alike = sp.coo_array((np.ones(size), (self.node[self.free], np.arange(size))), (n, size))
        one, other = (alike.T @ alike).nonzero()
        best, more = self.last[self.node[self.free[one]]], len(self.one)
        i = np.concatenate([self.unknown_of[self.one], self.unknown[one], self.unknown])
        j = np.concatenate([self.unknown_of[self.other], self.unknown[other], self.unknown])
        part = np.concatenate([np.arange(more), more + best, more + self.free])
        down = i >= j
        self.width = int((i - j).max(initial=0)) + 1
        spots = ((i - j) * size + j)[down], part[down]
        room = self.width * size, more + self.nodes
        self.band = sp.csr_array((np.ones(len(spots[0])), spots), room)
        into = self.unknown_of, np.arange(count)
        self.gather = sp.csr_array((np.ones(count), into), (size, count))

    def charge(self, price: Array) -> Any:
        """What each row's prices of constraints ask of every coordinate."""
        return (self.transposed @ price.T).T

    def step(self, b: Array, slope: Array, curve: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
        """The change of each row that minimises ½ Σ curve·Δ² + slope·Δ within the polytope.

        Also by how much prices of constraints rise, and which rows are not convex.
        """
        n, tables, columns = self.nodes, slice(self.nodes, None), np.arange(len(b))
        top = np.maximum.reduceat(b[:, :n], self.start, axis=1)[:, self.node]
        likely = np.where((b[:, :n] == top) | np.isnan(top), self.state, n).T
        likely = np.minimum.reduceat(likely, self.start, axis=0)
        turned = self.state[:, None] + (self.state[:, None] >= likely[self.node])
        turned[self.last] = likely
        at = (self.base[:, None] + self.turn @ turned) * len(b) + columns
        b, slope, curve = (np.ascontiguousarray(part.T).take(at) for part in (b, slope, curve))
        # Tables are eliminated: what is left is quadratic in the sums of their rows.
        weight, of = 1.0 / curve[tables], self.factor_of
        pull, firsts = weight * slope[tables] - b[tables], self.firsts
        mass, lack = np.add.reduceat(weight, firsts), 1.0 + np.add.reduceat(pull, firsts)
        mean = (self.sums @ weight) / mass[self.factor]
        goal = self.sums @ pull + b[self.home] - mean * lack[self.factor]
        square = self.both @ weight
        square -= mass[self.factor[self.one]] * mean[self.one] * mean[self.other]
        for block in self.blocks:
            square[block] = _inverse(square[block])
        rise = np.add.reduceat(square * goal[self.other], self.first)
        # One system per row in the variables' unknowns.
        own, spare = self.node[self.free], 1.0 - np.add.reduceat(b[:n], self.start)
        best, right = self.last[own], np.empty((len(self.free), len(columns)))
        right[self.unknown] = slope[best] + curve[best] * spare[own] - slope[self.free]
        right -= self.gather @ rise
        bands = self.band @ np.concatenate([square, curve[:n]])
        convex = np.ones(len(columns), dtype=bool)
        for m in columns:
            system = bands[:, m].reshape(self.width, -1)
            try:
                right[:, m] = solveh_banded(system, right[:, m], True, True, True, False)
            except np.linalg.LinAlgError:
                right[:, m], convex[m] = np.nan, False
        # The changes of variables, and of the tables that follow.
        change = np.zeros(b.shape)
        change[self.free] = right[self.unknown]
        change[self.last] = spare - np.add.reduceat(change[:n], self.start)
        change[self.last[np.diff(self.start, append=n) == 1]] = 0.0
        rise = np.add.reduceat(square * (goal + right[self.unknown_of])[self.other], self.first)
        total = lack / mass - self.owners @ (mean * rise)
        change[tables] = weight * (total[of] + self.sums.T @ rise - slope[tables])
        delta, price = np.empty(b.shape), np.zeros((self.A.shape[0], len(columns)))
        delta.ravel()[at] = change
        price[self.place[:, None] + turned[self.home], columns] = rise
        return np.ascontiguousarray(delta.T), price.T, convex


class OptimaSearch:
    """Rows of examples of one graph, on their way to their optima."""

    def __init__(
        self, graph: FactorGraph, score: Array, weight: Array, tol: float, steps: int
    ) -> None:
        _refuse(graph, weight)
        self.ready = compiled(graph)
        self.score, self.weight, self.tol = score, weight, tol
        self.nodes = slice(0, int(graph.node_start[-1]))
        count = len(score)
        self.b, self.slack = np.tile(self.ready.even, (count, 1)), np.zeros(score.shape)
        self.price, self.gap = np.zeros((count, self.ready.A.shape[0])), np.full(count, np.nan)
        self.left = np.full(count, steps)  # of the steps that may still be taken

    def resume(self, b: Array, slack: Array, gap: Array) -> None:
        """From the optima of nearby scores where the gap says so, else from uniform tables."""
        known, interior = gap <= STALLED, slack.any(axis=1)
        self.b[known], self.slack[known] = b[known], slack[known]
        self.majorise(np.flatnonzero(~known), TURN, NEAR)
        lost = self.newton(np.flatnonzero(~(known & interior)))
        self.price[lost] = 0.0
        self.follow(lost, 1.0)
        self.follow(np.flatnonzero(known & interior), BACK)

    def gaps(self) -> Array:
        """What each row's value lacks at most."""
        open_ = np.flatnonzero(np.isnan(self.gap))
        if len(open_):
            self.gap[open_] = self.missing(open_)
        return self.gap

    def slope(self, rows: Ints) -> Array:
        logs = np.log(np.maximum(self.b[rows], TINY))
        return self.weight[rows] * (logs + 1.0) - self.score[rows]

    def step(self, rows: Ints, slope: Array, curve: Array) -> tuple[Array, NDArray[np.bool_]]:
        """Slopes less the prices of constraints give the same steps, with smaller roundings."""
        slope = np.ascontiguousarray(slope - self.ready.charge(self.price[rows]))
        delta, price, convex = self.ready.step(self.b[rows], slope, curve)
        self.price[rows] += price
        self.left[rows] -= 1
        return delta, convex

    def majorise(self, rows: Ints, most: int, near: float) -> None:
        """Steps by b log b ≤ b (log b₀ − 1) + b²/b₀, until no entry moves further than ``near``.

        One that would not stay positive becomes 1/(10 c)², where c counts how often it did.
        """
        counts = np.ones(self.b.shape)
        for _ in range(most):
            if not len(rows):
                return
            b, curve = self.b[rows], 2.0 * self.weight[rows]
            curve[:, self.nodes] = np.maximum(curve[:, self.nodes], 0.0)
            fresh = b + self.step(rows, self.slope(rows), curve / b)[0]
            shut = ~(fresh > 0.0)
            fresh[shut] = (10.0 * counts[rows][shut]) ** -2.0
            counts[rows] += shut
            self.b[rows] = fresh
            far = np.abs(fresh - b).max(axis=1)
            rows = rows[~(far <= near) & (self.left[rows] > 0)]

    def newton(self, rows: Ints) -> Ints:
        """Newton's method; return the rows where it comes no closer, or to no optimum.

        It adds to entries that grow and multiplies those that shrink by exp(Δ/b), which lands each
        table entry where the prices of its sums put it.
        """
        best, since = np.full(len(self.b), np.inf), np.zeros(len(self.b))
        lost = [rows[:0]]
        while len(rows := rows[self.left[rows] > 0]):
            b, before = self.b[rows], best[rows]
            delta, convex = self.step(rows, self.slope(rows), self.weight[rows] / b)
            share = delta / b
            move, nodes = np.abs(share), self.nodes
            move[:, nodes] = np.abs(delta[:, nodes]) / np.maximum(b[:, nodes], FAINT)
            moved = np.nan_to_num(move.max(axis=1), nan=np.inf)
            shrunk = np.maximum(b * np.exp(np.minimum(share, 0.0)), 1e-200)
            self.b[rows] = np.where(share > 0.0, b + delta, shrunk)
            foretold = (moved <= ROUNDING) & (before < np.inf)
            done = (moved <= self.tol) | (foretold & (moved * (moved / before) ** 2 <= self.tol))
            if done.any():
                self.gap[rows[done]] = self.missing(rows[done])
            closer = moved < 0.5 * before
            best[rows] = np.where(closer, moved, before)
            since[rows] = np.where(closer, 0, since[rows] + 1)
            failed = ~convex | ~(moved < 1e6) | (done & ~(self.gap[rows] <= PROVEN))
            failed |= ~done & (since[rows] >= PATIENCE)
            lost.append(rows[failed])
            rows = rows[~done & ~failed]
        return np.concatenate(lost)

    def follow(self, rows: Ints, back: float) -> None:
        """Primal-dual interior points, from so much of the way back to uniform tables.

        The path is that of F(b) − μ Σ log b, whose optima have slacks μ/b. It ends at a μ that,
        times the number of entries, is all that is missing there.
        """
        mu, size = np.empty(len(self.b)), self.b.shape[1]
        held = (1.0 - back) * self.b[rows] if back < 1.0 else 0.0
        self.b[rows] = held + back * self.ready.even
        mu[rows] = back * np.maximum(1.0, np.abs(self.score[rows]).mean(axis=1))
        self.slack[rows] = mu[rows, None] / self.b[rows]
        self.gap[rows] = np.nan
        while len(rows := rows[self.left[rows] > 0]):
            b, z, goal = self.b[rows], self.slack[rows], mu[rows, None] / self.b[rows]
            delta = self.step(rows, self.slope(rows) - goal, (self.weight[rows] + z) / b)[0]
            share = delta / b
            near, far = _reach(share), _reach(goal / z - 1.0 - share)
            self.slack[rows] = z = z + far[:, None] * (goal - z * (1.0 + share))
            self.b[rows] = b = b + near[:, None] * delta
            least, root = np.minimum(near, far), np.sqrt(mu[rows])
            shrink = np.select([least > 0.9, least > 0.5], [np.minimum(0.1, root), 0.5], 1.0)
            mu[rows] = np.maximum(LEAST, shrink * (b * z).sum(axis=1) / size)
            arrived = (mu[rows] == LEAST) & (np.abs(share).max(axis=1) <= STEADY)
            rows = rows[~arrived]

    def missing(self, rows: Ints) -> Array:
        """How far each row is from its optimum at most, by the prices of its last step.

        F is convex on the local polytope: F(b) − F(s) ≤ ⟨F′(b), b − s⟩, and any prices y of the
        constraints A s = 0 leave a maximum per table, the sum over tables of max r − ⟨r, b⟩ with
        r = Aᵀy − F′(b), less ⟨y, d − A b⟩. No weight need be positive: the whole is convex. In
        units of a value's size: a nat per table, and its scores'.
        """
        ready, b, price = self.ready, self.b[rows], self.price[rows]
        slope = self.slope(rows) - ready.charge(price)
        gain = np.add.reduceat(b * slope, ready.tables, axis=1)
        gain -= np.minimum.reduceat(slope, ready.tables, axis=1)
        off = np.abs(price * (ready.A @ b.T).T).sum(axis=1)
        size = len(ready.tables) + 2 + np.abs(self.score[rows] * b).sum(axis=1)
        return np.asarray((gain.sum(axis=1) + off) / size)


def _inverse(C: Array) -> Array:
    """The inverses of positive matrices on axes 1 and 2 (Gauss-Jordan)."""
    for k in range(C.shape[1]):
        pivot, column = 1.0 / C[:, k, k], C[:, :, k].copy()
        row = C[:, k] * pivot[:, None]
        row[:, k], column[:, k], C[:, :, k], C[:, k] = pivot, 0.0, 0.0, 0.0
        C -= column[:, :, None] * row[:, None]
        C[:, k] = row
    return C


def _reach(change: Array) -> Array:
    """How much of relative changes may be made so that all numbers stay positive."""
    return np.asarray(SHORT / np.maximum(np.max(-change, axis=1), SHORT))


def recalled(batch: Batch[Any], tree: Tree) -> Optima:
    """The optima of a batch, from a tree."""
    none = np.empty(batch.size)
    return Optima(*like(tree, (none, np.empty(len(batch)), none)))


def _refuse(graph: FactorGraph, weight: Array) -> None:
    first = int(graph.node_start[-1])
    if not (weight[:, first:] > 0).all():
        m, k = (int(one[0]) for one in np.nonzero(~(weight[:, first:] > 0)))
        raise ValueError(
            f"a table entry of factor {graph.table_of[first + k] - graph.n_nodes} has weight "
            f"{weight[m, first + k]:g}; entropies of factors need positive weights"
        )


@kept
def compiled(graph: FactorGraph) -> LocalPolytope:
    """A graph's polytope: systems of 784 unknowns for a binary image of 28 × 28, not 7,616."""
    only_graphs([graph], "implicit fitting")
    if (graph.fixed >= 0).any():
        k = int(np.argmax(graph.fixed >= 0))
        raise Unserved(f"coordinate {k} is fixed; implicit fitting takes free graphs")
    return LocalPolytope(graph)

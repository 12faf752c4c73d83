"""Labelled graphs: variables with finitely many states and factor tables of any order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import compress

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from mlestruct.errors import Unserved
from mlestruct.structures.base import (
    Array,
    Bound,
    Constraints,
    Flags,
    Ints,
    Structure,
    Views,
    as_count,
    as_fixed,
    as_integers,
    as_numbers,
    refuse,
    refuse_many,
    table_views,
)
from mlestruct.structures.spanning_trees import (
    acyclic,
    in_forest_polytope,
    payments,
    rooted_appearance,
    shared,
)


def end_to_end(scopes: Iterable[Sequence[int]] | Ints) -> tuple[Ints, Ints]:
    """All factors' variables in one array, and where each factor's begin."""
    try:
        listed = [tuple(scope) for scope in scopes]
    except TypeError as error:
        raise ValueError("a factor is a list of variables, as (0, 1) is") from error
    flat = as_integers([v for scope in listed for v in scope], "variables of factors")
    return flat, np.cumsum([0, *map(len, listed)], dtype=np.int64)


def check_cards(cards: Ints) -> None:
    refuse(cards < 1, lambda v: f"variable {v} has {cards[v]} states; it needs one")


def check_scopes(cards: Ints, scope: Ints, start: Ints) -> None:
    """Refuse variables without states, and factors that are no set of two or more of them."""
    check_cards(cards)
    order = np.diff(start)
    factor = np.repeat(np.arange(len(order)), order)
    by_name = scope[np.lexsort((scope, factor))]
    wrong = order < 2
    wrong[factor[1:][(by_name[1:] == by_name[:-1]) & (factor[1:] == factor[:-1])]] = True

    def named(bad: int) -> list[int]:
        return list(scope[start[bad] : start[bad + 1]].tolist())

    words = "two or more variables, each once"
    refuse(wrong, lambda bad: f"factor {bad} has scope {named(bad)}: {words}")
    wrong[factor[(scope < 0) | (scope >= len(cards))]] = True
    words = f"of {len(cards)}"
    refuse(wrong, lambda bad: f"factor {bad} names variable {max(named(bad))} {words}")
    for arity in np.unique(order):
        some = np.flatnonzero(order == arity)
        rows = by_name[start[some][:, None] + np.arange(arity)]
        place = np.lexsort((some, *rows.T))
        wrong[some[place][1:][(rows[place][1:] == rows[place][:-1]).all(axis=1)]] = True
    refuse(
        wrong,
        lambda bad: f"factor {bad} repeats the variables {sorted(named(bad))} of another factor",
    )


def as_states(outcome: ArrayLike, cards: Ints) -> Ints:
    """A state for every variable."""
    states = as_integers(outcome, "states")
    if states.shape != cards.shape:
        raise ValueError(f"an outcome has {len(cards)} states, got shape {states.shape}")
    words = "variable {} has state {}; it must be in 0..{}".format
    refuse((states < 0) | (states >= cards), lambda i: words(i, states[i], cards[i] - 1))
    return states


def as_observed(observed: ArrayLike | Mapping[int, int], cards: Ints) -> Ints:
    """A state or −1 for every variable; a mapping names those that are observed."""
    if isinstance(observed, Mapping):
        strange = [i for i in observed if not 0 <= i < len(cards)]
        if strange:
            raise ValueError(f"there is no variable {strange[0]} to observe")
        observed = [observed.get(i, -1) for i in range(len(cards))]
    states = as_integers(observed, "states")
    if states.shape != cards.shape or not ((states >= -1) & (states < cards)).all():
        raise ValueError("observed must hold a state or −1 for every variable")
    return states


def table_sizes(cards: Ints, scope: Ints, start: Ints, more: float = 0.0) -> Ints:
    """Entries of every table; refuses too many of them, with ``more`` coordinates besides."""
    states = cards.astype(float)  # as integers products could pass 2⁶³ unseen
    with np.errstate(over="ignore"):  # infinite, and refused as such
        sizes = np.multiply.reduceat(states[scope], start[:-1]) if len(scope) else np.zeros(0)
    refuse_many(more + sizes.sum())
    return sizes.astype(np.int64)


class TableStructure(Structure):
    """Labellings seen through tables: of each scope's variables, in C order as written."""

    cards: Ints
    scope: Ints
    scope_start: Ints
    node_start: Ints
    table_start: Ints

    @cached_property
    def strides(self) -> Ints:
        """How far apart in its table the states of a scope's variable are, by place in scopes."""
        cards, start = self.cards[self.scope], self.scope_start
        strides, order = np.ones(len(cards), dtype=np.int64), np.diff(start)
        for back in range(2, int(order.max(initial=0)) + 1):
            place = (start[1:] - back)[order >= back]
            strides[place] = strides[place + 1] * cards[place + 1]
        return strides

    @cached_property
    def below(self) -> tuple[Ints, Ints, Ints]:
        """Triples (table entry, node entry it agrees with, index into ``scope``), by entry."""
        start, first_entry = self.scope_start, self.table_start[0]
        table = np.repeat(np.arange(len(start) - 1), np.diff(self.table_start))
        arity = np.diff(start)[table]
        first = np.cumsum(arity) - arity  # of every entry's triples
        entry = np.repeat(np.arange(len(table)), arity)
        slot = np.arange(len(entry)) + (start[table] - first)[entry]
        local = (np.arange(len(table)) + first_entry - self.table_start[table])[entry]
        state = local // self.strides[slot] % self.cards[self.scope[slot]]
        return entry + first_entry, self.node_start[self.scope[slot]] + state, slot


LARGE = 10_000  # coordinates above which a linear program takes too long to be asked repeatedly


class FactorGraph(TableStructure):
    """Every labelling of variables with ``cards`` states: coordinates [node | factor tables].

    Factor tables are in C order over their scope as written. An outcome is one state per variable.

    >>> graph = FactorGraph([2, 3], [(0, 1)])
    >>> graph.size, graph.encode([1, 2]).tolist()
    (11, [0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
    """

    weight: Array | None = None
    """What every node and factor counts in learning, where they do not count alike."""
    share: Array | None = None
    """ρ of the factors in the whole graph, where this is a part of one."""

    def __init__(
        self,
        cards: Sequence[int] | Ints,
        scopes: Iterable[Sequence[int]] | Ints,
        *,
        fixed: ArrayLike | None = None,
    ) -> None:
        self.cards = as_integers(cards, "numbers of states").reshape(-1)
        self.scope, self.scope_start = end_to_end(scopes)
        check_scopes(self.cards, self.scope, self.scope_start)
        self.node_start = np.concatenate([[0], np.cumsum(self.cards)])
        tables = table_sizes(self.cards, self.scope, self.scope_start, self.cards.sum(dtype=float))
        self.table_start = self.node_start[-1] + np.concatenate([[0], np.cumsum(tables)])
        self.size = int(self.table_start[-1])
        self.n_nodes, self.n_factors = len(self.cards), len(tables)
        self.is_pairwise = bool((np.diff(self.scope_start) == 2).all())
        self.fixed = self._spread(as_fixed(self.size, fixed))

    @property
    def default_oracle(self) -> str:
        """Exact on forests, else max-flow or the LP relaxation; messages alone on large graphs."""
        if self.is_forest:
            return "viterbi"
        if self.is_pairwise and (self.cards == 2).all():
            return "qpbo"
        if self.is_pairwise and self.size > LARGE:
            return "trw_s"
        return "relaxation" if self.is_pairwise and not self.closed().any() else "linear_program"

    def identity(self) -> tuple[bytes, ...]:
        known = self.cards.tobytes(), self.scope.tobytes(), self.scope_start.tobytes()
        more = (values.tobytes() for values in (self.weight, self.share) if values is not None)
        return *known, bytes([self.weight is not None]), *more

    def weighed(self, nodes: ArrayLike) -> FactorGraph:
        """The same graph to learn from with a positive weight per node.

        A factor counts as its heaviest node does: then entropies that are mixtures of trees stay
        concave. Weights multiply scores and counting numbers, so that nodes without factors are
        weighed examples, and equal weights are those of the example.
        """
        given = as_numbers(nodes, "node weights").reshape(-1)
        if given.shape != (self.n_nodes,):
            raise ValueError(f"{len(given)} node weights for {self.n_nodes} nodes")
        words = "it must be positive (a node to be left out is void)"
        wrong = ~(np.isfinite(given) & (given > 0))
        refuse(wrong, lambda v: f"node {v} has weight {given[v]:g}; {words}")
        factors = np.maximum.reduceat(given[self.scope], self.scope_start[:-1])
        twin: FactorGraph = self.refix(self.fixed)  # type: ignore[assignment]
        twin.weight = np.concatenate([given, factors])
        twin.coordinate_weights = twin.weight[self.table_of]
        return twin

    def part(self, kept: NDArray[np.bool_]) -> FactorGraph:
        """The kept variables and the factors among them, to learn from beside whole graphs.

        By default a factor has the same counting number in the part as in this graph: weights
        learned with other numbers than they predict with would be wrong. The part's entropy stays
        concave on pairwise graphs: taking edges away lowers no other edge's share of spanning
        trees, so the number kept is at most the share in the part.
        """
        scopes = np.split(self.scope, self.scope_start[1:-1])[: self.n_factors]
        inside = np.array([kept[scope].all() for scope in scopes], dtype=bool)
        place = np.cumsum(kept) - 1
        found = FactorGraph(self.cards[kept], [place[s].tolist() for s in compress(scopes, inside)])
        found.share = self.own_rho[inside]
        return found

    def _spread(self, fixed: Flags) -> Flags:
        """A forced entry forces its nodes and forbids its rivals; a forbidden state its users."""
        if (fixed < 0).all():
            return fixed
        entry, node, _ = self.below
        fixed[node[fixed[entry] == 1]] = 1
        required = np.bincount(self.table_of[fixed == 1], minlength=1)
        refuse(required > 1, lambda table: f"{self._table(table)} has two required entries")
        forced = np.isin(self.table_of, self.table_of[fixed == 1])
        fixed[forced & (fixed != 1)] = 0
        fixed[entry[fixed[node] == 0]] = 0
        return fixed

    def closed(self) -> NDArray[np.bool_]:
        """Entries no answer may use: those fixed at 0, and the rivals of those fixed at 1."""
        forced = self.fixed == 1
        taken = np.zeros(self.n_nodes + self.n_factors, dtype=bool)
        taken[self.table_of[forced]] = True
        return np.asarray((self.fixed == 0) | (taken[self.table_of] & ~forced))

    @cached_property
    def table_of(self) -> Ints:
        """The node (0..n−1) or factor (n..) table that each coordinate belongs to."""
        sizes = np.concatenate([self.cards, np.diff(self.table_start)])
        return np.repeat(np.arange(len(sizes)), sizes)

    def entry(self, factor: int, states: Sequence[int]) -> int:
        """The coordinate of one configuration of a factor."""
        if not 0 <= factor < self.n_factors:
            raise ValueError(f"there is no factor {factor} among {self.n_factors}")
        cards = self.cards[self.scope[self.scope_start[factor] : self.scope_start[factor + 1]]]
        chosen = as_integers(states, "states")
        if chosen.shape != cards.shape or ((chosen < 0) | (chosen >= cards)).any():
            raise ValueError(f"factor {factor} has tables {cards.tolist()}, no entry {states}")
        return int(self.table_start[factor] + np.ravel_multi_index(tuple(chosen), cards))

    def forbid(
        self,
        states: Iterable[tuple[int, int]] = (),
        configurations: Iterable[tuple[int, Sequence[int]]] = (),
    ) -> FactorGraph:
        """The same graph without these (variable, state) and (factor, states of its scope)."""
        fixed = self.fixed.copy()
        for variable, state in states:
            if not 0 <= variable < self.n_nodes:
                raise ValueError(f"there is no variable {variable} to forbid a state of")
            if not 0 <= state < self.cards[variable]:
                raise ValueError(f"variable {variable} has no state {state} to forbid")
            fixed[self.node_start[variable] + state] = 0
        places = [self.entry(factor, chosen) for factor, chosen in configurations]
        fixed[np.array(places, dtype=np.int64)] = 0
        return self.refix(self._spread(fixed))  # type: ignore[return-value]

    def encode(self, outcome: ArrayLike) -> Array:
        return self.labelled(as_states(outcome, self.cards))

    def labelled(self, states: Ints) -> Array:
        """Vertices of labellings along the last axis, which are known to be such. O(size) each."""
        flat = states.reshape(-1, self.n_nodes)
        vertices, row = np.zeros((len(flat), self.size)), np.arange(len(flat))[:, None]
        vertices[row, self.node_start[:-1] + flat] = 1.0
        if self.n_factors:
            steps = self.strides * flat[:, self.scope]
            within = np.add.reduceat(steps, self.scope_start[:-1], axis=1)
            vertices[row, self.table_start[:-1] + within] = 1.0
        return vertices.reshape(*states.shape[:-1], self.size)

    def right(self, target: Array, outcome: ArrayLike) -> float:
        """The share of variables predicted right, among those known; NaN where none is known."""
        target = as_numbers(target, "target")
        if not np.isnan(target).any():
            return super().right(target, outcome)
        first = self.node_start[:-1]
        known = ~np.isnan(np.add.reduceat(target[: self.node_start[-1]], first))
        found = target[first + as_integers(outcome, "states")][known]
        return float(found.mean()) if len(found) else float("nan")

    def decode(self, vector: ArrayLike) -> Ints:
        """The most likely state of each variable; the outcome itself for a vertex."""
        tables = as_numbers(vector, "vector")[: self.node_start[-1]]
        if self.n_nodes == 0:
            return np.zeros(0, dtype=np.int64)
        best = np.maximum.reduceat(tables, self.node_start[:-1])
        hits = np.flatnonzero(tables >= np.repeat(best, self.cards))
        owner = self.table_of[hits]
        first = np.searchsorted(owner, np.arange(self.n_nodes))
        return np.asarray(hits[first] - self.node_start[:-1])

    def views(self) -> Views:
        factor = np.repeat(np.arange(self.n_factors), np.diff(self.scope_start))
        return table_views(self.table_of, np.stack([self.n_nodes + factor, self.scope], axis=1))

    def counting(self, rho: float | ArrayLike | None = None) -> Array:
        """c = ρ on factors, 1 − Σρ on nodes.

        Default 1 on forests; the chance of each edge in a uniform spanning tree on pairwise graphs;
        else 1/degree (Shearer). Each is an upper bound on log Z.
        """
        if rho is None:
            rho = self.own_rho
        weight = np.broadcast_to(as_numbers(rho, "rho"), (self.n_factors,))
        per_scope = np.repeat(weight, np.diff(self.scope_start))
        used = np.bincount(self.scope, weights=per_scope, minlength=self.n_nodes)
        counts = np.concatenate([1.0 - used, weight])
        return counts if self.weight is None else counts * self.weight

    @property
    def own_rho(self) -> Array:
        """Each factor's counting number by default; a part has those of its whole graph."""
        return self._default_rho if self.share is None else self.share

    @cached_property
    def _default_rho(self) -> Array:
        if self.is_forest:
            return np.ones(self.n_factors)
        if not self.is_pairwise:
            degree = np.bincount(self.scope, minlength=self.n_nodes)
            return np.asarray(1.0 / np.maximum.reduceat(degree[self.scope], self.scope_start[:-1]))
        return np.minimum(self._rooted.sum(axis=1), 1.0)

    @cached_property
    def _rooted(self) -> Array:
        """How often each edge is in a spanning tree with this end nearer the root, for both."""
        return rooted_appearance(self.n_nodes, self.scope.reshape(-1, 2))

    def _of_forests(self, counting: Array) -> bool:
        """Whether edges count at most their share of spanning trees, and nodes what ρ gives."""
        factors = counting[self.n_nodes :]
        if not self.is_pairwise or (factors < 0).any() or factors.sum() > self.n_nodes:
            return False
        trees = (factors <= self._default_rho + 1e-12).all()
        return bool(trees and (self._room(counting) >= 1 - 1e-12).all())

    def convex(self, counting: Array) -> bool:
        """Whether the entropy is proven concave at these counting numbers.

        Mixtures of forests' entropies are; others if positive terms pay for the negative (Heskes).
        """
        counting = as_numbers(counting, "counting")
        return self._of_forests(counting) or self.payments(counting) is not None

    def _room(self, counting: Array) -> Array:
        """What nodes count together with the factors around them: 1 where ρ says it."""
        around = np.repeat(counting[self.n_nodes :], np.diff(self.scope_start))
        covered = np.bincount(self.scope, around, self.n_nodes)
        return np.asarray(counting[: self.n_nodes] + covered)

    def payments(self, counting: Array) -> Array | None:
        """Heskes's proof of concavity: what each factor pays to each of its variables, or None.

        See :func:`.concavity.payments`. In a tree an edge pays to its end nearer the root: a node
        with d edges has counting number 1 − d, and is that end of at least d − 1 edges. Any other
        edge splits its number into a share per end, and pays each end the other's share.
        """
        counting = as_numbers(counting, "counting")
        factors = counting[self.n_nodes :]
        if not self.is_pairwise or (factors < 0).any():
            return payments(counting, self.views().over)
        if self._of_forests(counting):
            total = self._rooted.sum(axis=1)
            share = np.divide(factors, total, out=np.zeros(len(total)), where=total > 0)
            return np.asarray((self._rooted * share[:, None]).ravel())
        kept = shared(self.scope, factors, self._room(counting))
        return None if kept is None else np.maximum(kept[:, ::-1], 0.0).ravel()

    @cached_property
    def is_forest(self) -> bool:
        """No cycle, and no two factors sharing two variables."""
        return acyclic(self.n_nodes, self.scope, self.scope_start)

    def constraints(self) -> Constraints:
        """The local polytope: tables sum to one, factors agree with their nodes."""
        n_nodes, first = self.n_nodes, int(self.node_start[-1])
        entry, node, slot = self.below
        states = self.cards[self.scope]  # a row for each state of each factor's variable
        start, row = np.cumsum(states) - states, np.arange(states.sum())
        of_slot = np.repeat(np.arange(len(states)), states)
        own = self.node_start[self.scope][of_slot] + row - start[of_slot]
        given = (start - self.node_start[self.scope])[slot] + node
        rows = self.table_of[:first], n_nodes + given, n_nodes + row
        columns = np.arange(first), entry, own
        values = np.repeat([1.0, -1.0], [first + len(entry), len(own)])
        right = np.repeat([1.0, 0.0], [n_nodes, len(row)])
        places = np.concatenate(rows), np.concatenate(columns)
        return Constraints(
            sp.csr_array((values, places), shape=(len(right), self.size)), right, right
        )

    def clamp(self, observed: ArrayLike | Mapping[int, int]) -> FactorGraph:
        """Fix the observed variables; −1 (or a variable absent from a mapping) stays free.

        Or an array of flags, a row per variable: the states that each of them may have.
        """
        if isinstance(observed, np.ndarray) and observed.dtype == bool:
            return self._within(observed)
        states = as_observed(observed, self.cards)
        seen = np.flatnonzero(states >= 0)
        fixed = self.fixed.copy()
        places = self.node_start[seen] + states[seen]
        words = "variable {} is observed in state {}, which is forbidden".format
        refuse(fixed[places] == 0, lambda k: words(seen[k], states[seen[k]]))
        fixed[np.isin(self.table_of, seen)] = 0
        fixed[places] = 1
        return self.refix(self._spread(fixed))  # type: ignore[return-value]

    def _within(self, allowed: NDArray[np.bool_]) -> FactorGraph:
        """Variables of one number of states, each with those it may have."""
        if allowed.shape != (self.n_nodes, int(self.cards.max(initial=0))):
            raise ValueError(f"flags of shape {allowed.shape} for {self.n_nodes} variables' states")
        fixed, flags = self.fixed.copy(), allowed.ravel()
        possible = (allowed & (fixed[: flags.size].reshape(allowed.shape) != 0)).sum(axis=1)
        refuse(possible == 0, lambda i: f"variable {i} has no allowed state")
        places = np.arange(flags.size)
        fixed[places[~flags]] = 0
        alone = np.repeat(possible == 1, allowed.shape[1])
        fixed[places[alone & (fixed[: flags.size] != 0)]] = 1
        return self.refix(self._spread(fixed))  # type: ignore[return-value]

    def loss(self, vertex: Array) -> tuple[Array, float]:
        """Wrong variables: their weight, 1, on every node state but the true one, else nothing."""
        vertex = as_numbers(vertex, "vertex")
        wrong = np.zeros(self.size)
        first = self.node_start[-1]
        wrong[:first] = 1.0 - vertex[:first]
        if self.coordinate_weights is not None:
            wrong *= self.coordinate_weights
        return wrong, 0.0

    @property
    def parts(self) -> int:
        return self.n_nodes

    def gain(self, tau: Array) -> Array:
        """Expected right variables: node marginals, nothing on factors."""
        tau = as_numbers(tau, "tau")
        return np.where(self.table_of < self.n_nodes, tau, 0.0)

    def interior(self) -> Array | None:
        """Independent variables, each uniform on the states it may have.

        None where factors forbid configurations as well.
        """
        if (self.fixed < 0).all():
            sizes = np.concatenate([self.cards, np.diff(self.table_start)])
            return np.repeat(1.0 / sizes, sizes)
        alive, first = ~self.closed(), self.node_start[-1]
        states = np.bincount(self.table_of[:first], weights=alive[:first])
        if (states == 0).any():
            return None
        entry, node, _ = self.below
        point = np.where(alive, 1.0, 0.0)
        point[:first] /= states[self.table_of[:first]]
        shares = np.log(states)[self.table_of[node]]
        point[first:] = np.exp(-np.bincount(entry, weights=shares, minlength=self.size)[first:])
        possible = np.bincount(entry, weights=~alive[node], minlength=self.size)[first:] == 0
        if (possible != alive[first:]).any():
            return None
        point[first:][~possible] = 0.0
        return point

    def bound(self, counting: Array) -> Bound:
        counting = as_numbers(counting, "counting")
        nodes, factors = counting[: self.n_nodes], counting[self.n_nodes :]
        covered = self._room(counting)
        if self.weight is not None:
            return Bound("none", "nodes have weights, so this is no likelihood")
        if (factors < 0).any() or (covered < 1 - 1e-12).any():
            return Bound("none", "a theorem asks that factors count ≥ 0 and cover every variable")
        if self.is_forest and (factors == 1).all() and (covered <= 1 + 1e-12).all():
            return Bound("exact", "Bethe on a forest")
        if (nodes >= -1e-12).all():
            return Bound("upper", "Shearer: non-negative counting numbers cover every variable")
        if self.is_forest and (factors <= 1).all():
            return Bound("upper", "reweighted forest")
        if self._of_forests(counting):
            return Bound("upper", "edges count at most their share of spanning trees")
        if self.is_pairwise and in_forest_polytope(self.n_nodes, self.scope, factors):
            return Bound("upper", "edge counts are a mixture of forests")
        return Bound("none", "no theorem for these counting numbers on a graph with cycles")

    def thinned(self) -> Iterator[NDArray[np.bool_]]:
        """Entries left by arc consistency, sweep by sweep; the next one changes the same flags.

        In the end each agrees with open states, and each state is supported.
        """
        alive = ~self.closed()
        entry, node, slot = self.below
        width = int(self.cards.max(initial=1))
        support = slot * width + node - self.node_start[self.scope[slot]]
        while True:
            yield alive
            living = np.bincount(support[alive[entry]], minlength=len(self.scope) * width)
            dying = np.zeros(self.size, dtype=bool)
            dying[node[living[support] == 0]] = True
            dying[entry[~alive[node]]] = True
            if not (alive & dying).any():
                return
            alive &= ~dying

    def impossible(self) -> str | None:
        """The first table that loses its last entry."""
        for alive in self.thinned():
            left = np.bincount(self.table_of[alive], minlength=self.n_nodes + self.n_factors)
            if (left == 0).any():
                table = int(np.argmin(left))
                part = "state" if table < self.n_nodes else "configuration"
                return f"{self._table(table)} has no possible {part} left"
        return None

    def _table(self, table: int) -> str:
        if table < self.n_nodes:
            return f"variable {table}"
        scope = self.scope[slice(*self.scope_start[table - self.n_nodes :][:2])]
        return f"the factor on variables {scope.tolist()}"


def only_graphs(structures: Iterable[Structure], what: str) -> None:
    """Refuses structures that are no labelled graphs."""
    for structure in structures:
        if not isinstance(structure, FactorGraph):
            raise Unserved(f"{what} needs labelled graphs, not {type(structure).__name__}")


def chain(length: int, states: int) -> FactorGraph:
    """A sequence of ``length`` variables, each pair of neighbours a factor."""
    length = as_count(length, "length")
    return tree([(i, i + 1) for i in range(length - 1)], [states] * length)


def tree(edges: Iterable[tuple[int, int]], cards: Sequence[int]) -> FactorGraph:
    """A pairwise graph without cycles."""
    graph = FactorGraph(cards, list(edges))
    if not graph.is_forest:
        raise ValueError("the edges of a tree hold no cycle")
    return graph


def grid(rows: int, columns: int, states: int = 2) -> FactorGraph:
    """A rows × columns grid, node r·columns + c; horizontal edges row by row, then vertical."""
    rows, columns = as_count(rows, "rows"), as_count(columns, "columns")
    node, across, down = grid_edges(rows, columns)
    return FactorGraph([states] * len(node.ravel()), np.concatenate([across, down]))


def grid_edges(rows: int, columns: int) -> tuple[Ints, Ints, Ints]:
    """The nodes of a grid (rows × columns), its edges to the right row by row, and those down."""
    node = np.arange(rows * columns).reshape(rows, columns)
    across = np.stack([node[:, :-1].ravel(), node[:, 1:].ravel()], axis=1)
    return node, across, np.stack([node[:-1].ravel(), node[1:].ravel()], axis=1)


def skip_chain(length: int, states: int, skips: Iterable[tuple[int, int]]) -> FactorGraph:
    """A chain with extra edges between positions i and j, such as two mentions of one name."""
    length = as_count(length, "length")
    steps = [(i, i + 1) for i in range(length - 1)]
    return FactorGraph([states] * length, [*steps, *skips])

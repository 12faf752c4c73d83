"""Labelled graphs seen through overlapping tables: Kikuchi region graphs and cluster graphs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.sparse import coo_array

from mlestruct.structures.base import (
    Array,
    Bound,
    Constraints,
    Ints,
    Structure,
    Views,
    as_count,
    as_fixed,
    as_integers,
    as_numbers,
    refuse,
    table_views,
)
from mlestruct.structures.graph import (
    FactorGraph,
    TableStructure,
    as_observed,
    as_states,
    check_cards,
    end_to_end,
    grid_edges,
    table_sizes,
)

Link = tuple[int, int]


def covers(regions: list[tuple[int, ...]]) -> list[Link]:
    """(parent, child) wherever a region holds another and none lies between."""
    sets, holding, links = [frozenset(region) for region in regions], defaultdict(set), list[Link]()
    for r, region in enumerate(regions):
        for variable in region:
            holding[variable].add(r)
    for child, own in enumerate(sets):
        above = set.intersection(*(holding[variable] for variable in own)) - {child}
        if any(sets[parent] == own for parent in above):
            raise ValueError(f"the region {sorted(own)} is listed twice")
        between = [sets[parent] for parent in above]
        links += [(p, child) for p in sorted(above) if not any(one < sets[p] for one in between)]
    return links


def separators(regions: list[tuple[int, ...]], n: int) -> list[frozenset[int]] | None:
    """What neighbours share in a junction forest of the regions; None if there is none."""
    from scipy.sparse.csgraph import minimum_spanning_tree

    places = np.repeat(np.arange(len(regions)), [*map(len, regions)]), np.concatenate(regions)
    holds = sp.csr_array((np.ones(len(places[0])), places))
    shared = sp.triu(holds @ holds.T, k=1, format="csr")
    shared.data = 1.0 + n - shared.data
    first, second = minimum_spanning_tree(shared).nonzero()
    sets = [frozenset(region) for region in regions]
    found = [sets[i] & sets[j] for i, j in zip(first.tolist(), second.tolist(), strict=True)]
    # a spanning forest of greatest overlap has the running intersection iff it counts each once
    whole = sum(map(len, regions)) - sum(map(len, found)) == n
    return found if whole else None


def check_regions(cards: Ints, regions: list[tuple[int, ...]]) -> None:
    check_cards(cards)
    for r, region in enumerate(regions):
        if not region or len(set(region)) != len(region):
            raise ValueError(f"region {r} is {list(region)}: one or more variables, each once")
        if min(region) < 0 or max(region) >= len(cards):
            raise ValueError(f"region {r} names variable {max(region)} of {len(cards)}")
    missing = ~np.isin(np.arange(len(cards)), np.concatenate([*regions, []]))
    refuse(missing, lambda variable: f"variable {variable} is in no region")


class RegionGraph(TableStructure):
    """Every labelling of variables with ``cards`` states, through one table per region.

    Coordinates are the regions' tables in the order given, each in C order over its variables as
    written; tables agree wherever one region holds another. An outcome is one state per variable.

    >>> graph = RegionGraph([2, 2, 2], [(0, 1), (1, 2), (1,)])
    >>> graph.size, graph.counting(1.0).tolist()
    (10, [1.0, 1.0, -1.0])
    """

    def __init__(
        self,
        cards: Sequence[int] | Ints,
        regions: Iterable[Sequence[int]],
        links: Iterable[Link] | None = None,
        *,
        fixed: ArrayLike | None = None,
    ) -> None:
        self.cards = as_integers(cards, "numbers of states").reshape(-1)
        self.regions = [
            tuple(as_integers(region, f"region {r}: variables").reshape(-1).tolist())
            for r, region in enumerate(regions)
        ]
        check_regions(self.cards, self.regions)
        self.links = covers(self.regions) if links is None else [(p, c) for p, c in links]
        last = len(self.regions) - 1
        for pair in self.links:
            if min(pair) < 0 or max(pair) > last:
                raise ValueError(f"link {pair} names a region that is not in 0..{last}")
        self.scope, self.scope_start = end_to_end(self.regions)
        tables = table_sizes(self.cards, self.scope, self.scope_start)
        self.table_start = np.concatenate([[0], np.cumsum(tables)])
        self.node_start = np.concatenate([[0], np.cumsum(self.cards)])
        self.n_nodes, self.size = len(self.cards), int(self.table_start[-1])
        self.fixed = as_fixed(self.size, fixed)

    default_oracle = "linear_program"

    def identity(self) -> tuple[Any, ...]:
        return self.cards.tobytes(), tuple(self.regions), tuple(self.links)

    @cached_property
    def table_of(self) -> Ints:
        """The region of every coordinate."""
        return np.repeat(np.arange(len(self.regions)), np.diff(self.table_start))

    @cached_property
    def _home(self) -> tuple[Ints, Ints]:
        """(entry, variable's state) of the first region that holds each variable."""
        entry, place, slot = self.below
        home = np.isin(slot, np.unique(self.scope, return_index=True)[1])
        return entry[home], place[home]

    def encode(self, outcome: ArrayLike) -> Array:
        return np.asarray(self._agreeing(as_states(outcome, self.cards)), dtype=float)

    def _agreeing(self, states: Ints) -> Any:
        """Entries none of whose variables is in another state; −1 agrees with all."""
        entry, place, _ = self.below
        given = np.repeat(states, self.cards)
        state = np.arange(len(given)) - np.repeat(self.node_start[:-1], self.cards)
        other = (given >= 0) & (given != state)
        return np.bincount(entry[other[place]], minlength=self.size) == 0

    def decode(self, vector: ArrayLike) -> Ints:
        """The most likely state of each variable; the outcome itself for a vertex."""
        entry, place = self._home
        weights = as_numbers(vector, "vector")[entry]
        tables = np.bincount(place, weights=weights, minlength=int(self.node_start[-1]))
        return np.array([tables[a:b].argmax() for a, b in pairwise(self.node_start)], np.int64)

    def views(self) -> Views:
        over = [(p, c) for c, parents in enumerate(self._ancestors) for p in sorted(parents)]
        return table_views(self.table_of, np.array(over, dtype=np.int64).reshape(-1, 2))

    @cached_property
    def _ancestors(self) -> list[set[int]]:
        """The regions that hold each region, by links."""
        found: list[set[int]] = [set() for _ in self.regions]
        for r in self._largest_first:
            for child in (c for p, c in self.links if p == r):
                found[child] |= {r} | found[r]
        return found

    @property
    def _largest_first(self) -> list[int]:
        return sorted(range(len(self.regions)), key=lambda r: -len(self.regions[r]))

    @cached_property
    def corrections(self) -> Array:
        """Kikuchi's counting numbers: c = 1 − Σ c of the larger regions."""
        numbers = np.zeros(len(self.regions))
        for r in self._largest_first:
            numbers[r] = 1.0 - sum(numbers[p] for p in self._ancestors[r])
        return numbers

    def counting(self, rho: float | ArrayLike | None = None) -> Array:
        """1 on the largest regions, ρ times Kikuchi's numbers below; an array is taken as it is.

        ρ = 1 is Kikuchi's entropy, ρ = 0 the largest regions only. The default is 1 where that is
        provably concave, else 0.
        """
        if rho is None:
            rho = float(self.convex(self.counting(1.0)))
        given = as_numbers(rho, "rho")
        if given.ndim:
            return np.array(np.broadcast_to(given, (len(self.regions),)))
        top = np.array([not parents for parents in self._ancestors])
        return np.where(top, 1.0, given * self.corrections)

    def constraints(self) -> Constraints:
        """Tables sum to one, and sum to the tables of the regions they hold."""
        count = len(self.regions)
        rows, columns = [self.table_of], [np.arange(self.size)]
        signs = [np.ones(self.size)]
        for parent, child in self.links:
            scope, held = self.regions[parent], list(self.regions[child])
            above, below = (np.arange(*self.table_start[r : r + 2]) for r in (parent, child))
            states = np.unravel_index(above - above[0], tuple(self.cards[list(scope)]))
            own = tuple(states[scope.index(v)] for v in held)
            local = np.ravel_multi_index(own, tuple(self.cards[held]))
            rows += [count + local, count + below - below[0]]
            columns += [above, below]
            signs += [np.ones(len(above)), -np.ones(len(below))]
            count += len(below)
        entries = np.concatenate(signs), (np.concatenate(rows), np.concatenate(columns))
        right = np.where(np.arange(count) < len(self.regions), 1.0, 0.0)
        return Constraints(sp.csr_array(entries, shape=(count, self.size)), right, right)

    def clamp(self, observed: ArrayLike | Mapping[int, int]) -> Structure:
        """Fix the observed variables; −1 (or a variable absent from a mapping) stays free."""
        agrees = self._agreeing(as_observed(observed, self.cards))
        fixed = self.fixed.copy()
        fixed[~agrees] = 0
        alone = np.bincount(self.table_of[agrees], minlength=len(self.regions)) == 1
        fixed[agrees & alone[self.table_of]] = 1
        return self.refix(fixed)

    def loss(self, vertex: Array) -> tuple[Array, float]:
        """Wrong variables, counted in the first region that holds each."""
        entry, place = self._home
        true = self.node_start[:-1] + self.decode(vertex)
        wrong = np.bincount(entry, weights=~np.isin(place, true), minlength=self.size)
        return wrong.astype(float), 0.0

    def interior(self) -> Array | None:
        """Uniform tables, when nothing is fixed."""
        if (self.fixed >= 0).any():
            return None
        sizes = np.diff(self.table_start)
        return np.repeat(1.0 / sizes, sizes)

    @cached_property
    def _junction(self) -> Array | None:
        """The exact counting numbers, where the largest regions form a junction forest."""
        top = [r for r, parents in enumerate(self._ancestors) if not parents]
        shared = separators([self.regions[r] for r in top], self.n_nodes)
        place = {frozenset(region): r for r, region in enumerate(self.regions)}
        if shared is None or not all(separator in place for separator in shared):
            return None
        numbers = np.zeros(len(self.regions))
        numbers[top] = 1.0
        np.subtract.at(numbers, [place[separator] for separator in shared], 1.0)
        return numbers

    def bound(self, counting: Array) -> Bound:
        counting = as_numbers(counting, "counting")
        exact = self._junction
        if exact is not None and (counting >= exact).all():
            if (counting == exact).all():
                return Bound("exact", "the largest regions form a junction forest")
            return Bound("upper", "counts at least those of a junction forest")
        each = np.repeat(counting, np.diff(self.scope_start))
        covered = np.bincount(self.scope, each, self.n_nodes)
        if (counting >= 0).all() and (covered >= 1 - 1e-12).all():
            return Bound("upper", "Shearer: non-negative counting numbers cover every variable")
        return Bound("none", "no theorem for these counting numbers on overlapping regions")


def plaquettes(rows: int, columns: int, states: int = 2) -> RegionGraph:
    """A grid's [nodes | edges | 2×2 plaquettes], nodes and edges laid out as ``grid`` does.

    Kikuchi's numbers (``rho=1``) are 1 on plaquettes, −1 on inner edges, 1 on inner nodes.
    """
    rows, columns = as_count(rows, "rows"), as_count(columns, "columns")
    node, across, down = grid_edges(rows, columns)
    corners = [node[:-1, :-1], node[:-1, 1:], node[1:, :-1], node[1:, 1:]]
    squares = np.stack([corner.ravel() for corner in corners], axis=1)
    regions = [table.tolist() for table in (node.reshape(-1, 1), across, down, squares)]
    return RegionGraph([states] * (rows * columns), [r for part in regions for r in part])


class ClusterGraph(RegionGraph):
    """Clusters that agree on sepsets of any size: ``sepsets`` lists (cluster, cluster, variables).

    Coordinates are [cluster tables | sepset tables]. For every variable the sepsets that hold it
    must join its clusters as a tree (running intersection). ρ weighs the sepsets: ρ = 1 is the
    Bethe entropy Σ H(clusters) − Σ H(sepsets), exact where the clusters form a forest; ρ = 0 is
    CAMEL(0)'s.

    >>> graph = ClusterGraph([2] * 4, [(0, 1, 2), (1, 2, 3)], [(0, 1, (1, 2))])
    >>> graph.size, graph.counting().tolist(), str(graph.bound(graph.counting()))
    (20, [1.0, 1.0, -1.0], 'exact (the largest regions form a junction forest)')
    """

    def __init__(
        self,
        cards: Sequence[int] | Ints,
        clusters: Iterable[Sequence[int]],
        sepsets: Iterable[tuple[int, int, Sequence[int]]],
        *,
        fixed: ArrayLike | None = None,
    ) -> None:
        scopes, between = [tuple(c) for c in clusters], [(i, j, tuple(s)) for i, j, s in sepsets]
        self.n_clusters = len(scopes)
        _check_sepsets(len(cards), scopes, between)
        sides = [(side, len(scopes) + k) for k, (*ends, _) in enumerate(between) for side in ends]
        super().__init__(cards, [*scopes, *(s for *_, s in between)], sides, fixed=fixed)
        self._forest = _is_forest(len(scopes), [(i, j) for i, j, _ in between])

    @cached_property
    def corrections(self) -> Array:
        """1 on clusters, −1 on sepsets."""
        return np.where(np.arange(len(self.regions)) < self.n_clusters, 1.0, -1.0)

    @cached_property
    def _junction(self) -> Array | None:
        return self.corrections if self._forest else None


def _check_sepsets(
    n: int, clusters: list[tuple[int, ...]], sepsets: list[tuple[int, int, tuple[int, ...]]]
) -> None:
    joins: list[list[Link]] = [[] for _ in range(n)]
    for k, (i, j, variables) in enumerate(sepsets):
        if not (0 <= i < len(clusters) and 0 <= j < len(clusters) and i != j):
            raise ValueError(f"sepset {k} joins clusters {i} and {j} of {len(clusters)}")
        outside = set(variables) - (set(clusters[i]) & set(clusters[j]))
        if outside:
            raise ValueError(f"sepset {k} holds {min(outside)}; clusters {i} and {j} do not both")
        for variable in variables:
            joins[variable].append((i, j))
    for variable, edges in enumerate(joins):
        holding = [c for c, cluster in enumerate(clusters) if variable in cluster]
        if len(edges) != len(holding) - 1 or not _is_forest(len(clusters), edges):
            raise ValueError(
                f"the sepsets that hold variable {variable} must join its clusters {holding} as a "
                f"tree; they join {edges}"
            )


def _is_forest(n: int, edges: list[Link]) -> bool:
    from scipy.sparse.csgraph import connected_components

    ends = np.array(edges, dtype=np.int64).reshape(-1, 2).T
    joined = coo_array((np.ones(ends.shape[1]), (ends[0], ends[1])), shape=(n, n))
    components, _ = connected_components(joined, directed=False)
    return bool(components == n - len(edges))


@dataclass(frozen=True)
class Cover:
    """A structure's largest tables, and how all its coordinates follow from them.

    τ = S t for consistent tables t, and they are consistent where B t = 0.
    """

    own: Ints
    """The coordinates in tables that no other table holds."""
    S: sp.csr_array
    B: sp.csr_array
    table: Ints
    """The distribution that each of ``own`` belongs to."""

    @classmethod
    def of(cls, structure: Structure) -> Cover:
        """Read off the constraints: a separator is a marginal of the first table around it."""
        if not isinstance(structure, FactorGraph | RegionGraph):
            raise ValueError(
                f"clusters are tables of labelled graphs, not {type(structure).__name__}"
            )
        rows, size = structure.constraints(), structure.size
        agree = sp.csr_array(rows.A[rows.hi == 0])
        entries = sp.coo_array(agree)
        child = np.empty(agree.shape[0], dtype=np.int64)
        child[entries.row[entries.data < 0]] = entries.col[entries.data < 0]
        held, first = np.unique(child, return_index=True)
        own = np.setdiff1d(np.arange(size), held)
        sums = sp.csr_array(agree[first]).maximum(0)
        place = sp.csr_array((np.ones(len(held)), (held, np.arange(len(held)))), (size, len(held)))
        keep = sp.csr_array((np.ones(len(own)), (own, np.arange(len(own)))), (size, len(own)))
        down = sp.csr_array(place @ sums)
        S, before = sp.csr_array(keep + down @ keep), keep
        while (S - before).count_nonzero():  # marginals of marginals
            S, before = sp.csr_array(keep + down @ S), S
        B = sp.csr_array(agree @ S)
        B.data[np.abs(B.data) < 1e-12] = 0.0
        B.eliminate_zeros()
        return cls(own, S, sp.csr_array(B[np.diff(B.indptr) > 0]), structure.table_of[own])

    @property
    def starts(self) -> Ints:
        return np.flatnonzero(np.r_[True, np.diff(self.table) != 0])

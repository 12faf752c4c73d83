"""Gibbs sampling of labelled graphs, one colour class after the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mlestruct.inference.exact.treewidth import possible_states
from mlestruct.inference.graph.plan import neighbours
from mlestruct.inference.sampling.direct import Samples, addresses, as_draws, labelled
from mlestruct.inference.scores import as_scores
from mlestruct.native._door import GibbsGraph, gibbs_sweeps
from mlestruct.structures import FactorGraph
from mlestruct.structures.base import Array, Ints, as_count, as_integers, kept

BURN, THIN = 100, 5  # sweeps
TRIES = 100


def gibbs(
    graph: FactorGraph,
    score: ArrayLike,
    count: int,
    rng: np.random.Generator,
    *,
    burn: int = BURN,
    thin: int = THIN,
    start: ArrayLike | None = None,
) -> Samples:
    """A Markov chain of exp⟨score, v⟩ that redraws every variable given its neighbours.

    ``count`` dependent samples after ``burn`` sweeps, ``thin`` sweeps apart; O(Σ degree · states)
    a sweep. Starts at ``start`` (a labelling), else at random. With forbidden
    configurations the chain may not reach every labelling.
    """
    values, count = as_scores(graph, score), as_draws(count, graph)
    burn, thin = as_count(burn, "burn"), as_count(thin, "thin", least=1)
    chain = Chain.of(graph)
    states = chain.run(values, chain.begin(values, start, rng)[None], burn, rng)
    chains = chain.run(values, np.repeat(states, count, axis=0), thin, rng, one=True)
    how = f"Gibbs chain, {burn} sweeps of burn-in, every {thin}th sweep kept: dependent samples"
    return Samples(graph, labelled(graph, chains), False, how)


@dataclass(frozen=True)
class Chain:
    """A graph made ready for sweeps, colour after colour."""

    graph: FactorGraph
    closed: Any

    @classmethod
    def of(cls, graph: FactorGraph) -> Chain:
        """O(graph)."""
        return cls(graph, graph.closed())

    def run(
        self, score: Array, states: Ints, sweeps: int, rng: np.random.Generator, one: bool = False
    ) -> Ints:
        """Each row of labellings after ``sweeps``; of ``one`` chain, after the row above's."""
        moved, values = states.copy(), np.where(self.closed, -np.inf, score)
        layout = _layout(self.graph)
        gibbs_sweeps(layout, values, len(moved), moved, sweeps, one, addresses(rng))
        return moved

    def begin(self, score: Array, start: ArrayLike | None, rng: np.random.Generator) -> Ints:
        """``start``, or a random labelling that is not forbidden."""
        return _start(self.graph, np.where(self.closed, -np.inf, score), start, rng)

    def mean(self, states: Ints) -> Array:
        """The mean vertex of rows of labellings."""
        return np.asarray(labelled(self.graph, states).mean(axis=0))


@kept
def _layout(graph: FactorGraph) -> GibbsGraph:
    """The graph as the kernel takes it, colour after colour."""
    scope, factors = graph.scope, np.arange(graph.n_factors)
    return GibbsGraph(
        graph.n_nodes,
        graph.n_factors,
        len(scope),
        graph.size,
        graph.node_start,
        graph.table_start,
        graph.scope_start,
        scope,
        np.repeat(factors, np.diff(graph.scope_start)),
        graph.strides,
        np.searchsorted(np.sort(scope), np.arange(graph.n_nodes + 1)),
        np.argsort(scope, kind="stable"),
        np.argsort(colouring(graph), kind="stable"),
    )


def _start(
    graph: FactorGraph, closed: Array, start: ArrayLike | None, rng: np.random.Generator
) -> Ints:
    possible = possible_states(graph)
    for _ in range(TRIES):
        drawn = np.array([rng.choice(states) for states in possible], dtype=np.int64)
        given = drawn if start is None else as_integers(start, "states").copy()
        if not np.isneginf(closed[graph.encode(given) > 0]).any():
            return given
        if start is not None:
            raise ValueError("start is a forbidden labelling")
    raise ValueError(f"{TRIES} random labellings were forbidden: pass start=, one that is not")


def colouring(graph: FactorGraph) -> Ints:
    """A colour per variable, none shared within a factor: greedy, a checkerboard on grids.

    Variables of one colour are independent given the others, so their order does not matter.
    """
    start, near = neighbours(graph)
    colour = np.full(graph.n_nodes, -1, dtype=np.int64)
    for v in range(graph.n_nodes):
        taken = set(colour[near[start[v] : start[v + 1]]].tolist())
        colour[v] = next(k for k in range(graph.n_nodes) if k not in taken)
    return colour

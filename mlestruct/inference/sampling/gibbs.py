"""Gibbs sampling of labelled graphs, one colour class after the other."""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np
from numpy.typing import ArrayLike

from mlestruct.inference.exact.treewidth import possible_states
from mlestruct.inference.sampling.common import Samples, strides
from mlestruct.inference.sampling.direct import labelled
from mlestruct.structures import FactorGraph
from mlestruct.structures.base import Array, Ints

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
    values = np.asarray(score, dtype=float).reshape(-1)
    if values.shape != (graph.size,):
        raise ValueError(f"score has {len(values)} entries for {graph.size} coordinates")
    if count < 1 or burn < 0 or thin < 1:
        raise ValueError(f"count={count}, burn={burn}, thin={thin}: need ≥ 1, ≥ 0 and ≥ 1")
    closed = np.where(graph.closed(), -np.inf, values)
    states = _start(graph, closed, start, rng)
    order = np.argsort(colouring(graph), kind="stable")
    chains = np.empty((count, graph.n_nodes), dtype=np.int64)
    _sweeps(closed, order, *_layout(graph), states, burn, thin, rng, chains)
    how = f"Gibbs chain, {burn} sweeps of burn-in, every {thin}th sweep kept: dependent samples"
    return Samples(graph, labelled(graph, chains), False, how)


def _start(
    graph: FactorGraph, closed: Array, start: ArrayLike | None, rng: np.random.Generator
) -> Ints:
    possible = possible_states(graph)
    for _ in range(TRIES):
        drawn = np.array([rng.choice(states) for states in possible], dtype=np.int64)
        given = drawn if start is None else np.array(start, dtype=np.int64)
        if not np.isneginf(closed[graph.encode(given) > 0]).any():
            return given
        if start is not None:
            raise ValueError("start is a forbidden labelling")
    raise ValueError(f"{TRIES} random labellings were forbidden: pass start=, one that is not")


def colouring(graph: FactorGraph) -> Ints:
    """A colour per variable, none shared within a factor: greedy, a checkerboard on grids.

    Variables of one colour are independent given the others, so their order does not matter.
    """
    near: list[set[int]] = [set() for _ in range(graph.n_nodes)]
    for f in range(graph.n_factors):
        scope = graph.scope[graph.scope_start[f] : graph.scope_start[f + 1]].tolist()
        for v in scope:
            near[v].update(scope)
    colour = np.full(graph.n_nodes, -1, dtype=np.int64)
    for v in range(graph.n_nodes):
        taken = {int(colour[u]) for u in near[v]}
        colour[v] = next(k for k in range(graph.n_nodes) if k not in taken)
    return colour


class _Layout(NamedTuple):
    node_start: Ints
    table_start: Ints
    scope_start: Ints
    scope: Ints
    stride: Ints  # of every scope entry in its factor's table
    slot_start: Ints  # per variable, into ``slots``
    slots: Ints  # scope entries that are this variable
    factor_of: Ints  # of a scope entry


def _layout(graph: FactorGraph) -> _Layout:
    factor = np.repeat(np.arange(graph.n_factors), np.diff(graph.scope_start))
    degree = np.bincount(graph.scope, minlength=graph.n_nodes)
    slots = np.argsort(graph.scope, kind="stable")
    start = np.concatenate([[0], np.cumsum(degree)])
    return _Layout(
        graph.node_start,
        graph.table_start,
        graph.scope_start,
        graph.scope,
        strides(graph),
        start,
        slots,
        factor,
    )


@nb.njit(cache=True)
def _sweeps(
    score: Array,
    order: Ints,
    node_start: Ints,
    table_start: Ints,
    scope_start: Ints,
    scope: Ints,
    stride: Ints,
    slot_start: Ints,
    slots: Ints,
    factor_of: Ints,
    states: Ints,
    burn: int,
    thin: int,
    rng: np.random.Generator,
    out: Ints,
) -> None:
    local = np.empty(np.diff(node_start).max())
    for n in range(len(out)):
        for _ in range(burn + thin if n == 0 else thin):
            for v in order:
                cards = node_start[v + 1] - node_start[v]
                for x in range(cards):
                    local[x] = score[node_start[v] + x]
                for k in range(slot_start[v], slot_start[v + 1]):
                    slot = slots[k]
                    f = factor_of[slot]
                    base = table_start[f]
                    for other in range(scope_start[f], scope_start[f + 1]):
                        if other != slot:
                            base += stride[other] * states[scope[other]]
                    for x in range(cards):
                        local[x] += score[base + x * stride[slot]]
                states[v] = _pick(local[:cards], rng)
        out[n] = states


@nb.njit(cache=True)
def _pick(local: Array, rng: np.random.Generator) -> int:
    """A state with probability ∝ exp(local)."""
    top = local.max()
    mass = 0.0
    for x in range(len(local)):
        local[x] = np.exp(local[x] - top)
        mass += local[x]
    left, last = rng.random() * mass, 0
    for x in range(len(local)):
        if local[x] > 0.0:
            last = x
            left -= local[x]
            if left < 0.0:
                break
    return last

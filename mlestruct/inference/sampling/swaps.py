"""Markov chains over matchings by small symmetric moves, accepted by Metropolis's rule.

Each proposal is as likely as its reverse, so exp⟨score, v⟩ satisfies detailed balance; with every
pair allowed each chain reaches every matching. How soon is not bounded here: compare chains.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mlestruct.batch import Batch
from mlestruct.inference.sampling.direct import Samples, as_draws
from mlestruct.inference.scores import as_scores
from mlestruct.kernels import kernel
from mlestruct.oracle import Validated, resolve
from mlestruct.oracle.registry import AnyOracle
from mlestruct.structures import BipartiteMatching, Matching
from mlestruct.structures.base import Array, Ints, Structure, as_count, as_numbers

BURN, THIN = 100, 5  # sweeps


def sample_matchings(
    structure: BipartiteMatching | Matching,
    score: ArrayLike,
    count: int,
    rng: np.random.Generator,
    *,
    burn: int = BURN,
    thin: int = THIN,
    start: ArrayLike | None = None,
    oracle: AnyOracle = None,
) -> Samples:
    """A Markov chain of exp⟨score, v⟩: ``count`` dependent samples, NOT independent ones.

    Moves: two edges exchange ends (perfect); a row moves to a column or swaps for it (bipartite,
    rows matched); an edge is added, removed or slides along an end (partial). A sweep is one move
    per node; ``burn`` sweeps are dropped first and ``thin`` sweeps lie between samples. O(1) a
    move. Starts at ``start`` (a vertex) or the best matching. Where pairs are forbidden the moves
    may not connect all matchings: then only the starting component is sampled.
    """
    values, count = as_scores(structure, score), as_draws(count, structure)
    burn, thin = as_count(burn, "burn"), as_count(thin, "thin", least=1)
    if start is None:
        first = _start(structure, values, oracle)
    else:
        first = as_numbers(start, "start")
    if first.shape != (structure.size,) or not structure.contains(first):
        raise ValueError("start is no matching of the structure")
    closed = np.where(structure.fixed == 0, -np.inf, values)
    if np.isneginf(closed[first > 0.5]).any():
        raise ValueError("the chain would start from a matching with a score of −inf")
    vertices = chain(structure, closed, first, count, burn, thin, rng)
    how = f"Markov chain, {burn} sweeps of burn-in, every {thin}th sweep kept: dependent samples"
    return Samples(structure, vertices, False, how)


def _start(structure: Structure, values: Array, oracle: AnyOracle) -> Array:
    batch = Batch.of(structure)
    finite = np.where(np.isneginf(values), -1e9, values)
    return Validated(resolve(oracle, batch)).many(batch, finite)[0]


def chain(
    structure: Any,
    score: Array,
    start: Array,
    count: int,
    burn: int,
    thin: int,
    rng: np.random.Generator,
) -> Array:
    """(count, size) vertices, ``thin`` sweeps apart."""
    if not isinstance(structure, BipartiteMatching | Matching):
        raise ValueError(f"there are no swaps for a {type(structure).__name__}")
    out = np.zeros((count, structure.size))
    how, keep, nodes = (burn, thin, rng, out), structure.fixed == 1, structure.n_nodes
    if isinstance(structure, BipartiteMatching):
        rows, columns = structure.shape
        if structure.kind != "partial":
            column_of = start.reshape(rows, columns).argmax(axis=1)
            _moves(score.reshape(rows, columns), column_of, *how)
            return out
        ends = np.stack(structure.nodes_of(np.arange(structure.size)), axis=1)
    else:
        ends = structure.ends.astype(np.int64)
    if structure.kind == "partial":
        _slides(ends, score, keep, start, nodes, *how)
    else:
        place = np.full((nodes, nodes), -1)
        place[ends[:, 0], ends[:, 1]] = place[ends[:, 1], ends[:, 0]] = np.arange(len(ends))
        _exchanges(place, score, ends[start > 0.5], *how)
    return out


@kernel
def _accepted(gain: float, rng: np.random.Generator) -> bool:
    return gain >= 0.0 or rng.random() < np.exp(gain)


@kernel
def _below(count: int, rng: np.random.Generator) -> int:
    return int(rng.integers(0, count))


@kernel
def _moves(
    score: Array, column_of: Ints, burn: int, thin: int, rng: np.random.Generator, out: Array
) -> None:
    """A row asks for a column: moves there if it is free, else swaps with its row."""
    rows, columns = score.shape
    row_of = np.full(columns, -1)
    for i in range(rows):
        row_of[column_of[i]] = i
    for n in range(len(out)):
        for _ in range(rows * (burn + thin if n == 0 else thin)):
            i, j = _below(rows, rng), _below(columns, rng)
            here, other = column_of[i], row_of[j]
            if here == j:
                continue
            gain = score[i, j] - score[i, here]
            if other >= 0:
                gain += score[other, here] - score[other, j]
            if _accepted(gain, rng):
                column_of[i], row_of[j], row_of[here] = j, i, other
                if other >= 0:
                    column_of[other] = here
        for i in range(rows):
            out[n, i * columns + column_of[i]] = 1.0


@kernel
def _exchanges(
    place: Ints,
    score: Array,
    pairs: Ints,
    burn: int,
    thin: int,
    rng: np.random.Generator,
    out: Array,
) -> None:
    """Two edges ab, cd become ac, bd or ad, bc; an edge the graph lacks is never taken."""
    k = len(pairs)
    for n in range(len(out)):
        for _ in range(2 * k * (burn + thin if n == 0 else thin) if k > 1 else 0):
            e, f, turn = _below(k, rng), _below(k, rng), _below(2, rng)
            if e == f:
                continue
            a, b, c, d = pairs[e, 0], pairs[e, 1], pairs[f, turn], pairs[f, 1 - turn]
            if place[a, c] < 0 or place[b, d] < 0:
                continue
            gain = score[place[a, c]] + score[place[b, d]]
            gain -= score[place[a, b]] + score[place[c, d]]
            if _accepted(gain, rng):
                pairs[e, 0], pairs[e, 1], pairs[f, 0], pairs[f, 1] = a, c, b, d
        for e in range(k):
            out[n, place[pairs[e, 0], pairs[e, 1]]] = 1.0


@kernel
def _slides(
    ends: Ints,
    score: Array,
    keep: Array,
    start: Array,
    n_nodes: int,
    burn: int,
    thin: int,
    rng: np.random.Generator,
    out: Array,
) -> None:
    """An edge is added between single nodes, removed, or takes the place of the one in its way."""
    at = np.full(n_nodes, -1)  # the edge that matches a node
    for e in range(len(ends)):
        if start[e] > 0.5:
            at[ends[e, 0]] = at[ends[e, 1]] = e
    for n in range(len(out)):
        for _ in range(n_nodes * (burn + thin if n == 0 else thin)):
            e = _below(len(ends), rng)
            u, v = ends[e]
            gone = at[u] if at[u] >= 0 else at[v]
            if (at[u] >= 0 and at[v] >= 0 and at[u] != at[v]) or (gone >= 0 and keep[gone]):
                continue
            gain = -score[e] if gone == e else score[e] - (score[gone] if gone >= 0 else 0.0)
            if _accepted(gain, rng):
                if gone >= 0:
                    at[ends[gone, 0]] = at[ends[gone, 1]] = -1
                if gone != e:
                    at[u] = at[v] = e
        for e in range(len(ends)):
            if at[ends[e, 0]] == e:
                out[n, e] = 1.0

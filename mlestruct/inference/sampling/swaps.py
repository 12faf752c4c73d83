"""Markov chains over matchings by small symmetric moves, accepted by Metropolis's rule.

Each proposal is as likely as its reverse, so exp⟨score, v⟩ satisfies detailed balance; with every
pair allowed each chain reaches every matching. How soon is not bounded here: compare chains.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mlestruct.batch import Batch
from mlestruct.inference.sampling.direct import Samples, addresses, as_draws
from mlestruct.inference.scores import as_scores
from mlestruct.native._door import MatchingChain, exchange_ends, slide_edges, swap_columns
from mlestruct.oracle import Validated, resolve
from mlestruct.oracle.registry import AnyOracle
from mlestruct.structures import BipartiteMatching, Matching
from mlestruct.structures.base import Array, Structure, as_count, as_numbers

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
    nodes = structure.n_nodes

    def plan(moves: int) -> MatchingChain:
        """A chain of so many moves a sweep."""
        counts = count, burn * moves, thin * moves, structure.size
        return MatchingChain(*counts, score, addresses(rng), out)

    if isinstance(structure, BipartiteMatching):
        rows, columns = structure.shape
        if structure.kind != "partial":
            column_of = start.reshape(rows, columns).argmax(axis=1)
            swap_columns(plan(rows), rows, columns, column_of)
            return out
        ends = np.stack(structure.nodes_of(np.arange(structure.size)), axis=1)
    else:
        ends = structure.ends.astype(np.int64)
    if structure.kind == "partial":
        slide_edges(plan(nodes), nodes, ends, structure.fixed == 1, start)
    else:
        pairs = ends[start > 0.5]
        place = np.full((nodes, nodes), -1)
        place[ends[:, 0], ends[:, 1]] = place[ends[:, 1], ends[:, 0]] = np.arange(len(ends))
        exchange_ends(plan(2 * len(pairs)), nodes, place, len(pairs), pairs)
    return out

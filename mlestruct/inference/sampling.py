"""Samples of a structure's distribution: independent and exact, by Markov chains, or perturbed.

Chains of labelled graphs redraw one variable after the other (Gibbs). Chains of matchings make
small symmetric moves, accepted by Metropolis's rule: each proposal is as likely as its reverse, so
exp⟨score, v⟩ satisfies detailed balance; with every pair allowed each chain reaches every matching.
How soon is not bounded here: compare chains.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mlestruct.errors import Infeasible
from mlestruct.inference.elimination import (
    MEMORY,
    estimate,
    possible_states,
    sample_states,
)
from mlestruct.inference.exact import graph_of
from mlestruct.native._door import (
    GibbsGraph,
    MatchingChain,
    draw_paths,
    exchange_ends,
    gibbs_sweeps,
    slide_edges,
    swap_columns,
)
from mlestruct.oracle import Validated, perturbable, resolve
from mlestruct.oracle.registry import AnyOracle
from mlestruct.structures import BipartiteMatching, FactorGraph, Matching, Paths
from mlestruct.structures.base import (
    Array,
    Ints,
    Structure,
    as_count,
    as_integers,
    as_numbers,
    kept,
    refuse_made,
)
from mlestruct.structures.batch import Batch, as_scores

BURN, THIN = 100, 5  # sweeps
TRIES = 100  # random labellings of which one has to be allowed
Random = np.random.Generator


@dataclass(frozen=True)
class Samples:
    """0/1 vertices of one structure, one per row.

    ``exact``: independent draws of exp⟨score, v⟩ / Z. Otherwise ``how`` says what they are: a
    Markov chain of that law (dependent, and started somewhere), or an approximation.
    """

    structure: Structure
    vertices: Array
    exact: bool
    how: str

    def __len__(self) -> int:
        return len(self.vertices)

    @property
    def tau(self) -> Array:
        """The mean: an estimate of every coordinate's probability."""
        return self.vertices.mean(axis=0)

    def outcomes(self) -> list[Any]:
        """The samples decoded."""
        return [self.structure.decode(v) for v in self.vertices]


def as_draws(count: Any, problem: Batch[Any] | Structure) -> int:
    """How many samples of each, at least one, where all their vertices fit into memory."""
    count = as_count(count, "count", least=1)
    refuse_made(count * problem.size, f"count={count}")
    return count


def sampler(
    structure: Structure, score: Array, count: int, rng: Random, oracle: AnyOracle = None
) -> Samples:
    """Exact draws where the structure has them, else a Markov chain, else perturbations.

    With an oracle of your own (not the library's, by name) it is perturbations of its problem:
    other samplers know only the structure, not what the oracle adds to it.
    """
    if oracle is None or isinstance(oracle, str):
        if isinstance(structure, BipartiteMatching | Matching):
            return sample_matchings(structure, score, count, rng)
        if isinstance(structure, FactorGraph):
            narrow = structure.is_forest or estimate(structure).gib <= MEMORY
            return (sample if narrow else gibbs)(structure, score, count, rng)
        if isinstance(structure, Paths):
            return sample(structure, score, count, rng)
    return perturb_and_map(structure, score, count, rng, oracle=oracle)


def sample(problem: Batch[Any] | Structure, scores: ArrayLike, count: int, rng: Random) -> Any:
    """``count`` independent exact outcomes of one structure, or of every example of a batch.

    Labelled graphs: sums forwards, draws backwards; O(table sizes + samples · variables · states),
    forests in linear time, others as their width allows (see :func:`exact`). DAG paths: O(arcs)
    and a draw per step. Other structures have no exact sampler here and are refused.

    >>> sample(FactorGraph([2], []), [0.0, 9e9], 2, np.random.default_rng(0)).vertices.tolist()
    [[0.0, 1.0], [0.0, 1.0]]
    """
    values, count = as_scores(problem, scores), as_draws(count, problem)
    if isinstance(problem, Structure):
        return sample(Batch.of(problem, count=1), values, count, rng)[0]
    found: dict[int, Samples] = {}
    for structure, members in problem.groups():
        rows = problem.rows(values, members)
        if isinstance(structure, FactorGraph):
            drawn = structure.labelled(sample_states(structure, rows, count, rng))
        elif isinstance(structure, Paths):
            drawn = _paths(structure, rows, count, rng)
        else:
            raise ValueError(
                f"a {type(structure).__name__} has no exact sampler: "
                "use sample_matchings (Markov chains) or perturb_and_map (an approximation)"
            )
        for m, vertices in zip(members.tolist(), drawn, strict=True):
            found[m] = Samples(structure, vertices, True, "independent exact samples")
    return [found[m] for m in range(len(problem))]


def _paths(structure: Paths, scores: Array, count: int, rng: Random) -> Array:
    """Draw from the source on, each arc by what can be reached behind it."""
    arcs, order = structure.arcs, structure.usable
    leaving = np.bincount(arcs[order, 0] + 1, minlength=structure.n_nodes + 1).cumsum()
    by_tail = order[np.argsort(arcs[order, 0], kind="stable")]
    vertices = np.zeros((len(scores), count, structure.size))
    graph, random = graph_of(structure), addresses(rng)
    for row, out in zip(scores, vertices, strict=True):
        if not draw_paths(graph, by_tail, leaving, row, random, count, out):
            raise Infeasible(structure.impossible() or "no path has a finite score")
    return vertices


def perturb_and_map(
    structure: Structure, score: ArrayLike, count: int, rng: Random, *, oracle: AnyOracle = None
) -> Samples:
    """APPROXIMATE samples: the oracle's answers to scores plus independent Gumbel noise.

    Exact only where every outcome has a noise of its own (one variable, no factors; independent
    variables). Elsewhere the law is another one (Papandreou and Yuille, ICCV 2011), and a relaxed
    oracle's fractional answers are decoded. Noise goes to the states of variables in labelled
    graphs, to all coordinates elsewhere, and only where the oracle accepts any score. One oracle
    call a sample, all in one batch.
    """
    values, count = as_scores(structure, score), as_draws(count, structure)
    batch = Batch.of(structure, count=count)
    asked = resolve(oracle, batch)
    noisy = np.ones(batch.size, dtype=bool)
    if isinstance(structure, FactorGraph):
        noisy = np.tile(structure.table_of < structure.n_nodes, count)
    mask = perturbable(asked, batch)
    noisy &= True if mask is None else mask
    noise = np.where(noisy, rng.gumbel(size=batch.size), 0.0)
    vertices, _ = Validated(asked).many(batch, np.tile(values, count) + noise)
    rows = vertices.reshape(count, -1)
    whole = np.array([structure.encode(structure.decode(row)) for row in rows])
    how = f"perturb-and-MAP over the {asked.polytope}: an approximation, not the model's own law"
    return Samples(structure, whole, False, how)


def gibbs(
    graph: FactorGraph,
    score: ArrayLike,
    count: int,
    rng: Random,
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
    first = random_labelling(graph, values, rng, start)
    states = swept(graph, values, first[None], burn, rng)
    chains = swept(graph, values, np.repeat(states, count, axis=0), thin, rng, one=True)
    return Samples(graph, graph.labelled(chains), False, _chain_of("Gibbs", burn, thin))


def _chain_of(kind: str, burn: int, thin: int) -> str:
    kept = f"{burn} sweeps of burn-in, every {thin}th sweep kept"
    return f"{kind} chain, {kept}: dependent samples"


def swept(
    graph: FactorGraph, score: Array, states: Ints, sweeps: int, rng: Random, one: bool = False
) -> Ints:
    """Each row of labellings after Gibbs ``sweeps``; of ``one`` chain, after the row above's."""
    moved, values = states.copy(), np.where(graph.closed(), -np.inf, score)
    gibbs_sweeps(_layout(graph), values, len(moved), moved, sweeps, one, addresses(rng))
    return moved


@kept
def _layout(graph: FactorGraph) -> GibbsGraph:
    """The graph as the kernel takes it."""
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
        np.arange(graph.n_nodes),
    )


def random_labelling(
    graph: FactorGraph, score: Array, rng: Random, start: ArrayLike | None = None
) -> Ints:
    """``start``, or a random labelling that is not forbidden."""
    closed, possible = np.where(graph.closed(), -np.inf, score), possible_states(graph)
    for _ in range(TRIES):
        drawn = np.array([rng.choice(states) for states in possible], dtype=np.int64)
        given = drawn if start is None else as_integers(start, "states").copy()
        if not np.isneginf(closed[graph.encode(given) > 0]).any():
            return given
        if start is not None:
            raise ValueError("start is a forbidden labelling")
    raise ValueError(f"{TRIES} random labellings were forbidden: pass start=, one that is not")


def sample_matchings(
    structure: BipartiteMatching | Matching,
    score: ArrayLike,
    count: int,
    rng: Random,
    *,
    burn: int = BURN,
    thin: int = THIN,
    start: ArrayLike | None = None,
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
        batch, finite = Batch.of(structure), np.where(np.isneginf(values), -1e9, values)
        first = Validated(resolve(None, batch)).many(batch, finite)[0]
    else:
        first = as_numbers(start, "start")
    if first.shape != (structure.size,) or not structure.contains(first):
        raise ValueError("start is no matching of the structure")
    closed = np.where(structure.fixed == 0, -np.inf, values)
    if np.isneginf(closed[first > 0.5]).any():
        raise ValueError("the chain would start from a matching with a score of −inf")
    vertices = exchanged(structure, closed, first, (count, burn, thin), rng)
    return Samples(structure, vertices, False, _chain_of("Markov", burn, thin))


def exchanged(
    structure: BipartiteMatching | Matching,
    score: Array,
    start: Array,
    plan: tuple[int, int, int],
    rng: Random,
) -> Array:
    """(count, size) vertices of a chain from ``start``; ``plan`` is count, burn and thin."""
    count, burn, thin = plan
    out, nodes = np.zeros((count, structure.size)), structure.n_nodes

    def chain(moves: int) -> MatchingChain:
        """A chain of so many moves a sweep."""
        counts = count, burn * moves, thin * moves, structure.size
        return MatchingChain(*counts, score, addresses(rng), out)

    ends = np.stack(structure.nodes_of(np.arange(structure.size)), axis=1)
    if structure.kind == "partial":
        slide_edges(chain(nodes), nodes, ends, structure.fixed == 1, start)
    elif isinstance(structure, BipartiteMatching):
        rows, columns = structure.shape
        swap_columns(chain(rows), rows, columns, start.reshape(rows, columns).argmax(axis=1))
    else:
        pairs = ends[start > 0.5]
        place = np.full((nodes, nodes), -1)
        place[ends[:, 0], ends[:, 1]] = place[ends[:, 1], ends[:, 0]] = np.arange(len(ends))
        exchange_ends(chain(2 * len(pairs)), nodes, place, len(pairs), pairs)
    return out


def addresses(rng: Random) -> Ints:
    """Where kernels find a generator, for as long as it lives: its state and two functions.

    A kernel that decides as it goes how many numbers it takes draws them one by one.
    """
    interface = rng.bit_generator.ctypes  # its ``cffi`` takes a millisecond to make
    functions = interface.next_double, interface.next_uint32
    found = [ctypes.c_ssize_t.from_buffer(function).value for function in functions]
    return np.array([interface.state_address, *found], dtype=np.int64)

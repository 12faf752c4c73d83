"""Samplers against enumeration: exact draws, chains in detailed balance, honest labels."""

import itertools

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.inference.exact import exact, outcomes
from mlestruct.inference.sampling import gibbs, perturb_and_map, sample, sample_matchings
from mlestruct.structures import BipartiteMatching, FactorGraph, Matching, Paths

LABELLED = {
    "chain": ms.chain(4, 3),
    "tree of order 3": FactorGraph([2, 3, 2, 2], [(0, 1, 2), (2, 3)]),
    "loopy": ms.grid(3, 3),
    "scope out of order": FactorGraph([2, 3, 2], [(2, 0), (1, 2, 0)]),
    "clamped": ms.grid(2, 3).clamp({1: 0}),
    "no factors": FactorGraph([3, 1, 2], []),
}
LADDER = Paths([(0, 1), (0, 2), (1, 2), (1, 3), (2, 3), (0, 3), (0, 3)], 0, 3)
MATCHINGS = {
    "perfect bipartite": BipartiteMatching(3),
    "one-sided": BipartiteMatching(2, 4, "one_sided"),
    "partial bipartite": BipartiteMatching(2, 3, "partial"),
    "perfect general": Matching(6),
    "partial general": Matching(4, kind="partial"),
    "partial, a pair required": BipartiteMatching(3, 3, "partial", required=[(0, 1)]),
    "partial, sparse": Matching(5, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)], "partial"),
}


def frequencies_match(vertices, structure, score, effective):
    """Every outcome's frequency within five standard errors of its probability."""
    listed = outcomes(structure) if not isinstance(structure, Paths) else path_vertices(structure)
    weights = listed @ score
    p = np.exp(weights - np.logaddexp.reduce(weights))
    place = {row.tobytes(): k for k, row in enumerate(listed)}
    seen = np.bincount([place[v.tobytes()] for v in vertices], minlength=len(listed))
    error = np.abs(seen / len(vertices) - p)
    assert (error <= 5 * np.sqrt(p * (1 - p) / effective) + 2 / effective).all()


def path_vertices(paths):
    bits = np.array(list(itertools.product([0.0, 1.0], repeat=paths.size)))
    return bits[paths.contains(bits)]


@pytest.mark.parametrize("name", LABELLED)
def test_labellings_have_their_probabilities(name, rng):
    graph = LABELLED[name]
    score = rng.normal(size=graph.size)
    found = sample(graph, score, 20_000, rng)
    assert found.exact
    assert graph.contains(found.vertices).all()
    assert np.array_equal(graph.encode(found.outcomes()[7]), found.vertices[7])
    frequencies_match(found.vertices, graph, score, 20_000)


def test_paths_have_their_probabilities(rng):
    score = rng.normal(size=LADDER.size)
    frequencies_match(sample(LADDER, score, 20_000, rng).vertices, LADDER, score, 20_000)
    through = LADDER.clamp([2])
    drawn = sample(through, score, 50, rng)
    assert drawn.outcomes() == [[0, 2, 4]] * 50


def test_a_batch_is_sampled_example_by_example(rng):
    batch = ms.Batch.of([ms.chain(3, 2), LADDER, ms.chain(3, 2)])
    scores = rng.normal(size=batch.size)
    found = sample(batch, scores, 4000, rng)
    truth = exact(batch, scores).tau
    for m, part in enumerate(found):
        assert np.abs(part.tau - truth[batch.coordinates(m)]).max() < 5 * 0.5 / np.sqrt(4000)


@pytest.mark.parametrize("name", MATCHINGS)
def test_chains_of_matchings_reach_their_law(name, rng):
    structure = MATCHINGS[name]
    score = rng.normal(size=structure.size)
    found = sample_matchings(structure, score, 30_000, rng)
    assert not found.exact
    assert "dependent" in found.how
    assert structure.contains(found.vertices).all()
    frequencies_match(found.vertices, structure, score, 10_000)


@pytest.mark.parametrize(
    "name", ["perfect bipartite", "one-sided", "perfect general", "partial general"]
)
def test_every_move_is_in_detailed_balance(name, rng):
    """In the stationary chain each transition is as frequent as its reverse."""
    structure = MATCHINGS[name]
    score = rng.normal(size=structure.size)
    vertices = sample_matchings(structure, score, 60_000, rng, thin=1).vertices
    _, state = np.unique(vertices, axis=0, return_inverse=True)
    count = state.max() + 1
    flow = np.bincount(state[:-1] * count + state[1:], minlength=count**2).reshape(count, count)
    assert (np.abs(flow - flow.T) <= 5 * np.sqrt(flow + flow.T) + 1).all()


@pytest.mark.parametrize("name", ["loopy", "scope out of order", "clamped", "no factors"])
def test_gibbs_reaches_its_law(name, rng):
    graph = LABELLED[name]
    score = rng.normal(size=graph.size)
    start = np.zeros(graph.n_nodes, dtype=int)
    found = gibbs(graph, score, 20_000, rng, start=start)
    assert not found.exact
    assert np.abs(found.tau - exact(graph, score).tau).max() < 0.025
    if graph.size < 60:
        frequencies_match(found.vertices, graph, score, 5_000)


def test_perturb_and_map_is_exact_for_independent_variables_and_never_says_so(rng):
    graph = FactorGraph([3, 2], [])
    score = rng.normal(size=5)
    found = perturb_and_map(graph, score, 20_000, rng)
    frequencies_match(found.vertices, graph, score, 20_000)
    assert not found.exact
    assert "approximation" in found.how
    pairs = perturb_and_map(BipartiteMatching(4), rng.normal(size=16), 20, rng)
    assert BipartiteMatching(4).contains(pairs.vertices).all()


def test_misuse_is_named(rng):
    with pytest.raises(ValueError, match="has no exact sampler: use sample_matchings"):
        sample(Matching(4), np.zeros(6), 3, rng)
    with pytest.raises(ValueError, match="4 scores for 6"):
        sample_matchings(Matching(4), np.zeros(4), 3, rng)
    with pytest.raises(ValueError, match="thin is 0"):
        sample_matchings(Matching(4), np.zeros(6), 3, rng, thin=0)
    with pytest.raises(ValueError, match="start is no matching"):
        sample_matchings(Matching(4), np.zeros(6), 3, rng, start=np.ones(6))
    with pytest.raises(ValueError, match="score of −inf"):
        sample_matchings(Matching(4), np.full(6, -np.inf), 3, rng)
    mixed = [(f, states) for f in range(39) for states in ((0, 1), (1, 0))]
    forbidden = ms.chain(40, 2).forbid(configurations=mixed)
    with pytest.raises(ValueError, match="pass start="):
        gibbs(forbidden, np.zeros(forbidden.size), 3, rng)
    forbidden = ms.chain(3, 2).forbid(states=[(0, 1)])
    assert gibbs(forbidden, np.zeros(forbidden.size), 3, rng).vertices[:, 1].sum() == 0
    with pytest.raises(ValueError, match="start is a forbidden"):
        gibbs(forbidden, np.zeros(forbidden.size), 3, rng, start=[1, 0, 0])


def test_the_same_seed_gives_the_same_samples():
    score = np.linspace(-1, 1, 15)
    runs = [
        sample_matchings(Matching(6), score, 50, np.random.default_rng(3)).vertices
        for _ in range(2)
    ]
    assert np.array_equal(*runs)

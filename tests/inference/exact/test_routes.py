"""Each exact routine against enumeration, permutations, closed forms and the others."""

import itertools

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.inference import elimination
from mlestruct.inference.elimination import estimate
from mlestruct.inference.exact import exact, outcomes, solve
from mlestruct.structures import (
    BipartiteMatching,
    BMatching,
    FactorGraph,
    Flow,
    Ising,
    Matching,
    Paths,
)

LADDER = Paths([(0, 1), (0, 2), (1, 2), (1, 3), (2, 3), (0, 3), (0, 3), (1, 2)], 0, 3)


def listed(structure):
    """All outcomes, without the library's own listing where constraints at 0/1 decide."""
    if isinstance(structure, FactorGraph):
        rows = np.array([structure.encode(y) for y in np.ndindex(*structure.cards)])
    else:
        rows = np.array(list(itertools.product([0.0, 1.0], repeat=structure.size)))
    return rows[structure.contains(rows)]


def summed(structure, score):
    weights = listed(structure) @ score
    log_z = np.logaddexp.reduce(weights)
    return log_z, np.exp(weights - log_z) @ listed(structure)


FORCED = np.full(23, -1)
FORCED[8] = 1  # variables 0 and 1 in states 0 and 1

GRAPHS = {
    "loopy of order 3": FactorGraph([2, 3, 2, 2], [(0, 1, 2), (2, 3), (3, 0)]),
    "scope out of order": FactorGraph([3, 2, 2, 2], [(2, 0), (1, 2, 0), (3, 1), (0, 3)]),
    "clamped": ms.grid(3, 3).clamp({4: 1, 0: 0}),
    "forbidden": ms.grid(2, 3, 3).forbid(states=[(1, 2)], configurations=[(2, (0, 1))]),
    "forced by a factor": FactorGraph([2, 2, 3], [(0, 1), (1, 2), (0, 2)], fixed=FORCED),
    "one state": FactorGraph([1, 3, 2, 1], [(0, 1), (1, 2), (0, 2), (2, 3)]),
    "two components": FactorGraph([2] * 6, [(0, 1), (1, 2), (2, 0), (3, 4)]),
    "all settled": ms.grid(2, 2).clamp([0, 1, 1, 0]),
}
OTHERS = {
    "paths": LADDER,
    "paths through": LADDER.clamp([2, 4]),
    "paths without": Paths(LADDER.arcs, 0, 3, fixed=[-1, 0, -1, -1, -1, -1, 0, -1]),
    "rows required": BipartiteMatching(3, 4, "partial", required=[(0, 2)], forbidden=[(1, 1)]),
    "tall": BipartiteMatching(4, 3, "partial", required=[(3, 0)]),
    "one-sided, wide": BipartiteMatching(2, 6, "one_sided", required=[(0, 2)]),
    "perfect": BipartiteMatching(3, forbidden=[(0, 0), (2, 1)]),
    "general": Matching(5, [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4)], "partial"),
    "general, required": Matching(6, kind="partial", required=[(4, 1)]),
    "general perfect": Matching(6, forbidden=[(0, 1)], required=[(5, 2)]),
    "b-matching": BMatching(4, capacity=2),
    "flow": Flow([(0, 1), (0, 2), (1, 3), (2, 3), (1, 2)], {0: (0, 2), 3: (-2, 0)}),
}


@pytest.mark.parametrize("scale", [1.0, 300.0])
@pytest.mark.parametrize("name", GRAPHS)
def test_elimination_is_the_sum_over_all_labellings(name, scale, rng):
    graph = GRAPHS[name]
    scores = scale * rng.normal(size=(3, graph.size))
    log_z, tau = elimination.eliminated(graph, scores)
    for m in range(3):
        expected = summed(graph, scores[m])
        assert log_z[m] == pytest.approx(expected[0], abs=1e-11 * scale)
        np.testing.assert_allclose(tau[m], expected[1], atol=1e-10)


@pytest.mark.parametrize("scale", [1.0, 300.0])
@pytest.mark.parametrize("name", [*OTHERS, *GRAPHS])
def test_the_front_is_the_sum_over_all_outcomes(name, scale, rng):
    structure = (OTHERS | GRAPHS)[name]
    score = scale * rng.normal(size=structure.size)
    expected = summed(structure, score)
    found = exact(structure, score)
    assert found.log_z == pytest.approx(expected[0], abs=1e-11 * scale)
    np.testing.assert_allclose(found.tau, expected[1], atol=1e-10)
    assert structure.contains(found.tau, 1e-9)


def random_graph(rng):
    """Up to five variables of one to three states, factors of order two and three, some fixed."""
    cards = rng.integers(1, 4, int(rng.integers(2, 6)))
    scopes = {}
    for order in rng.integers(2, 4, int(rng.integers(0, 6))):
        scope = rng.permutation(len(cards))[:order].tolist()
        scopes[tuple(sorted(scope))] = scope
    size = FactorGraph(cards, list(scopes.values())).size
    fixed = np.where(rng.random(size) < 0.08, 0, -1)
    fixed[rng.integers(0, size)] = rng.choice([-1, 1])
    return FactorGraph(cards, list(scopes.values()), fixed=fixed)


def test_random_graphs_with_evidence(rng):
    """Exact where a labelling is left, Infeasible exactly where none is."""
    impossible = 0
    for _ in range(150):
        graph = random_graph(rng)
        score = rng.choice([1.0, 500.0]) * rng.normal(size=graph.size)
        if len(listed(graph)) == 0:
            impossible += 1
            with pytest.raises(ms.Infeasible):
                exact(graph, score)
            continue
        expected = summed(graph, score)
        for log_z, tau in (exact_pair(graph, score), eliminated(graph, score)):
            assert log_z == pytest.approx(expected[0], rel=1e-12, abs=1e-11)
            np.testing.assert_allclose(tau, expected[1], atol=1e-9)
    assert 0 < impossible < 100


def exact_pair(graph, score):
    found = exact(graph, score)
    return found.log_z, found.tau


def eliminated(graph, score):
    log_z, tau = elimination.eliminated(graph, score[None])
    return log_z[0], tau[0]


def test_a_batch_of_many_structures(rng):
    structures = [ms.grid(3, 3), LADDER, ms.chain(4, 2), ms.grid(3, 3), Matching(4), LADDER]
    batch = ms.Batch.of(structures)
    scores = rng.normal(size=batch.size)
    found = exact(batch, scores)
    for m, structure in enumerate(structures):
        log_z, tau = summed(structure, scores[batch.coordinates(m)])
        assert found.log_z[m] == pytest.approx(log_z, abs=1e-12)
        np.testing.assert_allclose(found.tau[batch.coordinates(m)], tau, atol=1e-12)


def test_a_small_memory_only_cuts_the_batch(rng):
    graph = ms.grid(4, 4)
    scores = rng.normal(size=(7, graph.size))
    whole = elimination.eliminated(graph, scores)
    parts = elimination.eliminated(graph, scores, memory=2.5 * estimate(graph).gib)
    np.testing.assert_allclose(parts[0], whole[0], rtol=1e-14)
    np.testing.assert_allclose(parts[1], whole[1], atol=1e-14)


def test_ising_8x8(rng):
    """Zero field, J = ½: the transfer matrix's log Z."""
    graph = ms.grid(8, 8)
    score = np.concatenate([np.zeros(128), np.tile([0.5, -0.5, -0.5, 0.5], graph.n_factors)])
    assert exact(graph, score).log_z == pytest.approx(61.20848905, abs=5e-9)
    found = exact(graph, score)
    corner = found.tau[graph.table_start[0] :][:4]
    assert corner[0] + corner[3] - corner[1] - corner[2] == pytest.approx(0.58459170, abs=1e-8)


def test_strong_grids_leave_the_linear_domain(rng):
    """Scores of ±300 would underflow a linear table; the answer stays exact."""
    graph = ms.grid(4, 4)
    score = 300 * rng.normal(size=graph.size)
    found = exact(graph, score)
    best = (outcomes(graph) @ score).max()
    assert best - 1e-9 <= found.log_z <= best + 16 * np.log(2)
    assert graph.contains(found.tau, 1e-9)


def test_closed_forms_of_uniform_matchings():
    """n!, (n − 1)!! and the telephone numbers."""
    assert exact(BipartiteMatching(12), np.zeros(144)).log_z == pytest.approx(
        np.log(np.arange(1, 13)).sum(), abs=1e-10
    )
    doubles = np.log(np.arange(1, 14, 2)).sum()
    perfect = exact(Matching(14), np.zeros(91))
    assert perfect.log_z == pytest.approx(doubles, abs=1e-10)
    np.testing.assert_allclose(perfect.tau, 1 / 13, atol=1e-12)
    partial = exact(Matching(10, kind="partial"), np.zeros(45))
    assert partial.log_z == pytest.approx(np.log(9496), abs=1e-10)


def test_paths_on_a_long_lattice_are_binomial():
    """6 × 6 monotone lattice paths: C(10, 5), and the middle by symmetry."""
    node = np.arange(36).reshape(6, 6)
    across = np.stack([node[:, :-1].ravel(), node[:, 1:].ravel()], axis=1)
    down = np.stack([node[:-1].ravel(), node[1:].ravel()], axis=1)
    found = exact(Paths(np.concatenate([across, down]), 0, 35), np.zeros(60))
    assert found.log_z == pytest.approx(np.log(252), abs=1e-12)
    assert found.tau[0] == pytest.approx(0.5)


@pytest.mark.parametrize("fixed", [None, [1, -1, 0, -1, -1, -1, -1, -1]])
def test_ising_sums_over_labellings_up_to_flips(fixed, rng):
    edges = [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (1, 3), (3, 4), (4, 5)]
    graph = Ising(6, edges, fixed=fixed)
    score = rng.normal(size=8)
    rows = np.array([graph.encode(y) for y in itertools.product([0, 1], repeat=6)])
    rows = np.unique(rows[graph.contains(rows)], axis=0)
    p = np.exp(rows @ score)
    found = exact(graph, score)
    assert found.log_z == pytest.approx(np.log(p.sum()), abs=1e-12)
    np.testing.assert_allclose(found.tau, p @ rows / p.sum(), atol=1e-12)


def test_the_impossible_is_named():
    with pytest.raises(ms.Infeasible, match="no allowed path"):
        exact(Paths([(0, 1), (1, 2)], 0, 2, fixed=[0, -1]), np.zeros(2))
    with pytest.raises(ms.Infeasible, match="rows"):
        exact(BipartiteMatching(2, forbidden=[(0, 0), (0, 1)]), np.zeros(4))
    with pytest.raises(ms.Infeasible, match="odd"):
        exact(Matching(5), np.zeros(10))
    triangle = [(0, 1), (1, 2), (0, 2)]
    differ = [(f, (k, k)) for f in range(3) for k in (0, 1)]
    with pytest.raises(ms.Infeasible, match="no labelling has a finite score"):
        exact(FactorGraph([2] * 3, triangle).forbid(configurations=differ), np.zeros(18))
    with pytest.raises(ValueError, match="coordinate 2 is nan"):
        exact(ms.chain(2, 2), [0, 0, np.nan, 0, 0, 0, 0, 0])


def test_a_new_kind_of_structure_registers_itself(rng):
    class Coins(BMatching):
        """Any subset of the edges."""

    @solve.register
    def _(structure: Coins, scores, memory):
        odds = 1 / (1 + np.exp(-scores))
        return -np.log1p(-odds).sum(axis=1), odds

    coins = Coins(4, capacity=3)
    score = rng.normal(size=6)
    found = exact(coins, score)
    assert found.log_z == pytest.approx(np.log1p(np.exp(score)).sum(), abs=1e-12)
    np.testing.assert_allclose(found.tau, summed(coins, score)[1], atol=1e-12)

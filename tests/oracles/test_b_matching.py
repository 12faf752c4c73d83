"""b-matchings: the best of all edge sets within the capacities, as flows or as matchings."""

from itertools import product

import numpy as np
import pytest
from mlestruct_oracles.min_cost_flow import BMatchingSolver

from mlestruct import Batch, BMatching, Infeasible
from mlestruct.oracle import Validated


def vertices(structure):
    """Every set of edges with at most (or exactly) the capacity at each node."""
    sets = np.array(list(product([0.0, 1.0], repeat=structure.size)))
    used = np.zeros((len(sets), structure.n_nodes))
    for k, pair in enumerate(structure.ends.tolist()):
        used[:, pair] += sets[:, [k]]
    pinned = structure.fixed >= 0
    agree = (sets[:, pinned] == structure.fixed[pinned]).all(axis=1)
    full = used == structure.capacity
    return sets[agree & ((used <= structure.capacity) & (full | ~structure.exact)).all(axis=1)]


def random_structure(rng, bipartite):
    if bipartite:
        rows, columns = int(rng.integers(1, 4)), int(rng.integers(1, 4))
        pairs = [(u, rows + v) for u in range(rows) for v in range(columns)]
        n = rows + columns
    else:
        n = int(rng.integers(3, 6))
        pairs = [(u, v) for u in range(n) for v in range(u + 1, n)]
    edges = rng.permuted(rng.permutation(pairs)[: int(rng.integers(1, len(pairs) + 1))], axis=1)
    capacity = rng.integers(0, 4, n)
    exact = rng.random(n) < 0.3
    fixed = rng.choice([-1] * 9 + [0], len(edges))
    return BMatching(n, edges, capacity, exact, fixed=fixed)


def check(structures, bipartite, seed):
    rng = np.random.default_rng(seed)
    oracle, feasible, impossible = Validated(BMatchingSolver()), 0, 0
    while feasible < structures:
        structure = random_structure(rng, bipartite)
        listed, batch = vertices(structure), Batch.of([structure] * 50)
        scores = rng.normal(0, 3, batch.size)
        scores = scores.round() if rng.random() < 0.3 else scores
        if len(listed) == 0:
            impossible += 1
            with pytest.raises(Infeasible):
                oracle.many(batch, scores)
            continue
        assert structure.impossible() is None
        truth = (scores.reshape(50, -1) @ listed.T).max(axis=1)
        found, upper = oracle.many(batch, scores)
        np.testing.assert_allclose(batch.totals(scores * found), truth, atol=1e-11)
        np.testing.assert_allclose(upper, truth, atol=1e-11)
        feasible += 1
    return impossible


def test_bipartite_ones_are_flows():
    assert check(200, bipartite=True, seed=0) > 20


def test_general_ones_are_matchings_of_a_larger_graph():
    assert check(200, bipartite=False, seed=1) > 20


@pytest.mark.parametrize("exact", [False, True])
def test_nothing_is_left_to_choose(exact):
    for fixed in ([0, 0, 0], [1, 1, 1]):
        triangle = BMatching(3, capacity=sum(fixed[:2]), exact=exact, fixed=fixed)
        vertex, upper = BMatchingSolver().many(Batch.of(triangle), np.array([1.0, 2.0, 4.0]))
        assert vertex.tolist() == fixed
        assert upper == 7 * fixed[0]


def test_a_capacity_of_one_is_a_matching_and_required_pairs_fill_nodes(rng):
    teams = BMatching.bipartite(2, 3, row_capacity=[1, 2], required=[(0, 3)])
    assert teams.fixed.reshape(2, 3).tolist() == [[0, 1, 0], [-1, 0, -1]]
    assert teams.clamp([(1, 2)]).fixed.reshape(2, 3).tolist() == [[0, 1, 0], [1, 0, -1]]
    assert teams.decode(teams.encode([(3, 0), (4, 1)])).tolist() == [[0, 3], [1, 4]]


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda: BMatching(3, capacity=[1, 2]), "2 capacities for 3 nodes"),
        (lambda: BMatching(3, capacity=-1), "node 0 has capacity -1"),
        (lambda: BMatching(3, capacity=1.5), "node 0 has capacity 1.5"),
        (lambda: BMatching(3, required=[(0, 1), (1, 2)]), "node 1 has 2 required pairs"),
        (lambda: BMatching(3, exact=True).encode([(0, 1)]), "node 2 is in 0 pairs, not exactly 1"),
        (lambda: BMatching(3).encode([(0, 1), (1, 2)]), "node 1 is in 2 pairs, not at most 1"),
        (lambda: BMatching(3, capacity=2).encode([(0, 1), (1, 0)]), r"pair \(0, 1\) is listed"),
        (lambda: BMatching(3).counting(0.5), "a BMatching has no reweighted Bethe entropy"),
    ],
)
def test_misuse_is_named(build, says):
    with pytest.raises(ValueError, match=says):
        build()

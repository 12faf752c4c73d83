"""The blossom adapter: best of all matchings wherever they can be listed, with honest bounds."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations

import numpy as np
import pytest
from mlestruct_oracles.blossom import Blossom
from mlestruct_oracles.networkx_matching import NetworkxMatching

from mlestruct import Batch, Infeasible, Matching
from mlestruct.oracle import Validated
from tests.structures.test_matching_general import listed


def random_structure(rng):
    n = int(rng.integers(2, 9))
    kind = "partial" if n % 2 or rng.random() < 0.5 else "perfect"
    pairs = np.array(list(combinations(range(n), 2)))
    if rng.random() < 0.3:
        edges, count = None, len(pairs)
    else:
        count = int(rng.integers(1, len(pairs) + 1))
        edges = rng.permuted(pairs[rng.choice(len(pairs), count, replace=False)], axis=1)
    fixed = np.where(rng.random(count) < 0.1, 0, -1)
    if rng.random() < 0.3:
        fixed[rng.integers(count)] = 1
    return Matching(n, edges, kind, fixed=fixed)


SCORES = {
    "ties": lambda rng, size: rng.integers(-2, 3, size).astype(float),
    "real": lambda rng, size: rng.normal(size=size),
    "negative": lambda rng, size: -rng.random(size),
    "huge": lambda rng, size: rng.integers(-(2**40), 2**40, size).astype(float),
    "steep": lambda rng, size: np.exp(rng.normal(0, 10, size)),
}


@pytest.mark.parametrize("kind", SCORES)
def test_it_finds_the_best_of_all_matchings_and_bounds_it(kind):
    rng = np.random.default_rng(sorted(SCORES).index(kind))
    oracle, solved = Validated(Blossom()), 0
    while solved < 2000:
        structure = random_structure(rng)
        outcomes = listed(structure)
        batch = Batch.of([structure] * 50)
        scores = SCORES[kind](rng, batch.size)
        if len(outcomes) == 0:
            with pytest.raises(Infeasible, match=r"node|group"):
                oracle.many(batch, scores)
            continue
        truth = (scores.reshape(50, -1) @ outcomes.T).max(axis=1)
        found, upper = oracle.many(batch, scores)
        np.testing.assert_allclose(batch.totals(scores * found), truth, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(upper, truth, rtol=1e-12, atol=1e-12)
        solved += 50


def test_the_networkx_reference_agrees(rng):
    for _ in range(150):
        structure = random_structure(rng)
        outcomes = listed(structure)
        batch = Batch.of(structure)
        scores = rng.normal(size=batch.size)
        if len(outcomes) == 0:
            with pytest.raises(Infeasible, match="node"):
                Validated(NetworkxMatching()).many(batch, scores)
            continue
        _, upper = Validated(NetworkxMatching()).many(batch, scores)
        assert upper[0] == pytest.approx((outcomes @ scores).max(), abs=1e-12)


def test_infeasibility_names_tuttes_witness_where_components_do_not_show_it():
    star = Matching(4, [(0, 1), (0, 2), (0, 3)])
    assert star.impossible() is None  # one even component
    with pytest.raises(Infeasible, match=r"without node\(s\) \[0\] the odd groups"):
        Blossom().many(Batch.of(star), np.zeros(3))


def test_threads_share_one_oracle(rng):
    oracle, batch = Blossom(), Batch.of([Matching(30)] * 4)
    scores = [rng.normal(size=batch.size) for _ in range(16)]
    alone = [oracle.many(batch, s)[1] for s in scores]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda s: oracle.many(batch, s)[1], scores))
    np.testing.assert_array_equal(together, alone)
    assert pickle.loads(pickle.dumps(oracle)) == oracle

"""Features are adjoint pairs in every form, and refuse what is not a number or not adjoint."""

import numpy as np
import pytest
import scipy.sparse as sp

from mlestruct.features import (
    Dense,
    Pairs,
    Question,
    Shared,
    Sparse,
    Tied,
)
from mlestruct.features import base as squares_
from mlestruct.features import per_table as per_table_of
from mlestruct.features.base import squares
from mlestruct.structures import FactorGraph, Matching, chain
from mlestruct.structures.batch import Batch
from mlestruct.testing import vertices

CHAINS = [chain(3, 2), chain(2, 2), chain(5, 2), chain(2, 2)]
BATCH = Batch.of(CHAINS)
GROUPS = [Matching(6), Matching(4, kind="partial"), Matching(9, kind="partial"), Matching(4)]
PEOPLE = Batch.of(GROUPS)


def matrix(d=4, density=1.0, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((BATCH.size, d)) * (rng.random((BATCH.size, d)) < density)


def repeated():
    """Two entries for the same place, out of order, as user code makes them."""
    one = sp.coo_array(matrix(density=0.4))
    rows, cols = np.tile(one.row, 2)[::-1], np.tile(one.col, 2)[::-1]
    data = np.concatenate([one.data, 2 * one.data])[::-1]
    order = np.argsort(rows, kind="stable")
    ptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=BATCH.size))])
    return sp.csr_array((data[order], cols[order], ptr), shape=one.shape)


def tied():
    rng = np.random.default_rng(1)
    nodes = rng.standard_normal((sum(s.n_nodes for s in CHAINS), 3))
    factors = rng.standard_normal((sum(s.n_factors for s in CHAINS), 2))
    return Tied.of(BATCH, nodes, factors)


def per_table():
    rng = np.random.default_rng(1)
    nodes = rng.standard_normal((sum(s.n_nodes for s in CHAINS), 2))
    return per_table_of(BATCH, nodes, rng.standard_normal((sum(s.n_factors for s in CHAINS), 3)))


def pairs():
    """Three questions with answers missing."""
    rng = np.random.default_rng(7)
    asked = [
        Question.ordinal("noise", ["low", "mid", "high"], [0.0, 1.0, 2.5]),
        Question.categorical("diet", ["any", "none"]),
        Question.ordinal("hours", range(4), indicators=False),
    ]
    answers = []
    for group in GROUPS:
        n = group.n_nodes
        answers.append(np.stack([rng.integers(-1, len(q.levels), n) for q in asked], axis=1))
    return Pairs.of(PEOPLE, answers, asked)


def batch_of(form):
    return PEOPLE if form.startswith("pairs") else BATCH


FORMS = {
    "dense": lambda: Dense.of(BATCH, matrix()),
    "float32": lambda: Dense.of(BATCH, matrix().astype(np.float32)),
    "float16": lambda: Dense.of(BATCH, matrix().astype(np.float16)),
    "big-endian": lambda: Dense.of(BATCH, matrix().astype(">f8")),
    "integers": lambda: Dense.of(BATCH, (3 * matrix()).astype(int)),
    "columns first": lambda: Dense.of(BATCH, np.asfortranarray(matrix())),
    "sparse": lambda: Sparse.of(BATCH, sp.csr_array(matrix(density=0.3))),
    "sparse repeated": lambda: Sparse.of(BATCH, repeated()),
    "sparse empty rows": lambda: Sparse.of(BATCH, sp.csr_array((BATCH.size, 3))),
    "tied": tied,
    "tied sparse": lambda: Tied.of(BATCH, sp.csr_array(np.eye(12)[:, :5])),
    "per table": per_table,
    "pairs": pairs,
}


@pytest.mark.parametrize("form", FORMS)
def test_potentials_and_moments_are_adjoint(form):
    """⟨Φθ, τ⟩ = ⟨θ, Φᵀτ⟩, per example too, and moments are the sum of the examples'."""
    features, batch = FORMS[form](), batch_of(form)
    rng = np.random.default_rng(2)
    theta, tau = rng.standard_normal(features.d), rng.random(batch.size)
    scores = features.potentials(theta)
    assert scores.shape == (batch.size,)
    assert scores @ tau == pytest.approx(theta @ features.moments(tau), rel=1e-9)
    local, columns = features.each(tau), features.columns
    total = np.bincount(columns.index, local, features.d)
    np.testing.assert_allclose(total, features.moments(tau), rtol=1e-9, atol=1e-12)
    for m in range(len(batch)):
        own = slice(columns.start[m], columns.start[m + 1])
        part = batch.coordinates(m)
        assert local[own] @ theta[columns.index[own]] == pytest.approx(scores[part] @ tau[part])


@pytest.mark.parametrize("form", FORMS)
def test_squares_are_those_of_every_column(form):
    features, v = FORMS[form](), np.random.default_rng(3).random(batch_of(form).size)
    columns = [features.potentials(unit) for unit in np.eye(features.d)]
    expected = [v @ column**2 for column in columns]
    np.testing.assert_allclose(squares(features, v), expected, rtol=1e-5, atol=1e-12)
    some = Shared.only(features, np.arange(features.d) % 2 == 0)
    np.testing.assert_allclose(squares(some, v), expected[::2], rtol=1e-5, atol=1e-12)


def test_squares_of_many_unseen_columns_are_estimated(monkeypatch):
    """Twice the same, without bias, and each within a factor of two or so."""

    class Unseen(Dense):
        def squares(self, v):
            return None

    features, v = Unseen.of(BATCH, matrix()), np.random.default_rng(4).random(BATCH.size)
    exact = squares(features, v)
    monkeypatch.setattr(squares_, "FEW", 0)
    found = squares(features, v)
    assert (found == squares(features, v)).all()
    assert ((exact / 2.5 < found) & (found < 2.5 * exact)).all()
    monkeypatch.setattr(squares_, "PROBES", 4000)
    np.testing.assert_allclose(squares(features, v), exact, rtol=0.1)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("members", [[2, 0], [1], [3, 1, 1], [0, 1, 2, 3]])
def test_selected_features_are_those_of_the_selected_batch(form, members):
    features, batch, members = FORMS[form](), batch_of(form), np.array(members)
    rng = np.random.default_rng(3)
    theta = rng.standard_normal(features.d)
    scores, part = features.potentials(theta), features.select(members)
    expected = np.concatenate([scores[batch.coordinates(m)] for m in members])
    np.testing.assert_allclose(part.potentials(theta), expected, rtol=1e-6)
    tau = rng.random(len(expected))
    assert part.moments(tau) @ theta == pytest.approx(expected @ tau, rel=1e-6)
    total = np.bincount(part.columns.index, part.each(tau), part.d)
    np.testing.assert_allclose(total, part.moments(tau), rtol=1e-9, atol=1e-12)


def test_repeated_sparse_entries_add_up_and_the_users_matrix_stays():
    given = repeated()
    before = given.data.copy(), given.indices.copy(), given.indptr.copy()
    features = Sparse.of(BATCH, given)
    dense = Dense.of(BATCH, 3 * matrix(density=0.4))
    for kept, array in zip(before, (given.data, given.indices, given.indptr), strict=True):
        np.testing.assert_array_equal(kept, array)
    rng = np.random.default_rng(4)
    theta, tau = rng.standard_normal(4), rng.random(BATCH.size)
    np.testing.assert_allclose(features.potentials(theta), dense.potentials(theta))
    np.testing.assert_allclose(features.moments(tau), dense.moments(tau))
    total = np.bincount(features.columns.index, features.each(tau), 4)
    np.testing.assert_allclose(total, dense.moments(tau))


def test_tied_features_are_their_expanded_matrix():
    features = tied()
    expanded = np.stack([features.potentials(unit) for unit in np.eye(features.d)], axis=1)
    nodes, factors = np.asarray(features.nodes), np.asarray(features.factors)
    variable, factor = 0, 0
    for m, structure in enumerate(CHAINS):
        block = expanded[BATCH.coordinates(m)]
        for i in range(structure.n_nodes):
            for k in range(2):
                row = np.zeros(features.d)
                row[k:6:2] = nodes[variable]
                np.testing.assert_array_equal(block[2 * i + k], row)
            variable += 1
        for f in range(structure.n_factors):
            for entry in range(4):
                row = np.zeros(features.d)
                row[6 + entry :: 4] = factors[factor]
                np.testing.assert_array_equal(block[structure.table_start[f] + entry], row)
            factor += 1
    tau = np.random.default_rng(0).random(BATCH.size)
    dense = Dense.of(BATCH, expanded)
    np.testing.assert_allclose(dense.moments(tau), features.moments(tau))
    np.testing.assert_allclose(dense.each(tau), features.each(tau))


def test_pair_features_are_their_names():
    features = pairs()
    columns = {
        name: features.potentials(unit)
        for name, unit in zip(features.names, np.eye(12), strict=True)
    }
    values = [0.0, 1.0, 2.5]
    for m, group in enumerate(GROUPS):
        part, codes = PEOPLE.coordinates(m), features.codes[m]
        for k, (u, v) in enumerate(group.ends.tolist()):
            noise, diet, hours = zip(codes[u], codes[v], strict=True)
            expected = dict.fromkeys(features.names, 0.0)
            if min(noise) >= 0:
                expected["noise |difference|"] = abs(values[noise[0]] - values[noise[1]])
                low, high = (["low", "mid", "high"][k] for k in sorted(noise))
                expected[f"noise {low}~{high}"] = 1.0
            if min(diet) >= 0:
                expected["diet same"] = float(diet[0] == diet[1])
                expected["diet " + "~".join(["any", "none"][k] for k in sorted(diet))] = 1.0
            if min(hours) >= 0:
                expected["hours |difference|"] = float(abs(hours[0] - hours[1]))
            assert {name: columns[name][part][k] for name in expected} == expected
    assert len(features.names) == features.d == len(columns)


@pytest.mark.parametrize("slack", [0.0, 0.7])
def test_the_pairs_gram_takes_out_each_persons_sum(slack):
    """Σ w Φᵀ[I − Bᵀ(sI + BBᵀ)⁻¹B]Φ, from expanded features and the incidence matrix B."""
    features, weight = pairs(), np.array([1.0, 0.5, 2.0, 0.1])
    full, expected = np.stack([features.potentials(unit) for unit in np.eye(features.d)], 1), 0.0
    for m, group in enumerate(GROUPS):
        rows, B = full[PEOPLE.coordinates(m)], group.incidence().toarray()
        inner = B.T @ np.linalg.solve(slack * np.eye(len(B)) + B @ B.T, B)
        expected = expected + weight[m] * rows.T @ (rows - inner @ rows)
    found = features.gram(weight, np.full(4, slack))
    np.testing.assert_allclose(found, expected, atol=1e-12)


def spoiled(value):
    array = matrix()
    array[BATCH.offsets[2] + 3, 1] = value
    return array


def answered(codes):
    asked = [Question.categorical("diet", ["any", "none"])]
    return Pairs.of(Batch.of(Matching(4)), [codes], asked)


MISUSE = [
    (lambda: answered([[0], [1], [2], [0]]), "person 2 answers 'diet' with level 2; levels are 0"),
    (lambda: answered([[0], [1]]), r"shape \(2, 1\); expected 4 people"),
    (lambda: answered([[0.5]] * 4), "level numbers are integers"),
    (lambda: Pairs.of(Batch.of(Matching(4)), [], []), "answers of 0 groups"),
    (lambda: Pairs.of(Batch.of(Matching(2, [(0, 1)])), [[[]] * 2], []), "complete graphs"),
    (lambda: Question.categorical("diet", ["any", "any"]), "must differ"),
    (lambda: Question.ordinal("diet", ["any"], [np.nan]), "a finite value for each level"),
    (lambda: Dense.of(BATCH, matrix()[1:]), "one per coordinate"),
    (lambda: Dense.of(BATCH, spoiled(np.inf)), "example 2: feature 1 of coordinate 3 is inf"),
    (lambda: Dense.of(BATCH, [matrix()]), "features of 1 examples for 4"),
    (lambda: Dense.of(BATCH, [np.ones((2, 3))] * 4), "example 0: 2 feature rows for 14"),
    (
        lambda: Dense.of(BATCH, [np.ones((s.size, 2 + (m == 2))) for m, s in enumerate(CHAINS)]),
        "example 2 has 3 features, example 0 has 2",
    ),
    (lambda: Sparse.of(BATCH, sp.csr_array((3, 2))), "; expected 56 rows"),
    (
        lambda: Tied.of(Batch.of(FactorGraph([2, 2, 2], [(0, 1), (0, 1, 2)])), np.ones((3, 1))),
        "one size of tables",
    ),
]


@pytest.mark.parametrize(("build", "message"), MISUSE, ids=range(len(MISUSE)))
def test_misuse_names_the_example_and_the_feature(build, message):
    with pytest.raises(ValueError, match=message):
        build()


@pytest.mark.parametrize("seed", range(4))
def test_far_off_levels_come_near_without_a_change_for_perfect_matchings(seed):
    """Scores of matchings differ by one constant, and those of near levels by nothing at all."""
    rng, n = np.random.default_rng(seed), 6
    asked = [
        Question.ordinal("age", range(6), [1.0, 2.0, 3.0, 5.0, 1e8, 3e8]),
        Question.ordinal("noise", range(3)),
    ]
    batch = Batch.of([Matching(n)] * 2)
    codes = [np.stack([rng.integers(-1, 6, n), rng.integers(-1, 3, n)], axis=1) for _ in range(2)]
    plain = Pairs.of(batch, codes, asked)
    near, theta = plain.near(), rng.standard_normal(plain.d)
    theta[0] = rng.integers(1, 9)  # whole sums have no rounding
    theta[1:] = rng.integers(-9, 9, plain.d - 1)
    for m, graph in enumerate(batch.structures[k] for k in batch.which):
        here = batch.coordinates(m)
        apart = vertices(graph) @ (plain.potentials(theta) - near.potentials(theta))[here]
        np.testing.assert_array_equal(apart, apart[0])
    assert near.names == plain.names
    assert Pairs.of(batch, [c[:, 1:] for c in codes], asked[1:]).near().questions[0] is asked[1]

"""Marginals over what a solver's answers span: beside routines, and for solvers of one's own."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

import mlestruct as ms
from mlestruct.features import Dense
from mlestruct.inference import marginals
from mlestruct.inference.exact import outcomes
from mlestruct.statistics.interval import inference, likelihood_of, problem
from mlestruct.statistics.mixtures import Listed, Mixtures, listed
from mlestruct.structures.entropy import Entropy
from mlestruct.testing import vertices

STRUCTURES = {
    "perfect, ρ = ½": (ms.BipartiteMatching(4), 0.5),
    "perfect, Bethe": (ms.BipartiteMatching(4), 1.0),
    "partial": (ms.BipartiteMatching(3, 3, "partial"), 0.5),
    "chain": (ms.chain(5, 2), None),
    "tree": (ms.tree([(0, 1), (1, 2), (1, 3)], [2, 3, 2, 2]), None),
}
LOADS, CAPACITY = np.array([2, 3, 3, 4, 5, 5]), 10
BAGS = np.array([b for b in np.ndindex(*[2] * 6) if LOADS @ b <= CAPACITY], dtype=float)


def pack(scores):
    return BAGS[int(np.argmax(BAGS @ scores))]


def bags(count, rng, theta=(1.0, -0.5, 0.5)):
    """Examples of the model over all bags."""
    X = rng.standard_normal((count, len(LOADS), 3))
    scores = (X @ np.array(theta)) @ BAGS.T + rng.gumbel(size=(count, len(BAGS)))
    return list(X), list(BAGS[scores.argmax(axis=1)])


@pytest.mark.parametrize("name", STRUCTURES)
@pytest.mark.parametrize("spread", [0.3, 2.0, 6.0])
def test_mixtures_are_what_routines_find(name, spread, rng):
    """The same maximum and maximiser, cold, and warm from scores that were asked before."""
    structure, rho = STRUCTURES[name]
    batch, mixtures = ms.Batch.of(structure, count=6), Mixtures(None, rho)
    scores = spread * rng.standard_normal(batch.size)
    for moved in (0.0, 1e-3, 0.5, 3.0):
        here = scores + moved * rng.standard_normal(batch.size)
        log_z, tau = mixtures(batch, here)
        known = marginals(batch, here, rho=rho)
        np.testing.assert_allclose(log_z, (known.lower + known.upper) / 2, atol=1e-6)
        np.testing.assert_allclose(tau, known.tau, atol=1e-6)


@pytest.mark.parametrize("spread", [0.3, 2.0, 6.0, 20.0])
@pytest.mark.parametrize("rho", [0.5, 1.0])
def test_mixtures_have_the_digits_of_scaling(spread, rho, rng):
    """Of log Z eight, of τ nine: differences of a hundredth have to tell slopes' slopes."""
    batch = ms.Batch.of(ms.BipartiteMatching(5), count=4)
    scores = spread * rng.standard_normal(batch.size)
    log_z, tau = Mixtures(None, rho)(batch, scores)
    known = inference(Entropy.of(batch, rho))(batch, scores)
    np.testing.assert_allclose(log_z, known[0], atol=3e-8, rtol=1e-10)
    np.testing.assert_allclose(tau, known[1], atol=3e-9)


def test_mixtures_of_a_solver_are_stationary(rng):
    """No bag gains at the gradient of score and entropy; slopes by differences agree with τ."""
    batch, mixtures = ms.Batch.of(ms.Custom(6), count=4), Mixtures(pack, None)
    scores = 2.0 * rng.standard_normal(batch.size)
    log_z, tau = mixtures(batch, scores)
    for score, point in zip(scores.reshape(4, 6), tau.reshape(4, 6), strict=True):
        slope = score - np.log(point) + np.log1p(-point)
        assert (BAGS @ slope - point @ slope).max() < 1e-7
    step = 1e-4 * rng.standard_normal(batch.size)
    up, down = mixtures(batch, scores + step)[0], mixtures(batch, scores - step)[0]
    np.testing.assert_allclose((up - down) / 2, batch.totals(step * tau), atol=1e-9)
    assert (log_z >= [np.logaddexp.reduce(BAGS @ s) for s in scores.reshape(4, 6)]).all()


def test_what_a_solver_never_answers_has_no_probability(rng):
    """A solver that rules a pair out: its surrogate is over the matchings that are left."""
    structure = ms.BipartiteMatching(3)
    allowed = [v for v in outcomes_of(structure) if v[0] == 0]

    def solve(score):
        best = max(allowed, key=lambda v: v @ score.ravel())
        return best.reshape(3, 3)

    tau = Mixtures(solve, 0.5)(ms.Batch.of(structure, count=1), rng.standard_normal(9))[1]
    assert tau[0] == 0.0
    np.testing.assert_allclose(tau.reshape(3, 3).sum(axis=1), 1.0)


def outcomes_of(structure):
    return outcomes(structure) if isinstance(structure, ms.Matching) else vertices(structure)


@pytest.mark.parametrize("carried", [False, True])
def test_a_solver_of_ones_own_gets_intervals(carried, rng):
    """Near the truth's surrogate, with a width; from as many units as weights on refused."""
    X, y = bags(10 if carried else 30, rng)
    given = [{"features": x, "load": LOADS} for x in X] if carried else X
    solve = (lambda scores, instance: pack(scores)) if carried else pack
    model = ms.StructuredModel(ms.Custom(6), oracle=solve, alpha=0.1).fit(given, y)
    found = model.intervals(given, y)
    assert found.refused is None
    assert [row.name for row in found.rows] == model.names()
    for row, true in zip(found.rows, (1.0, -0.5, 0.5), strict=True):
        assert 0 < row.error < 2
        assert row.low - 0.5 < true < row.high + 0.5


def test_all_answers_of_a_solver_are_found_or_none(rng):
    batch = ms.Batch.of(ms.Custom(6), count=2)
    found, asked = listed(batch.select([0]), pack, 1000)
    assert asked < 3 * len(BAGS)
    assert sorted(map(tuple, found)) == sorted(map(tuple, BAGS))
    scores = rng.standard_normal(12)
    log_z, tau = Listed.of(batch, pack, 1000)(batch, scores)
    chance = [np.exp(BAGS @ s) for s in scores.reshape(2, 6)]
    np.testing.assert_allclose(log_z, [np.log(c.sum()) for c in chance])
    np.testing.assert_allclose(tau.reshape(2, 6), [c @ BAGS / c.sum() for c in chance])
    assert listed(batch.select([0]), pack, 10)[0] is None
    assert listed(batch.select([0]), lambda s: ms.Answer(pack(s), 99.0), 1000)[0] is None


def test_answers_far_too_many_are_seen_early():
    """What is open counts as asked: matchings of 9 by 9 take no 10,000 questions to give up."""
    asked = []

    def solve(score):
        asked.append(score)
        row, column = linear_sum_assignment(score.reshape(9, 9), maximize=True)
        return np.eye(9)[column[np.argsort(row)]].ravel()

    batch = ms.Batch.of(ms.Custom(81), count=1)
    assert listed(batch, solve, 10_000) == (None, len(asked))
    assert len(asked) < 5_000


def test_too_many_weights_are_refused_before_a_solver_is_asked(rng):
    asked = []

    def solve(score):
        asked.append(score)
        return pack(score)

    X = [rng.standard_normal((6, 301)) for _ in range(3)]
    batch = ms.Batch.of(ms.Custom(6), [BAGS[-1]] * 3)
    features = Dense.of(batch, np.concatenate(X))
    assert "300 at most" in problem(batch, features, oracle=solve)
    assert not asked


@pytest.mark.parametrize("many", [False, True])
def test_units_that_are_too_few_are_refused_where_sums_are_out_of_reach(many, rng, monkeypatch):
    """With all answers known the likelihood's fall tells; without, more units than weights."""
    X, y = bags(3, rng)
    model = ms.StructuredModel(ms.Custom(6), oracle=pack, alpha=0.1).fit(X, y)
    monkeypatch.setattr("mlestruct.estimators.intervals.FEWEST", 1 if many else 10_000)
    monkeypatch.setattr("mlestruct.estimators.intervals.QUESTIONS", 1 if many else 10_000)
    found = model.intervals(X, y)
    assert ("3 examples: their" in str(found)) == many
    assert len(found.rows) == (0 if many else 3)
    assert "one of the examples" in model.intervals(X[:1], y[:1]).refused or many


def test_an_own_solver_of_matchings_tells_what_the_library_tells(rng):
    structure = ms.BipartiteMatching(3)
    X = rng.standard_normal((15, 3, 3, 2))
    y = [rng.permutation(3) for _ in X]
    listed = outcomes_of(structure)

    def solve(score):
        return listed[int(np.argmax(listed @ score.ravel()))].reshape(3, 3)

    own = ms.MatchingModel(oracle=solve, alpha=0.1).fit(X, y).intervals(X, y)
    known = ms.MatchingModel(alpha=0.1).fit(X, y).intervals(X, y)
    for one, other in zip(own.rows, known.rows, strict=True):
        assert abs(one.estimate - other.estimate) < 0.5 * other.error
        assert 0.5 < one.error / other.error < 2.0


@pytest.mark.parametrize("spread", [0.3, 2.0, 6.0])
@pytest.mark.parametrize("rho", [0.5, 1.0])
@pytest.mark.parametrize(
    "structure", [ms.Matching(6), ms.Matching(8), ms.Matching(5, kind="partial")]
)
def test_small_general_matchings_are_mixed_as_prices_say(structure, rho, spread, rng):
    """Where odd sets bind or not: mixtures of all matchings have the prices' log Z and τ."""
    batch = ms.Batch.of(structure, count=8)
    features = Dense.of(batch, rng.standard_normal((batch.size, 3)))
    own = likelihood_of(batch, features, rho)
    assert isinstance(own.infer, Mixtures)
    scores = spread * rng.standard_normal(batch.size)
    log_z, tau = own.infer(batch, scores)
    known = inference(Entropy.of(batch, rho))(batch, scores)
    np.testing.assert_allclose(log_z, known[0], atol=1e-7, rtol=1e-9)
    np.testing.assert_allclose(tau, known[1], atol=1e-6)


@pytest.mark.parametrize("count", [1, 12])
def test_intervals_of_a_junction_tree_are_those_of_its_chain(count, rng):
    clusters, line = ms.ClusterGraph([2] * 3, [(0, 1), (1, 2)], [(0, 1, (1,))]), ms.chain(3, 2)
    X = rng.standard_normal((count, clusters.size, 2))
    y = rng.integers(2, size=(count, 3))
    same = np.zeros((count, line.size, 2))
    same[:, 6:14], same[:, 2:4] = X[:, :8], X[:, 8:]
    one, other = (
        ms.StructuredModel(structure, tol=0.01).fit(list(rows), list(y)).intervals(list(rows), y)
        for structure, rows in ((clusters, X), (line, same))
    )
    assert one.about == other.about == "the weights of the model itself"
    for row, known in zip(one.rows, other.rows, strict=True):
        for field in ("estimate", "error", "low", "high"):
            assert getattr(row, field) == pytest.approx(getattr(known, field), abs=1e-4)


@pytest.mark.parametrize("groups", [True, False])
def test_answers_too_many_to_list_tell_of_every_weight(groups, rng):
    """At weights of 0 the interior point may be the best mixture, so the solver is asked there."""

    def pairs(score):
        row, column = linear_sum_assignment(score.reshape(6, 6), maximize=True)
        found = np.zeros((6, 6))
        found[row, column] = 1.0
        return found.ravel()

    X = [rng.standard_normal((36, 2)) for _ in range(20)]
    y = [pairs(x @ [1.0, -0.5] + rng.gumbel(size=36)) for x in X]
    cells = np.arange(36).reshape(6, 6)
    known = {"exactly_one": [*cells.tolist(), *cells.T.tolist()]} if groups else {}
    model = ms.StructuredModel(ms.Custom(36, **known), oracle=pairs, tol=0.01).fit(X, y)
    found = model.intervals(X, y)
    assert (found.rank, found.refused) == (2, None)
    assert found["feature 0"].low > 0 > found["feature 1"].estimate

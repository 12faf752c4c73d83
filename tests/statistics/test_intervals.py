"""Intervals: slopes and bias against brute force, laws of the estimates, and what is refused."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize

import mlestruct as ms
from mlestruct.features import Dense
from mlestruct.inference.exact import outcomes
from mlestruct.statistics import Identified, UnitLikelihood, intervals, problem
from mlestruct.statistics.firth import Firth
from mlestruct.statistics.interval import Units
from mlestruct.structures.batch import Batch
from mlestruct.testing import vertices

ARCS = [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3), (0, 3)]
STRUCTURES = {
    "perfect": ms.BipartiteMatching(4),
    "one sided": ms.BipartiteMatching(3, 4, "one_sided"),
    "partial": ms.BipartiteMatching(3, 3, "partial"),
    "general": ms.Matching(6),
    "chain": ms.chain(4, 2),
    "grid": ms.grid(2, 3, 2),
    "paths": ms.Paths(ARCS, source=0, sink=3),
}
NAMES = ["a", "b", "c"]
TRUE = np.array([0.8, -0.4, 0.3])


def listed(structure):
    return outcomes(structure) if isinstance(structure, ms.Matching) else vertices(structure)


def drawn(structure, count, rng):
    """Examples of the model itself: a batch, its features."""
    rows = listed(structure)
    X = rng.standard_normal((count, structure.size, len(TRUE)))
    chosen = []
    for x in X:
        score = rows @ (x @ TRUE)
        chance = np.exp(score - score.max())
        chosen.append(structure.decode(rows[rng.choice(len(rows), p=chance / chance.sum())]))
    batch = ms.Batch.of(structure, chosen)
    return batch, ms.Dense.of(batch, X.reshape(-1, len(TRUE)))


def brute(batch, features, theta):
    """(log-likelihood, information) by listing every outcome."""
    rows, value, H = listed(batch.structures[0]), 0.0, np.zeros((3, 3))
    for m in range(len(batch)):
        part = batch.coordinates(m)
        moments = rows @ features.matrix[part]
        score = moments @ theta
        log_z = np.logaddexp.reduce(score)
        value += batch.target[part] @ features.matrix[part] @ theta - log_z
        H += np.cov(moments.T, aweights=np.exp(score - log_z), ddof=0)
    return value, H


@pytest.mark.parametrize("name", STRUCTURES)
def test_slopes_are_those_of_every_outcome(name, rng):
    """Values, information, and the slope of log det H where the basis makes H the identity."""
    batch, features = drawn(STRUCTURES[name], 3, rng)
    own = problem(batch, features, summed=True).model
    theta = rng.standard_normal(3)
    value, H = brute(batch, features, theta)
    basis = np.linalg.inv(np.linalg.cholesky(H)).T
    found = own.slopes(theta, basis)
    assert np.isclose(found.value.sum(), value)
    np.testing.assert_allclose(found.hessian.sum(axis=0), np.eye(3), atol=1e-3)

    def volume(at):
        return np.linalg.slogdet(brute(batch, features, at)[1])[1]

    moved = [(volume(theta + 1e-5 * b) - volume(theta - 1e-5 * b)) / 2e-5 for b in basis.T]
    np.testing.assert_allclose(found.third, moved, atol=2e-2)


@pytest.mark.parametrize("name", ["perfect", "chain", "paths"])
def test_firth_maximises_the_penalised_likelihood(name, rng):
    """ℓ + ½ log det H, by brute force and a generic solver."""
    batch, features = drawn(STRUCTURES[name], 4, rng)
    own = problem(batch, features, summed=True).model

    def loss(theta):
        value, H = brute(batch, features, theta)
        return -value - 0.5 * np.linalg.slogdet(H)[1]

    best = minimize(loss, np.zeros(3), tol=1e-9)
    firth = Firth(own, 0.5)
    top = firth.maximise(firth.start(np.zeros(3), Identified.of(own).basis))
    np.testing.assert_allclose(top.theta, best.x, atol=5e-3)


@pytest.mark.parametrize("place", ["firth.STEPS", "firth.TRIES"])
def test_a_search_that_does_not_come_to_rest_is_no_estimate(place, rng, monkeypatch):
    batch, features = drawn(STRUCTURES["perfect"], 4, rng)
    asked = problem(batch, features, summed=True)
    assert intervals(asked, NAMES).rows
    monkeypatch.setattr(f"mlestruct.statistics.{place}", 1)
    found = intervals(asked, NAMES, start=np.full(3, 2.0))
    assert not found.rows
    assert "did not come to rest" in found.refused


@pytest.mark.parametrize("name", STRUCTURES)
@pytest.mark.parametrize("count", [3, 5, 12])
def test_intervals_are_equivariant_and_have_a_width(name, count, rng):
    batch, features = drawn(STRUCTURES[name], count, rng)
    found = intervals(problem(batch, features, summed=True), NAMES)
    order, scale = rng.permutation(count), np.array([1e3, 1e-3, 1.0])
    turned = batch.select(order)
    rows = ms.Dense.of(turned, features.select(order).matrix * scale)
    again = intervals(problem(turned, rows, summed=True), NAMES)
    for one, other, by in zip(found.rows, again.rows, scale, strict=True):
        assert one.low < one.estimate < one.high
        assert one.error > 0
        here = np.array([one.estimate, one.error, one.low, one.high])
        there = by * np.array([other.estimate, other.error, other.low, other.high])
        np.testing.assert_allclose(there, here, rtol=0.03, atol=0.03)


@pytest.mark.parametrize("rho", [0.5, 1.0])
def test_cohorts_are_units_whatever_they_repeat(rho, rng):
    batch, features = drawn(STRUCTURES["perfect"], 20, rng)
    twice = np.repeat(np.arange(20), 2)
    double = batch.select(twice), features.select(twice)
    one = intervals(problem(batch, features, rho), NAMES)
    kept = intervals(problem(*double, rho, unit=twice, unit_name="cohorts"), NAMES)
    shrunk = intervals(problem(*double, rho), NAMES)
    assert (kept.units, kept.unit, shrunk.units) == (20, "cohorts", 40)
    for a, b, c in zip(one.rows, kept.rows, shrunk.rows, strict=True):
        assert 0.7 < b.error / a.error < 1.3
        assert c.error < 0.85 * b.error


@pytest.mark.parametrize("count", [2, 5, 12])
def test_separation_has_no_end(count, rng):
    structure = STRUCTURES["perfect"]
    X = rng.standard_normal((count, 16, 2))
    y = [rng.permutation(4) for _ in range(count)]
    for x, partner in zip(X, y, strict=True):
        x[:, 0] = structure.encode(partner)
    batch = ms.Batch.of(structure, y)
    features = ms.Dense.of(batch, X.reshape(-1, 2))
    found = intervals(problem(batch, features, summed=True), NAMES[:2])
    assert np.isposinf(found["a"].high)
    assert found["a"].low > 0
    assert np.isfinite(found["a"].estimate)
    assert "no upper end" in str(found)


def test_no_interval_where_none_is_honest(rng):
    """One example of a surrogate; fewer units than weights where sums are out of reach."""
    batch, features = drawn(STRUCTURES["perfect"], 1, rng)
    one = intervals(problem(batch, features, 0.5), NAMES)
    assert not one.rows
    assert "exact_mle" in one.refused
    exact = intervals(problem(batch, features, summed=True), NAMES)
    assert len(exact.rows) == 3
    assert "one example cannot show otherwise" in str(exact)
    known = problem(*drawn(STRUCTURES["perfect"], 3, rng), 0.5)
    far = UnitLikelihood(known.model, None, known.unit)
    assert "3 examples: their" in intervals(far, NAMES).refused
    flat = ms.Dense.of(batch, np.ones((16, 1)))
    assert "tell nothing" in intervals(problem(batch, flat, summed=True), ["one"]).refused


@pytest.mark.parametrize("states", [2, 3])
@pytest.mark.parametrize("graph", [ms.chain, ms.grid])
def test_what_is_not_identified_changes_no_probability(states, graph, rng):
    """At any θ, by any amount; and as many combinations as there are directions have names."""
    graph = graph(5, states) if graph is ms.chain else graph(3, 3, states)
    batch = ms.Batch.of([graph] * 4, [np.zeros(graph.n_nodes, dtype=int)] * 4)
    nodes = rng.standard_normal((4 * graph.n_nodes, 2))
    features = ms.Tied.of(batch, nodes, np.ones((4 * graph.n_factors, 1)))
    own = problem(batch, features, summed=True).model
    told = Identified.of(own)
    theta = rng.standard_normal(features.d)
    tau = own.infer(batch, features.potentials(theta))[1]
    for direction in told.null.T:
        moved = own.infer(batch, features.potentials(theta + 3.0 * direction))[1]
        np.testing.assert_allclose(moved, tau, atol=1e-6)
    assert not any(told.tells(weight) for weight in np.eye(features.d))
    found = told.contrasts([f"w{j}" for j in range(features.d)])
    assert len(found) == told.rank
    assert np.linalg.matrix_rank([one.combination for one in found]) == told.rank


def test_weights_that_are_known_are_not_estimated(rng):
    batch, features = drawn(STRUCTURES["perfect"], 12, rng)
    asked = problem(batch, features, summed=True)
    free = np.array([True, False, True])
    found = intervals(asked, NAMES, start=np.array([0.0, -0.4, 0.0]), free=free)
    assert [row.name for row in found.rows] == ["a", "c"]
    cut = intervals(asked, NAMES, bounds=(np.full(3, -0.5), np.full(3, 1.0)))
    whole = intervals(asked, NAMES)
    for one, other in zip(cut.rows, whole.rows, strict=True):
        assert one.low == max(other.low, -0.5)
        assert one.high == min(other.high, 1.0)


def test_a_bias_is_part_of_the_score(rng):
    batch, features = drawn(STRUCTURES["perfect"], 15, rng)
    whole = intervals(problem(batch, features, summed=True), NAMES)
    offset = features.potentials(np.array([0.5, 0.0, 0.0]))
    y = [batch.structure(m).decode(batch.target[batch.coordinates(m)]) for m in range(15)]
    moved = ms.Batch.of(batch.structures[0], y, bias=offset, count=15)
    found = intervals(problem(moved, features, summed=True), NAMES)
    assert np.isclose(found["a"].estimate, whole["a"].estimate - 0.5, atol=1e-3)
    assert np.isclose(found["a"].error, whole["a"].error, rtol=1e-2)


def test_units_alike_have_the_textbooks_degrees_of_freedom(rng):
    """Equal units of one weight: CR2 is the unbiased variance of a mean, with M − 1."""
    scores = rng.standard_normal((9, 1))
    units = Units(scores - scores.mean(), np.full((9, 1, 1), 1 / 9), None)
    found = units.robust(np.ones(1))
    assert np.isclose(found.freedom, 8.0)
    assert np.isclose(found.variance, 9.0 * scores.var(ddof=1))


def test_one_weights_dispersion_is_the_textbooks_variance(rng):
    """Equal units of one weight: nothing to pool, so both means are CR2's, with its degrees."""
    scores = rng.standard_normal((9, 1))
    equal = np.full((9, 1, 1), 1 / 9)
    units = Units(scores - scores.mean(), equal, equal)
    one, other = units.robust(np.ones(1)), units.moderated(np.ones(1))
    np.testing.assert_allclose(other, one)


def test_dispersion_of_the_model_itself_is_one():
    """On examples of few outcomes, too, where a mean of units' own ratios is too small."""
    arcs = [(i, j) for i in range(6) for j in range(i + 1, 6) if j - i <= 2]
    structure, found, own = ms.Paths(arcs, source=0, sink=5), [], []
    for repeat in range(40):
        batch, features = drawn(structure, 12, np.random.default_rng([5, repeat]))
        asked = problem(batch, features, summed=True)
        firth = Firth(asked.model, 0.5)
        slopes = firth.maximise(firth.start(np.zeros(3), Identified.of(asked.model).basis)).slopes
        units = Units.of(slopes.score, slopes.hessian, slopes.hessian, asked.unit)
        found.append(units.dispersion.variance)
        pairs = zip(slopes.score, slopes.hessian, strict=True)
        own.append(sum(s @ np.linalg.pinv(J, 1e-8) @ s for s, J in pairs) / 33)
    assert 0.89 < np.mean(found) < 1.11
    assert np.mean(own) < 0.89


def test_a_weight_that_one_example_alone_tells_has_no_variance_between_units(rng):
    """Exact sums leave the likelihood's fall; without them there is no honest interval."""
    X = np.zeros((9, 9, 2))
    X[0, :, 0], X[:, :, 1] = rng.standard_normal(9), rng.standard_normal((9, 9))
    structure = ms.BipartiteMatching(3)
    batch = ms.Batch.of(structure, [rng.permutation(3) for _ in X])
    features = ms.Dense.of(batch, X.reshape(-1, 2))
    asked = problem(batch, features, summed=True)
    found = intervals(asked, NAMES[:2])
    assert found["a"].error > 0.5  # one example of nine outcomes tells no more
    assert found["a"].high - found["a"].low > 2.5
    assert found.assumes.endswith("right, but for what one unit alone tells (a)")
    assert (
        "alone tells" in intervals(UnitLikelihood(asked.model, None, asked.unit), NAMES[:2]).refused
    )


@pytest.mark.parametrize("seed", [0, 9, 12])
def test_nearly_nothing_between_units_is_no_interval_of_nan(seed):
    """Seven weights told by one example each, an eighth by one nearly alone: no dispersion."""
    rng = np.random.default_rng(0)
    X = np.zeros((9, 9, 8))
    for j in range(7):
        X[j, :, j] = rng.standard_normal(9)
    X[:, :, 7] = rng.standard_normal((9, 9)) * np.array([0.02] * 8 + [1.0])[:, None]
    rng = np.random.default_rng(seed)
    batch = ms.Batch.of(ms.BipartiteMatching(3), [rng.permutation(3) for _ in X])
    asked = problem(batch, ms.Dense.of(batch, X.reshape(-1, 8)), summed=True)
    found = intervals(asked, list("abcdefgh"))
    assert not np.isnan([[row.low, row.high] for row in found.rows]).any()
    assert found["h"].low < found["h"].estimate < found["h"].high


def test_a_long_search_is_announced(rng, monkeypatch, capsys):
    batch, features = drawn(STRUCTURES["perfect"], 4, rng)
    asked = problem(batch, features, summed=True)
    monkeypatch.setattr("mlestruct.progress.WORTH_SHOWING", 0.0)
    intervals(asked, NAMES)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("mlestruct.progress.watched", lambda: True)
    intervals(asked, NAMES)
    said = capsys.readouterr().err
    assert said.startswith("mlestruct: looking for intervals, about ")
    assert "%|" in said  # a bar
    bags = ms.Batch.of(ms.Custom(6, A=[np.ones(6)], lower=0, upper=3), [np.eye(6)[0]] * 8)
    features = ms.Dense.of(bags, rng.standard_normal((48, 2)))
    problem(bags, features, oracle=lambda score: np.argsort(-score)[:3])
    assert "asking the solver for its answers, 10000 questions at most" in capsys.readouterr().err


def test_ends_that_take_minutes_are_refused(rng):
    """As many weights as examples: each end is a search of its own. Fewer are searched for."""
    for d, refused in ((6, False), (70, True)):
        X = rng.standard_normal((30, 9, d))
        y = [rng.permutation(3) for _ in X]
        batch = Batch.of(ms.BipartiteMatching(3), y[: 30 if refused else 5])
        features = Dense.of(batch, X[: len(batch)].reshape(-1, d))
        found = intervals(problem(batch, features, summed=True), [f"w{j}" for j in range(d)])
        assert (found.refused is not None and "too long" in found.refused) == refused


def test_a_million_weights_are_refused_before_anything_is_built(rng):
    X = [[{f"word {rng.integers(10**6)}": 1.0} for _ in range(30)] for _ in range(30)]
    y = [rng.integers(0, 3, 30) for _ in X]
    model = ms.SequenceModel(tol=0.5).fit(X, y)
    found = model.intervals(X, y)
    assert not found.rows
    assert "weights are too many to tell apart" in str(model.summary(found))


@pytest.mark.parametrize("reference", ["q", 1, ["a", "b"]])
@pytest.mark.parametrize("words", [3, 400])
def test_an_unknown_reference_is_refused_however_many_weights_there_are(reference, words, rng):
    X = [[{f"word {rng.integers(words)}": 1.0} for _ in range(20)] for _ in range(20)]
    y = [rng.choice(["a", "b", "c"], 20) for _ in X]
    model = ms.SequenceModel(tol=0.5).fit(X, y)
    with pytest.raises(ValueError, match="which is none of the labels: 'a', 'b', 'c'"):
        model.intervals(X, y, reference=reference)


def told(kind, rng):
    """A model and examples for it, twice as many as it is to learn from."""
    if kind == "sequences":
        X = [rng.standard_normal((5, 2)) for _ in range(24)]
        return ms.SequenceModel(), X, [rng.integers(0, 2, 5) for _ in X]
    X = [rng.standard_normal((3, 3, 2)) for _ in range(24)]
    settings = {"oracle": assignment} if kind == "own solver" else {}
    return ms.MatchingModel(**settings), X, [rng.permutation(3) for _ in X]


def assignment(scores):
    every = [np.eye(3)[list(p)] for p in itertools.permutations(range(3))]
    return max(every, key=lambda one: float((one * scores).sum()))


@pytest.mark.parametrize("kind", ["matchings", "sequences", "own solver"])
def test_intervals_of_other_examples_say_so(kind, rng, tmp_path):
    """Of those learned from, in any order, nothing is said; of others, fewer or weighted it is.

    A file does not hold what its model learned from: then that is what is said.
    """
    model, X, y = told(kind, rng)
    model.fit(X[:12], y[:12])
    assert model.intervals(X[:12], y[:12]).others is None
    assert model.intervals(X[11::-1], y[11::-1]).others is None
    for other in (
        model.intervals(X[12:], y[12:]),
        model.intervals(X[:11], y[:11]),
        model.intervals(X[:12], y[:12], np.linspace(1, 2, 12)),
    ):
        assert "did not learn" in other.others
        assert other.others in str(other)
        assert other.others in str(model.summary(other))
    model.save(tmp_path / "model")
    again = {"oracle": assignment} if kind == "own solver" else {}
    loaded = type(model).load(tmp_path / "model", **again)
    assert "whether the model learned" in loaded.intervals(X[:12], y[:12]).others


def test_of_cohorts_the_variance_between_them_speaks_alone(rng):
    """Examples of a cohort resemble each other as no model says: CR2, from four cohorts on."""
    batch, features = drawn(STRUCTURES["chain"], 24, rng)
    own = problem(batch, features, unit=np.arange(24) // 3, unit_name="cohorts")
    whole = np.arange(24) // 3
    assert own.exact is own.model
    assert not own.vary
    told = Identified.of(own.model)
    top = Firth(own.model, 0.5).maximise(Firth(own.model, 0.5).start(np.zeros(3), told.basis))
    units = Units.of(top.slopes.score, top.slopes.hessian, None, whole)
    for row, c in zip(intervals(own, NAMES).rows, np.eye(3), strict=True):
        assert row.error**2 == pytest.approx(units.robust(top.basis.T @ c).variance, rel=1e-4)
    few = problem(batch, features, unit=np.arange(24) // 8, unit_name="cohorts")
    assert "how alike examples of one of them are" in str(intervals(few, NAMES).refused)
    each = problem(batch, features, unit=np.arange(24), unit_name="cohorts")
    assert each.vary
    assert intervals(each, NAMES).rows == intervals(problem(batch, features), NAMES).rows


def test_where_outcomes_are_nearly_certain_the_fall_decides(rng):
    """Weights four times as large, 30 tables: no parabola, so the far end is farther away."""
    structure = STRUCTURES["perfect"]
    rows, strong = vertices(structure), 4.0 * TRUE
    X = rng.standard_normal((30, structure.size, 3))
    scores = np.einsum("kp,mpd,d->mk", rows, X, strong)
    drawn_ = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    batch = ms.Batch.of(structure, [structure.decode(rows[k]) for k in drawn_])
    found = intervals(problem(batch, Dense.of(batch, X.reshape(-1, 3)), summed=True), NAMES)
    assert "vary as the model says or evenly more" in found.assumes
    first = found["a"]
    assert first.high - first.estimate > 1.1 * (first.estimate - first.low)
    usual = intervals(problem(*drawn(structure, 30, rng), summed=True), NAMES)["a"]
    assert usual.high - usual.estimate == pytest.approx(usual.estimate - usual.low)

"""What learned is what predicts: the model keeps its inference, and files do."""

import re
from functools import partial

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.families.fitting.implicit import coefficients
from mlestruct.features import Dense
from mlestruct.inference import marginals
from mlestruct.inference.exact import exact
from mlestruct.learners import LEARNERS, implicit, trw_tightest
from mlestruct.learning.problem import Surrogate, places
from mlestruct.structures import grid


def examples(rng, shape=(3, 3), count=5):
    X = [rng.standard_normal((*shape, 2)) for _ in range(count)]
    return X, [(x[..., 0] + 0.6 * rng.standard_normal(shape) > 0).astype(int) for x in X]


def sequences(rng, count=5):
    X = [rng.standard_normal((n, 2)) for n in rng.integers(2, 6, count)]
    return X, [(x[:, 0] + 0.6 * rng.standard_normal(len(x)) > 0).astype(int) for x in X]


def tables(rng, count=5):
    return rng.standard_normal((count, 3, 3, 2)), [rng.permutation(3) for _ in range(count)]


MATCHES = ("mle_struct", "exact_mle", "trw", "ssvm", "perceptron")
FRONTS = {
    "grid": (ms.GridModel, examples),
    "sequence": (ms.SequenceModel, sequences),
    "matching": (ms.MatchingModel, tables),
}


def dag(n=6):
    return ms.Paths([(u, v) for u in range(n) for v in range(u + 1, n) if v - u <= 3], 0, n - 1)


def pick(score):
    """One of the first two parts, one of the last two."""
    return np.array([score[0] >= score[1], score[0] < score[1], score[2] >= score[3],
                     score[2] < score[3]], dtype=float)  # fmt: skip


BATCHES = {
    "grids": lambda: [grid(3, 3)] * 3,
    "chains": lambda: [ms.chain(n, 2) for n in (3, 5, 4)],
    "trees": lambda: [ms.FactorGraph([2, 3, 2, 2], [(0, 1), (1, 2), (1, 3)])] * 3,
    "order 3": lambda: [ms.FactorGraph([2] * 4, [(0, 1, 2), (1, 2, 3), (0, 3)])] * 3,
    "different": lambda: [grid(2, 3), ms.chain(4, 2), ms.FactorGraph([2, 3, 2], [(0, 1, 2)])],
    "clamped": lambda: [grid(2, 3).clamp([1, -1, -1, -1, -1, -1])] * 3,
    "perfect": lambda: [ms.BipartiteMatching(3), ms.BipartiteMatching(4)],
    "partial": lambda: [ms.BipartiteMatching(3, 4, "partial")] * 3,
    "one-sided": lambda: [ms.BipartiteMatching(3, 4, "one_sided")] * 3,
    "general": lambda: [ms.Matching(4), ms.Matching(6), ms.Matching(4)],
    "odd": lambda: [ms.Matching(5, kind="partial")] * 3,
    "paths": lambda: [dag()] * 3,
    "b-matchings": lambda: [ms.BMatching(4, capacity=2)] * 3,
    "Ising": lambda: [ms.Ising(3, [(0, 1), (1, 2), (0, 2)])] * 3,
    "own": lambda: [ms.Custom(4, exactly_one=[(0, 1), (2, 3)])] * 3,
}


NO_SUCH = re.compile(
    "has no use for|runs on factor graphs|needs labelled graphs|no pieces|not provably concave|"
    "is not for a|graphs of binary variables|fits start from|need factors of two|clusters are|"
    "no reweighted Bethe entropy|no entropy to reweight|starts from uniform trees"
)


def unmatched(model, X, y):
    """‖Σ (φ − Φᵀτ) − αθ‖: nothing at an optimum of a likelihood whose τ these are."""
    batch, scores = model._scored(model._given(X, y), y)
    tau = np.concatenate([np.ravel(part) for part in [model._marginals(batch, scores).tau]])
    left = model.features(batch, X).moments(batch.target - tau) - model.alpha * model.coef_
    return float(np.linalg.norm(left))


@pytest.mark.filterwarnings("ignore::mlestruct.errors.ConvergenceWarning")
@pytest.mark.parametrize("front", FRONTS)
@pytest.mark.parametrize("learner", ["mle_struct", "exact_mle", "trw", "camel0", "camel", "lbp"])
def test_the_marginals_that_learned_predict(front, learner, rng):
    """At the optimum λθ is what the training examples' predicted marginals leave unmatched."""
    if front == "matching" and learner in ("trw", "camel0", "camel", "lbp"):
        pytest.skip("a learner of labelled graphs")
    kind, make = FRONTS[front]
    X, y = make(rng)
    model = kind(learner=learner, alpha=0.7, tol=1e-11).fit(X, y)
    assert unmatched(model, X, y) <= 2e-4
    other = kind(learner="piecewise" if front == "grid" else learner, alpha=70.0, tol=1e-9)
    assert unmatched(other.fit(X, y), X, y) > 2e-4 or front != "grid"


def survives(model, X, path, **code):
    """A file changes no bit of a model's probabilities, and its summary names what they are by."""
    before = model.predict_marginals(X)
    model.save(path)
    again = type(model).load(path, **code)
    assert str(again.inference_) == str(model.inference_)
    assert (np.asarray(again.coef_) == model.coef_).all()
    for one, other in zip(before, again.predict_marginals(X), strict=True):
        assert (one == other).all()
    assert f"probabilities: {model.inference_}" in str(model.summary())


def night(cases, every):
    """Every so many cases now, the rest at night."""
    marks = [() if k % every == 0 else pytest.mark.nightly for k in range(len(cases))]
    return [pytest.param(*one, marks=mark) for one, mark in zip(cases, marks, strict=True)]


@pytest.mark.filterwarnings("ignore::mlestruct.errors.ConvergenceWarning")
@pytest.mark.parametrize(
    ("kind", "learner"), night([(k, name) for k in BATCHES for name in LEARNERS], 5)
)
def test_every_learner_keeps_its_inference_on_every_structure(kind, learner, tmp_path, rng):
    """In files too; what it calls exact, or a bound, is held against a list of all outcomes."""
    batch, features, oracle = drawn_batch(rng, kind)
    places = [batch.coordinates(m) for m in range(len(batch))]
    X = [features.matrix[place] for place in places]
    known = {x.tobytes(): batch.structure(m) for m, x in enumerate(X)}
    y = [known[x.tobytes()].decode(batch.target[at]) for x, at in zip(X, places, strict=True)]
    code = {"structure": lambda x: known[x.tobytes()], "oracle": oracle}
    model = ms.StructuredModel(learner=learner, alpha=0.5, tol=1e-4, max_rounds=40, **code)
    try:
        model.fit(X, y)
    except ValueError as error:
        if NO_SUCH.search(str(error)) is None:
            raise
        return
    survives(model, X, tmp_path / "model.npz", **code)
    if kind == "own":  # its outcomes cannot be listed
        return
    _, scores = model._scored(model._given(X))
    log_z, tau, _ = exact(batch, scores)
    found, room = model._marginals(batch, scores), 1e-9 * (1.0 + np.abs(log_z))
    if found.bound.kind in ("exact", "upper"):
        assert (found.upper >= log_z - room).all()
    if found.bound.kind in ("exact", "lower"):
        assert (found.lower <= log_z + room).all()
    if found.bound.kind == "exact":
        assert np.abs(found.tau - tau).max() <= 1e-6
    summed = model.set_params(infer="exact").predict_marginals(X)
    assert np.abs(np.concatenate([np.ravel(one) for one in summed]) - tau).max() <= 1e-8


def company(name):
    """(structures that a routine serves, one that it does not serve beside them)"""
    free, fixed = grid(2, 3), grid(2, 3).fixed.copy()
    fixed[free.node_start[-1]] = 0  # one configuration of an edge
    return {
        "a forbidden configuration": ([grid(2, 3), ms.chain(4, 2)], free.refix(fixed)),
        "paths among matchings": ([ms.BipartiteMatching(3)] * 2, dag()),
        "a grid among matchings": ([ms.Matching(4), ms.Matching(6)], grid(2, 2)),
        "b-matchings among paths": ([dag(5), dag(6)], ms.BMatching(4, capacity=2)),
    }[name]


@pytest.mark.parametrize(
    "name",
    ["a forbidden configuration", "paths among matchings", "a grid among matchings",
     "b-matchings among paths"],
)  # fmt: skip
def test_an_answer_does_not_depend_on_its_company(name, rng):
    """Once one example that no routine served sent all examples beside it by Frank-Wolfe."""
    structures, stranger = company(name)
    whole = ms.Batch.of([structures[0], stranger, *structures[1:]])
    scores = 2.0 * rng.standard_normal(whole.size)
    beside = marginals(whole, scores)
    for m in range(len(whole)):
        place = whole.coordinates(m)
        alone = marginals(ms.Batch.of(whole.structure(m), count=1), scores[place])
        apart = max(1e-9, float((alone.upper - alone.lower + beside.upper - beside.lower)[0]))
        assert abs(alone.lower[0] - beside.lower[m]) <= apart
        if whole.structure(m) is not stranger:
            assert np.abs(alone.tau - beside.tau[place]).max() <= 1e-9


def test_the_impossible_example_is_named_by_its_own_number():
    impossible = grid(2, 2).refix(np.where(np.arange(grid(2, 2).size) < 2, 0, -1).astype(np.int8))
    batch = ms.Batch.of([ms.BipartiteMatching(3), grid(2, 3), ms.BipartiteMatching(3), impossible])
    with pytest.raises(ValueError, match="no possible state") as raised:
        marginals(batch, np.zeros(batch.size))
    assert [note.split(":")[0] for note in raised.value.__notes__] == ["example 3"]


def test_sizes_whose_rho_differ_are_each_scaled(rng):
    """``hypertree`` is ½(1 + 1/n): matchings of two sizes have two ρ, and each has its prices."""
    batch = ms.Batch.of([ms.BipartiteMatching(n) for n in (3, 4, 3)])
    found = marginals(batch, 3.0 * rng.standard_normal(batch.size), rho="hypertree")
    assert (found.upper - found.lower).max() <= 1e-8


def test_what_kept_inference_cannot_serve_is_refused_with_advice(rng):
    X, y = examples(rng, (2, 2), 2)
    model = ms.GridModel(learner=partial(LEARNERS["exact_mle"], memory=1e-5)).fit(X, y)
    wide = [rng.standard_normal((9, 9, 2))]
    with pytest.raises(ValueError, match="infer='surrogate'"):
        model.predict_marginals(wide)
    model.set_params(infer="surrogate")
    assert model.predict_marginals(wide)[0].shape[:2] == (9, 9)
    with pytest.raises(ValueError, match="there are surrogate"):
        model.set_params(infer="crystal ball").predict_marginals(wide)


def strangers():
    """Structures that a model of binary grids may meet."""
    graph, fixed = grid(2, 3), grid(2, 3).fixed.copy()
    fixed[graph.node_start[-1]] = 0
    return {
        "clamped": graph.clamp([1, -1, -1, -1, -1, 0]),
        "forbidden": graph.refix(fixed),
        "order 3": ms.FactorGraph([2] * 4, [(0, 1, 2), (1, 2, 3), (0, 3)]),
        "three states": ms.FactorGraph([3, 3], [(0, 1)]),
        "alone": ms.FactorGraph([2], []),
        "matching": ms.BipartiteMatching(3),
        "paths": dag(5),
    }


@pytest.mark.filterwarnings("ignore::mlestruct.errors.ConvergenceWarning")
@pytest.mark.parametrize(
    ("learner", "rho"), night([(name, rho) for name in LEARNERS for rho in (None, "trees", 1.0)], 2)
)
def test_a_structure_that_is_not_served_is_refused_with_advice_that_serves(learner, rho, rng):
    """Never by another inference in silence; and samples need none."""
    known = ms.FactorGraph([2, 2, 2], [(0, 1), (1, 2)]) if rho == 1.0 else grid(2, 2)
    X = [rng.standard_normal((known.size, 2)) for _ in range(4)]
    y = [known.decode(x[:, 0] + rng.standard_normal(known.size)) for x in X]
    table = dict.fromkeys((x.tobytes() for x in X), known)
    settings = {"learner": learner, "rho": rho, "alpha": 1.0, "tol": 1e-2, "max_rounds": 20}
    model = ms.StructuredModel(lambda x: table[x.tobytes()], **settings)
    try:
        model.fit(X, y)
    except ValueError as error:
        if NO_SUCH.search(str(error)) is None:
            raise
        return
    for structure in strangers().values():
        x = rng.standard_normal((structure.size, 2))
        table[x.tobytes()] = structure
        assert len(model.set_params(infer=None).sample([x], 2, random_state=0).outcomes[0]) == 2
        said = refusal(model, x)
        advised = re.findall(r"'(\w+)'", said.rpartition("infer=")[2])
        assert not said or any(not refusal(model.set_params(infer=name), x) for name in advised)


def refusal(model, x):
    try:
        return "" if model.predict_marginals([x]) else "nothing"
    except ValueError as error:
        return str(error)


@pytest.mark.filterwarnings("ignore::mlestruct.errors.ConvergenceWarning")
def test_the_trees_that_were_found_are_used(rng, tmp_path):
    """Their ρ gives a smaller bound than uniform trees, and is kept in files and checkpoints."""
    X, y = examples(rng, (3, 3), 3)
    make = partial(trw_tightest, rounds=2)
    path = tmp_path / "fit"
    model = ms.GridModel(learner=make, alpha=0.02, tol=1e-6).fit(X, y, checkpoint=path)
    batch, scores = model._scored(model._given(X))
    rho = next(iter(model.inference_.learned.values()))
    assert np.ptp(rho[-12:]) > 1e-3
    found, plain = model._marginals(batch, scores), marginals(batch, scores)
    assert found.upper.sum() <= plain.upper.sum() + 1e-9
    finished = ms.GridModel(learner=make, alpha=0.02, tol=1e-6).fit(X, y, checkpoint=path)
    model.save(tmp_path / "model.npz")
    loaded = ms.GridModel.load(tmp_path / "model.npz", learner=make)
    for other in (finished, loaded):
        assert (other._marginals(batch, scores).tau == found.tau).all()
    with pytest.raises(ValueError, match="no ρ was learned for this FactorGraph"):
        model.predict_marginals([rng.standard_normal((3, 4, 2))])


def entropies(batch):
    """One weight for nodes, one for tables."""
    nodes = np.concatenate([batch.structure(m).table_of for m in range(len(batch))]) < 9
    return Dense.of(batch, np.stack([nodes, ~nodes], axis=1).astype(float))


def fitted(rho=None, **settings):
    """Implicit fitting from a tenth of the nodes' entropies, which are positive as log w needs."""
    return implicit(coefficients(0.1), **settings)


@pytest.mark.filterwarnings("ignore::mlestruct.errors.ConvergenceWarning")
def test_entropies_are_learned_at_the_front_door(rng, tmp_path):
    X, y = examples(rng, (3, 3), 4)
    make = partial(fitted, entropy=entropies)
    model = ms.GridModel(learner=make, alpha=0.1, max_rounds=20).fit(X, y)
    assert len(model.coef_) == len(model.names())
    learned = model.inference_.learned["weight"]
    assert learned.shape == (2,)
    assert np.abs(learned).max() > 0
    model.save(tmp_path / "model.npz")
    again = ms.GridModel.load(tmp_path / "model.npz", learner=make)
    assert all(
        (a == b).all()
        for a, b in zip(model.predict_marginals(X), again.predict_marginals(X), strict=True)
    )


def test_solver_and_oracle_mean_the_same_for_fit_and_predict(rng):
    """A solver named at a fit is asked by predictions too; the direct route asks for proofs."""
    X, y = tables(rng)
    asked = []

    def best(score):
        asked.append(score)
        from scipy.optimize import linear_sum_assignment

        return linear_sum_assignment(-score.reshape(3, 3))[1]

    alone = ms.MatchingModel(oracle=best).fit(X, y)
    known = len(asked)
    alone.predict_marginals(X)
    assert len(asked) > known + len(X)  # Frank-Wolfe's rounds
    direct = ms.MatchingModel(oracle=best, solver="direct").fit(X, y)
    known = len(asked)
    direct.predict_marginals(X)
    assert len(asked) <= known + len(X)  # no more than a proof
    rounds = ms.MatchingModel(solver="frank_wolfe", tol=1e-4).fit(X, y)
    assert "frank_wolfe" in str(rounds.inference_)


COMPUTES = ("mle_struct", "exact_mle", "trw", "trw_tightest", "camel0", "lbp", "implicit")
ORACLES = {"mle_struct", "trw", "trw_tightest", "camel0", "camel", "ssvm", "perceptron"}
BY_DIRECTION = {"b-matchings", "Ising", "own"}  # no routine serves these
FREE = {"grids", "chains", "trees", "order 3", "different"}  # labelled graphs
LABELLED = FREE | {"clamped"}
SERVED = {
    "mle_struct": set(BATCHES),
    "trw": set(BATCHES),
    "exact_mle": set(BATCHES) - {"own"},
    "trw_tightest": LABELLED - {"order 3", "different"},
    "camel0": LABELLED | {"own"},
    "lbp": LABELLED,
    "implicit": FREE,
}
WORDS = (
    "free graph|labelled graph|spanning trees|trees is not for|factor graphs|listed|provabl|BMatch"
)
FEW = {"rounds": 1}  # of a search for ρ


def learning(name, batch, features, oracle, route="auto", **settings):
    """The learner and its last state."""
    settings |= {"oracle": oracle} if oracle is not None and name in ORACLES else {}
    settings |= FEW if name == "trw_tightest" else {}
    settings |= {} if route == "auto" else {"route": route}
    learner = LEARNERS[name](regulariser=0.5, **settings)
    return learner, learner.fit(batch, features)


def drawn_batch(rng, kind):
    """(batch with outcomes, features, oracle)."""
    structures, oracle = BATCHES[kind](), pick if kind == "own" else None
    blank = ms.Batch.of(structures)
    outcomes = ms.inference.best(blank, rng.gumbel(size=blank.size), oracle)[0]
    batch = ms.Batch.of(structures, outcomes)
    return batch, Dense.of(batch, rng.standard_normal((batch.size, 3))), oracle


def last_beliefs(learner, last, batch, features):
    """τ of the learner's objective at its weights, computed as L-BFGS has it computed."""
    if len(last.tau):
        return last.tau
    heads, found = learner.heads(batch, features), {}
    for name, part in places(heads).items():
        found[name] = heads[name].scores(last.theta[part])
    objective = learner.objective(batch)
    if isinstance(objective, Surrogate):
        return objective.routine.many(batch, *found.values()).tau
    return objective(batch, found, None, 0.0).tau


@pytest.mark.filterwarnings("ignore::mlestruct.errors.ConvergenceWarning")
@pytest.mark.parametrize("kind", BATCHES)
@pytest.mark.parametrize("name", COMPUTES)
def test_marginals_are_computed_again_as_they_were_learned(name, kind, rng):
    """To 1e-6 by routines, in value within both gaps by Frank-Wolfe; else a refusal in words."""
    batch, features, oracle = drawn_batch(rng, kind)
    solver = ms.FrankWolfe(tol=1e-4 if kind in BY_DIRECTION else 1e-9, rounds=300)
    if kind not in SERVED[name]:
        with pytest.raises(ValueError, match=WORDS):
            learning(name, batch, features, oracle, solver=solver)
        return
    learner, last = learning(name, batch, features, oracle, solver=solver)
    kept = learner.inference.recall(last.learned)
    scores = features.potentials(last.theta[: features.d])
    found = kept.marginals(batch, scores, oracle)
    if last.route == "direct":
        tau = last_beliefs(learner, last, batch, features)
        assert np.abs(found.tau - tau).max() <= 1e-6
    else:
        entropy = learner.dual(batch, features).entropy
        here = entropy.each(last.tau) + batch.totals(scores * last.tau)
        apart = float(np.abs(here - found.lower).sum())
        assert apart <= found.certificate.gap + last.certificate.gap + 1e-9


@pytest.mark.parametrize("kind", BATCHES)
def test_procedural_fits_predict_the_beliefs_of_their_loss(kind, rng):
    batch, features, _ = drawn_batch(rng, kind)
    solver = ms.FrankWolfe(tol=1e-6, rounds=20)
    if kind not in FREE:
        with pytest.raises(ValueError, match=WORDS):
            learning("procedural", batch, features, None, solver=solver)
        return
    learner, last = learning("procedural", batch, features, None, solver=solver)
    scores = features.potentials(last.theta)
    objective = learner.objective(batch)
    tau = learner.inference.marginals(batch, scores).tau
    value = objective(batch, {"score": scores}, None, 0.0).value
    found = 0.0
    for _, members in batch.groups():
        units = objective.loss.units(batch.select(members))
        found += objective.loss(tau[batch.index(members)].reshape(-1), units)[0]
    assert abs(found - value) <= 1e-9 * abs(value)


@pytest.mark.filterwarnings("ignore::mlestruct.errors.ConvergenceWarning")
@pytest.mark.parametrize("front", FRONTS)
@pytest.mark.parametrize("learner", LEARNERS)
def test_samples_say_where_probabilities_are_of_another_law(front, learner, rng):
    """``how`` names the kept inference, unless its marginals are those of the samples' law."""
    kind, make = FRONTS[front]
    X, y = make(rng, count=3)
    if front == "matching" and learner not in MATCHES:
        pytest.skip("a learner of labelled graphs")
    model = kind(learner=learner, alpha=1.0, tol=1e-2, max_rounds=10).fit(X, y)
    names = f"predict_marginals, which has {model.inference_}"
    how = model.sample(X, 2).how
    summed = learner == "exact_mle" or (front == "sequence" and model.inference_.sums(chains(X)))
    assert (names in how) is not summed
    assert names not in model.set_params(infer="exact").sample(X, 2).how


def chains(X):
    return ms.Batch.of([ms.chain(len(x), 2) for x in X])


def labelled(rng, structures):
    batch = ms.Batch.of(structures, [rng.integers(0, 2, s.n_nodes) for s in structures])
    return batch, Dense.of(batch, rng.standard_normal((batch.size, 3)))


@pytest.mark.parametrize("rho", [0.5, 0.9, 1.0])
def test_roommates_predict_what_was_learned(rho, tmp_path, rng):
    """αθ = Σ f of the observed pairs − Σ p f of all, p as computed again; and from a file.

    With one question a pair's feature f is its score divided by the weight.
    """
    people = [{"id": i, "tidy": float(rng.normal())} for i in range(12)]
    order = sorted(range(12), key=lambda i: people[i]["tidy"] + rng.normal())
    pairs = list(zip(order[::2], order[1::2], strict=True))
    model = ms.RoommateModel(ordinal="tidy", alpha=0.3, rho=rho, tol=1e-12).fit(people, pairs)
    theta, found = float(model.coef_[0]), model.probabilities(people)
    known = {frozenset(pair) for pair in pairs}
    ends = zip(found["a"].tolist(), found["b"].tolist(), strict=True)
    seen = np.array([frozenset(two) in known for two in ends])
    assert seen.sum() == len(pairs)
    observed = found["score"][seen].sum()
    expected = found["probability"] @ found["score"]
    pull = (observed - expected) / theta
    assert abs(pull - 0.3 * theta) <= 1e-4 * max(1.0, abs(0.3 * theta))
    model.save(tmp_path / "model.npz")
    again = ms.RoommateModel.load(tmp_path / "model.npz").probabilities(people)
    assert all(again[name].tolist() == column.tolist() for name, column in found.items())

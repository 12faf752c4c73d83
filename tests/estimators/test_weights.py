"""Weights of nodes and classes: what they mean, for every learner and estimator of labels."""

from __future__ import annotations

import contextlib
import itertools
import warnings
from functools import partial

import numpy as np
import pytest

import mlestruct as ms
from mlestruct import data
from mlestruct.learners import LEARNERS
from mlestruct.learners.base import WEIGHED
from mlestruct.structures import FactorGraph
from mlestruct.structures.batch import Batch

CERTIFIED = [name for name in WEIGHED if name not in ("lbp", "perceptron")]


def some_graphs(rng, count=5, nodes=4, states=3):
    """Random graphs with random labels and features, edges with chance ½."""
    pairs = list(itertools.combinations(range(nodes), 2))
    edges = [[pair for pair in pairs if rng.random() < 0.5] for _ in range(count)]
    X = [(rng.standard_normal((nodes, 2)), np.array(e).reshape(-1, 2)) for e in edges]
    return X, [rng.permutation(np.arange(nodes) % states) for _ in X]


def grids(count):
    train, _, test = data.grids(sizes=(count, 0, 2), side=4)
    return train.X, [np.reshape(labels, (4, 4)) for labels in train.y], test.X


def sequences(count):
    train, _, test = data.sequences(sizes=(count, 0, 2), states=3, d=4)
    return list(train.X), list(train.y), test.X


def several(count):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((count, 3))
    return X, (X @ rng.standard_normal((3, 4)) > 0.3).astype(int), X[:2]


MODELS = {
    "graph": (ms.GraphModel, lambda n: (*some_graphs(np.random.default_rng(1), n), None)),
    "grid": (ms.GridModel, grids),
    "sequence": (ms.SequenceModel, sequences),
    "several": (ms.MultiLabelModel, several),
}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("learner", WEIGHED)
def test_weights_of_one_change_no_bit(model, learner):
    make, draw = MODELS[model]
    X, y, _ = draw(4)
    ones = [np.ones(np.shape(labels)) for labels in y]
    settings = {"learner": learner, "tol": 1e-2, "max_rounds": 20}
    with _quiet():
        plain = make(**settings).fit(X, y)
        weighed = make(**settings).fit(X, y, node_weight=ones)
    np.testing.assert_array_equal(plain.coef_, weighed.coef_)
    assert plain.certificate_ == weighed.certificate_


@contextlib.contextmanager
def _quiet():
    """Few rounds, or a learner that proves nothing: not converged, and said so."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ms.ConvergenceWarning)
        yield


@pytest.mark.parametrize("learner", CERTIFIED)
@pytest.mark.parametrize("factor", [0.25, 2.0])
def test_equal_weights_are_a_smaller_alpha(learner, factor, rng):
    """c on every node multiplies all but the penalty: the weights of alpha / c."""
    X, y = some_graphs(rng)
    model = partial(ms.GraphModel, learner=learner, tol=1e-7, max_rounds=3000)
    weighed = model(alpha=1.0).fit(X, y, node_weight=[np.full(4, factor)] * len(y))
    plain = model(alpha=1.0 / factor).fit(X, y)
    np.testing.assert_allclose(weighed.coef_, plain.coef_, atol=2e-3)
    example = model(alpha=1.0).fit(X, y, [factor] * len(y))
    np.testing.assert_allclose(weighed.coef_, example.coef_, atol=2e-3)


def test_a_perceptrons_updates_grow_with_the_weights(rng):
    X, y = some_graphs(rng)
    model = partial(ms.GraphModel, learner="perceptron")
    with _quiet():
        plain = model().fit(X, y)
        weighed = model().fit(X, y, node_weight=[np.full(4, 2.0)] * len(y))
    np.testing.assert_allclose(weighed.coef_, 2 * plain.coef_)


def test_nodes_without_edges_are_scikit_learns_weighed_examples(rng):
    linear = pytest.importorskip("sklearn.linear_model")
    rows, labels = rng.standard_normal((90, 3)), rng.choice(3, 90, p=[0.7, 0.2, 0.1])
    weigh = pytest.importorskip("sklearn.utils.class_weight").compute_sample_weight
    each = rng.uniform(0.5, 2.0, 90) * weigh("balanced", labels)
    theirs = linear.LogisticRegression(C=1.0, fit_intercept=False, tol=1e-10)
    theirs.fit(rows, labels, each)
    X = [(rows[k : k + 9], np.zeros((0, 2), int)) for k in range(0, 90, 9)]
    split = [labels[k : k + 9] for k in range(0, 90, 9)]
    nodes = [each[k : k + 9] for k in range(0, 90, 9)]
    ours = ms.GraphModel(intercept=False, tol=1e-10)
    ours.fit(X, split, node_weight=nodes)
    tau = np.concatenate(ours.predict_marginals(X))
    np.testing.assert_allclose(tau, theirs.predict_proba(rows), atol=1e-5)


@pytest.mark.parametrize("nodes", [2, 4])
def test_weighed_inference_maximises_what_is_said(nodes, rng):
    """max ⟨w s, τ⟩ + Σ w c h(τ) over distributions of a tree's labellings, by BFGS on them."""
    from scipy.optimize import minimize
    from scipy.special import softmax

    edges = [(int(rng.integers(0, k)), k) for k in range(1, nodes)]
    graph = FactorGraph([2] * nodes, edges).weighed(rng.uniform(0.3, 3.0, nodes))
    counts = graph.counting(1.0)[graph.table_of]
    score = graph.weight[graph.table_of] * rng.standard_normal(graph.size)
    every = np.array([graph.encode(labels) for labels in itertools.product((0, 1), repeat=nodes)])

    def loss(logits):
        tau = softmax(logits) @ every
        return (counts * tau * np.log(np.maximum(tau, 1e-300))).sum() - score @ tau

    best = min(minimize(loss, rng.standard_normal(len(every))).fun for _ in range(3))
    inside = ms.inference.marginals(Batch.of(graph), score)
    assert inside.lower[0] == pytest.approx(-best, abs=1e-5)
    assert inside.bound.kind == "none"


@pytest.mark.parametrize("shape", ["tree", "cycle", "complete"])
def test_any_weights_leave_the_entropy_concave(shape, rng):
    edges = {
        "tree": [(int(rng.integers(0, k)), k) for k in range(1, 7)],
        "cycle": [(k, (k + 1) % 7) for k in range(7)],
        "complete": list(itertools.combinations(range(7), 2)),
    }[shape]
    for _ in range(10):
        graph = FactorGraph([2] * 7, edges).weighed(10.0 ** rng.uniform(-3, 3, 7))
        assert graph.convex(graph.counting())


@pytest.mark.parametrize("name", [name for name in LEARNERS if name not in WEIGHED])
def test_learners_of_whole_outcomes_refuse_weights(name, rng):
    X, y = some_graphs(rng)
    with pytest.raises(ValueError, match=f"mean nothing to '{name}'.*sample_weight"):
        ms.GraphModel(learner=name).fit(X, y, node_weight=[np.full(4, 2.0)] * len(y))


def test_weights_go_with_held_out_examples_and_files(tmp_path):
    X, y, test = sequences(12)
    each = [np.linspace(0.5, 2, len(labels)) for labels in y]
    model = ms.SequenceModel(alpha=(0.1, 10.0))
    model.fit(X, y, node_weight=each)
    one = ms.SequenceModel(alpha=model.alpha_).fit(X, y, node_weight=each)
    np.testing.assert_allclose(model.coef_, one.coef_, atol=0.05)
    assert any("labels count with weights" in note for note in model.notes_)
    model.save(tmp_path / "model")
    again = ms.SequenceModel.load(tmp_path / "model")
    for first, second in zip(
        model.predict_marginals(test), again.predict_marginals(test), strict=True
    ):
        np.testing.assert_array_equal(first, second)
    with pytest.raises(ValueError, match="labels that count alike"):
        again.intervals(X, y)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ([np.ones(2)], "an array for each of 3"),
        ([np.ones(4), np.ones(4), np.ones(3)], "example 2: 3 node weights for 4"),
        ([np.ones(4), np.zeros(4), np.ones(4)], "example 1: node 0 has weight 0"),
    ],
)  # fmt: skip
def test_weights_that_mean_nothing_are_refused(given, why, rng):
    X, y = some_graphs(rng, count=3)
    with pytest.raises(ValueError, match=why):
        ms.GraphModel().fit(X, y, node_weight=given)


def test_terms_of_pseudo_likelihood_are_weighed_one_by_one(rng):
    """Pseudo-likelihood by definition: Σ w_i log p(y_i | the rest)."""
    graph = FactorGraph([2] * 3, [(0, 1), (1, 2)])
    weight, outcome = rng.uniform(0.5, 2.0, 3), [0, 1, 1]
    batch = Batch.of(graph.weighed(weight), [outcome])
    score = rng.standard_normal(graph.size)
    from mlestruct.learners.primal import PseudoLikelihood

    value = PseudoLikelihood()(batch, {"score": score}, None, 0.0).value
    total = 0.0
    for i in range(3):
        given = [score @ graph.encode([*outcome[:i], k, *outcome[i + 1 :]]) for k in (0, 1)]
        total -= weight[i] * (given[outcome[i]] - np.logaddexp(*given))
    assert value == pytest.approx(total)


def test_a_summary_advises_no_learner_that_refuses(rng):
    ring = [(0, 1), (1, 2), (2, 3), (3, 0)]
    X = [(rng.standard_normal((4, 2)), ring) for _ in range(6)]
    y = [np.array([0, 0, 1, 1])] * 6
    own = [np.arange(1.0, 5.0)] * 6
    advice = "learner='exact_mle' learns the true ones"
    weighed = ms.GraphModel().fit(X, y, node_weight=own)
    assert advice not in str(weighed.summary())
    assert "labels count with weights" in str(weighed.summary())
    assert advice in str(ms.GraphModel().fit(X, y).summary())
    with pytest.raises(ValueError, match="exact_mle"):
        ms.GraphModel(learner="exact_mle").fit(X, y, node_weight=own)

"""Groups of three nodes or more beside edges: against enumeration, by every kind of table."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.readers import graph_of

KINDS = ["potts", "counts", "full"]
LABELS = np.array(["a", "b", "c"])


def drawn(rng, kind="potts", ties=1, count=6, nodes=5, states=3):
    """Graphs with edges, triples and a quadruple, and labels."""
    X, y = [], []
    for m in range(count):
        pairs = [p for p in itertools.combinations(range(nodes), 2) if rng.random() < 0.4]
        sizes = ((3, 3) if kind == "full" else (3, 4, 3))[: 3 - m % 2]
        cliques = [tuple(rng.permutation(nodes)[:size].tolist()) for size in sizes]
        if frozenset(cliques[0]) == frozenset(cliques[-1]):
            cliques = cliques[:-1]
        X.append({
            "nodes": rng.standard_normal((nodes, 2)),
            "edges": np.array(pairs, dtype=int).reshape(-1, 2),
            "cliques": cliques,
            "clique_ties": rng.standard_normal((len(cliques), ties)),
        })  # fmt: skip
        y.append(LABELS[:states][rng.permutation(np.arange(nodes) % states)])
    return X, y


def by_names(model, x, labels):
    """The score of a labelling: weights by name, looked up node by node and table by table."""
    weight, total = dict(zip(model.names(), model.coef_, strict=True)), 0.0
    for row, label in zip(x["nodes"], labels, strict=True):
        total += row[0] * weight[f"feature 0: {label}"] + row[1] * weight[f"feature 1: {label}"]
        total += weight[f"constant: {label}"]
    for i, j in x["edges"]:
        first, second = sorted((labels[i], labels[j]))
        total += weight[f"{first} – {second}"]
    for clique, ties in zip(x["cliques"], x["clique_ties"], strict=True):
        inside = [str(labels[i]) for i in clique]
        name = {
            "potts": f"all {len(clique)} alike",
            "counts": ", ".join(sorted(inside)),
            "full": " → ".join(inside),
        }[model.clique_table]
        if model.clique_table == "potts" and len(set(inside)) > 1:
            continue
        total += weight[name]
        total += sum(t * weight[f"clique feature {j}: {name}"] for j, t in enumerate(ties))
    return total


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("learner", ["exact_mle", "mle_struct", "ssvm", "pseudo_likelihood"])
def test_predictions_are_the_best_by_enumeration(kind, learner, rng):
    """Scores are sums of named weights; what is predicted has the best of all of them."""
    X, y = drawn(rng, kind, states=2)
    model = ms.GraphModel(learner=learner, clique_table=kind, tol=1e-2, alpha=0.1).fit(X, y)
    every = list(itertools.product(model.classes_, repeat=5))
    for x, found, score in zip(X, model.predict(X), model.potentials(X), strict=True):
        worth = [by_names(model, x, labels) for labels in every]
        assert by_names(model, x, found) == pytest.approx(max(worth))
        graph = model.structures([x])[0]
        assert score @ graph.encode(np.searchsorted(model.classes_, found)) == pytest.approx(
            max(worth)
        )


@pytest.mark.parametrize("kind", KINDS)
def test_likelihood_and_probabilities_are_sums_over_all_labellings(kind, rng):
    X, y = drawn(rng, kind)
    model = ms.GraphModel(learner="exact_mle", clique_table=kind, tol=1e-6).fit(X, y)
    every = np.array(list(itertools.product(range(3), repeat=5)))
    reached = 0.0
    for x, labels, tau in zip(X, y, model.predict_marginals(X), strict=True):
        worth = np.array([by_names(model, x, model.classes_[one]) for one in every])
        p = np.exp(worth - np.logaddexp.reduce(worth))
        expected = np.array([[p[every[:, i] == k].sum() for k in range(3)] for i in range(5)])
        np.testing.assert_allclose(tau, expected, atol=1e-8)
        reached += by_names(model, x, labels) - np.logaddexp.reduce(worth)
    assert model.log_likelihood(X, y) == pytest.approx((reached, reached))


def test_files_parts_and_void_keep_cliques(tmp_path, rng):
    X, y = drawn(rng)
    y = [[*labels[:-1], None] for labels in y]
    for unseen in ("left_out", "hidden"):
        model = ms.GraphModel(unseen=unseen, clique_table="counts", tol=1e-2).fit(X, y)
        model.save(tmp_path / "model")
        again = ms.GraphModel.load(tmp_path / "model")
        for one, two in zip(model.predict_marginals(X), again.predict_marginals(X), strict=True):
            np.testing.assert_array_equal(one, two)
    graph = graph_of(X[0])
    kept = np.array([True, True, True, True, False])
    inside = [c for c in graph.cliques if 4 not in c]
    assert list(graph.part(kept).cliques) == inside
    assert len(graph.part(kept).clique_ties) == len(inside)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"cliques": [(0, 1)]}, "clique 0 has 2 nodes; of two it is an edge"),
        ({"cliques": [(0, 1, 9)]}, r"clique 0 is \[0, 1, 9\]; there are 5 nodes"),
        ({"cliques": [(0, 1, 1)]}, "a node stands there twice"),
        ({"cliques": [(0, 1, 2), (3, 4, 1), (2, 0, 1)]}, "cliques 0 and 2 have the same nodes"),
        ({"clique_ties": np.ones((7, 1))}, r"shape \(7, 1\) for 3 cliques"),
        ({"groups": []}, "cliques and clique_ties, not"),
    ],
)
def test_what_is_no_clique_is_refused(change, why, rng):
    X, y = drawn(rng)
    with pytest.raises(ValueError, match=f"example 0: .*{why}"):
        ms.GraphModel().fit([{**X[0], **change}, *X[1:]], y)


def test_sizes_and_features_that_were_not_learned_are_refused(rng):
    X, y = drawn(rng)
    model = ms.GraphModel(tol=0.1).fit(X, y)
    with pytest.raises(ValueError, match=r"a clique of 5 nodes; the model learned from cliques of"):
        model.predict([{**X[0], "cliques": [(0, 1, 2, 3, 4)], "clique_ties": [[1.0]]}])
    with pytest.raises(ValueError, match="example 0 has 0 clique features; expected 1"):
        model.predict([{k: v for k, v in X[0].items() if k != "clique_ties"}])
    with pytest.raises(ValueError, match="clique_table is"):
        ms.GraphModel(clique_table="symmetric").fit(X, y)


def test_intervals_of_cliques_have_words(rng):
    """The same number whatever the table, by name; others fill up what is identified."""
    graph = {"edges": [(2, 3)], "cliques": [(0, 1, 2), (3, 4, 5)]}
    y = [LABELS[rng.integers(0, 2, 6)] for _ in range(40)]
    X = [
        graph
        | {
            "nodes": (labels == "b") + rng.standard_normal(6),
            "clique_ties": rng.standard_normal((2, 1)),
        }
        for labels in y
    ]
    estimates = []
    for kind, name in (
        ("potts", "all 3 alike"),
        ("counts", "all 3 alike against mixed, of b and a"),
        ("full", "all 3 alike against mixed, of b and a"),
    ):
        model = ms.GraphModel(learner="exact_mle", clique_table=kind, tol=1e-6).fit(X, y)
        found = model.intervals(X, y)
        assert len(found.rows) == found.rank
        assert name in found.columns()["name"]
        assert f"clique feature 0: {name}" in found.columns()["name"]
        estimates.append(found[name].estimate)
    assert np.ptp(estimates) < 3 * found[name].error

"""Graphs of labels: every form of a graph, every kind of table, against sums by hand."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

import mlestruct as ms
from mlestruct.inference.exact import exact
from mlestruct.readers import graph_of, region_labels

KINDS = ["full", "symmetric", "potts"]
LETTERS = np.array(["a", "b", "c"])


def random_graph(rng, nodes, ties=0):
    """(nodes, edges, edge features): each pair with chance ½, in a random direction."""
    pairs = np.array([p for p in itertools.combinations(range(nodes), 2) if rng.random() < 0.5])
    pairs = pairs.reshape(-1, 2).astype(int)
    turned = rng.random(len(pairs)) < 0.5
    pairs[turned] = pairs[turned][:, ::-1]
    features = rng.standard_normal((nodes, 2))
    return (features, pairs, rng.standard_normal((len(pairs), ties))) if ties else (features, pairs)


def some(rng, count=6, ties=0, labels=LETTERS):
    X = [random_graph(rng, int(rng.integers(3, 6)), ties) for _ in range(count)]
    y = [rng.choice(labels, len(x[0])) for x in X]
    return X, [labels[np.arange(len(x[0])) % len(labels)] if m == 0 else y[m]
               for m, x in enumerate(X)]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_sums_of_named_weights(kind, rng):
    """potentials · outcome = weights by name, looked up and added up node by node, edge by edge."""
    X, y = some(rng, ties=1)
    model = ms.GraphModel(tables=kind, tol=0.1).fit(X, y)
    weight = dict(zip(model.names(), model.coef_, strict=True))
    assert len(weight) == len(model.coef_)

    def entry(a, b):
        if kind == "full":
            return f"{a} → {b}"
        if kind == "symmetric":
            return f"{min(a, b)} – {max(a, b)}"
        return "same label" if a == b else None

    for (nodes, edges, ties), labels, scores in zip(X, y, model.potentials(X), strict=True):
        total = 0.0
        for row, label in zip(nodes, labels, strict=True):
            total += row[0] * weight[f"feature 0: {label}"] + row[1] * weight[f"feature 1: {label}"]
            total += weight[f"constant: {label}"]
        for (i, j), tie in zip(edges, ties, strict=True):
            name = entry(labels[i], labels[j])
            if name is not None:
                total += weight[name] + tie[0] * weight[f"edge feature 0: {name}"]
        graph = ms.FactorGraph([3] * len(nodes), edges)
        outcome = graph.encode(np.searchsorted(model.classes_, labels))
        assert scores @ outcome == pytest.approx(total)


def test_kinds_of_tables_that_are_none_are_refused(rng):
    X, y = some(rng, ties=2)
    with pytest.raises(ValueError, match="tables is 'full'"):
        ms.GraphModel(tables="diagonal").fit(X, y)


def forms(nodes, edges):
    """One graph in every form that is taken."""
    import networkx as nx

    count = len(nodes)
    matrix = np.zeros((count, count), dtype=int)
    matrix[edges[:, 0], edges[:, 1]] = matrix[edges[:, 1], edges[:, 0]] = 1
    graph = nx.Graph()
    for v, row in enumerate(nodes):
        graph.add_node(v, x0=row[0], x1=row[1])
    graph.add_edges_from(map(tuple, edges.tolist()))
    return {
        "list": (nodes, edges.tolist()),
        "array": (nodes, edges),
        "matrix": (nodes, matrix),
        "bools": (nodes, matrix.astype(bool)),
        "half": (nodes, np.triu(matrix)),
        "sparse": (sp.csr_array(nodes), sp.csr_array(matrix)),
        "coo": (nodes, sp.coo_array(matrix)),
        "mapping": {"nodes": nodes, "edges": edges},
        "graph": ms.Graph.of(nodes, edges),
        "networkx": graph,
    }


@pytest.mark.parametrize("seed", range(4))
def test_every_form_of_a_graph_is_the_same_graph(seed):
    rng = np.random.default_rng(seed)
    plain, y = some(rng, count=4)
    forms_of = [forms(*x) for x in plain]
    fits = {}
    for name in forms_of[0]:
        X = [given[name] for given in forms_of]
        fits[name] = ms.GraphModel(tol=1e-6).fit(X, y)
        predicted = fits[name].predict(X)
        for one, expected in zip(predicted, fits["list"].predict(plain), strict=True):
            np.testing.assert_array_equal(one, expected)
    for fit in fits.values():
        np.testing.assert_allclose(fit.coef_, fits["list"].coef_, atol=2e-3)


@pytest.mark.parametrize("nodes", range(1, 6))
def test_a_matrix_of_two_nodes_is_told_from_a_list(nodes):
    matrix = 1 - np.eye(nodes, dtype=int)
    graph = graph_of((np.zeros((nodes, 1)), matrix))
    assert graph.edges.tolist() == [list(p) for p in itertools.combinations(range(nodes), 2)]
    empty = graph_of((np.zeros((nodes, 1)), np.zeros((nodes, nodes))))
    assert len(empty.edges) == 0
    assert len(graph_of((np.zeros((nodes, 1)), [])).edges) == 0


WRONG = [
    ((np.zeros((3, 1)), [(0, 3)]), r"edge 0 is \[0, 3\]; there are 3 nodes"),
    ((np.zeros((3, 1)), [(0, 1), (2, 2)]), "edge 1 joins node 2 with itself"),
    ((np.zeros((3, 1)), [(0, 1), (1, 0)]), "between nodes 0 and 1 is given twice"),
    ((np.zeros((3, 1)), [(0.5, 1)]), "nodes of edges are integers"),
    ((np.zeros((3, 1)), np.full((3, 3), 0.5)), "entries are 0 or 1. To learn from weights"),
    ((np.zeros((3, 1)), np.eye(3)), "joins node 0 with itself"),
    ((np.zeros((3, 1)), np.zeros((4, 4))), r"edges have shape \(4, 4\)"),
    ((np.zeros((3, 1)), sp.csr_array(np.zeros((4, 4)))), r"matrix of shape \(4, 4\) for 3"),
    ((np.zeros((3, 1)), [(0, 1)], np.zeros((2, 1))), r"shape \(2, 1\) for 1 edges"),
    ((np.full((3, 1), np.nan), [(0, 1)]), "node features hold nan"),
    (([["a"]], []), "node features must be numbers"),
    ((np.zeros((0, 1)), []), "a graph without nodes"),
    ({"nodes": [[1.0]]}, "a graph is nodes, edges and perhaps ties"),
    ("ring", "X holds a str; a graph is"),
    (7, "X holds a int; a graph is"),
]  # fmt: skip


@pytest.mark.parametrize(("bad", "message"), WRONG)
def test_what_is_no_graph_is_refused_by_example(bad, message):
    good = (np.zeros((2, 1)), [(0, 1)])
    with pytest.raises(ValueError, match=f"example 1: .*{message}"):
        ms.GraphModel().fit([good, bad], [[0, 1], [0, 1, 1]])


def test_examples_must_have_the_same_features(rng):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(rng.standard_normal((3, 2)), columns=["red", "green"])
    X, y = [(frame, [(0, 1)])] * 2, [[0, 1, 1], [1, 0, 0]]
    model = ms.GraphModel().fit(X, y)
    assert model.names()[0] == "red: 0"
    with pytest.raises(ValueError, match=r"example 0 has node features \['green', 'red'\]"):
        model.predict([(frame[["green", "red"]], [(0, 1)])])
    with pytest.raises(ValueError, match="example 1 has 1 node features; expected 2"):
        model.predict([X[0], (np.zeros((3, 1)), [(0, 1)])])
    with pytest.raises(ValueError, match="example 0 has 1 edge features; expected 0"):
        model.predict([(frame, [(0, 1)], [[1.0]])])


def test_networkx_attributes_are_named_features():
    nx = pytest.importorskip("networkx")
    graph = nx.Graph()
    for name, colour in (("x", 0.0), ("y", 1.0), ("z", 2.0)):
        graph.add_node(name, colour=colour)
    graph.add_edge("z", "y", length=3.0)
    found = ms.Graph.from_networkx(graph)
    assert (found.names, found.tie_names, found.ids) == (("colour",), ("length",), tuple("xyz"))
    assert found.nodes.ravel().tolist() == [0.0, 1.0, 2.0]
    assert found.edges.tolist() in ([[1, 2]], [[2, 1]])
    y = [{"x": "low", "y": "low", "z": "high"}]
    model = ms.GraphModel().fit([graph], y)
    twin = ms.GraphModel().fit([graph], [["low", "low", "high"]])
    np.testing.assert_array_equal(model.coef_, twin.coef_)
    assert model.names()[-1] == "length: low – low"
    with pytest.raises(ValueError, match="example 0: y names 'w', which is no node"):
        ms.GraphModel().fit([graph], [{"w": "low"}])
    graph.add_node("u")
    with pytest.raises(ValueError, match="node 'u' has no attribute 'colour'"):
        ms.Graph.from_networkx(graph)
    graph.nodes["u"]["colour"] = "red"
    with pytest.raises(ValueError, match="node 'u' has 'colour' = 'red'; features are numbers"):
        ms.Graph.from_networkx(graph)


@pytest.mark.parametrize("seed", range(3))
def test_regions_touch_where_pixels_do(seed):
    rng = np.random.default_rng(seed)
    raw = rng.integers(0, 4, (5, 6))
    regions = np.unique(raw, return_inverse=True)[1].reshape(raw.shape)
    image = rng.random((5, 6, 3))
    graph = ms.Graph.from_regions(regions, image)
    shared = {}
    for i, j in itertools.product(range(5), range(6)):
        for k, l in ((i + 1, j), (i, j + 1)):
            if k < 5 and l < 6 and regions[i, j] != regions[k, l]:
                pair = tuple(sorted((int(regions[i, j]), int(regions[k, l]))))
                shared[pair] = shared.get(pair, 0) + 1
    assert [tuple(e) for e in graph.edges.tolist()] == sorted(shared)
    outline = {r: sum(n for pair, n in shared.items() if r in pair) for r in range(len(graph))}
    for (a, b), border in zip(graph.edges.tolist(), graph.ties[:, 0], strict=True):
        assert border == pytest.approx(shared[a, b] / min(outline[a], outline[b]))
    for r in range(len(graph)):
        np.testing.assert_allclose(graph.nodes[r, :3], image[regions == r].mean(axis=0))
        np.testing.assert_allclose(graph.nodes[r, 3:6], image[regions == r].std(axis=0))
    np.testing.assert_array_equal(graph.paint(np.arange(len(graph))), regions)
    labels = rng.integers(0, 3, regions.shape)
    labels[rng.random(regions.shape) < 0.3] = 255
    for r, found in enumerate(region_labels(regions, labels, void=255)):
        inside = labels[regions == r]
        known = inside[inside != 255]
        assert found == (np.bincount(known).argmax() if len(known) else 255)
    with pytest.raises(ValueError, match="no pixel is of region 1"):
        ms.Graph.from_regions([[0, 2]], np.zeros((1, 2)))


@pytest.mark.parametrize("learner", ["mle_struct", "exact_mle", "pseudo_likelihood", "ssvm"])
def test_probabilities_are_those_of_enumeration(learner, rng):
    path = [(0, 1), (1, 2), (2, 3)]
    X = [(rng.standard_normal((4, 2)), path) for _ in range(5)]
    y = [rng.choice(LETTERS, 4) for _ in X]
    model = ms.GraphModel(learner=learner).fit(X, y)
    graph = ms.FactorGraph([3] * 4, path)
    for tau, score in zip(model.predict_marginals(X), model.potentials(X), strict=True):
        np.testing.assert_allclose(tau, exact(graph, score).tau[:12].reshape(4, 3), atol=1e-6)


def test_bytes_of_regions_are_divided_as_those_of_grids():
    image = np.random.default_rng(0).integers(0, 256, (4, 6, 3)).astype(np.uint8)
    regions = np.arange(24).reshape(4, 6) // 4
    by_hand = ms.Graph.from_regions(regions, image / 255.0)
    for given, factor in ((image, 1.0), (image.astype(int), 255.0)):
        graph = ms.Graph.from_regions(regions, given)
        np.testing.assert_allclose(graph.nodes[:, :6], factor * by_hand.nodes[:, :6])
        np.testing.assert_allclose(graph.ties, by_hand.ties)

"""networkx in and out: nodes and edges keep their order, probabilities their edges."""

import networkx as nx
import numpy as np
import pytest

import mlestruct as ms
from mlestruct.inference import best
from mlestruct.readers.graphs import from_networkx, to_networkx


@pytest.fixture
def graph():
    made = nx.Graph()
    made.add_nodes_from("dbca")
    made.add_weighted_edges_from([("a", "b", 1.0), ("c", "b", 5.0), ("d", "c", 2.0), ("a", "d", 3)])
    return made


def test_the_best_matching_is_networkx_own(graph):
    structure, nodes = from_networkx(graph)
    assert nodes == list("dbca")
    outcome = best(
        ms.Batch.of(structure, count=1), [weight for *_, weight in graph.edges(data="weight")]
    )[0][0]
    ours = {frozenset((nodes[u], nodes[v])) for u, v in enumerate(outcome)}
    theirs = nx.max_weight_matching(graph, maxcardinality=True)
    assert ours == {frozenset(pair) for pair in theirs}


def test_probabilities_come_back_on_their_edges(graph):
    structure, nodes = from_networkx(graph, "partial", nodes=list("abcd"))
    tau = np.array([0.1, 0.2, 0.3, 0.4])
    back = to_networkx(structure, tau, [3, -1, -1, 0], nodes)
    assert back.nodes == graph.nodes
    for k, (u, v) in enumerate(graph.edges):
        assert back.edges[u, v] == {"probability": tau[k], "matched": {u, v} == {"a", "d"}}
    few = to_networkx(structure, tau, nodes=nodes, least=0.25)
    assert {frozenset(e) for e in few.edges} == {frozenset(e) for e in list(graph.edges)[2:]}


def test_bipartite_matchings_know_their_sides():
    structure = ms.BipartiteMatching(2, 3, "one_sided")
    tau = np.array([[0.7, 0.3, 0.0], [0.2, 0.0, 0.8]])
    graph = to_networkx(structure, tau, [1, 2], nodes=["u", "v", "x", "y", "z"], least=0.5)
    assert nx.get_node_attributes(graph, "bipartite") == {
        **dict.fromkeys("uv", 0),
        **dict.fromkeys("xyz", 1),
    }
    assert graph.edges["u", "y"] == {"probability": 0.3, "matched": True}
    assert set(graph.edges) == {("u", "x"), ("u", "y"), ("v", "z")}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda g: from_networkx(nx.DiGraph(g)), "simple undirected graphs, not a DiGraph"),
        (lambda g: from_networkx(nx.MultiGraph(g)), "not a MultiGraph"),
        (lambda g: from_networkx(g, nodes="abc"), "3 names for 4 nodes; 'd' is not among them"),
        (lambda g: from_networkx(g, nodes="abcde"), "5 names for 4 nodes"),
        (lambda g: to_networkx(ms.Matching(4), [0.5]), "1 probabilities for 6 pairs"),
        (lambda g: to_networkx(ms.Matching(4), [0.5] * 6, nodes="ab"), "2 different names for 4"),
    ],
)
def test_misuse_is_refused_by_name(graph, make, message):
    with pytest.raises(ValueError, match=message):
        make(graph)

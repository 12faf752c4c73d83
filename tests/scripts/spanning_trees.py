import networkx as nx
import numpy as np

import mlestruct as ms


def best(scores, net):
    graph = nx.Graph()
    graph.add_weighted_edges_from((*edge, s) for edge, s in zip(net["graph"].edges, scores))
    kept = {frozenset(edge) for edge in nx.maximum_spanning_tree(graph).edges}
    return {k for k, edge in enumerate(net["graph"].edges) if frozenset(edge) in kept}


rng, nets = np.random.default_rng(8), []
for n in rng.integers(5, 9, 40):
    graph = nx.gnp_random_graph(int(n), 0.5, seed=int(rng.integers(1000)))
    graph.add_edges_from((k, k + 1) for k in range(n - 1))
    features = -rng.random((graph.number_of_edges(), 2))
    nets.append({"features": features, "graph": graph, "cost": -features @ [3.0, 1.0]})
seen = [best(-net["cost"] + 0.3 * rng.gumbel(size=len(net["cost"])), net) for net in nets]
model = ms.StructuredModel(oracle=best, feature_names=["length", "rough"])
print(model.fit(nets[:25], seen[:25]).summary())
regret = -ms.scorers.regret("cost")(model, nets[25:], seen[25:])

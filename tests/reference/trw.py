"""Tree-reweighted moment matching, and prediction through the surrogate that was learned."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from mlestruct.families.joint.prediction import Mixture, predict
from mlestruct.features import Dense
from mlestruct.inference.exact import exact
from mlestruct.learners.tree_reweighted import match_moments, trw
from mlestruct.structures import FactorGraph
from mlestruct.structures.base import Array
from mlestruct.structures.batch import Batch
from mlestruct.structures.spanning_trees import edge_appearance
from tests.reference.cases import Fields
from tests.reference.core import Got
from tests.reference.factor_graphs import nodes_of, pairwise
from tests.reference.solving import infer, solve


def ising(graph: FactorGraph, fields: Array, couplings: Array) -> Array:
    """Scores of spins −1, +1: (−h, h) on nodes, J on equal spins and −J on others."""
    nodes = np.stack([-fields, fields], axis=1).ravel()
    return np.concatenate([nodes, np.outer(couplings, [1.0, -1.0, -1.0, 1.0]).ravel()])


def trw_surrogate(inputs: Fields, expected: Fields) -> Iterator[Got]:
    edges, mean = inputs.whole("edges", 2), inputs.array("mu_hat", 1)
    graph = pairwise(nodes_of(edges, len(inputs.array("fields", 1))), edges)
    for name in expected:
        case = expected.inside(name)
        rho = case.array("rho")
        if name == "regularised":
            items = _regularised(graph, mean, rho, case.number("lambda_n"))
        else:
            items = _matched(graph, mean, rho)
        yield from (replace(item, place=(name, *item.place)) for item in items)


def _matched(graph: FactorGraph, mean: Array, rho: Any) -> Iterator[Got]:
    matched = match_moments(graph, mean, rho)
    bound = infer(graph, matched.theta, rho)  # B(θ) found, not believed
    if np.abs(bound.tau - mean).max() > 1e-6 + bound.tau_within:
        raise ValueError("the surrogate's marginals are not the moments")
    value = float(matched.theta @ mean) + bound.objective
    yield Got(("theta",), matched.theta)
    yield bound.value(("B",), -bound.objective)
    yield bound.value(("surrogate_loglik_per_sample",), value)


def _regularised(graph: FactorGraph, mean: Array, rho: Any, lambda_n: float) -> Iterator[Got]:
    batch = replace(Batch.of(graph, count=1), target=mean)
    features = Dense.of(batch, np.eye(graph.size))
    found = solve(trw(rho, regulariser=2 * lambda_n).dual(batch, features))
    yield found.weights(("theta",))
    yield found.value(("value",), found.objective)
    yield found.point(("tau",), (graph.size,))


def blse(inputs: Fields, expected: Fields) -> Iterator[Got]:
    edges, couplings = inputs.whole("edges", 2), inputs.array("J", 1)
    y = inputs.array("y", 1)
    graph = pairwise(nodes_of(edges, len(y)), edges)
    true = ising(graph, np.zeros(len(y)), couplings)
    mean = exact(graph, true).tau
    rhos: dict[str, Any] = {
        "ind": 0.0,
        "bp": 1.0,
        "trw_half": 0.5,
        "trw_ust": edge_appearance(len(y), edges),
    }
    learned = {name: match_moments(graph, mean, rho).theta for name, rho in rhos.items()}
    for name in expected:
        case = expected.inside(name)
        mixture = Mixture(inputs.number("alpha"), case.array("nu"), case.array("sigma2"))
        values = {
            "nu": mixture.nu,
            "sigma2": mixture.sigma2,
            "component_estimates": mixture.estimates(y),
            "node_loglik": mixture.log_likelihood(y),
        }
        yield from (Got((name, key), value) for key, value in values.items() if key in case)
        for method in case.inside("methods"):
            theta, rho = (true, None) if method == "bayes" else (learned[method], rhos[method])
            found = predict(graph, theta, mixture, y, rho)
            yield Got((name, "methods", method, "p1"), found.labels[:, 1])
            yield Got((name, "methods", method, "z"), found.z)

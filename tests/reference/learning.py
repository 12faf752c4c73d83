"""Learned weights: surrogate and exact likelihoods, the paper's first step, max-margin."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from mlestruct.features import Dense
from mlestruct.learners import ssvm
from mlestruct.learning.frank_wolfe import FrankWolfe
from mlestruct.structures import BipartiteMatching, FactorGraph, Matching
from mlestruct.structures.batch import Batch
from tests.reference.cases import Fields, Malformed
from tests.reference.core import Got
from tests.reference.descents import solved as run
from tests.reference.factor_graphs import nodes_of, p1, pairwise
from tests.reference.matchings import DEGREES
from tests.reference.solving import (
    Solved,
    infer_many,
    learn,
    learning_dual,
    log_likelihood,
    maximum_likelihood,
    observed,
    oracle_for,
    solve,
)


def labelled(inputs: Fields) -> tuple[Batch[FactorGraph], Dense, float]:
    """Labelled graphs with a dense feature row per coordinate."""
    graph = FactorGraph(inputs.whole("K", 1), inputs.lists("scopes"))
    batch = Batch.of(graph, list(inputs.whole("observed", 2)))
    return batch, _dense(inputs, "Phi", batch), inputs.number("lam")


def _dense(inputs: Fields, name: str, batch: Batch[Any]) -> Dense:
    matrix = inputs.array(name, 3)
    rows = batch.structures[0].size
    if matrix.shape[:2] != (len(batch), rows):
        raise Malformed(
            f"{inputs.where}.{name} has shape {matrix.shape}; expected ({len(batch)}, {rows}, ·)"
        )
    return Dense.of(batch, matrix)


def _asked(expected: Fields, items: Iterator[Got]) -> Iterator[Got]:
    return (item for item in items if item.place[-1] in expected)


def mle_dual(inputs: Fields, expected: Fields) -> Iterator[Got]:
    batch, features, lam = labelled(inputs)
    found = learn(batch, features, 1.0, lam)

    def items() -> Iterator[Got]:
        yield found.value(("dual_value",), found.objective)
        yield found.weights(("theta",))
        exact = log_likelihood(batch, features, lam, found.theta)
        yield Got(("loglik",), exact, found.gap, found.note)
        yield found.point(("tau",), (len(batch), -1))

    yield from _asked(expected, items())


def first_step(inputs: Fields, expected: Fields) -> Iterator[Got]:
    """One exact batch step from uniform tables."""
    batch, features, lam = labelled(inputs)
    dual = learning_dual(batch, features, 1.0, lam)
    oracle = oracle_for(batch)
    solver = FrankWolfe(rounds=0, tol=0.0, centre=False, keep="last")
    (first,) = run(solver, dual, oracle)
    tau, theta, proof = first.tau.copy(), first.theta.copy(), first.certificate
    vertices, _ = oracle.many(batch, dual.scores(theta) + dual.entropy.grad(tau))
    change = vertices - tau

    def items() -> Iterator[Got]:
        yield Got(("theta_at_uniform",), theta)
        yield Got(("f_uniform",), proof.objective)
        yield Got(
            ("oracle_vertices",),
            [batch.structure(m).decode(vertices[batch.coordinates(m)]) for m in range(len(batch))],
        )
        yield Got(("gap",), proof.gap)
        how = {"bounds": (0.0, 1.0), "options": {"xatol": 1e-12}}
        best = minimize_scalar(lambda at: dual.value(tau + at * change), **how)
        yield Got(("gamma_linesearch",), best.x)
        yield Got(("f_after",), best.fun)
        yield Got(("loglik_at_theta0",), log_likelihood(batch, features, lam, theta))

    yield from _asked(expected, items())


def ssvm_case(inputs: Fields, expected: Fields) -> Iterator[Got]:
    batch, features, lam = labelled(inputs)
    oracle = oracle_for(batch)
    solver = FrankWolfe(tol=1e-12, rounds=4000)
    model = ssvm(regulariser=lam, oracle=oracle, solver=solver).fit(batch, features)
    proof = model.certificate
    note = f"within gap {proof.gap:.1e}"

    def items() -> Iterator[Got]:
        yield Got(("dual",), -proof.objective, proof.gap, note)
        yield Got(("primal",), proof.gap - proof.objective, proof.gap, note)
        yield Got(("theta",), model.theta, float(np.sqrt(2 * proof.gap / lam)), note)

    yield from _asked(expected, items())
    if "soft_T" in expected:
        for index, soft in enumerate(expected.objects("soft_T")):
            learner = ssvm(temperature=soft.number("T"), rho=1.0, regulariser=lam)
            found = solve(learner.dual(batch, features), oracle)
            places = ("soft_T", index)
            items_ = (
                found.value((*places, "value"), -found.objective),
                found.weights((*places, "theta")),
            )
            yield from _asked(soft, iter(items_))


def mle_grid(inputs: Fields, expected: Fields) -> Iterator[Got]:
    x, y = inputs.array("x", 2), inputs.whole("y", 2)
    edges = inputs.whole("edges", 2)
    graph = pairwise(nodes_of(edges, x.shape[1]), edges)
    batch = Batch.of(graph, list(y))
    phi = np.zeros((len(batch), graph.size, 3))
    on = graph.node_start[:-1] + 1
    phi[:, on, 0] = 1.0
    phi[:, on, 1] = x
    same = np.flatnonzero(np.tile([1, 0, 0, 1], len(edges))) + graph.node_start[-1]
    phi[:, same, 2] = 1.0
    features = Dense.of(batch, phi)
    for key in expected:
        case = expected.inside(key)
        lam = case.number("lam")
        yield from _asked(case, _grid_quantities(key, case, batch, features, lam))


def _grid_quantities(
    key: str, case: Fields, batch: Batch[FactorGraph], features: Dense, lam: float
) -> Iterator[Got]:
    if "rho" not in case:
        value, theta = maximum_likelihood(batch, features, lam)
        yield Got((key, "loglik"), value)
        yield Got((key, "theta"), theta)
        return
    found = learn(batch, features, case.array("rho"), lam)
    yield found.value((key, "dual_value"), found.objective)
    yield found.weights((key, "theta"))
    graph = batch.structures[0]
    nodes = np.array([p1(graph, row) for row in found.tau.reshape(len(batch), -1)])
    yield Got((key, "tau_node_p1"), nodes, found.tau_within, found.note)


def mle_bipartite(inputs: Fields, expected: Fields) -> Iterator[Got]:
    perms = inputs.whole("perms", 2)
    batch = Batch.of(BipartiteMatching(perms.shape[1]), list(perms))
    features = _dense(inputs, "F", batch)
    for key in expected:
        case = expected.inside(key)
        yield from _asked(case, _sandwich(key, case, batch, features))


def _sandwich(
    key: str, case: Fields, batch: Batch[BipartiteMatching], features: Dense
) -> Iterator[Got]:
    lam = case.number("lam")
    rhos = {"rw": 0.5, "bethe": 1.0}
    if "hypertree_rho" in case:
        rhos["hypertree"] = case.number("hypertree_rho")
    found = {name: learn(batch, features, rho, lam) for name, rho in rhos.items()}
    for name, solved in found.items():
        yield solved.value((key, f"{name}_value"), solved.objective)
        yield solved.weights((key, f"{name}_theta"))
    value, theta = maximum_likelihood(batch, features, lam)
    yield Got((key, "exact_value"), value)
    yield Got((key, "exact_theta"), theta)
    rw, bethe = found["rw"], found["bethe"]
    for name, solved in (("rw", rw), ("bethe", bethe)):
        exact = log_likelihood(batch, features, lam, solved.theta)
        yield Got((key, f"loglik_at_{name}_theta"), exact, _moved(solved), solved.note)
    crossed = (
        ("bethe_loglik_at_rw_theta", 1.0, rw),
        ("rw_loglik_at_bethe_theta", 0.5, bethe),
    )
    for name, rho, solved in crossed:
        other = infer_many(batch, features.potentials(solved.theta), rho)
        score = float(solved.theta @ observed(batch, features))
        here = score + other.objective - lam / 2 * float(solved.theta @ solved.theta)
        yield Got((key, name), here, other.gap + _moved(solved), other.note)


def _moved(solved: Solved) -> float:
    """How far a likelihood moves while θ moves within its radius: slopes ≤ Σ|φ − Φᵀτ|."""
    features, batch = solved.dual.features, solved.dual.batch
    columns = np.array([features.potentials(e) for e in np.eye(features.d)])
    spread = sum(np.abs(columns[:, batch.coordinates(m)]).sum(axis=1) for m in range(len(batch)))
    lam = float(solved.dual.regulariser.lam.max())
    steepest = np.linalg.norm(spread) + lam * np.linalg.norm(solved.theta)
    return float(steepest) * solved.theta_within


def mle_matching(inputs: Fields, expected: Fields) -> Iterator[Got]:
    edges, lam = inputs.whole("edges", 2), inputs.number("lam")
    structure = Matching(nodes_of(edges), edges)
    batch = Batch.of(structure, [edges[row == 1] for row in inputs.whole("observed", 2)])
    features = _dense(inputs, "F", batch)
    for key in expected:
        case = expected.inside(key)
        yield from _asked(case, _matching_quantities(key, case, batch, features, lam))


def _matching_quantities(
    key: str, case: Fields, batch: Batch[Matching], features: Dense, lam: float
) -> Iterator[Got]:
    if "rho" not in case:
        value, theta = maximum_likelihood(batch, features, lam)
        yield Got((key, "value"), value)
        yield Got((key, "theta"), theta)
        return
    found = learn(batch, features, case.array("rho"), lam, DEGREES)
    yield found.value((key, "value"), found.objective)
    yield found.weights((key, "theta"))
    yield found.point((key, "tau"), (len(batch), -1))

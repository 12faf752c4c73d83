"""Contrastive free energies: pair marginals, k-step relaxations, and their learning gradients."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from mlestruct.families.contrastive.belief_optimisation import (
    TOL,
    belief_optimisation,
    cells,
    couplings,
    descend,
    logits,
    tables,
)
from mlestruct.inference.exact import exact
from mlestruct.inference.mean_field import MeanFieldAscent
from mlestruct.learners.primal import PseudoLikelihood
from mlestruct.structures import FactorGraph
from mlestruct.structures.base import Array, Ints
from mlestruct.structures.batch import Batch
from tests.reference.cases import Fields
from tests.reference.core import Got
from tests.reference.factor_graphs import p1, pairwise
from tests.reference.joint import joint_scores


def bethe(batch: Batch[Any], scores: Array, a: Array) -> tuple[Array, Array, Array]:
    """F of every example, ∂F/∂q of every node, and τ, at marginals q = σ(a)."""
    graph = couplings(batch)
    found = descend(graph, scores, a, graph.fixed >= 0, 0, TOL)
    return found.after, found.slope, tables(graph, scores, a)


def law_after_sweep(joint: Array, law: Array, order: Ints) -> Array:
    """The law of labellings after redrawing variables in this order; axes are variables.

    ``joint`` holds every labelling's score. What one sweep of the chain does, without sampling.
    """
    for v in order:
        given = np.exp(joint - joint.max(axis=v, keepdims=True))
        law = law.sum(axis=v, keepdims=True) * given / given.sum(axis=v, keepdims=True)
    return law


def pairs(inputs: Fields, expected: Fields) -> Iterator[Got]:
    for index, case in enumerate(expected.objects("cases")):
        W, p, q = (case.number(name) for name in ("W", "qi", "qj"))
        yield Got(("cases", index, "xi"), cells(W, p, 1 - p, q, 1 - q)[0])


def boltzmann(inputs: Fields) -> tuple[FactorGraph, Array]:
    """−E = Σ θ_i x_i + Σ W x_i x_j as scores."""
    theta, W = inputs.array("theta", 1), inputs.array("W", 1)
    graph = pairwise(len(theta), inputs.whole("edges", 2))
    nodes = np.stack([np.zeros(len(theta)), theta], axis=1).ravel()
    return graph, np.concatenate([nodes, np.outer(W, [0.0, 0.0, 0.0, 1.0]).ravel()])


def contrastive(inputs: Fields, expected: Fields) -> Iterator[Got]:
    graph, score = boltzmann(inputs)
    y = inputs.whole("y", 1)
    batch = Batch.of(graph, [y])
    yield Got(("logZ",), exact(graph, score).log_z)
    yield Got(("E_y",), -float(score @ graph.encode(y)))
    stated = expected.inside("grad_F_bethe_at").array("q", 1)
    F, slope, tau = bethe(batch, score, logits(stated))
    yield Got(("grad_F_bethe_at", "q"), p1(graph, tau))
    yield Got(("grad_F_bethe_at", "F"), float(F[0]))
    yield Got(("grad_F_bethe_at", "grad"), slope)
    for k in expected.inside("cf_bethe"):
        start = np.abs(y - inputs.number("eps"))
        found = _fixed_steps(batch, score, start, int(k), inputs.number("step"))
        yield from (replace(item, place=("cf_bethe", k, *item.place)) for item in found)
    best = belief_optimisation(batch, score, tol=1e-12)
    yield Got(("bethe_min_F",), -float(best.log_z[0]))
    yield Got(("bethe_min_q",), p1(graph, best.tau))
    yield from _mean_field(batch, score, y)


def _fixed_steps(batch: Batch[Any], score: Array, q: Array, k: int, step: float) -> Iterator[Got]:
    """a ← a − step·∂F/∂a with q = σ(a): the steps of the question, on the library's free energy."""
    a = logits(q)
    start, slope, tau = bethe(batch, score, a)
    for _ in range(k):
        q = tau[couplings(batch).place]
        a = a - step * q * (1 - q) * slope
        end, slope, tau = bethe(batch, score, a)
    yield Got(("q",), tau[couplings(batch).place])
    yield Got(("F0",), float(start[0]))
    yield Got(("Fk",), float(end[0]))
    yield Got(("CF",), float(start[0] - end[0]))
    yield Got(("xi",), tau[batch.structure(0).node_start[-1] :].reshape(-1, 4)[:, 3])


def _mean_field(batch: Batch[Any], score: Array, y: Any) -> Iterator[Got]:
    graph, target = batch.structure(0), batch.target
    assert target is not None
    yield Got(("mf_sequential", "F_at_data"), -float(score @ target))
    for name, sweeps in (("sweeps1", 1), ("sweeps2", 2), ("converged", 10_000)):
        log_z, tau, _ = MeanFieldAscent(tol=1e-14, sweeps=sweeps).many(batch, score, target)
        yield Got(("mf_sequential", name, "q"), p1(graph, tau))
        yield Got(("mf_sequential", name, "F"), -float(log_z[0]))
    log_z, tau, _ = MeanFieldAscent(0.9, 0.0, 50).many(batch, score)
    yield Got(("mf_damped_uniform_alpha0p1_50", "q"), p1(graph, tau))
    yield Got(("mf_damped_uniform_alpha0p1_50", "F"), -float(log_z[0]))


def learning(inputs: Fields, expected: Fields) -> Iterator[Got]:
    graph, score = boltzmann(inputs)
    Y = inputs.whole("Y", 2)
    batch, n = Batch.of(graph, list(Y)), graph.n_nodes
    scores = {"score": np.tile(score, len(Y))}
    value, gradient, *_ = PseudoLikelihood()(batch, scores, None, 0)
    mean = gradient["score"].reshape(len(Y), -1).mean(axis=0) / n
    yield Got(("pl_objective",), value / (n * len(Y)))
    yield Got(("pl_grad_theta",), _parameters(graph, mean)[:n])
    yield Got(("pl_grad_W",), _parameters(graph, mean)[n:])
    joint = joint_scores(graph, score)
    model = np.exp(joint - exact(graph, score).log_z)
    data = np.zeros_like(joint)
    np.add.at(data, tuple(Y.T), 1.0 / len(Y))
    states = list(np.ndindex(joint.shape))
    statistics = np.array([_parameters(graph, graph.encode(state)) for state in states])

    def change(law: Array) -> Array:
        return np.asarray((law - data).ravel() @ statistics)

    yield Got(("ml_grad",), change(model))
    yield Got(("ml_kl",), _divergence(data, model))
    for k in expected.inside("cd"):
        law = data
        for _ in range(int(k)):
            law = law_after_sweep(joint, law, inputs.whole("gibbs_scan", 1))
        yield Got(("cd", k, "grad"), change(law))
        yield Got(("cd", k, "CF"), _divergence(data, model) - _divergence(law, model))
    hidden = expected.inside("hidden")
    seen = hidden.whole("observed_first_three", 1)
    given = graph.clamp(dict(enumerate(seen.tolist())))
    clamped, free = exact(given, score), exact(graph, score)
    yield Got(("hidden", "grad"), _parameters(graph, free.tau - clamped.tau))
    yield Got(("hidden", "neg_log_marginal"), free.log_z - clamped.log_z)


def _parameters(graph: FactorGraph, tau: Array) -> Array:
    """Moments of x_i and x_i x_j."""
    return np.concatenate([p1(graph, tau), tau[graph.node_start[-1] :].reshape(-1, 4)[:, 3]])


def _divergence(law: Array, model: Array) -> float:
    inside = law > 0
    return float((law[inside] * np.log(law[inside] / model[inside])).sum())

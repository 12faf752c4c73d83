"""Fitting through inference: beliefs, losses and their gradients, implicit and procedural."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from mlestruct.families.fitting.condensed import Condensed
from mlestruct.families.fitting.losses import LOSSES, Loss, classification
from mlestruct.families.fitting.procedural import Procedural
from mlestruct.families.fitting.truncated import Messages, beliefs, one_by_one
from mlestruct.inference.exact import exact
from mlestruct.learners.primal import only_seen
from mlestruct.structures import FactorGraph
from mlestruct.structures.base import Array
from mlestruct.structures.batch import Batch, Partial
from tests.reference.cases import Fields
from tests.reference.core import Got
from tests.reference.factor_graphs import p1
from tests.reference.solving import infer


def implicit(inputs: Fields, expected: Fields) -> Iterator[Got]:
    graph = FactorGraph(inputs.whole("K", 1), inputs.whole("edges", 2))
    batch = Batch.of(graph, [inputs.whole("yhat", 1)])
    v, w = inputs.array("v", 1), inputs.array("w", 1)
    b = Condensed(tol=1e-12).minimise(batch, -v, w).tau
    yield Got(("F",), _free_energy(v, w, b))
    yield Got(("b",), b)
    first = Condensed(steps=1).minimise(batch, -v, w).tau
    yield Got(("alg1_first_iterate",), first)
    yield Got(("alg1_F_after_first",), _free_energy(v, w, first))
    for name in expected.inside("losses"):
        loss = LOSSES[name]
        if loss.measure is classification:
            sharpness = inputs.number("lambda_class")
            loss = Loss(partial(classification, sharpness=sharpness), loss.units)
        value, slope, m = _fitted(batch, w, b, loss)
        found = {"L": value, "dL_db": slope / b, "dL_dv": m, "dL_dw": m * (np.log(b) + 1)}
        yield from (Got(("losses", name, key), got) for key, got in found.items())
    labels = np.full(graph.n_nodes, -1)
    seen = expected.inside("missing_labels").whole("observed_nodes", 1)
    labels[seen] = inputs.whole("yhat", 1)[seen]
    value, _, m = _fitted(only_seen(Batch.of(graph, [Partial(labels)])), w, b, LOSSES["ucl"])
    yield Got(("missing_labels", "L"), value)
    yield Got(("missing_labels", "dL_dv"), m)


def _fitted(batch: Batch[Any], w: Array, b: Array, loss: Loss) -> tuple[float, Array, Array]:
    value, slope = loss(b, loss.units(batch))
    return value, slope, Condensed().respond(batch, w, b, slope)


def _free_energy(v: Array, w: Array, b: Array) -> float:
    return float(w @ (b * np.log(b)) + v @ b)


def procedural(inputs: Fields, expected: Fields) -> Iterator[Got]:
    unary, pair = inputs.array("unary", 2), inputs.array("pair", 3)
    order = inputs.whole("order_one_iteration", 1)
    graph = FactorGraph([unary.shape[1]] * len(unary), inputs.whole("cliques", 2))
    batch = Batch.of(graph, [inputs.whole("y", 1)])
    score = np.concatenate([unary.ravel(), pair.ravel()])
    method = Messages(order=lambda _: one_by_one(order))
    for key in expected.inside("iterations"):
        objective = Procedural(LOSSES["ucl"], method, int(key))
        found = objective(batch, {"score": score}, None, 0.0)
        slope, place = found.gradient["score"], ("iterations", key)
        tau = beliefs(batch, [score], method, int(key))
        yield Got((*place, "L"), found.value)
        yield Got((*place, "beliefs_p1"), p1(graph, tau))
        yield Got((*place, "grad_unary"), slope[: unary.size].reshape(unary.shape))
        yield Got((*place, "grad_pair"), slope[unary.size :].reshape(pair.shape))
    truth = exact(graph, score)
    yield Got(("exact_p1",), p1(graph, truth.tau))
    yield Got(("exact_logZ",), truth.log_z)
    for name, rho in (("bethe", 1.0), ("trw_rho_2_3", 2 / 3)):
        solved = infer(graph, score, rho)
        yield solved.value((f"{name}_logZ",), -solved.objective)
        yield Got((f"{name}_p1",), p1(graph, solved.tau), solved.tau_within, solved.note)

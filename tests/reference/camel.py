"""Maximum entropy over clusters: piecewise, CAMEL(0) and CAMEL, hard moments and penalised."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from mlestruct.families.consistency.camel import Camel, Linearisation
from mlestruct.features import Dense
from mlestruct.learning.frank_wolfe import FrankWolfe
from mlestruct.structures import ClusterGraph
from mlestruct.structures.base import Array
from mlestruct.structures.batch import Batch
from tests.reference.cases import Fields, Malformed
from tests.reference.core import Got

LEARNERS = ("piecewise", "camel0", "cccp")


def clusters(inputs: Fields) -> tuple[Batch[ClusterGraph], Dense]:
    """One example with the weight of all: the clusters know nothing but their mean outcome."""
    sepsets = [(i, j, (v,)) for i, j, v in inputs.whole("sepset_edges", 2).tolist()]
    graph = ClusterGraph(inputs.whole("K", 1), inputs.lists("cluster_scopes"), sepsets)
    outcomes = inputs.whole("data", 2)
    vertices = np.array([graph.encode(outcome) for outcome in outcomes])
    batch = Batch.of(graph, count=1, weight=[len(outcomes)])
    rows = np.concatenate([np.asarray(t, dtype=float) for t in inputs["cluster_features"]])
    if rows.ndim != 2 or len(rows) != graph.table_start[graph.n_clusters]:
        raise Malformed(f"{inputs.where}.cluster_features has no row per cluster state")
    features = np.zeros((graph.size, rows.shape[1]))
    features[: len(rows)] = rows
    return replace(batch, target=vertices.mean(axis=0)), Dense.of(batch, features)


def learner(name: str, sigma2: float | None) -> Camel:
    """The three learners of the paper, with R = ‖w‖²/(2σ²) or without."""
    given = None if sigma2 is None else 1.0 / sigma2
    return Camel(
        name,
        regulariser=given,
        rounds=200 if name == "cccp" else 1,
        tol=1e-10,
        consistent=name != "piecewise",
        route="coupled",
        solver=FrankWolfe(tol=1e-14),
    )


def tables(batch: Batch[ClusterGraph], tau: Array) -> list[Array]:
    graph = batch.structures[0]
    return np.split(tau, graph.table_start[1 : graph.n_clusters + 1])[:-1]


def entropy(t: Array) -> float:
    return float(-(t[t > 0] * np.log(t[t > 0])).sum())


def camel(inputs: Fields, expected: Fields) -> Iterator[Got]:
    batch, features = clusters(inputs)
    for key in expected:
        case = expected.inside(key)
        sigma2 = None if case["sigma2"] is None else case.number("sigma2")
        for name in LEARNERS:
            if name in case:
                rounds = list(learner(name, sigma2).each(batch, features))
                yield from _reported((key, name), rounds, batch, case.inside(name))


def _reported(
    place: tuple[str, ...],
    rounds: list[Linearisation],
    batch: Batch[ClusterGraph],
    expected: Fields,
) -> Iterator[Got]:
    last = rounds[-1]
    points: dict[str, Any] = {
        "w": last.theta,
        "pi": tables(batch, last.tau),
        "delta": _signed(batch.structures[0], last.multipliers),
    }
    values = {
        "dual_value": last.certificate.objective,
        "objective": last.objective,
        "objective_first": rounds[0].objective,
        "objective_second": rounds[min(1, len(rounds) - 1)].objective,
    }
    note = f"within gap {last.certificate.gap:.1e} after {len(rounds)} rounds"
    for name, value in {**points, **values}.items():
        if name in expected:
            yield Got((*place, name), value, 0.0, note)


def _signed(graph: ClusterGraph, multipliers: Array) -> Array:
    """δ of every sepset state but the last, relative to it; + on the source cluster."""
    if not len(multipliers):
        return multipliers
    sizes = np.diff(graph.table_start)[graph.n_clusters :]
    parts = np.split(-multipliers, np.cumsum(sizes)[:-1])
    return np.concatenate([part[:-1] - part[-1] for part in parts])


def worked_example(inputs: Fields, expected: Fields) -> Iterator[Got]:
    """A feature that is never observed: its weight is −∞, and everything else is finite."""
    batch, features = clusters(inputs)
    hard = {name: list(learner(name, None).each(batch, features)) for name in LEARNERS}
    last = hard["camel0"][-1]
    pi = np.array([tables(batch, rounds[-1].tau) for rounds in hard.values()])
    if np.ptp(pi, axis=(0, 1)).max() > 1e-9:
        raise ValueError("the three learners or the clusters differ")
    moments = features.moments(last.tau)
    separators = last.tau[batch.structures[0].table_start[batch.structures[0].n_clusters] :]
    ours = sum(entropy(t) for t in tables(batch, last.tau))
    values: dict[str, Any] = {
        "E_f00": moments[0],
        "E_f11": moments[1],
        "pi": pi[0, 0],
        "sum_cluster_entropy": ours,
        "bethe_entropy": ours - entropy(separators),
        "true_maxent": joint_entropy(batch, features, last.tau),
        "w00": last.theta[0],
        "w11": float(last.theta[1]),
    }
    for name, value in values.items():
        if name in expected:
            yield Got((name,), value)
    for name in expected:
        if samples := re.fullmatch(r"dual_value_total_M(\d+)", name):
            each = last.certificate.objective / len(inputs["data"])
            yield Got((name,), int(samples[1]) * each)
        elif variance := re.fullmatch(r"regularised_sigma2_(.+)", name):
            given = expected.inside(name)
            found = _regularised(batch, features, float(variance[1]), given)
            yield from (replace(got, place=(name, *got.place)) for got in found)


def _regularised(
    batch: Batch[ClusterGraph], features: Dense, sigma2: float, expected: Fields
) -> Iterator[Got]:
    *_, last = learner("camel0", sigma2).each(batch, features)
    values = {
        "w": last.theta,
        "pi": tables(batch, last.tau)[0],
        "dual_value_total": last.certificate.objective,
    }
    for name, value in values.items():
        if name in expected:
            yield Got((name,), value, 0.0, f"within gap {last.certificate.gap:.1e}")


def joint_entropy(batch: Batch[ClusterGraph], features: Dense, tau: Array) -> float:
    """The largest entropy of a distribution over whole labellings with these moments.

    One cluster over all variables is the joint table, so the same dual solves it.
    """
    graph = batch.structures[0]
    whole = ClusterGraph(graph.cards, [tuple(range(graph.n_nodes))], [])
    states = np.array(np.unravel_index(np.arange(whole.size), graph.cards)).T
    rows = np.array([graph.encode(state) for state in states]) @ features.matrix
    one = replace(batch, structures=(whole,), bias=np.zeros(whole.size))
    target = _with_moments(rows, features.moments(tau))
    alone = replace(one, target=target)
    *_, last = learner("camel0", None).each(alone, Dense.of(alone, rows))
    return entropy(last.tau)


def _with_moments(rows: Array, moments: Array) -> Array:
    """Some table with the given moments; the solver looks at nothing else of it."""
    from scipy.optimize import nnls

    stacked = np.vstack([rows.T, np.ones(len(rows))])
    table, miss = nnls(stacked, np.append(moments, 1.0))
    if miss > 1e-9:
        raise ValueError("no joint distribution has these moments")
    return np.asarray(table / table.sum())

"""Marginals of sparse matchings end within counted turns, however sure some of the pairs are."""

from __future__ import annotations

import time

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.inference.matching import Scaling, live_edges
from mlestruct.native._door import MatchingAim, MatchingState, matching_infer
from mlestruct.structures.batch import Batch
from mlestruct.structures.entropy import Entropy
from tests.laws.linkage import linkage, mild, peaked, tied

SCALES = (0.05, 0.1, 0.2, 0.5, 0.6, 1.0, 1.5, 2.0)
WIDTH = 1e-6


def counted(structure, score, rho):
    """(Newton steps, most turns of conjugate gradients in one) of a cold start."""
    graph, edge, _, centre = live_edges(structure)
    x, mode, report = np.zeros(graph.nodes), np.zeros(1, np.uint8), np.zeros(5)
    state = MatchingState(1, graph.nodes, graph.live, x, None, mode, report)
    given = score if edge is None else score[edge]
    aim, tau = MatchingAim(rho, 1e-11, 10_000), np.empty(graph.live)
    matching_infer(graph, aim, state, given, centre, tau, np.empty(1))
    return report[3:]


def check(structure, score, rho=0.5, steps=40, turns=200, seconds=1.0):
    """Both counts, the width of the proven interval, and ten times the processor time."""
    batch, routine = Batch.of(structure, count=1), Scaling(rho)
    live_edges(structure)
    begun = time.process_time()
    found = routine.many(batch, score)
    took = time.process_time() - begun
    lower = Entropy.of(batch, rho).each(found.tau) + batch.totals(score * found.tau)
    upper = routine.above(batch, score, found.warm, lower)
    assert structure.contains(found.tau)
    rounding = 2e-13 * np.abs(score).sum()
    assert -rounding <= (upper - lower)[0] <= WIDTH
    assert took <= 10 * seconds
    taken = counted(structure, score, rho)
    assert taken[0] <= steps
    assert taken[1] <= turns


def general(rng, nodes, kind, sure):
    """A sparse graph with odd cycles: sure pairs in a perfect matching, and false ones."""
    order = rng.permutation(nodes).reshape(2, -1)
    pairs = {(int(min(p)), int(max(p))): sure for p in order.T}
    for u, v in np.sort(rng.integers(nodes, size=(2 * nodes, 2)), axis=1).tolist():
        if u != v:
            pairs.setdefault((u, v), 0.0)
    likely = np.array(list(pairs.values()))
    score = np.where(likely > 0, likely * rng.uniform(0.3, 1.3, len(pairs)), 0.0)
    score += np.where(likely > 0, 0.0, rng.normal(-6.0, 4.0, len(pairs)))
    return ms.Matching(nodes, list(pairs), kind=kind), score


def forest(rng, nodes, ties):
    """Every node but some roots hangs on one of the five before it; whole multiples with ties."""
    child = np.array([v for v in range(1, nodes) if v % 50])
    parent = child - rng.integers(1, np.minimum(child, 5) + 1)
    score = rng.normal(0.0, 1.0, len(child))
    return (
        ms.Matching(nodes, np.column_stack([parent, child]), kind="partial"),
        np.round(score) if ties else score,
    )


def chain(nodes, sure, weak):
    """A path whose every other pair is sure."""
    v = np.arange(nodes - 1)
    score = np.where(v % 2 == 0, sure, weak)
    return ms.Matching(nodes, np.column_stack([v, v + 1]), kind="partial"), score


@pytest.mark.parametrize(
    ("make", "times"), [(peaked, 0.05), (peaked, 0.6), (peaked, 2.0), (tied, 0.5), (tied, 2.0)]
)
def test_linkage_files_take_few_turns(make, times):
    structure, score = make(np.random.default_rng(0))
    check(structure, times * score)


def test_small_files_general_graphs_and_forests_take_few_turns(rng):
    for rho in (0.5, 0.25, 0.1):
        for times in (0.5, 1.0, 2.0):
            check(*linkage(rng, 200, 150, 250, (5, 15, 21), (-7, -6, -3), 0.4), rho, 80, 400)
            for kind in ("perfect", "partial"):
                check(*general(rng, 400, kind, 20.0 * times), rho, 80, 400)
            structure, score = forest(rng, 400, ties=times == 1.0)
            check(structure, 20.0 * times * score, rho, 80, 400)
    check(*chain(1000, 40.0, -5.0))
    check(*chain(1000, 20.0, 20.0), turns=1000)  # along ties all nodes' prices hang together


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("make", [peaked, tied])
@pytest.mark.parametrize("rho", [0.5, 0.25, 0.1])
def test_linkage_files_at_every_scale(make, seed, rho):
    structure, score = make(np.random.default_rng(seed))
    for times in SCALES:
        limits = {} if rho == 0.5 else {"steps": 80, "turns": 1000}
        check(structure, times * score, rho, **limits)
    check(structure, 20.0 * np.round(times * score / 20.0), rho, 80, 1000)


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["perfect", "partial"])
@pytest.mark.parametrize("rho", [0.5, 0.25])
def test_large_sparse_graphs(rng, kind, rho):
    for times in SCALES:
        check(*general(rng, 10_000, kind, 30.0 * times), rho, 80, 1000, seconds=2.0)
    for times in (1.0, 10.0, 40.0, 200.0):
        structure, score = forest(rng, 10_000, ties=times == 10.0)
        check(structure, times * score, rho, 80, 1000)


@pytest.mark.nightly
def test_two_files_of_a_hundred_thousand_mild_records():
    check(*mild(np.random.default_rng(0)), seconds=2.0)

"""Contrastive free energies: never negative, never rising, and right at both ends of k."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.families.contrastive.belief_optimisation import couplings, logits
from mlestruct.families.contrastive.objectives import (
    BetheSteps,
    Contrastive,
    Limit,
    MeanFieldSteps,
)
from mlestruct.inference.exact import exact
from mlestruct.inference.mean_field import MeanFieldAscent
from mlestruct.inference.sum_product import SumProduct
from mlestruct.learners import contrastive
from mlestruct.learners.primal import only_seen
from mlestruct.structures.entropy import Entropy
from tests.reference.contrastive import bethe

LOOPY = ms.FactorGraph([2] * 4, [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)])
MIXED = ms.FactorGraph([2, 3, 2, 3], [(0, 1, 2), (1, 3), (2, 3)])
THREES = ms.grid(3, 3, states=3)

# every relaxation with a free energy, and the graphs it is for
RELAXED = {
    "bethe": (BetheSteps, [LOOPY, ms.grid(3, 3)]),
    "mean_field": (MeanFieldSteps, [LOOPY, MIXED, THREES]),
    "logits": (partial(BetheSteps, by="logits"), [LOOPY]),
}
CASES = [(make, graph) for make, graphs in RELAXED.values() for graph in graphs]
NAMES = [name for name, (_, graphs) in RELAXED.items() for _ in graphs]


def drawn(graph, rng, count=4, hidden=0.0):
    """Outcomes at random (some of their variables unseen), and weights."""
    outcomes = [rng.integers(0, graph.cards) for _ in range(count)]
    if not hidden:
        return ms.Batch.of(graph, outcomes, weight=rng.uniform(0.5, 2.0, count))
    for outcome in outcomes:
        outcome[rng.random(len(outcome)) < hidden] = -1
        outcome[rng.integers(len(outcome))] = -1
    return only_seen(ms.Batch.of(graph, list(map(ms.Partial, outcomes))))


def log_z(batch, scores, clamped=False):
    """By enumeration, of every example; of the labellings that agree with what was seen."""
    found = []
    for m in range(len(batch)):
        graph, here = batch.structure(m), batch.coordinates(m)
        tables = np.split(batch.target[here], graph.node_start[1:])[: graph.n_nodes]
        seen = {i: int(table.argmax()) for i, table in enumerate(tables) if table.sum() == 1}
        found.append(exact(graph.clamp(seen) if clamped else graph, scores[here]).log_z)
    return np.array(found)


@pytest.mark.parametrize("hidden", [0.0, 0.4])
@pytest.mark.parametrize(("make", "graph"), CASES, ids=NAMES)
def test_never_negative_and_never_rising(make, graph, hidden, rng):
    never_rising(make, graph, hidden, rng)


def never_rising(make, graph, hidden, rng):
    """F_0 ≥ F_1 ≥ F_2 … of every example, weak and strong scores, and F_0 the same for all k."""
    batch = drawn(graph, rng, hidden=hidden)
    for strength in (0.1, 2.0 if hidden else 8.0):  # strong hidden ones settle slowly
        scores = strength * rng.standard_normal(batch.size)
        found = [make(steps=k)(batch, scores, None) for k in (1, 2, 3, 8)]
        for one in found:
            assert (one.start == found[0].start).all()
            for m in range(len(batch)):
                tau = one.tau[batch.coordinates(m)]
                assert batch.structure(m).contains(tau, 1e-8)
        path = np.array([found[0].start] + [one.end for one in found])
        assert (np.diff(path, axis=0) <= 1e-12 * np.abs(path[0])).all()
        assert (path[-1] < path[0]).any()


@pytest.mark.parametrize("hidden", [0.0, 0.4])
@pytest.mark.parametrize("states", [2, 3])
def test_on_a_tree_the_limit_is_maximum_likelihood(states, hidden, rng):
    """CF_k → −log p(what was seen) and its gradient the exact one, where F has no error."""
    graph = ms.tree([(0, 1), (1, 2), (1, 3)], [states] * 4)
    batch = drawn(graph, rng, hidden=hidden)
    scores = rng.standard_normal(batch.size)
    target = batch.totals(scores * batch.target)
    want = log_z(batch, scores) - (log_z(batch, scores, True) if hidden else target)

    def propagated(part):
        return SumProduct.of(Entropy.of(part, 1.0), takeover=False)

    exact_ones: list = [(Limit(propagated), 1e-6)]
    if states == 2:
        exact_ones.append((BetheSteps(1000, epsilon=1e-9, tol=1e-10), 1e-5))
    for relaxation, tol in exact_ones:
        found = relaxation(batch, scores, None)
        np.testing.assert_allclose(found.start - found.end, want, atol=tol)
        for m in range(len(batch)):
            here = batch.coordinates(m)
            np.testing.assert_allclose(found.tau[here], exact(graph, scores[here]).tau, atol=1e-5)
    # the gradient: finite differences of the enumerated likelihood
    gradient = Contrastive(Limit(propagated))(batch, {"score": scores}, None, 0.0).gradient["score"]
    for j in rng.choice(batch.size, 8, replace=False):
        step = 1e-5 * np.eye(batch.size)[j]
        values = []
        for moved in (scores + step, scores - step):
            base = log_z(batch, moved, True) if hidden else batch.totals(moved * batch.target)
            values.append(batch.weight @ (log_z(batch, moved) - base))
        assert gradient[j] == pytest.approx((values[0] - values[1]) / 2e-5, abs=1e-4)


def test_steps_by_logits_are_the_papers(rng):
    """The first is along −∂F/∂a, no node moves otherwise; in the limit both kinds end alike."""
    batch = drawn(LOOPY, rng, count=3)
    scores = rng.standard_normal(batch.size)
    place = couplings(batch).place
    a = logits(np.clip(batch.target[place], 1e-4, 1 - 1e-4))
    _, slope, _ = bethe(batch, scores, a)
    q = 1 / (1 + np.exp(-a))
    down = -q * (1 - q) * slope
    moved = logits(BetheSteps(1, by="logits")(batch, scores, None).tau[place]) - a
    for nodes in np.split(np.arange(len(place)), len(batch)):
        length = moved[nodes] @ down[nodes] / (down[nodes] @ down[nodes])
        assert length > 0
        np.testing.assert_allclose(moved[nodes], length * down[nodes], rtol=1e-6, atol=1e-9)
    ours, theirs = (
        BetheSteps(4000, tol=1e-9, by=by)(batch, scores, None) for by in ("marginals", "logits")
    )
    np.testing.assert_allclose(ours.end, theirs.end, atol=1e-6)
    with pytest.raises(ValueError, match="not by 'values'"):
        BetheSteps(by="values")


def test_mean_field_steps_end_at_mean_field(rng):
    """Many sweeps from the data end where mean field started there stays."""
    batch = drawn(THREES, rng)
    scores = rng.standard_normal(batch.size)
    found = MeanFieldSteps(500)(batch, scores, None)
    np.testing.assert_allclose(found.start, -batch.totals(scores * batch.target), atol=1e-12)
    again = MeanFieldAscent().many(batch, scores, found.tau)
    np.testing.assert_allclose(again.log_z, -found.end, atol=1e-8)


def test_parallel_sweeps_do_not_cycle():
    """Two repelling spins: undamped parallel updates jump between .042 and .851 for ever."""
    graph = ms.FactorGraph([2, 2], [(0, 1)])
    batch = ms.Batch.of(graph, [[0, 0]])
    scores = np.array([0, 2.0, 0, 2.0, 0, 0, 0, -6.0])
    ends = [MeanFieldSteps(k)(batch, scores, None) for k in range(1, 30)]
    free = [one.end[0] for one in ends]
    assert (np.diff(free) <= 0).all()
    assert np.abs(ends[-1].tau - ends[-2].tau).max() < 1e-3
    assert 0.1 < ends[-1].tau[1] < 0.8


def test_what_cannot_be_hidden_or_relaxed_is_refused(rng):
    batch = drawn(LOOPY, rng)
    with pytest.raises(ValueError, match="starts at the data"):
        Contrastive(BetheSteps())(
            ms.Batch.of(LOOPY, count=1), {"score": np.zeros(LOOPY.size)}, None, 0.0
        )
    hard = ms.Batch.of(LOOPY.forbid((), [(0, (0, 1))]), [[0, 0, 0, 0]])
    with pytest.raises(ValueError, match="forbidden entry"):
        MeanFieldSteps()(hard, np.zeros(batch.size // 4), None)


@pytest.mark.parametrize("free_energy", ["bethe", "mean_field"])
def test_free_energies_of_graphs_say_so_of_matchings(free_energy, rng):
    X, y = [rng.normal(size=(3, 3, 2)) for _ in range(3)], [rng.permutation(3) for _ in range(3)]
    model = ms.MatchingModel(learner=partial(contrastive, free_energy=free_energy, k=2))
    with pytest.raises(ValueError, match="graphs"):
        model.fit(X, y)

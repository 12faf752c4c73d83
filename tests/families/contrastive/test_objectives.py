"""Contrastive free energies: never negative, never rising, and right at both ends of k."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.families.contrastive.belief_optimisation import bethe, couplings, logits
from mlestruct.families.contrastive.objectives import (
    BetheSteps,
    BlockSteps,
    Contrastive,
    FrankWolfeSteps,
    GibbsSteps,
    Limit,
    MeanFieldSteps,
    TreeSteps,
)
from mlestruct.families.contrastive.objectives.blocks import trees
from mlestruct.inference.exact import exact
from mlestruct.inference.graph.sum_product import SumProduct
from mlestruct.inference.mean_field import MeanFieldAscent
from mlestruct.learners import contrastive
from mlestruct.learners.primal import PseudoLikelihood, only_seen
from mlestruct.structures.entropy import Entropy
from tests.reference.contrastive import law_after_sweep

LOOPY = ms.FactorGraph([2] * 4, [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)])
MIXED = ms.FactorGraph([2, 3, 2, 3], [(0, 1, 2), (1, 3), (2, 3)])
THREES = ms.grid(3, 3, states=3)

# every relaxation with a free energy, and the graphs it is for
RELAXED = {
    "bethe": (BetheSteps, [LOOPY, ms.grid(3, 3)]),
    "mean_field": (MeanFieldSteps, [LOOPY, MIXED, THREES]),
    "trees": (TreeSteps, [LOOPY, THREES]),
    "logits": (partial(BetheSteps, by="logits"), [LOOPY]),
    "polytope": (FrankWolfeSteps, [LOOPY, MIXED]),
    "kikuchi": (FrankWolfeSteps, [ms.plaquettes(2, 3), ms.plaquettes(2, 2, states=3)]),
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
    """F_0 ≥ F_1 ≥ F_2 … of every example, weak and strong scores, and F_0 the same for all k."""
    if hidden and isinstance(graph, ms.RegionGraph):
        return
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

    exact_ones = [(TreeSteps(3), 1e-6), (Limit(propagated), 1e-6)]
    if states == 2:
        exact_ones.append((BetheSteps(1000, epsilon=1e-9, tol=1e-10), 1e-5))
    for relaxation, tol in exact_ones:
        found = relaxation(batch, scores, None)
        np.testing.assert_allclose(found.start - found.end, want, atol=tol)
        for m in range(len(batch)):
            here = batch.coordinates(m)
            np.testing.assert_allclose(found.tau[here], exact(graph, scores[here]).tau, atol=1e-5)
    # the gradient: finite differences of the enumerated likelihood
    gradient = Contrastive(TreeSteps(3))(batch, {"score": scores}, None, 0.0).gradient["score"]
    for j in rng.choice(batch.size, 8, replace=False):
        step = 1e-5 * np.eye(batch.size)[j]
        values = []
        for moved in (scores + step, scores - step):
            base = log_z(batch, moved, True) if hidden else batch.totals(moved * batch.target)
            values.append(batch.weight @ (log_z(batch, moved) - base))
        assert gradient[j] == pytest.approx((values[0] - values[1]) / 2e-5, abs=1e-4)


def test_one_plaquette_is_exact_and_steps_approach_it(rng):
    graph = ms.plaquettes(2, 2)
    batch = drawn(graph, rng)
    scores = 0.5 * rng.standard_normal(batch.size)
    vertices = np.array([graph.encode(state) for state in np.ndindex(2, 2, 2, 2)])
    joint = scores.reshape(len(batch), -1) @ vertices.T
    want = np.logaddexp.reduce(joint, axis=1) - batch.totals(scores * batch.target)
    found = [FrankWolfeSteps(k, epsilon=1e-6)(batch, scores, None) for k in (5, 20, 100)]
    left = np.array([want - (one.start - one.end) for one in found])
    assert (left >= -1e-4).all()  # −1e-4: what smoothing adds to F_0's entropy
    assert (left[-1] <= 0.05).all()
    assert (left[0] > left[-1]).all()


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


def test_trees_hold_every_variable_once_and_no_cycle(rng):
    for graph in (LOOPY, ms.grid(5, 6), THREES, ms.skip_chain(8, 2, [(0, 4), (2, 6), (0, 7)])):
        blocks = trees(graph)
        assert sorted(v for block in blocks for v in block) == list(range(graph.n_nodes))
        for block in blocks:
            inside = {v: i for i, v in enumerate(block)}
            ends = [e for e in graph.scope.reshape(-1, 2).tolist() if set(e) <= set(block)]
            kept = ms.FactorGraph([2] * len(block), [[inside[v] for v in e] for e in ends])
            assert kept.is_forest
    assert len(trees(ms.grid(5, 6))) == 2
    batch = drawn(LOOPY, rng)
    scores = np.zeros(batch.size)
    with pytest.raises(ValueError, match="hold every variable once"):
        TreeSteps(1, blocks=lambda graph: [[0, 1], [1, 2, 3]])(batch, scores, None)
    with pytest.raises(ValueError, match="holds a cycle"):
        TreeSteps(1, blocks=lambda graph: [[0, 1, 2, 3]])(batch, scores, None)


@pytest.mark.parametrize("hidden", [0.0, 0.3])
@pytest.mark.parametrize("graph", [LOOPY, MIXED, THREES])
def test_single_blocks_are_pseudo_likelihood(graph, hidden, rng):
    batch = drawn(graph, rng, hidden=hidden)
    scores = {"score": rng.standard_normal(batch.size)}
    found = Contrastive(BlockSteps())(batch, scores, None, 0.0)
    want = PseudoLikelihood()(batch, scores, None, 0.0)
    assert found.value == pytest.approx(want.value, abs=1e-10)
    np.testing.assert_allclose(found.gradient["score"], want.gradient["score"], atol=1e-12)


def test_overlapping_blocks_are_conditional_likelihoods(rng):
    """−Σ log p(block | rest) by enumeration, blocks of one to three variables that overlap."""
    blocks = [[0, 1], [1, 2, 3], [3], [0, 2]]
    batch = ms.Batch.of(MIXED, [rng.integers(0, MIXED.cards) for _ in range(3)])
    # in (0, 1, 2), blocks [1, 2, 3] and [0, 2] hold two variables: a table inside
    scores = rng.standard_normal(batch.size)
    found = BlockSteps(lambda graph: blocks[2:])(batch, scores, None)
    want = np.zeros(3)
    for m in range(3):
        here = batch.coordinates(m)
        y = MIXED.decode(batch.target[here])
        for block in blocks[2:]:
            rest = {v: int(y[v]) for v in range(4) if v not in block}
            want[m] += exact(MIXED.clamp(rest), scores[here]).log_z
            want[m] -= scores[here] @ batch.target[here]
    np.testing.assert_allclose(found.start - found.end, want, atol=1e-10)


def test_contrastive_divergence_has_the_chains_law(rng):
    from mlestruct.inference.sampling import colouring
    from tests.reference.joint import joint_scores

    batch = ms.Batch.of(LOOPY, [[1, 0, 1, 1], [0, 0, 1, 0]])
    scores = rng.standard_normal(batch.size)
    order = np.argsort(colouring(LOOPY), kind="stable")
    for k in (1, 3):
        found = GibbsSteps(k, chains=20_000)(batch, scores, None)
        for m in range(2):
            here = batch.coordinates(m)
            joint, y = joint_scores(LOOPY, scores[here]), LOOPY.decode(batch.target[here])
            law = np.zeros(joint.shape)
            law[tuple(y)] = 1.0
            for _ in range(k):
                law = law_after_sweep(joint, law, order)
            vertices = np.array([LOOPY.encode(state) for state in np.ndindex(*joint.shape)])
            # 20,000 draws: standard error at most .0036
            np.testing.assert_allclose(found.tau[here], law.ravel() @ vertices, atol=0.018)
        same = GibbsSteps(k, chains=20_000)(batch, scores, None)
        assert (same.tau == found.tau).all()


def test_hidden_variables_of_chains_are_drawn_given_what_was_seen(rng):
    batch = only_seen(ms.Batch.of(ms.chain(3, 2), [ms.Partial([1, -1, 0])]))
    scores = rng.standard_normal(batch.size)
    found = GibbsSteps(1, chains=20_000)(batch, scores, None)
    want = exact(ms.chain(3, 2).clamp({0: 1, 2: 0}), scores).tau
    np.testing.assert_allclose(found.data, want, atol=0.018)


def test_what_cannot_be_hidden_or_relaxed_is_refused(rng):
    batch = drawn(LOOPY, rng)
    with pytest.raises(ValueError, match="starts at the data"):
        Contrastive(BetheSteps())(
            ms.Batch.of(LOOPY, count=1), {"score": np.zeros(LOOPY.size)}, None, 0.0
        )
    region = drawn(ms.plaquettes(2, 2), rng)
    region.target[0] = 0.5
    with pytest.raises(ValueError, match="only labelled graphs may have hidden"):
        FrankWolfeSteps()(region, np.zeros(region.size), None)
    hard = ms.Batch.of(LOOPY.forbid((), [(0, (0, 1))]), [[0, 0, 0, 0]])
    with pytest.raises(ValueError, match="forbidden entry"):
        MeanFieldSteps()(hard, np.zeros(batch.size // 4), None)


@pytest.mark.parametrize("name", ["bethe", "mean_field", "trees", "samples"])
def test_free_energies_of_graphs_say_so_of_matchings(name, rng):
    X, y = [rng.normal(size=(3, 3, 2)) for _ in range(3)], [rng.permutation(3) for _ in range(3)]
    for free_energy, words in ((name, "graphs"), ("polytope", None)):
        model = ms.MatchingModel(learner=partial(contrastive, free_energy=free_energy, k=2))
        if words is None:
            assert np.isfinite(model.fit(X, y).coef_).all()
            continue
        with pytest.raises(ValueError, match=words):
            model.fit(X, y)

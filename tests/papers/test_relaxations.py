"""The contrastive paper's other relaxations: trees, blocks, any polytope, samples."""

from __future__ import annotations

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.families.contrastive.objectives import Contrastive
from mlestruct.inference.exact import exact
from mlestruct.learners import contrastive
from mlestruct.learners.primal import PseudoLikelihood, only_seen
from papers.relaxations import BlockSteps, FrankWolfeSteps, GibbsSteps, TreeSteps, trees
from tests.families.contrastive.test_objectives import (
    LOOPY,
    MIXED,
    THREES,
    drawn,
    log_z,
    never_rising,
)
from tests.reference.contrastive import law_after_sweep


@pytest.mark.parametrize("hidden", [0.0, 0.4])
@pytest.mark.parametrize(
    ("make", "graph"),
    [
        (TreeSteps, LOOPY),
        (TreeSteps, THREES),
        (FrankWolfeSteps, LOOPY),
        (FrankWolfeSteps, MIXED),
        (FrankWolfeSteps, ms.plaquettes(2, 3)),
    ],
)
def test_no_free_energy_rises(make, graph, hidden, rng):
    if not (hidden and isinstance(graph, ms.RegionGraph)):
        never_rising(make, graph, hidden, rng)


@pytest.mark.parametrize("hidden", [0.0, 0.4])
def test_trees_on_a_tree_are_maximum_likelihood(hidden, rng):
    graph = ms.tree([(0, 1), (1, 2), (1, 3)], [3] * 4)
    batch = drawn(graph, rng, hidden=hidden)
    scores = rng.standard_normal(batch.size)
    target = batch.totals(scores * batch.target)
    want = log_z(batch, scores) - (log_z(batch, scores, True) if hidden else target)
    found = TreeSteps(3)(batch, scores, None)
    np.testing.assert_allclose(found.start - found.end, want, atol=1e-6)


def test_a_matching_by_its_oracle(rng):
    batch = ms.Batch.of(ms.BipartiteMatching(3), [rng.permutation(3) for _ in range(6)])
    features = ms.Dense.of(batch, rng.standard_normal((batch.size, 2)) + batch.target[:, None])
    steps = FrankWolfeSteps(20, rho=0.5)
    model = contrastive(free_energy=steps, solver=ms.FrankWolfe(rounds=15)).fit(batch, features)
    want = ms.mle_struct(rho=0.5, solver=ms.FrankWolfe(tol=1e-6)).fit(batch, features).theta
    np.testing.assert_allclose(model.theta, want, rtol=0.1)


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
    from tests.reference.joint import joint_scores

    batch = ms.Batch.of(LOOPY, [[1, 0, 1, 1], [0, 0, 1, 0]])
    scores = rng.standard_normal(batch.size)
    order = np.arange(LOOPY.n_nodes)
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

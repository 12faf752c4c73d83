"""Procedural fitting: truncated beliefs against a plain twin, gradients by complex step."""

from dataclasses import replace

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.families.fitting.losses import LOSSES
from mlestruct.families.fitting.procedural import Procedural
from mlestruct.families.fitting.truncated import Messages, beliefs, flooding
from mlestruct.structures.entropy import counting_numbers

GRAPHS = {
    "grid": ms.grid(3, 3),
    "grid of 3 states": ms.grid(2, 3, 3),
    "order 3": ms.FactorGraph([2, 3, 2, 3], [(2, 0, 1), (2, 3), (3, 0)]),
    "one factor": ms.FactorGraph([2, 2, 1], [(1, 0)]),
}
METHODS = {
    "bp": Messages(),
    "trw": Messages(0.5),
    "flooding": Messages(order=flooding),
}


def agreeing(graph, f):
    """(entry, [node entries]) of one factor."""
    entry, node, _ = graph.below
    for k in range(graph.table_start[f], graph.table_start[f + 1]):
        yield k, node[entry == k]


def twin_messages(graph, sets, iterations, rho, order):
    """Plain sum-product in complex arithmetic: dictionaries, no normalisation but at the end."""
    counts = counting_numbers(graph, rho)[graph.n_nodes :]
    sweep, slots = order(graph), range(graph.n_factors)
    scopes = [graph.scope[graph.scope_start[f] : graph.scope_start[f + 1]] for f in slots]
    message = {(f, i): np.zeros(graph.cards[i], complex) for f in slots for i in scopes[f]}

    def cavity(f, i, score):
        first = graph.node_start[i]
        field = score[first : first + graph.cards[i]].astype(complex)
        for g in slots:
            if i in scopes[g]:
                field = field + (counts[g] - (g == f)) * message[g, i]
        return field

    def table(f, score):
        near = np.concatenate([cavity(f, i, score) for i in scopes[f]])
        start = np.concatenate([[0], np.cumsum(graph.cards[scopes[f]])])
        for k, nodes in agreeing(graph, f):
            local = [start[s] + n - graph.node_start[i] for s, (n, i) in
                     enumerate(zip(nodes, scopes[f], strict=True))]  # fmt: skip
            yield k, nodes, score[k] / counts[f] + near[local].sum(), near[local]

    for t in range(iterations):
        score = sets[min(t, len(sets) - 1)]
        for g in range(len(sweep.group) - 1):
            fresh = {}
            for f in sweep.factor[sweep.group[g] : sweep.group[g + 1]]:
                out = {i: np.zeros(graph.cards[i], complex) for i in scopes[f]}
                for _, nodes, total, near in table(f, score):
                    for s, i in enumerate(scopes[f]):
                        out[i][nodes[s] - graph.node_start[i]] += np.exp(total - near[s])
                fresh |= {(f, i): np.log(out[i] / out[i].sum()) for i in scopes[f]}
            message |= fresh
    score = sets[min(max(iterations, 1), len(sets)) - 1]
    tau = np.zeros(graph.size, complex)
    for i in range(graph.n_nodes):
        here = slice(graph.node_start[i], graph.node_start[i + 1])
        tau[here] = np.exp(cavity(-1, i, score))
        tau[here] /= tau[here].sum()
    for f in slots:
        for k, _, total, _ in table(f, score):
            tau[k] = np.exp(total)
        here = slice(graph.table_start[f], graph.table_start[f + 1])
        tau[here] /= tau[here].sum()
    return tau


def twin(method, graph, sets, iterations):
    return twin_messages(graph, sets, iterations, method.rho, method.order)


def sets_of(rng, batch, count):
    return [rng.standard_normal(batch.size) for _ in range(count)]


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("method", METHODS)
def test_beliefs_are_those_of_the_plain_twin(rng, graph, method):
    batch = ms.Batch.of(GRAPHS[graph], count=2)
    for iterations, count in ((0, 1), (1, 1), (3, 1), (3, 2)):
        sets = sets_of(rng, batch, count)
        tau = beliefs(batch, sets, METHODS[method], iterations)
        for m in range(2):
            here = batch.coordinates(m)
            own = [s[here] for s in sets]
            expected = twin(METHODS[method], GRAPHS[graph], own, iterations).real
            np.testing.assert_allclose(tau[here], expected, atol=1e-12)


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("loss", ["ucl", "cquad"])
def test_gradients_by_complex_step(rng, graph, method, loss):
    """∂L/∂score(k) = Σ ∂L/∂b · Im b(score + ih e_k)/h, to 1e-10, for every set of scores."""
    structure, truth = GRAPHS[graph], rng.integers(GRAPHS[graph].cards)
    batch = ms.Batch.of(structure, [truth], weight=[1.5])
    sets = sets_of(rng, batch, 2)
    heads = {f"score {k}": s for k, s in enumerate(sets)}
    found = Procedural(LOSSES[loss], METHODS[method], 2)(batch, heads, None, 0.0)
    tau = beliefs(batch, sets, METHODS[method], 2)
    value, slope = LOSSES[loss](tau, LOSSES[loss].units(batch))
    assert found.value == pytest.approx(value, abs=1e-12)
    for number in range(2):
        for k in rng.choice(batch.size, size=min(batch.size, 6), replace=False):
            moved = [s.astype(complex) for s in sets]
            moved[number][k] += 1e-30j
            change = twin(METHODS[method], structure, moved, 2).imag / 1e-30
            expected = slope / tau @ change
            assert found.gradient[f"score {number}"][k] == pytest.approx(expected, abs=1e-10)


def test_examples_side_by_side_are_examples_alone(rng):
    batch = ms.Batch.of(ms.grid(4, 5), [rng.integers(2, size=20) for _ in range(11)])
    scores = 2 * rng.standard_normal(batch.size)
    together = beliefs(batch, [scores], Messages(), 3)
    for m in range(len(batch)):
        here = batch.coordinates(m)
        alone = beliefs(batch.select([m]), [scores[here]], Messages(), 3)
        np.testing.assert_array_equal(alone, together[here])


def test_rounding_does_not_grow_around_loops(rng):
    """Of a large grid and many iterations: a constant in a table changes nothing."""
    graph = ms.grid(40, 40)
    batch = ms.Batch.of(graph, [rng.integers(2, size=1600)])
    objective = Procedural(LOSSES["ucl"], Messages(), 8)
    slope = objective(batch, {"score": rng.standard_normal(batch.size)}, None, 0.0).gradient
    sums = np.bincount(graph.table_of, weights=slope["score"])
    np.testing.assert_allclose(sums, 0.0, atol=1e-10)


def test_strong_scores_have_finite_slopes(rng):
    batch = ms.Batch.of(ms.grid(3, 3), [np.zeros(9, dtype=int)])
    scores = np.zeros(batch.size)
    scores[18:] = np.tile([500.0, 0.0, 0.0, 500.0], 12)
    scores[0] = 300.0
    scores[2:4] = 5000.0  # a constant in a table is no strength
    run = Messages().run(batch.structure(0), scores[None, None], 2, True)
    np.testing.assert_allclose(run.tau[0, :18:2], 1.0)
    assert np.isfinite(run.pull(run.tau)).all()


def test_gradients_at_enormous_scores_are_finite(rng):
    batch = ms.Batch.of(ms.grid(10, 10), [rng.integers(2, size=100)])
    heads = {"score": 300.0 * rng.standard_normal(batch.size)}
    found = Procedural(LOSSES["ucl"], Messages(), 6)(batch, heads, None, 0.0)
    assert np.isfinite(found.gradient["score"]).all()


def test_a_tree_is_exact_after_one_iteration(rng):
    graph = ms.chain(5, 3)
    batch = ms.Batch.of(graph, count=1)
    scores = rng.standard_normal(batch.size)
    found = ms.marginals(batch, scores)
    np.testing.assert_allclose(beliefs(batch, [scores], Messages(), 1), found.tau, atol=1e-9)


def test_what_it_refuses():
    batch = ms.Batch.of(ms.grid(2, 2).forbid(states=[(0, 1)]), count=1)
    with pytest.raises(ValueError, match="coordinate 1 is fixed"):
        beliefs(batch, [np.zeros(batch.size)], Messages(), 1)
    free = ms.Batch.of(ms.grid(2, 2), count=1)
    with pytest.raises(ValueError, match="factor 0 counts 0"):
        beliefs(free, [np.zeros(free.size)], replace(Messages(), rho=0.0), 1)

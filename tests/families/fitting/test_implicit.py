"""Implicit fitting: optima against Newton in all coordinates, gradients against re-solving."""

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.families.fitting.condensed import Condensed
from mlestruct.families.fitting.implicit import Implicit, coefficients, implicit
from mlestruct.families.fitting.losses import LOSSES
from mlestruct.families.fitting.procedural import procedural
from mlestruct.features import per_table
from mlestruct.inference.sum_product import SumProduct
from mlestruct.learning.problem import Head
from tests.reference.prices import Prices

GRAPHS = {
    "grid": ms.grid(3, 4),
    "grid of 3 states": ms.grid(2, 3, 3),
    "order 3": ms.FactorGraph([2, 3, 1, 3], [(2, 0, 1), (1, 2), (3, 0)]),
    "chain": ms.chain(5, 3),
}
ENTROPIES = {"positive": coefficients(0.01), "trees": None}


def batch_of(rng, graph, count):
    weight = rng.uniform(0.5, 2.0, count)
    return ms.Batch.of(graph, [rng.integers(graph.cards) for _ in range(count)], weight=weight)


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("entropy", ENTROPIES)
@pytest.mark.parametrize("strength", [1.0, 6.0])
def test_optima_are_feasible_and_stationary(rng, graph, entropy, strength):
    """A b = d, and ∇F − z lies in the row space of A: for lanes that are full, and that are not."""
    structure, rho = GRAPHS[graph], ENTROPIES[entropy]
    batch, inference = batch_of(rng, structure, 9), Condensed()
    score, weight = strength * rng.standard_normal(batch.size), inference.weights(batch, rho)
    found = inference.minimise(batch, score, weight)
    assert not found.stalled.any()
    A = structure.constraints().A.toarray()
    for m in range(len(batch)):
        here = batch.coordinates(m)
        assert structure.contains(found.tau[here], 1e-7)
        slope = weight[here] * (np.log(found.tau[here]) + 1) - score[here] - found.slack[here]
        left = slope - A.T @ np.linalg.lstsq(A.T, slope, rcond=None)[0]
        np.testing.assert_allclose(left * np.minimum(1, 1e6 * found.tau[here]), 0.0, atol=1e-6)


def value(batch, score, weight, tau):
    inside = np.maximum(tau, 1e-300)
    return batch.totals(score * tau - weight * tau * np.log(inside))


@pytest.mark.parametrize("strength", [1.0, 3.0, 10.0, 30.0])
@pytest.mark.parametrize("node", [0.01, 1.0])
def test_what_is_called_an_optimum_is_proven(rng, strength, node):
    """Spin glasses: no value beats another method's by more than both bounds, and those are small.

    The other method is the dual, which shares no system, step or stopping rule.
    """
    graph = ms.grid(4, 4)
    batch = batch_of(rng, graph, 3)
    field, coupling = rng.standard_normal((3, 16, 1)), rng.standard_normal((3, 24, 1))
    parts = (field * [-1, 1]).reshape(3, -1), (coupling * [1, -1, -1, 1]).reshape(3, -1)
    score = strength * np.concatenate(parts, axis=1).ravel()
    weight = Condensed().weights(batch, coefficients(node))
    found, dual = (
        Condensed().minimise(batch, score, weight),
        Prices().minimise(batch, score, weight),
    )
    assert not found.stalled.any()
    assert not dual.stalled.any()
    size = 40 + batch.totals(np.abs(score * found.tau))
    apart = value(batch, score, weight, found.tau) - value(batch, score, weight, dual.tau)
    assert (np.abs(apart) <= (found.gap + dual.gap) * size + 1e-12 * size).all()
    for m in range(3):
        assert graph.contains(found.tau[batch.coordinates(m)], 1e-6)


@pytest.mark.parametrize("strength", [1.0, 3.0, 10.0, 30.0])
def test_messages_find_the_same_value(rng, strength):
    batch = batch_of(rng, ms.grid(4, 4), 2)
    score = strength * rng.standard_normal(batch.size)
    messages = SumProduct.of(ms.Entropy.of(batch, None)).many(batch, score)
    weight = Condensed().weights(batch, None)
    found = Condensed().minimise(batch, score, weight)
    assert not found.stalled.any()
    reached = value(batch, score, weight, found.tau)
    np.testing.assert_allclose(reached, messages.log_z, atol=1e-6 * 40 * strength)


def test_what_is_cut_short_says_how_far_it_is(rng):
    batch = batch_of(rng, ms.grid(4, 4), 4)
    score = 10.0 * rng.standard_normal(batch.size)
    weight = Condensed().weights(batch, coefficients(1.0))
    best = Condensed().minimise(batch, score, weight)
    for steps in (3, 30):
        some = Condensed(steps=steps).minimise(batch, score, weight)
        size = 40 + batch.totals(np.abs(score * some.tau))
        short = value(batch, score, weight, best.tau) - value(batch, score, weight, some.tau)
        assert (short <= some.gap * size + 1e-9 * size).all()
        assert some.stalled.any() == (steps == 3)


def test_beliefs_beyond_numbers_are_no_optimum(rng):
    batch = batch_of(rng, GRAPHS["grid of 3 states"], 2)
    found = Condensed().minimise(batch, np.zeros(batch.size), np.full(batch.size, 1e308))
    assert found.stalled.all()


@pytest.mark.parametrize("loss", ["ucl", "cquad"])
def test_gradients_where_scores_are_strong(rng, loss):
    batch = batch_of(rng, ms.grid(3, 3), 1)
    score, objective = 10.0 * rng.standard_normal(batch.size), Implicit(LOSSES[loss])
    found = objective(batch, {"score": score}, None, 0.0)
    assert found.warm.optima.slack.any()
    for k in rng.choice(batch.size, 6, replace=False):
        step = np.zeros(batch.size)
        step[k] = 1e-3
        up, down = (
            objective(batch, {"score": score + sign * step}, None, 0.0).value for sign in (1, -1)
        )
        assert found.gradient["score"][k] == pytest.approx((up - down) / 2e-3, abs=1e-5, rel=1e-3)


@pytest.mark.parametrize("loss", ["ucl", "uclass", "cquad"])
@pytest.mark.parametrize("fitted", [False, True])
def test_gradients_are_those_of_solving_again(rng, loss, fitted):
    batch = batch_of(rng, GRAPHS["grid of 3 states"], 2)
    heads = {"score": rng.standard_normal(batch.size)}
    if fitted:
        heads["weight"] = np.exp(0.3 * rng.standard_normal(batch.size))
    objective = Implicit(LOSSES[loss], coefficients(0.05))
    found = objective(batch, heads, None, 0.0)
    for name in heads:
        for k in rng.choice(batch.size, 5, replace=False):
            step = np.zeros(batch.size)
            step[k] = 1e-5
            up, down = (
                objective(batch, {**heads, name: heads[name] + sign * step}, None, 0.0).value
                for sign in (1, -1)
            )
            assert found.gradient[name][k] == pytest.approx((up - down) / 2e-5, abs=1e-7)


@pytest.mark.parametrize("loss", ["ucl", "ccl"])
def test_what_is_not_labelled_has_no_part_in_the_loss(rng, loss):
    graph = ms.grid(2, 3)
    seen = [0, -1, 1, 0, -1, -1], [-1, 1, 1, -1, 0, 1]
    batch = ms.Batch.of(graph, list(map(ms.Partial, seen)))
    score, objective = rng.standard_normal(batch.size), Implicit(LOSSES[loss], coefficients(0.1))
    found = objective(batch, {"score": score}, None, 0.0)
    for k in rng.choice(batch.size, 6, replace=False):
        step = np.zeros(batch.size)
        step[k] = 1e-5
        up, down = (
            objective(batch, {"score": score + sign * step}, None, 0.0).value for sign in (1, -1)
        )
        assert found.gradient["score"][k] == pytest.approx((up - down) / 2e-5, abs=1e-7)


@pytest.mark.parametrize("of", [per_table, ms.Tied.of])
@pytest.mark.parametrize("width", [1, 2])
def test_entropies_of_any_parametrisation(rng, of, width):
    batch = batch_of(rng, ms.grid(2, 3), 2)
    nodes, edges = np.ones((12, width)), np.ones((14, width))
    nodes[:, 1:], edges[:, 1:] = (
        rng.uniform(size=(12, width - 1)),
        rng.uniform(size=(14, width - 1)),
    )
    head = Head(of(batch, nodes, edges), exponential=True)
    score, omega = rng.standard_normal(batch.size), 0.3 * rng.standard_normal(head.features.d)
    objective = Implicit(LOSSES["uquad"])

    def at(point):
        weight = head.scores(point)
        assert (weight > 0).all()
        return objective(batch, {"score": score, "weight": weight}, None, 0.0)

    gradient = head.pull(head.scores(omega), at(omega).gradient["weight"])
    for k in range(len(omega)):
        step = np.zeros(len(omega))
        step[k] = 1e-5
        change = (at(omega + step).value - at(omega - step).value) / 2e-5
        assert gradient[k] == pytest.approx(change, abs=1e-7)


@pytest.mark.parametrize("strength", [1.0, 10.0])
def test_a_warm_start_changes_the_work_not_the_answer(rng, strength):
    batch = batch_of(rng, ms.grid(3, 3), 4)
    inference, score = Condensed(), strength * rng.standard_normal(batch.size)
    weight = inference.weights(batch, coefficients(0.01))
    before = inference.minimise(batch, score, weight)
    for near in (1.1, 0.5, -1.0):
        warm = inference.minimise(batch, near * score, weight, before)
        cold = inference.minimise(batch, near * score, weight)
        assert not warm.stalled.any()
        np.testing.assert_allclose(warm.tau, cold.tau, atol=1e-9 * strength**2)


def noisy_grids(rng, count=6):
    y = [np.kron(rng.integers(2, size=(2, 2)), np.ones((3, 3), int)).ravel() for _ in range(count)]
    batch = ms.Batch.of(ms.grid(6, 6), y)
    x = np.concatenate(y) + rng.standard_normal(36 * count)
    return batch, ms.Tied.of(batch, np.stack([x, np.ones(len(x))], axis=1))


def test_learning_lowers_the_loss_and_fitted_entropies_lower_it_more(rng):
    batch, features = noisy_grids(rng)
    ones = np.ones((batch.size, 1))
    settings = {"regulariser": 0.01, "solver": ms.FrankWolfe(tol=1e-6, rounds=60)}

    def psi(some):
        return per_table(some, ones[: 36 * len(some)])

    plain = implicit(coefficients(0.1), loss="ucl", **settings)
    fitted = implicit(coefficients(0.1), loss="ucl", entropy=psi, **settings)
    values = {}
    for name, learner in {"plain": plain, "fitted": fitted}.items():
        model = learner.fit(batch, features)
        objectives = [row[2] for row in model.history]
        assert (np.diff(objectives) >= -1e-9).all()
        assert objectives[-1] > objectives[0]
        assert "not convex" in str(model.certificate.withheld)
        values[name] = objectives[-1]
    assert len(model.theta) == features.d + 2
    assert values["fitted"] > values["plain"]


def test_every_iteration_may_have_weights_of_its_own(rng):
    from mlestruct.learners.primal import scored

    batch, features = noisy_grids(rng)
    settings = {"regulariser": 0.01, "solver": ms.FrankWolfe(tol=1e-6, rounds=60)}

    def heads(some, given):
        head = scored(some, given)["score"]
        return {"first": head, "second": head}

    shared = procedural(iterations=2, **settings).fit(batch, features)
    apart = procedural(iterations=2, heads=heads, **settings).fit(batch, features)
    assert len(apart.theta) == 2 * len(shared.theta)
    assert apart.history[-1][2] > shared.history[-1][2]


def test_what_it_refuses(rng):
    batch = batch_of(rng, ms.grid(2, 2), 1)
    score = np.zeros(batch.size)
    with pytest.raises(ValueError, match="factor 0 has weight -1"):
        Condensed().minimise(batch, score, -np.ones(batch.size))
    fixed = ms.Batch.of(ms.grid(2, 2).forbid(states=[(0, 1)]), count=1)
    with pytest.raises(ValueError, match="coordinate 1 is fixed"):
        Condensed().minimise(fixed, score, np.ones(batch.size))
    with pytest.raises(ValueError, match="no use for oracle='qpbo'"):
        implicit(oracle="qpbo")
    learner = implicit(None, entropy=lambda some: per_table(some, np.ones((4, 1))))
    with pytest.raises(ValueError, match="log w has no start"):
        learner.fit(batch, ms.Tied.of(batch, np.ones((4, 1))))

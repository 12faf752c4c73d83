"""Messages bound the surrogate from above wherever they stopped, and meet it at their end."""

import pytest

import mlestruct as ms
from mlestruct.inference.exact import exact
from mlestruct.inference.sum_product import SumProduct
from mlestruct.structures.entropy import Entropy

GRAPHS = {
    "binary grid": (ms.grid(3, 3), None),
    "grid of three states": (ms.grid(3, 2, 3), None),
    "order 3": (ms.FactorGraph([2, 3, 2, 3], [(0, 1, 2), (1, 3), (2, 3)]), 2 / 3),
    "no conditional entropies": (ms.grid(3, 3), 0.25),
    "forbidden": (ms.grid(2, 3, 3).forbid([(1, 2)], [(0, (0, 1))]), None),
    "clamped": (ms.grid(3, 3, 3).clamp({0: 1, 4: 2}), None),
    "Bethe with one cycle": (ms.FactorGraph([2, 3, 2], [(0, 1), (1, 2), (0, 2)]), 1.0),
}


def maximum(batch, entropy, scores):
    return SumProduct.of(entropy, residual=1e-12, sweeps=20_000).many(batch, scores).log_z[0]


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("scale", [1.0, 20.0, 400.0])
def test_the_bound_holds_wherever_messages_stop(name, scale, rng):
    """After any number of sweeps at least the maximum, and so log Z where that is below it."""
    graph, rho = GRAPHS[name]
    batch = ms.Batch.of(graph, count=1)
    entropy, scores = Entropy.of(batch, rho), scale * rng.standard_normal(batch.size)
    best, slack = maximum(batch, entropy, scores), 1e-11 * scale
    for sweeps in (1, 2, 3, 10):
        routine = SumProduct.of(entropy, sweeps=sweeps, takeover=False)
        found = routine.many(batch, scores)
        bound = routine.above(batch, scores, found.warm)[0]
        assert found.log_z[0] - slack <= best <= bound + slack
        if entropy.bound.kind == "upper":
            assert bound >= exact(graph, scores).log_z - slack


@pytest.mark.parametrize("name", GRAPHS)
def test_the_bound_is_tight_at_the_end(name, rng):
    """At converged messages it is the value of their τ."""
    graph, rho = GRAPHS[name]
    batch = ms.Batch.of(graph, count=1)
    entropy, scores = Entropy.of(batch, rho), rng.standard_normal(batch.size)
    routine = SumProduct.of(entropy, residual=1e-12, sweeps=20_000)
    found = routine.many(batch, scores)
    assert routine.above(batch, scores, found.warm)[0] == pytest.approx(found.log_z[0], abs=1e-8)


@pytest.mark.parametrize("name", GRAPHS)
def test_any_messages_give_a_bound(name, rng):
    """Messages and beliefs that no sweep would send."""
    graph, rho = GRAPHS[name]
    batch = ms.Batch.of(graph, count=1)
    entropy, scores = Entropy.of(batch, rho), rng.standard_normal(batch.size)
    routine = SumProduct.of(entropy)
    best, state = maximum(batch, entropy, scores), routine.many(batch, scores).warm[graph]
    for _ in range(50):
        sent = state.message + 3.0 * rng.standard_normal(state.message.shape)
        belief = state.belief + 3.0 * rng.standard_normal(state.belief.shape)
        bound = routine.above(batch, scores, {graph: state._replace(message=sent, belief=belief)})
        assert bound[0] >= best - 1e-11


def test_what_is_not_concave_has_no_bound(rng):
    """Belief propagation on a grid: refused, not answered."""
    batch = ms.Batch.of(ms.grid(3, 3), count=1)
    routine = SumProduct.of(Entropy.of(batch, 1.0, allow_nonconvex=True))
    scores = rng.standard_normal(batch.size)
    with pytest.raises(ValueError, match="not provably concave"):
        routine.above(batch, scores, routine.many(batch, scores).warm)


def test_marginals_take_the_better_bound(rng):
    """Where the oracle only bounds its answers (TRW-S) the messages prove what it cannot."""
    graph = ms.grid(20, 20, 4)
    batch, scores = ms.Batch.of(graph, count=1), rng.standard_normal(graph.size)
    assert graph.default_oracle == "trw_s"
    found = ms.marginals(batch, scores)
    assert found.certificate.relative < 1e-7
    stopped = SumProduct.of(Entropy.of(batch), sweeps=2, takeover=False).many(batch, scores)
    assert stopped.log_z[0] < found.upper[0]

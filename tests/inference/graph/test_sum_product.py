"""Messages end at the surrogate's maximum, feasibly, whatever the schedule, or say they do not."""

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.inference import sum_product
from mlestruct.inference.exact import exact
from mlestruct.inference.routine import routine
from mlestruct.inference.sum_product import SumProduct, compiled
from mlestruct.structures.entropy import Entropy

CYCLES = {
    "binary grid": (ms.grid(3, 3), None),
    "grid of three states": (ms.grid(3, 2, 3), None),
    "unequal cards": (ms.FactorGraph([2, 3, 4], [(0, 1), (2, 1), (0, 2)]), None),
    "order 3": (ms.FactorGraph([2, 3, 2, 3], [(0, 1, 2), (1, 3), (2, 3)]), 2 / 3),
    "Shearer": (ms.FactorGraph([2, 3, 2, 3], [(0, 1, 2), (1, 3), (2, 3)]), None),
    "forbidden": (ms.grid(2, 3, 3).forbid([(1, 2)], [(0, (0, 1))]), None),
    "clamped": (ms.grid(3, 3, 3).clamp({0: 1, 4: 2}).forbid([(8, 0)]), None),
    "clamped binary": (ms.grid(3, 3).clamp({4: 1}), None),
    "clamped order 3": (
        ms.FactorGraph([2, 3, 2, 3], [(0, 1, 2), (1, 3), (2, 3)]).clamp({1: 2}),
        None,
    ),
    "loner": (ms.FactorGraph([2, 2, 2, 3], [(0, 1), (1, 2), (0, 2)]), 0.5),
}


def by_numpy(graph, counting, score, sweeps=3000):
    """Flooding in the log domain, one dictionary of messages; node marginals at its end."""
    n, c = graph.n_nodes, counting
    scopes = [
        graph.scope[graph.scope_start[f] : graph.scope_start[f + 1]] for f in range(graph.n_factors)
    ]
    score = np.where(graph.fixed == 0, -1e4, score)
    unary = [score[graph.node_start[i] : graph.node_start[i + 1]] for i in range(n)]
    tables = [
        score[graph.table_start[f] : graph.table_start[f + 1]].reshape(tuple(graph.cards[scope]))
        for f, scope in enumerate(scopes)
    ]
    message = {(f, i): np.zeros(graph.cards[i]) for f, scope in enumerate(scopes) for i in scope}
    for _ in range(sweeps):
        belief = []
        for i in range(n):
            around = [f for f, scope in enumerate(scopes) if i in scope]
            total = unary[i] + sum(c[n + f] * message[f, i] for f in around)
            belief.append(total / (c[i] + sum(c[n + f] for f in around)))
        fresh = {}
        for f, scope in enumerate(scopes):
            for a, i in enumerate(scope):
                joint = tables[f] / c[n + f]
                for b, j in enumerate(scope):
                    if b != a:
                        shape = np.ones(len(scope), dtype=int)
                        shape[b] = -1
                        joint = joint + (belief[j] - message[f, j]).reshape(shape)
                rest = tuple(b for b in range(len(scope)) if b != a)
                out = np.logaddexp.reduce(joint, axis=rest)
                fresh[f, i] = 0.5 * message[f, i] + 0.5 * (out - out.max())
        change = max((np.abs(fresh[key] - message[key]).max() for key in message), default=0.0)
        message = fresh
        if change < 1e-13:
            break
    return np.concatenate([np.exp(b - np.logaddexp.reduce(b)) for b in belief])


@pytest.mark.parametrize("name", CYCLES)
@pytest.mark.parametrize("schedule", ["sequential", "flooding", "residual"])
def test_messages_agree_with_their_plain_twin(name, schedule, rng):
    """One fixed point: node marginals of the twin, tables that agree with them, a value there."""
    graph, rho = CYCLES[name]
    batch = ms.Batch.of(graph, count=2)
    entropy = Entropy.of(batch, rho)
    scores = rng.standard_normal(batch.size)
    routine = SumProduct.of(entropy, schedule=schedule, takeover=False, residual=1e-12, sweeps=5000)
    log_z, tau, _ = routine.many(batch, scores)
    for m in range(2):
        here = batch.coordinates(m)
        assert graph.contains(tau[here], 1e-12)
        expected = by_numpy(graph, entropy.counting[0], scores[here])
        np.testing.assert_allclose(tau[here][: len(expected)], expected, atol=1e-8)
        assert log_z[m] >= exact(graph, scores[here]).log_z - 1e-9  # all of these bound from above
    np.testing.assert_allclose(log_z, entropy.each(tau) + batch.totals(scores * tau), atol=1e-12)


@pytest.mark.parametrize("name", CYCLES)
def test_the_oracle_certifies_the_messages(name, rng):
    """The gap at the τ of the messages is rounding; forbidden pairs are Frank-Wolfe's own."""
    graph, rho = CYCLES[name]
    batch = ms.Batch.of(graph, count=2)
    proof = ms.marginals(batch, rng.standard_normal(batch.size), rho=rho).certificate
    forbidden = name == "forbidden"
    assert (routine(Entropy.of(batch, rho)) is None) == forbidden
    assert proof.relative <= (1e-4 if forbidden else 1e-7)


def test_on_forests_messages_are_exact(rng):
    """ρ = 1 on a tree of order 3 and below: log Z and τ of enumeration."""
    graph = ms.FactorGraph([2, 3, 2, 2, 3], [(0, 1, 2), (2, 3), (1, 4)])
    batch = ms.Batch.of(graph, count=3)
    scores = 3.0 * rng.standard_normal(batch.size)
    log_z, tau, _ = SumProduct.of(Entropy.of(batch)).many(batch, scores)
    for m in range(3):
        truth = exact(graph, scores[batch.coordinates(m)])
        assert log_z[m] == pytest.approx(truth.log_z, abs=1e-9)
        np.testing.assert_allclose(tau[batch.coordinates(m)], truth.tau, atol=1e-9)


def test_a_warm_start_saves_sweeps_and_changes_nothing(rng):
    """Nearby scores from the last messages: fewer sweeps, the same τ, the old state untouched."""
    batch = ms.Batch.of([ms.grid(4, 4), ms.grid(3, 3, 3), ms.grid(4, 4)])
    routine = SumProduct.of(Entropy.of(batch))
    scores = 0.5 * rng.standard_normal(batch.size)
    _, _, warm = routine.many(batch, scores)
    near = scores + 1e-5 * rng.standard_normal(batch.size)
    _, cold_tau, cold = routine.many(batch, near)
    _, warm_tau, state = routine.many(batch, near, warm)
    _, again, _ = routine.many(batch, near, warm)
    np.testing.assert_allclose(warm_tau, cold_tau, atol=1e-8)
    np.testing.assert_array_equal(warm_tau, again)
    for structure in cold:
        assert (state[structure].sweeps < cold[structure].sweeps).all()


@pytest.mark.parametrize("scale", [200.0, 5000.0])
@pytest.mark.parametrize("states", [2, 3])
def test_scores_beyond_the_linear_domain(scale, states, rng):
    """Tables whose exponentials underflow: on a tree the messages stay exact."""
    graph = ms.chain(5, states)
    batch = ms.Batch.of(graph, count=2)
    scores = scale * rng.standard_normal(batch.size)
    log_z, tau, _ = SumProduct.of(Entropy.of(batch)).many(batch, scores)
    for m in range(2):
        truth = exact(graph, scores[batch.coordinates(m)])
        assert log_z[m] == pytest.approx(truth.log_z, rel=1e-12)
        np.testing.assert_allclose(tau[batch.coordinates(m)], truth.tau, atol=1e-9)


@pytest.mark.parametrize("schedule", ["sequential", "flooding", "residual"])
def test_marginals_of_enormous_scores_are_feasible_numbers(schedule, rng):
    """Three sweeps leave tables whose marginals are hardly above 0, which nodes do not have."""
    for shape in ((3, 3, 2), (3, 3, 9), (3, 3, 17), (3, 2, 25)):
        graph = ms.grid(*shape)
        batch = ms.Batch.of(graph, count=12)
        entropy = Entropy.of(batch, 0.5, allow_nonconvex=True)
        routine = SumProduct.of(entropy, schedule=schedule, damping=0.2, sweeps=3, takeover=False)
        scores = 1e4 * rng.standard_normal(batch.size)
        found = routine.many(batch, scores)
        for m in range(12):
            assert graph.contains(found.tau[batch.coordinates(m)], 1e-12)
        values = entropy.each(found.tau) + batch.totals(scores * found.tau)
        np.testing.assert_allclose(found.log_z, values, rtol=1e-12)


@pytest.mark.parametrize("schedule", ["sequential", "flooding", "residual"])
def test_damping_changes_the_way_and_not_the_end(schedule, rng):
    batch = ms.Batch.of([ms.grid(4, 4), ms.grid(3, 3, 4), CYCLES["order 3"][0]])
    entropy, scores = Entropy.of(batch), rng.standard_normal(batch.size)
    plain = SumProduct.of(entropy, schedule=schedule).many(batch, scores)
    damped = SumProduct.of(entropy, schedule=schedule, damping=0.5).many(batch, scores)
    np.testing.assert_allclose(damped.tau, plain.tau, atol=1e-8)
    for structure, state in damped.warm.items():
        assert (state.sweeps > plain.warm[structure].sweeps).all()


@pytest.mark.parametrize("states", [2, 4])
def test_wide_and_narrow_tables_mix_in_one_batch(states, rng):
    """Each example has the kernel its scores allow, also after messages of the other one."""
    batch = ms.Batch.of(ms.grid(3, 3, states), count=3)
    routine = SumProduct.of(Entropy.of(batch))
    scores = rng.standard_normal(batch.size)
    wide = scores.copy()
    wide[batch.coordinates(1)] *= 300.0
    _, _, warm = routine.many(batch, wide)
    expected, got = routine.many(batch, scores), routine.many(batch, scores, warm)
    np.testing.assert_allclose(got.tau, expected.tau, atol=1e-8)


def test_who_is_served():
    """Concave entropies of factor graphs; what is not concave must be asked for."""
    grid = ms.Batch.of(ms.grid(3, 3))
    assert isinstance(SumProduct.serve(Entropy.of(grid)), SumProduct)
    bethe = Entropy.of(grid, 1.0, allow_nonconvex=True)
    assert SumProduct.serve(bethe) is None
    assert not SumProduct.of(bethe).takeover
    assert SumProduct.serve(Entropy.of(grid, 0.0)) is None
    assert SumProduct.serve(Entropy.of(ms.Batch.of(ms.BipartiteMatching(2)))) is None
    with pytest.raises(ValueError, match="factor 0 counts 0"):
        SumProduct.of(Entropy.of(grid, 0.0))
    with pytest.raises(ValueError, match="not on BipartiteMatching"):
        SumProduct.of(Entropy.of(ms.Batch.of(ms.BipartiteMatching(2))))
    with pytest.raises(ValueError, match="schedule is 'random'"):
        SumProduct.of(Entropy.of(grid), schedule="random")
    with pytest.raises(ValueError, match=r"damping is 1\.0"):
        SumProduct.of(Entropy.of(grid), damping=1.0)


def random_graph(seed, most):
    """Unequal cards, nodes alone (the last one widest), many edges around one node, clamps."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 14))
    cards = rng.integers(2, most + 1, n + 1)
    cards[-1] = cards.max() if most == 2 else 3 * most
    pairs = [(i, j) for i in range(n) for j in range(n) if i < j and rng.random() < 0.4]
    pairs += [(j, 0) for j in range(1, n) if (0, j) not in pairs and rng.random() < 0.5]
    graph = ms.FactorGraph(cards, [pairs[k] for k in rng.permutation(len(pairs))] or [(0, 1)])
    clamped = {int(i): int(rng.integers(cards[i])) for i in range(n) if rng.random() < 0.2}
    return graph.clamp(clamped) if most > 2 and seed % 2 else graph


# Log-odds that change sign move by more than beliefs do, so binary nodes wait for others.
SWEPT = [(m, s) for m in (2, 3, 9, 21) for s in ("sequential", "flooding", "residual")]
SWEPT.remove((2, "residual"))


@pytest.mark.parametrize(("most", "schedule"), SWEPT)
@pytest.mark.parametrize("seed", range(4))
def test_faster_kernels_are_the_general_one(seed, most, schedule, rng, monkeypatch):
    """Message by message, damped or not, whatever the scores' spread: TRW's first sweeps."""
    graph = random_graph(seed, most)
    batch = ms.Batch.of(graph, count=2)
    entropy = Entropy.of(batch, 0.5, allow_nonconvex=True)
    for spread, damping, sweeps in ((1.0, 0.0, 4), (6.0, 0.3, 4), (15.0, 0.0, 9), (1e4, 0.2, 3)):
        scores = spread * rng.standard_normal(batch.size)
        how = {"schedule": schedule, "damping": damping, "sweeps": sweeps, "takeover": False}
        by = SumProduct.of(entropy, residual=0.0, **how)
        assert compiled(graph, by.counting[graph])[1:3] != (None, None)
        one, twin = by.many(batch, scores), ms.Batch.of(graph.refix(graph.fixed), count=2)
        with monkeypatch.context() as slower:
            slower.setattr(sum_product, "special", lambda *_: (None, None))
            other = by.many(twin, scores)
        np.testing.assert_allclose(one.tau, other.tau, atol=1e-8)
        np.testing.assert_allclose(one.log_z, other.log_z, rtol=1e-9, atol=1e-9)
        again, other = by.many(batch, scores, one.warm), by.many(twin, scores, other.warm)
        np.testing.assert_allclose(again.tau, other.tau, atol=1e-8)

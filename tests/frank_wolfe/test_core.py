"""Laws of the Frank-Wolfe core, from finite differences, certificates and exact references."""

import tracemalloc
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from scipy.optimize import approx_fprime, linear_sum_assignment

from mlestruct.dual import Dual, interior
from mlestruct.features import Dense, NoFeatures
from mlestruct.frank_wolfe import FrankWolfe, active_set, rounds
from mlestruct.frank_wolfe.active_set import Iterate
from mlestruct.native._door import (
    StepLine,
    line_slopes,
    rebuild_point,
    tangent_slopes,
)
from mlestruct.oracle import resolve
from mlestruct.regulariser import Regulariser
from mlestruct.structures import BipartiteMatching, chain
from mlestruct.structures.batch import Batch
from mlestruct.structures.entropy import Entropy

N, M, D = 5, 6, 4
ROWS = "vertex", "moment"
POINT = "tau", "smooth", "rough", "stiff", "held", "r", "theta"


def learning(seed=0, temperature=1.0, kind="perfect", **regulariser):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((M, N, N, D))
    outcomes = [
        linear_sum_assignment(x @ np.ones(D) + rng.gumbel(size=(N, N)), maximize=True)[1] for x in X
    ]
    structure = BipartiteMatching(N, kind=kind) if kind != "perfect" else BipartiteMatching(N)
    batch = Batch.of(structure, outcomes, weight=0.5 + rng.random(M))
    if temperature == 0.0:
        batch = replace(batch, bias=1.0 - 2.0 * batch.target)
    entropy = Entropy.of(batch, 0.5, temperature=temperature)
    features = Dense.of(batch, X.reshape(-1, D))
    return Dual(batch, features, entropy, Regulariser.of(D, **regulariser))


REGULARISERS = [{}, {"lam": 0.3, "prior": 0.2}, {"l1": 0.4, "lower": -0.1, "upper": 0.6}]


def iterate_of(dual, rounds_done=0, **options):
    """The iterate after some rounds, and the interior point."""
    oracle = resolve(None, dual.batch)
    inner = interior(dual.batch, oracle, dual.entropy)
    kept, step = [], rounds.take

    def watched(solver, name, number, iterate, *rest):
        step(solver, name, number, iterate, *rest)
        kept[:] = [iterate]

    with patch.object(rounds, "take", watched):
        FrankWolfe(tol=0, rounds=rounds_done, **options).solve(dual, oracle)
    return kept[0] if kept else Iterate.start(dual, inner.tau, inner.tau, active=False)


def block_line(dual, tau, delta):
    """φ along one joint direction as the kernel sees it."""
    reg, r = dual.regulariser, dual.residual(tau)
    change = dual.features.moments(dual.weigh(delta))
    terms = np.array([reg.lam, reg.prior, reg.l1, reg.lower, reg.upper])
    linear, quadratic = -float(dual.batch.bias @ dual.weigh(delta)), 0.0
    if reg.plain:
        linear -= float(reg.weights(r) @ change)
        quadratic = float((change**2 / reg.lam).sum())
    line = dual.entropy.line(tau, delta)
    eights = -(-len(line.a) // 8)
    padded = np.zeros((3, 8 * eights))
    padded[:, : len(line.a)] = line.a, line.t, line.dt
    given = D, np.arange(D), change, eights, *padded
    return StepLine(linear, quadratic, 1.0, bool(reg.plain), D, r, terms, *given)


def derivative(gamma, line):
    out = np.empty(2)
    line_slopes(line, gamma, out)
    return out


@pytest.mark.parametrize("kind", ["perfect", "partial"])
@pytest.mark.parametrize("regulariser", REGULARISERS)
def test_the_line_search_differentiates_the_objective(regulariser, kind):
    """φ′ and φ″ of the kernel are the finite differences of the dual's value."""
    dual = learning(kind=kind, **regulariser)
    oracle = resolve(None, dual.batch)
    u = interior(dual.batch, oracle, dual.entropy).tau
    vertex, _ = oracle.many(dual.batch, np.random.default_rng(1).standard_normal(len(u)))
    delta = vertex - u
    line = block_line(dual, u, delta)
    terms = dual.entropy.line(u, delta)
    for gamma in (0.0, 0.3, 0.7):
        slope, curvature = derivative(gamma, line)
        expected = approx_fprime([gamma], lambda g: dual.value(u + g[0] * delta), 1e-7)[0]
        assert slope == pytest.approx(expected, rel=1e-4, abs=1e-4)
        rise = (derivative(gamma + 1e-6, line)[0] - derivative(gamma - 1e-6, line)[0]) / 2e-6
        assert curvature == pytest.approx(rise, rel=1e-4)
        kept = line.a.copy()
        line.a[:] = 0.0
        entropy = slope - derivative(gamma, line)[0]
        line.a[:] = kept
        assert entropy == pytest.approx(-terms.slope(gamma), rel=1e-9)


def test_a_full_set_forgets_atoms_but_no_mass(monkeypatch):
    """With room for four atoms τ stays the one the atoms rebuild, and their weights sum to 1."""
    monkeypatch.setattr(active_set, "BUDGET", 1)
    dual = learning()
    iterate = iterate_of(dual, 90, step="pairwise")
    assert iterate.atoms.cap == 4
    assert (iterate.atoms.interior < 1.0).any()
    tracked = iterate.x.tau.copy()
    rebuild_point(iterate.p, iterate.atoms, iterate.x.tau)
    np.testing.assert_allclose(iterate.x.tau, tracked, atol=1e-12)
    used = np.arange(iterate.atoms.cap) < iterate.atoms.known[:, None]
    total = iterate.atoms.rest + (iterate.atoms.weight * used).sum(axis=1)
    np.testing.assert_allclose(total, 1.0, atol=1e-12)
    assert dual.batch.structures[0].contains(tracked.reshape(M, -1), 1e-9).all()


def test_the_compiled_slopes_are_the_entropys():
    """At τ and at a tangent point: bias + ∇H, H + ⟨bias, τ⟩, and the tangent's excess."""
    dual = learning(kind="partial")
    bias = np.random.default_rng(0).standard_normal(dual.batch.size)
    dual = replace(dual, batch=replace(dual.batch, bias=bias))
    iterate = iterate_of(dual, 20)
    tau, u, entropy, totals = iterate.x.tau, iterate.u, dual.entropy, dual.batch.totals
    for share in (0.0, 0.2):
        at, slope = np.empty_like(tau), np.empty_like(tau)
        energy, spread = out = np.empty((2, M))
        tangent_slopes(iterate.p, iterate.x, share, u, at, slope, out)
        np.testing.assert_allclose(at, (1 - share) * tau + share * u)
        np.testing.assert_allclose(slope, bias + entropy.grad(at), rtol=1e-9)
        np.testing.assert_allclose(energy, entropy.each(tau) + totals(bias * tau), rtol=1e-9)
        over = entropy.each(at) + totals(entropy.grad(at) * (tau - at)) - entropy.each(tau)
        np.testing.assert_allclose(spread, over, atol=1e-9)
        assert (spread >= -1e-12).all()


def test_smoothing_fades_where_it_costs_more_than_half_the_gap():
    """Negative coefficients (Bethe on a chain) cannot hold the gap up: it reaches 1e-7."""
    batch = Batch.of(chain(4, 3), count=2)
    batch = replace(batch, bias=2 * np.random.default_rng(0).standard_normal(batch.size))
    dual = Dual(batch, NoFeatures(batch.size, 2), Entropy.of(batch), Regulariser.of(0))
    state = FrankWolfe(tol=1e-7, rounds=1000).solve(dual, resolve(None, batch))
    assert state.certificate.relative <= 1e-7


@pytest.mark.parametrize(
    ("name", "forge"),
    [
        ("cap", lambda cap: 10**6),
        ("known", lambda known: known + 300),
        ("vertex", lambda rows: rows._replace(width=rows.width + 10**6)),
        ("vertex", lambda rows: rows._replace(width=-rows.width)),
        ("vertex", lambda rows: rows._replace(length=rows.length + 10**6)),
        ("vertex", lambda rows: rows._replace(length=rows.length[:-1])),
        ("vertex", lambda rows: rows._replace(place=rows.place + 10**6)),
        ("vertex", lambda rows: rows._replace(place=rows.place - N * N)),
        ("vertex", lambda rows: rows._replace(place=rows.place.astype(float))),
        ("vertex", lambda rows: rows._replace(place=None)),
        ("vertex", lambda rows: rows._replace(place=rows.place.astype(np.int64))),
        ("vertex", lambda rows: rows._replace(amount=np.ones(len(rows.place) - 1))),
        ("moment", lambda rows: rows._replace(amount=None)),
        ("moment", lambda rows: rows._replace(width=rows.width - 1)),
        ("moment", lambda rows: rows._replace(amount=rows.amount[:-1])),
        ("moment", lambda rows: rows._replace(place=np.arange(len(rows.amount)))),
        ("rest", lambda rest: rest[:-1]),
        ("base", lambda base: base.astype(np.float32)),
        ("base_moment", lambda moment: np.append(moment, 0.0)),
    ],
)
def test_what_kernels_would_follow_out_of_bounds_is_refused(name, forge):
    """A file may say anything and still have its checksum right."""
    iterate = iterate_of(learning(), 20)
    *rest, atoms = iterate.tree()
    forged = active_set.Atoms._make(atoms)
    whole = getattr(forged, name)
    whole = active_set.Rows._make(whole) if name in ROWS else whole
    forged = forged._replace(**{name: forge(whole)})
    with pytest.raises(ValueError, match=r"active set of another problem|expected, found"):
        iterate.recall((*rest, tuple(forged)))
    iterate.recall((*rest, atoms))


@pytest.mark.parametrize("step", ["pairwise", "block"])
def test_the_memory_stated_is_what_a_run_takes(rng, step):
    batch = Batch.of(BipartiteMatching(20), [rng.permutation(20) for _ in range(100)])
    features = Dense.of(batch, rng.standard_normal((batch.size, 4)))
    dual = Dual(batch, features, Entropy.of(batch, 0.5), Regulariser.of(4, 1.0))
    oracle, solver = resolve(None, batch), FrankWolfe(tol=0.0, rounds=15, step=step)
    solver.solve(dual, oracle)
    tracemalloc.start()
    stated = solver.solve(dual, oracle).cost.bytes
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 0.75 * peak <= stated <= 1.5 * peak

"""Laws of the Frank-Wolfe core, from finite differences, certificates and exact references."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from mlestruct.engine import Serial
from mlestruct.features import Dense
from mlestruct.learning import iterate as module
from mlestruct.learning.dual import Dual, interior
from mlestruct.learning.frank_wolfe import Asked, FrankWolfe, Rounds
from mlestruct.learning.iterate import Iterate
from mlestruct.learning.loop import Loop
from mlestruct.learning.regulariser import Regulariser
from mlestruct.oracle import resolve
from mlestruct.structures import BipartiteMatching, chain
from mlestruct.structures.batch import Batch
from mlestruct.structures.entropy import Entropy

N, M, D = 5, 6, 4


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


def rounds(solver, dual, oracle, start=None, **more):
    """Every round of a run."""
    told = []
    solver.solve(dual, oracle, start, told=told.append, **more)
    return told


class Ended(Exception):
    """Ends a run between two rounds."""


def cut(solver, dual, oracle, at):
    """A run that is ended after a round."""

    def told(found):
        if found.round == at:
            raise Ended

    solver.solve(dual, oracle, told=told)


def iterate_of(dual, count=0, **options):
    """The iterate after some rounds."""
    oracle = resolve(None, dual.batch)
    run = Rounds(FrankWolfe(tol=0, **options), dual, oracle, Loop(), None)
    asked = Asked(Serial(), dual.batch, oracle, 1)
    for _ in range(count):
        found = run.prove(asked)
        run.move(found)
    return run.iterate


@pytest.mark.parametrize("kind", ["perfect", "partial"])
@pytest.mark.parametrize("regulariser", REGULARISERS)
def test_the_line_search_finds_where_the_objective_is_least(regulariser, kind):
    """Its derivative changes sign there, or is negative at the end."""
    dual = learning(kind=kind, **regulariser)
    oracle = resolve(None, dual.batch)
    u = interior(dual.batch, oracle, dual.entropy).tau
    for seed, m in product(range(3), (0, M - 1)):
        vertex, _ = oracle.many(dual.batch, np.random.default_rng(seed).standard_normal(len(u)))
        iterate, way = Iterate(dual, u, u), np.where(dual.batch.owner == m, vertex - u, 0.0)
        iterate.plainly(np.array([m]), vertex, iterate.moments(vertex))
        taken = float(way @ (iterate.x.tau - u) / (way @ way))
        np.testing.assert_allclose(iterate.x.tau, u + taken * way, atol=1e-15)
        start, slope = (
            dual.value(u + (at + 1e-6) * way) - dual.value(u + max(at - 1e-6, 0.0) * way)
            for at in (0.0, taken)
        )
        assert 0.0 <= taken <= 1.0
        inside = 0.0 < taken < 1.0 - 1e-6
        assert abs(slope) <= -1e-3 * start if inside else (slope < 0) == (taken > 0)


def test_a_full_set_forgets_atoms_but_no_mass(monkeypatch):
    """With room for four atoms τ stays the one the atoms rebuild, and their weights sum to 1."""
    monkeypatch.setattr(module, "BUDGET", 1)
    dual = learning()
    iterate = iterate_of(dual, 90, step="pairwise")
    x = iterate.x
    assert iterate.limits[0] == 4 == x.known.max()
    assert (x.interior < 1.0).any()
    tracked = x.tau.copy()
    iterate.synchronise()
    np.testing.assert_allclose(x.tau, tracked, atol=1e-12)
    total = x.rest + sum(numbers[:, 0] for *_, numbers in iterate.tree()[-1])
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
        at, score, energy, spread = iterate.tangent(share, np.zeros(D))
        np.testing.assert_allclose(at, (1 - share) * tau + share * u)
        np.testing.assert_allclose(score, bias + entropy.grad(at), rtol=1e-9)
        np.testing.assert_allclose(energy, entropy.each(tau) + totals(bias * tau), rtol=1e-9)
        over = entropy.each(at) + totals(entropy.grad(at) * (tau - at)) - entropy.each(tau)
        np.testing.assert_allclose(spread, over, atol=1e-9)
        assert (spread >= -1e-12).all()


def test_smoothing_fades_where_it_costs_more_than_half_the_gap():
    """Negative coefficients (Bethe on a chain) cannot hold the gap up: it reaches 1e-7."""
    batch = Batch.of(chain(4, 3), count=2)
    batch = replace(batch, bias=2 * np.random.default_rng(0).standard_normal(batch.size))
    dual = Dual(
        batch, Dense(np.zeros((batch.size, 0)), batch.offsets), Entropy.of(batch), Regulariser.of(0)
    )
    state = FrankWolfe(tol=1e-7, rounds=1000).solve(dual, resolve(None, batch))
    assert state.certificate.relative <= 1e-7


FORGED = [
    lambda cap, known, slots: (10**6, known, slots),
    lambda cap, known, slots: (cap, known + 300, slots),
    lambda cap, known, slots: (cap, -known, slots),
    lambda cap, known, slots: (cap, known[:-1], slots),
    lambda cap, known, slots: (cap, known, slots[1:]),
    lambda cap, known, slots: (0, known, slots),
    lambda cap, known, slots: (cap, known, [(slots[0][0] + 10**6, *slots[0][1:]), *slots[1:]]),
    lambda cap, known, slots: (cap, known, [(slots[0][0], np.ones(3), slots[0][2]), *slots[1:]]),
    lambda cap, known, slots: (cap, known, [(*slots[0][:2], slots[0][2][1:]), *slots[1:]]),
]


@pytest.mark.parametrize("forge", FORGED)
def test_what_kernels_would_follow_out_of_bounds_is_refused(forge):
    """A file may say anything and still have its checksum right."""
    iterate = iterate_of(learning(), 20)
    whole = iterate.tree()
    floor, (cap, sparse), arrays, slots = whole
    place = module.KEPT.index("known")
    cap, known, forged = forge(cap, arrays[place], slots)
    arrays = (*arrays[:place], known, *arrays[place + 1 :])
    again = iterate_of(learning())
    with pytest.raises((ValueError, IndexError, TypeError)):
        again.recall((floor, (cap, sparse), arrays, forged))
    again.recall(whole)
    assert again.x.tau.tobytes() == iterate.x.tau.tobytes()

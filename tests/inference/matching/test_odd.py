"""Odd sets: their prices bound the maximum over the hull anywhere, and meet it at the end."""

import numpy as np
import pytest
from scipy.optimize import linprog

import mlestruct as ms
from mlestruct.errors import Infeasible
from mlestruct.inference import best
from mlestruct.inference.matching import Scaling
from mlestruct.inference.odd import Family, HullScaling, HullState, binding
from mlestruct.inference.routine import routine
from mlestruct.learning.problem import Problem
from mlestruct.structures.entropy import Entropy
from tests.structures.test_matching_general import listed

TRIANGLES = [(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5)]
STRUCTURES = {
    "K_6": lambda: ms.Matching(6),
    "K_8": lambda: ms.Matching(8),
    "K_5, partial": lambda: ms.Matching(5, kind="partial"),
    "K_6, partial": lambda: ms.Matching(6, kind="partial"),
    "prism": lambda: ms.Matching(6, [*TRIANGLES, (0, 3), (1, 4), (2, 5)]),
    "two triangles": lambda: ms.Matching(6, [*TRIANGLES, (0, 3)]),
    "clamped": lambda: ms.Matching(8, forbidden=[(0, 1)], required=[(2, 3)]),
    "components": lambda: ms.Matching(8, [(u, v) for h in (0, 4) for u in range(h, h + 4)
                                          for v in range(u + 1, h + 4)]),
}  # fmt: skip
SEEDS = [0, *(pytest.param(k, marks=pytest.mark.nightly) for k in range(1, 30))]


def grouped(rng, structure, spread):
    """Scores that are high inside groups, so that odd groups must send somebody out."""
    group = rng.integers(0, 3, structure.n_nodes)
    u, v = structure.ends.T
    return spread * ((group[u] == group[v]) + 0.3 * rng.standard_normal(structure.size))


def farthest(structure, entropy, score, tau):
    """max over all matchings of ⟨score + ∇H(τ), v − τ⟩: none is larger at the optimum."""
    slope = score + entropy.grad(tau)
    return float((listed(structure) @ slope).max() - tau @ slope)


def mixed(structure, tau):
    """Whether a linear program finds τ a mixture of listed matchings, to 1e-7."""
    corners = listed(structure)
    rows = np.vstack([corners.T, np.ones(len(corners))])
    right = np.r_[tau, 1.0]
    ok = linprog(
        np.zeros(len(corners)),
        A_ub=np.vstack([rows, -rows]),
        b_ub=np.r_[right, -right] + 1e-7,
    )
    return ok.status == 0


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("rho", [0.25, 0.5, 0.75, 1.0])
@pytest.mark.parametrize("name", STRUCTURES)
def test_it_ends_at_the_optimum_over_all_matchings(name, rho, seed):
    """By a list of them: τ mixes them, and none lies in the slope's direction."""
    rng, structure = np.random.default_rng([seed, int(100 * rho)]), STRUCTURES[name]()
    batch = ms.Batch.of(structure, count=1)
    entropy = Entropy.of(batch, rho)
    direct = routine(entropy)
    assert isinstance(direct, HullScaling)
    for spread in (0.5, 3.0, 8.0):
        score = grouped(rng, structure, spread)
        log_z, tau, warm = direct.many(batch, score)
        value = entropy.each(tau) + score @ tau
        upper = direct.above(batch, score, warm, value)
        assert mixed(structure, tau)
        assert -1e-9 <= upper[0] - value[0] <= 1e-7 * (1.0 + abs(value[0]))
        assert log_z[0] == pytest.approx(value[0], rel=1e-8, abs=1e-8)
        single = 1.0 - structure.graph.degrees(tau[None])[0]
        exact = structure.kind == "perfect" or single.min() > 1e-10  # digits that 1 − Σ τ leaves
        if exact and tau[structure.fixed < 0].min() > 1e-7:
            assert farthest(structure, entropy, score, tau) <= 1e-5


def test_odd_sets_bind_in_these_laws():
    """Else they would hold nothing: over the degrees alone more is had, and outside the hull."""
    bound = 0
    for seed in range(6):
        rng, structure = np.random.default_rng([seed, 50]), STRUCTURES["K_8"]()
        batch = ms.Batch.of(structure, count=1)
        score = grouped(rng, structure, 8.0)
        over, within = Scaling(0.5).many(batch, score), HullScaling(0.5).many(batch, score)
        assert within.log_z[0] <= over.log_z[0] + 1e-9
        bound += within.log_z[0] < over.log_z[0] - 1e-3
        assert (within.log_z[0] < over.log_z[0] - 1e-3) == (not mixed(structure, over.tau))
    assert bound >= 2


@pytest.mark.parametrize("kind", ["perfect", "partial"])
@pytest.mark.parametrize("rho", [0.0, 0.25, 0.5, 0.8, 1.0])
def test_any_odd_sets_at_any_prices_bound_the_value_of_every_mixture(kind, rho, rng):
    """And of the optimum: what proves an answer needs nothing of how it was found."""
    structure = ms.Matching(7 if kind == "partial" else 8, kind=kind)
    batch = ms.Batch.of(structure, count=1)
    entropy, direct = Entropy.of(batch, rho), HullScaling(rho)
    corners, n = listed(structure), structure.n_nodes
    for _ in range(30):
        score = rng.choice([0.3, 3.0, 20.0]) * rng.standard_normal(structure.size)
        sets = np.zeros((4, n), dtype=bool)
        for row in sets:
            row[rng.permutation(n)[: rng.choice([3, 5, 7])]] = True
        price = rng.choice([0.0, 0.1, 2.0, 30.0], 4)
        scaled = Scaling(direct.rho).many(batch, score).warm
        upper = direct.above(batch, score, HullState(scaled, {0: Family(sets, price)}), np.zeros(1))
        share = rng.dirichlet(np.full(len(corners), 0.05), 50)
        points = np.vstack([share @ corners, corners])
        value = [float(entropy.each(tau)[0] + score @ tau) for tau in points]
        assert upper[0] >= max(value) - 1e-9 * (1.0 + abs(upper[0]))


@pytest.mark.parametrize("rho", [0.5, 1.0])
def test_examples_do_not_see_each_other(rho, rng):
    """A batch of several structures answers as each example alone; warm as cold; packed as kept."""
    structures = [ms.Matching(8), ms.BipartiteMatching(4), ms.Matching(7, kind="partial")] * 2
    batch = ms.Batch.of(structures)
    entropy = Entropy.of(batch, rho)
    direct, warm = HullScaling.serve(entropy), None
    for _ in range(4):
        parts = [
            grouped(rng, s, 8.0) if isinstance(s, ms.Matching) else rng.standard_normal(s.size)
            for s in structures
        ]
        found = direct.many(batch, np.concatenate(parts), warm)
        for m, (structure, score) in enumerate(zip(structures, parts, strict=True)):
            alone = ms.Batch.of(structure, count=1)
            cold = routine(Entropy.of(alone, rho)).many(alone, score)  # bipartite ones by scaling
            assert found.log_z[m] == pytest.approx(cold.log_z[0], rel=1e-8, abs=1e-8)
            np.testing.assert_allclose(found.tau[batch.coordinates(m)], cold.tau, atol=1e-5)
        warm = direct.unpack(batch, direct.pack(found.warm))
        again = direct.many(batch, np.concatenate(parts), warm)
        same = direct.many(batch, np.concatenate(parts), found.warm)
        assert again.tau.tobytes() == same.tau.tobytes()


@pytest.mark.parametrize("rho", [0.5, 1.0])
def test_a_fit_ended_anywhere_goes_on_with_the_same_bits(rho, tmp_path, monkeypatch):
    """Sets and prices are part of what a checkpoint keeps; the proof is over the hull."""
    rng = np.random.default_rng(5)
    structures = [ms.Matching(8)] * 6
    X = np.concatenate([grouped(rng, structure, 4.0) for structure in structures])
    X = np.stack([X, rng.standard_normal(len(X))], axis=1)
    drawn = best(ms.Batch.of(structures), X[:, 0] + 0.3 * rng.gumbel(size=len(X)))[0]
    batch = ms.Batch.of(structures, drawn)

    def fit(checkpoint=None):
        by = ms.FrankWolfe(tol=1e-7, rounds=300, checkpoint=checkpoint)
        found = ms.mle_struct(rho, regulariser=0.1, solver=by).fit(batch, ms.Dense.of(batch, X))
        return found, [row[2:] for row in found.history]

    whole, rows = fit()
    assert whole.route == "direct"
    assert whole.certificate.relative <= 1e-7
    assert any(len(sets) for sets in binding(Entropy.of(batch, rho), X @ whole.theta))
    ask, left, kept = Problem.value_and_gradient, [0], ms.Checkpoint(tmp_path / "fit", every=1)

    def mortal(self, theta):
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        return ask(self, theta)

    monkeypatch.setattr(Problem, "value_and_gradient", mortal)
    for ends in (20, 90, 1000):
        left[0] = ends
        try:
            found, again = fit(kept)
            break
        except KeyboardInterrupt:
            continue
    assert ends > 10
    assert found.theta.tobytes() == whole.theta.tobytes()
    assert again == rows


def test_over_the_degrees_no_set_has_a_price(rng):
    """An oracle of the degree polytope states the larger problem, and gets its answer."""
    structure = ms.Matching(6)
    score = 5.0 * np.array([(u < 3) == (v < 3) for u, v in structure.ends.tolist()])
    batch = ms.Batch.of(structure, count=1)
    over = ms.marginals(batch, score, "linear_program", route="direct")
    assert over.lower[0] > ms.marginals(batch, score).upper[0] + 0.1
    by = ms.FrankWolfe(tol=1e-6, rounds=2000)
    slow = ms.marginals(batch, score, "linear_program", solver=by)
    assert over.lower[0] == pytest.approx(slow.lower[0], abs=1e-4)


def test_graphs_without_a_perfect_matching_are_refused():
    """The degrees fit by halves, the hull is empty."""
    batch = ms.Batch.of(ms.Matching(6, TRIANGLES), count=1)
    with pytest.raises(Infeasible):
        ms.marginals(batch, np.zeros(6))


@pytest.mark.parametrize("rho", [0.25, 0.5])
@pytest.mark.parametrize("spread", [10.0, 20.0])
def test_points_are_worth_their_bounds_where_sets_are_almost_one_another(spread, rho):
    """A pair that is all but certain joins a set or does not: two sets of nearly one row."""
    rng, structure = np.random.default_rng(1), ms.Matching(6, kind="partial")
    batch = ms.Batch.of(structure, count=200)
    entropy, scores = Entropy.of(batch, rho), spread * rng.standard_normal(batch.size)
    found = routine(entropy).many(batch, scores)
    worth = entropy.each(found.tau) + batch.totals(scores * found.tau)
    np.testing.assert_allclose(worth, found.log_z, rtol=1e-7, atol=1e-7)

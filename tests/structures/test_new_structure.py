"""A new structure and its solver are a class and a line each: fits, proofs and files follow."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import ArrayLike

import mlestruct as ms
from mlestruct.inference.exact import exact, solve
from mlestruct.learners import exact_mle
from mlestruct.oracle import HULL, Counted, load, registry, resolve
from mlestruct.oracle.registry import Entry
from mlestruct.structures.base import Array, Bound, Constraints, Structure, Views, as_fixed
from mlestruct.testing import check_entropy, check_oracle, check_structure


# What CONTRIBUTING.md, "How to add a structure", asks for: this class.
class Teams(Structure):
    """``k`` of ``size`` people; an outcome lists who is in."""

    default_oracle = "best_team"

    def __init__(self, size: int, k: int, *, fixed: ArrayLike | None = None) -> None:
        self.size, self.k, self.fixed = size, k, as_fixed(size, fixed)

    def identity(self) -> tuple[int, int]:
        return self.size, self.k

    def encode(self, outcome: list[int]) -> Array:
        vector = np.zeros(self.size)
        vector[np.asarray(outcome, dtype=int)] = 1.0
        return vector

    def decode(self, vector: ArrayLike) -> list[int]:
        return np.flatnonzero(np.asarray(vector) > 0.5).tolist()

    def views(self) -> Views:
        """Everybody in or out."""
        eye = sp.eye_array(self.size, format="csr")
        both = sp.csr_array(sp.vstack([eye, -eye]))
        c0 = np.repeat([0.0, 1.0], self.size)
        return Views(both, c0, sp.csr_array(sp.vstack([eye, eye])), np.zeros((0, 2), dtype=int))

    def counting(self, rho: float | ArrayLike | None = None) -> Array:
        return np.broadcast_to(np.asarray(1.0 if rho is None else rho, float), self.size).copy()

    def constraints(self) -> Constraints:
        side = np.array([float(self.k)])
        return Constraints(sp.csr_array(np.ones((1, self.size))), side, side)

    def clamp(self, observed: ArrayLike) -> Structure:
        seen = np.asarray(observed)
        return self.refix(np.where(seen >= 0, seen, self.fixed).astype(np.int8))

    def interior(self) -> Array | None:
        return np.full(self.size, self.k / self.size) if (self.fixed < 0).all() else None

    def bound(self, counting: Array) -> Bound:
        full = bool((counting >= 1.0).all())
        return Bound("upper", "binary entropies of all") if full else super().bound(counting)


# What "How to add a solver" asks for: this class, and its line in CATALOGUE.
class BestTeam:
    """The k best scores; who is fixed goes first or last."""

    polytope = HULL

    def many(self, batch, scores):
        vertices = np.zeros(batch.size)
        for m in range(len(batch)):
            team, mine = batch.structure(m), batch.coordinates(m)
            rank = np.select([team.fixed == 1, team.fixed == 0], [np.inf, -np.inf], scores[mine])
            vertices[mine][np.argsort(-rank, kind="stable")[: team.k]] = 1.0
        return vertices, batch.totals(np.where(vertices > 0, scores, 0.0))

    def perturbable(self, batch):
        return None


@pytest.fixture(autouse=True)
def catalogued(monkeypatch):
    monkeypatch.setitem(registry.CATALOGUE, "best_team", Entry(f"{__name__}:BestTeam", "Teams"))


def test_its_laws_hold():
    everybody = list(combinations(range(5), 2))

    clamps = [
        ([1, -1, -1, -1, -1], lambda team: 0 in team),
        ([0, -1, 1, -1, -1], lambda team: 0 not in team and 2 in team),
    ]
    check_structure(Teams(5, 2), everybody, clamps=clamps)
    check_oracle(load("best_team"), Teams(5, 2), everybody)
    check_oracle(load("best_team"), Teams(5, 2).clamp([-1, 1, 0, -1, -1]), everybody)
    check_entropy(Teams(5, 2), outcomes=everybody)


def problem(rng, count=10):
    X = [rng.standard_normal((5, 3)) for _ in range(count)]
    drawn = [x @ [1.0, -0.5, 0.0] + rng.gumbel(size=5) for x in X]
    return X, [np.argsort(-score)[:2].tolist() for score in drawn]


def test_fits_predictions_engines_and_files_follow(rng, tmp_path):
    X, y = problem(rng)
    made = {}
    for engine in ("serial", "threads"):
        model = ms.StructuredModel(Teams(5, 2), engine=engine, tol=1e-4)
        made[engine] = model.fit(X, y, checkpoint=tmp_path / engine)
    model = made["serial"]
    assert (made["threads"].coef_ == model.coef_).all()
    assert model.converged_
    assert model.certificate_.polytope == HULL
    assert model.certificate_.bound == "upper (binary entropies of all)"
    for x, team in zip(X, model.predict(X), strict=True):
        assert sorted(team) == sorted(np.argsort(-(x @ model.coef_))[:2].tolist())
    tau = model.predict_marginals(X)
    np.testing.assert_allclose([part.sum() for part in tau], 2.0)
    model.save(tmp_path / "model.npz")
    again = ms.StructuredModel.load(tmp_path / "model.npz", structure=Teams(5, 2))
    assert all((a == b).all() for a, b in zip(tau, again.predict_marginals(X), strict=True))


def test_it_is_refused_where_it_does_not_belong(rng):
    with pytest.raises(ValueError, match="'best_team' is for Teams, not Custom"):
        resolve("best_team", ms.Batch.of(ms.Custom(3)))


def test_exact_sums_take_one_registration(rng):
    """``solve.register``: log Z by a recursion over people; the surrogate is above it."""

    @solve.register
    def _(team: Teams, scores: Array, memory: float) -> tuple[Array, Array]:
        rows = np.array([team.encode(who) for who in combinations(range(team.size), team.k)])
        total = scores @ rows.T
        log_z = np.logaddexp.reduce(total, axis=1)
        return log_z, np.exp(total - log_z[:, None]) @ rows

    X, y = problem(rng)
    batch = ms.Batch.of(Teams(5, 2), y)
    features = ms.Dense.of(batch, np.concatenate(X))
    assert exact(Teams(5, 2), np.zeros(5)).log_z == pytest.approx(math.log(math.comb(5, 2)))
    fitted = exact_mle(solver=ms.FrankWolfe(tol=1e-10)).fit(batch, features)
    scores = features.potentials(fitted.theta)
    pull = features.moments(batch.target - exact(batch, scores).tau)
    np.testing.assert_allclose(pull, fitted.theta, atol=1e-4)
    assert (ms.marginals(batch, scores).upper >= exact(batch, scores).log_z - 1e-9).all()


def test_a_solver_is_asked_once_per_example_and_round(rng):
    X, y = problem(rng, 4)
    batch = ms.Batch.of(Teams(5, 2), y)
    oracle = Counted(load("best_team"))
    learner = ms.mle_struct(oracle=oracle, solver=ms.FrankWolfe(tol=1e-3))
    model = learner.fit(batch, ms.Dense.of(batch, np.concatenate(X)))
    assert model.converged
    assert oracle.calls <= model.history[-1][0] + 2 * len(batch)

"""The odd-set proof never passes a point outside the matchings' hull."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.dual import Dual
from mlestruct.entropy import Entropy
from mlestruct.features import NoFeatures
from mlestruct.inference.odd_sets import dual_certificate, odd_set_proof
from mlestruct.inference.scaling import Scaling
from mlestruct.regulariser import Regulariser


def violated(structure, tau):
    """Whether some odd set holds more than half its nodes' pairs; by enumeration."""
    for k in range(3, structure.n_nodes + 1, 2):
        for members in combinations(range(structure.n_nodes), k):
            if tau[np.isin(structure.ends, members).all(axis=1)].sum() > (k - 1) / 2 + 1e-9:
                return True
    return False


def infer(structure, scores, rho):
    batch = ms.Batch.of(structure, count=1, bias=scores)
    entropy = Entropy.of(batch, rho)
    found = Scaling.degrees(entropy).many(batch, scores)
    return Dual(batch, NoFeatures(batch.size, 1), entropy, Regulariser.of(0)), found


@pytest.mark.parametrize("kind", ["perfect", "partial"])
def test_a_proof_means_no_violated_odd_set(kind, rng):
    """On random small graphs, hot and cold; and both answers occur."""
    seen = set()
    for _ in range(80):
        n = int(rng.choice([4, 6, 8] if kind == "perfect" else [3, 5, 6]))
        structure = ms.Matching(n, kind=kind)
        scores = rng.choice([0.3, 2.0, 10.0]) * rng.standard_normal(structure.size)
        _, found = infer(structure, scores, float(rng.choice([0.5, 1.0])))
        proven = odd_set_proof(structure, found.tau)
        assert not (proven and violated(structure, found.tau))
        seen.add(proven)
    assert seen == {True, False}


def test_two_triangles_are_not_proven():
    """perfect_K6_two_triangles: two halves of a triangle each fit the degrees, no matching."""
    inside = [{0, 1, 2}, {3, 4, 5}]
    structure = ms.Matching(6)
    tau = np.array([0.5 * any({u, v} <= s for s in inside) for u, v in structure.ends.tolist()])
    assert structure.contains(tau)
    assert not odd_set_proof(structure, tau)
    assert odd_set_proof(structure, np.full(15, 0.2))


def test_components_are_proven_one_by_one(rng):
    pairs = [(u, v) for h in (0, 6) for u in range(h, h + 6) for v in range(u + 1, h + 6)]
    structure = ms.Matching(12, pairs)
    _, found = infer(structure, 0.2 * rng.standard_normal(structure.size), 0.5)
    assert odd_set_proof(structure, found.tau)
    odd = ms.Matching(6, [(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5)])
    assert not odd_set_proof(odd, np.full(6, 0.5))


def test_infeasible_points_are_never_proven():
    assert not odd_set_proof(ms.Matching(4), np.full(6, 0.2))


@pytest.mark.parametrize("rho", [0.5, 1.0])
def test_the_dual_certificate_needs_no_oracle_and_agrees_with_one(rho, rng):
    """Its gap is valid at any feasible τ, tiny at the solution; it names the polytope."""
    structure = ms.Matching(10)
    scores = 0.5 * rng.standard_normal(structure.size)
    dual, found = infer(structure, scores, rho)
    proof = dual_certificate(dual, np.zeros(0), found.tau, found.warm)
    assert proof.polytope == "matchings"
    assert 0 <= proof.gap <= 1e-6
    asked = ms.marginals(dual.batch, scores, rho=rho, solver=ms.FrankWolfe(tol=1e-6))
    assert -proof.objective == pytest.approx(asked.lower[0], abs=1e-4)
    uniform = np.full(structure.size, 1 / 9)
    rough = dual_certificate(dual, np.zeros(0), uniform, found.warm)
    assert rough.gap >= rough.objective - proof.objective - 1e-9
    with pytest.raises(ValueError, match="feasible"):
        dual_certificate(dual, np.zeros(0), uniform * 0.9, found.warm)

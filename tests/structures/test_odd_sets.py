"""Odd sets: proofs and least cuts against enumeration; a point outside the hull is refused."""

from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import linprog

import mlestruct as ms
from mlestruct.inference.matching import Scaling
from mlestruct.structures.entropy import Entropy
from mlestruct.structures.odd_sets import odd_cuts, odd_set_proof
from mlestruct.testing import vertices


def room(structure, tau):
    """The least (|S| − 1)/2 − Σ τ inside S over odd sets S, but for those that always fit."""
    n, least = structure.n_nodes, np.inf
    for k in range(3, n - 1 if structure.kind == "perfect" else n + 1, 2):
        for members in combinations(range(n), k):
            inside = np.isin(structure.ends, members).all(axis=1)
            least = min(least, (k - 1) / 2 - tau[inside].sum())
    return least


def infer(structure, scores, rho):
    """τ over the degrees."""
    entropy = Entropy.of(ms.Batch.of(structure), rho)
    return Scaling.serve(entropy).many(entropy.batch, scores).tau


@pytest.mark.parametrize("kind", ["perfect", "partial"])
def test_a_proof_means_no_violated_odd_set(kind, rng):
    """On random small graphs, hot and cold; and both answers occur."""
    seen = set()
    for _ in range(80):
        n = int(rng.choice([4, 6, 8] if kind == "perfect" else [3, 5, 6]))
        structure = ms.Matching(n, kind=kind)
        scores = rng.choice([0.3, 2.0, 10.0]) * rng.standard_normal(structure.size)
        tau = infer(structure, scores, float(rng.choice([0.5, 1.0])))
        proven = odd_set_proof(structure, tau)
        assert not (proven and room(structure, tau) < -1e-9)
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
    tau = infer(structure, 0.2 * rng.standard_normal(structure.size), 0.5)
    assert odd_set_proof(structure, tau)
    odd = ms.Matching(6, [(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5)])
    assert not odd_set_proof(odd, np.full(6, 0.5))


def test_infeasible_points_are_never_proven():
    assert not odd_set_proof(ms.Matching(4), np.full(6, 0.2))


def test_the_least_odd_cut_is_that_of_enumeration(rng):
    """Any terminals, on dense and broken graphs."""
    for _ in range(150):
        n = int(rng.integers(2, 9))
        table = np.triu(rng.random((n, n)) * (rng.random((n, n)) < 0.6), 1)
        network, terminal = table + table.T, np.arange(n) < rng.choice(np.arange(2, n + 1, 2))
        cuts = [
            network[np.ix_(inside, ~inside)].sum()
            for k in range(1, n)
            for inside in (np.isin(np.arange(n), some) for some in combinations(range(n), k))
            if terminal[inside].sum() % 2
        ]
        found = [network[np.ix_(s, ~s)].sum() for s in odd_cuts(network, terminal)]
        assert min(found) == pytest.approx(min(cuts), abs=1e-9)
        below = odd_cuts(network, terminal, min(cuts) + 1e-3)
        assert min(network[np.ix_(s, ~s)].sum() for s in below) == pytest.approx(
            min(cuts), abs=1e-9
        )
        assert len(odd_cuts(network, terminal, min(cuts) - 1e-3)) == 0


@pytest.mark.parametrize("kind", ["perfect", "partial"])
def test_in_hull_is_exact(kind, rng):
    """It agrees with a linear program over all matchings, inside and outside alike."""
    seen = []
    for _ in range(40):
        structure = ms.Matching(int(rng.choice([4, 6] if kind == "perfect" else [3, 5])), kind=kind)
        tau = infer(structure, 8.0 * rng.standard_normal(structure.size), 0.5)
        if abs(room(structure, tau)) < 1e-6:
            continue  # the linear program's tolerance is coarser
        listed = vertices(structure)
        rows = np.vstack([listed.T, np.ones(len(listed))])
        mixed = linprog(np.zeros(len(listed)), A_eq=rows, b_eq=np.r_[tau, 1.0])
        seen.append(bool(structure.in_hull(tau)))
        assert seen[-1] == (mixed.status == 0)
    assert set(seen) == {True, False}
    assert not structure.in_hull(2.0 * np.ones((3, structure.size))).any()

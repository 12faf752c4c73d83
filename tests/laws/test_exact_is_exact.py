"""Probabilities that are called exact are means over all outcomes; others say how far off."""

from __future__ import annotations

import itertools
import re
import warnings

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.errors import Unserved
from mlestruct.inference import marginals
from mlestruct.structures import ClusterGraph, Ising, RegionGraph, plaquettes
from mlestruct.structures.entropy import Entropy
from mlestruct.testing import vertices
from tests.listing import BruteForce
from tests.test_laws import STRUCTURES

TABLE = STRUCTURES | {
    "plaquette": plaquettes(2, 2),
    "plaquettes": plaquettes(2, 3),
    "plaquettes of three states": plaquettes(2, 2, 3),
    "clamped plaquettes": plaquettes(2, 3).clamp([-1, 1, -1, -1, 0, -1]),
    "regions": RegionGraph([2, 3, 2], [(1, 0), (2, 1), (1,)]),
    "regions apart": RegionGraph([2, 3], [(0,), (1,)]),
    "clusters": ClusterGraph([2] * 4, [(0, 1, 2), (1, 2, 3)], [(0, 1, (1, 2))]),
    "clusters with one sepset twice": ClusterGraph(
        [2] * 5, [(0, 1, 2), (1, 2, 3), (2, 1, 4)], [(0, 1, (1, 2)), (1, 2, (2, 1))]
    ),
    "clusters on a cycle": ClusterGraph(
        [2] * 3, [(0, 1), (1, 2), (2, 0)], [(0, 1, (1,)), (1, 2, (2,)), (2, 0, (0,))]
    ),
    "Ising tree": Ising(5, [(0, 1), (1, 2), (1, 3), (3, 4)]),
    "Ising forest, fixed": Ising(5, [(0, 1), (1, 2), (3, 4)], fixed=[-1, 1, 0]),
    "Ising ring": Ising(4, [(0, 1), (1, 2), (2, 3), (3, 0)]),
    "b-matching": ms.BMatching(4, capacity=2),
}
WAYS = ("default", "frank_wolfe", "oracle", "surrogate", "infer frank_wolfe", "infer exact")
SPREADS = (0.0, 0.1, 1.0, 3.0, 10.0)
CASES = list(itertools.product(TABLE, (None, 0.0, 1.0), SPREADS, WAYS))


def every(structure):
    """All outcomes, one per row."""
    if not isinstance(structure, RegionGraph):
        return vertices(structure)
    return vertices(structure, np.ndindex(*structure.cards))


def asked(way, batch, scores, rho):
    """Marginals by one of the ways to them; None where it refuses the structure or ρ."""
    try:
        if way != "infer exact" and Entropy.of(batch, rho).bound.kind == "none":
            return None
        if way in ("default", "frank_wolfe"):
            route = "auto" if way == "default" else way
            return marginals(batch, scores, rho=rho, route=route)
        if way == "oracle":
            return marginals(batch, scores, BruteForce(every), rho=rho)
        from mlestruct.inference.choose import named_inference

        return named_inference(way.removeprefix("infer "), rho).marginals(batch, scores)
    except (Unserved, ValueError):  # no default solver, no concave entropy, no listing
        return None


def holds(name, rho, spread, way, seed=0):
    structure = TABLE[name]
    rows = every(structure)
    score = spread * np.random.default_rng(seed).standard_normal(structure.size)
    total = rows @ score
    weight = np.exp(total - total.max())
    log_z, tau = np.log(weight.sum()) + total.max(), weight @ rows / weight.sum()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ms.ConvergenceWarning)
        found = asked(way, ms.Batch.of(structure, count=1), score, rho)
    if found is None:
        return 0
    off = np.abs(found.tau - tau).max()
    if found.bound.kind == "exact":
        assert off <= 1e-9
        assert found.lower[0] - 1e-9 <= log_z <= found.upper[0] + 1e-9
    stated = re.search(r"within ±([0-9.e+-]+)", found.bound.why)
    if stated:
        assert off <= 1.01 * float(stated[1]) + 1e-9
    if found.bound.kind == "upper":
        assert log_z <= found.upper[0] + 1e-9
    return 1


def drawn(count):
    """As many cases, the same in every run."""
    rng = np.random.default_rng(0)
    return [CASES[k] for k in sorted(rng.choice(len(CASES), count, replace=False))]


@pytest.mark.parametrize("case", drawn(100), ids=lambda case: "-".join(map(str, case)))
def test_what_is_called_exact_agrees_with_enumeration(case):
    holds(*case)


@pytest.mark.nightly
@pytest.mark.parametrize("name", TABLE)
def test_what_is_called_exact_agrees_with_enumeration_everywhere(name):
    cases = [case for case in CASES if case[0] == name]
    assert sum(holds(*case, seed) for case in cases for seed in range(3)) > 0


@pytest.mark.parametrize("name", TABLE)
def test_sums_over_regions_and_agreements_are_those_of_all_outcomes(name):
    """``exact`` itself, on every structure that it knows."""
    assert holds(name, None, 3.0, "infer exact") or isinstance(TABLE[name], ms.Custom)


@pytest.mark.parametrize("name", ["plaquettes", "clusters", "Ising tree"])
def test_forests_of_regions_are_summed_by_default(name):
    found = marginals(ms.Batch.of(TABLE[name], count=2), np.ones(2 * TABLE[name].size))
    assert found.bound.kind == "exact"


def test_a_sequence_model_with_a_solver_of_its_own_calls_nothing_exact():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(4, 2)) for _ in range(6)]
    y = [(x[:, 0] > 0).astype(int) for x in X]
    model = ms.SequenceModel().fit(X, y)
    batch, scores = model._scored(model._given(X))
    assert model._marginals(batch, scores).bound.kind == "exact"
    model.infer = "frank_wolfe"
    found = model._marginals(batch, scores)
    assert found.bound.kind == "upper"
    assert "within ±" in found.bound.why

"""General matchings too large to search for odd sets cost no more, and say what is proven."""

from __future__ import annotations

import time
import warnings

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.errors import ConvergenceWarning
from mlestruct.inference import best, marginals, odd
from mlestruct.inference.exact import exact
from mlestruct.inference.matching import Scaling
from mlestruct.inference.proof import DEGREES, PROVEN
from mlestruct.oracle import Validated
from mlestruct.structures import odd_sets
from mlestruct.structures.batch import Batch
from mlestruct.structures.entropy import Entropy

NODES = (398, 402, 600, 1000)  # the first is below the limit
SPREADS = (1.0, 3.0)


def complete(rng, nodes, kind):
    return ms.Matching(nodes, kind=kind)


def sparse(rng, nodes, kind):
    """Six edges a node, and a perfect matching among them."""
    pairs = np.concatenate(
        [rng.permutation(nodes).reshape(-1, 2), rng.integers(nodes, size=(3 * nodes, 2))]
    )
    pairs = np.unique(np.sort(pairs, axis=1), axis=0)
    return ms.Matching(nodes, pairs[pairs[:, 0] != pairs[:, 1]], kind=kind)


def count(monkeypatch, place, name, counts):
    """Count the calls of a function or a method from here on."""
    kept = getattr(place, name)

    def counted(*given, **settings):
        counts.append(name)
        return kept(*given, **settings)

    monkeypatch.setattr(place, name, counted)


@pytest.fixture
def work(monkeypatch):
    """Names of the scalings, the looks for odd sets and the oracle's answers, as they happen."""
    counts = []
    count(monkeypatch, Scaling, "many", counts)
    count(monkeypatch, odd_sets, "odd_cuts", counts)
    count(monkeypatch, Validated, "many", counts)
    return counts


def check_sizes(work, make, kind, spread, rho, seed=0):
    """Calls per edge of a size are at most three times those of the last; τ is scaling's."""
    last = None
    for nodes in NODES:
        rng = np.random.default_rng(seed)
        structure = make(rng, nodes, kind)
        score = spread * rng.standard_normal(structure.size)
        batch, work[:] = Batch.of(structure, count=1), []
        begun = time.process_time()
        found = marginals(batch, score, rho=rho)
        took = time.process_time() - begun
        each = len(work) / structure.size
        assert last is None or each <= 3.0 * last
        last = each
        assert found.upper[0] - found.lower[0] <= 1e-6
        if nodes > odd_sets.EXACT:
            assert found.certificate.polytope in (PROVEN, DEGREES)
            assert (found.certificate.polytope == PROVEN) == odd_sets.odd_set_proof(
                structure, found.tau
            )
            entropy, begun = Entropy.of(batch, rho), time.process_time()
            plain = Scaling(rho).many(batch, score).tau
            assert took <= 10 * (0.05 + time.process_time() - begun)
            values = [entropy.each(tau)[0] + score @ tau for tau in (found.tau, plain)]
            assert values[0] >= values[1] - 1e-9
            assert structure.contains(found.tau)


@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("make", [complete, sparse])
def test_beyond_the_limit_nothing_costs_more(work, make, spread):
    check_sizes(work, make, "perfect", spread, 0.5)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("rho", [0.5, 0.25])
@pytest.mark.parametrize("kind", ["perfect", "partial"])
@pytest.mark.parametrize("spread", [*SPREADS, 10.0])
@pytest.mark.parametrize("make", [complete, sparse])
def test_beyond_the_limit_nothing_costs_more_on_any_graph(work, make, spread, kind, rho, seed):
    check_sizes(work, make, kind, spread, rho, seed)


def small_limit(monkeypatch, nodes=6):
    """Odd sets of small graphs are not searched either: what is proven there can be checked."""
    monkeypatch.setattr(odd_sets, "EXACT", nodes)
    monkeypatch.setattr(odd, "EXACT", nodes)


def check_bounds(monkeypatch, structure, score, rho):
    batch = Batch.of(structure, count=1)
    inside = marginals(batch, score, rho=rho)
    with monkeypatch.context() as limited:
        small_limit(limited)
        over = marginals(batch, score, rho=rho)
    proven = over.certificate.polytope == PROVEN
    assert proven or over.certificate.polytope == DEGREES
    assert over.upper[0] >= inside.lower[0] - 1e-9  # the larger polytope's bound holds in both
    if rho <= 0.5:
        assert over.upper[0] >= exact(batch, score)[0][0] - 1e-9
    assert not proven or structure.in_hull(over.tau[None])[0]
    assert proven or DEGREES in str(over.certificate)
    return proven


def test_bounds_over_the_degrees_hold_over_the_hull(monkeypatch, rng):
    known = set()
    for number in range(20):
        structure = ms.Matching(8 + 2 * (number % 2), kind=("perfect", "partial")[number % 2])
        group = rng.integers(0, 3, structure.n_nodes)
        u, v = structure.ends.T
        score = (0.3, 4.0)[number % 3 > 0] * (
            (group[u] == group[v]) + 0.3 * rng.standard_normal(structure.size)
        )
        known.add(check_bounds(monkeypatch, structure, score, (0.5, 0.3)[number // 2 % 2]))
    assert known == {True, False}


def test_examples_of_other_sizes_keep_their_proofs(monkeypatch, rng):
    """A large example's polytope is that of the whole, and a small one is still in its hull."""
    sizes = (6, 8, 6, 8)
    structures = [ms.Matching(n) for n in sizes]
    batch = Batch.of(structures)
    score = 6.0 * rng.standard_normal(batch.size)
    small_limit(monkeypatch)
    found = marginals(batch, score)
    for m, structure in enumerate(structures):
        own = found.tau[batch.coordinates(m)]
        assert structure.contains(own)
        if sizes[m] == 6:
            assert structure.in_hull(own[None])[0]
            alone = marginals(Batch.of(structure, count=1), score[batch.coordinates(m)])
            np.testing.assert_allclose(own, alone.tau, atol=1e-6)


def sharp(rng, people):
    """Matched people whose answers nearly agree: (batch, features)."""
    structure = ms.Matching(people)
    answers = rng.standard_normal((people, 3))
    u, v = structure.ends.T
    X = -np.abs(answers[u] - answers[v])
    batch = Batch.of(structure, count=1)
    pairs, _, _ = best(batch, 8.0 * X.sum(axis=1))
    return Batch.of(structure, pairs), X


def check_fit(work, people):
    batch, X = sharp(np.random.default_rng(0), people)
    work[:] = []
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        found = ms.mle_struct(regulariser=0.1).fit(batch, ms.Dense.of(batch, X))
    assert found.route == "direct"
    assert found.certificate.relative <= 1e-3
    return len(work)


@pytest.mark.parametrize("people", [404, pytest.param(600, marks=pytest.mark.nightly)])
def test_fits_beyond_the_limit_end_by_the_direct_route(work, people):
    assert check_fit(work, people) <= 200

"""Laws of proofs: exact routines hand over upper = lower; prices prove matchings near vertices."""

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.inference import marginals
from mlestruct.inference.exact import outcomes
from mlestruct.inference.routine import routine
from mlestruct.structures import chain, grid, tree
from mlestruct.structures.entropy import Entropy

SPREADS = (0.1, 1.0, 10.0, 50.0)


def dag(n=6):
    """All arcs u < v but the longest one; every path from the first node to the last."""
    arcs = [(u, v) for u in range(n) for v in range(u + 1, n) if v - u <= 3]
    return ms.Paths(arcs, 0, n - 1)


STRUCTURES = {
    "chain": lambda: chain(5, 3),
    "one variable": lambda: ms.FactorGraph([4], []),
    "product": lambda: ms.FactorGraph([2, 3, 2], []),
    "tree": lambda: tree([(0, 1), (0, 2), (1, 3), (1, 4)], [2, 3, 2, 2, 2]),
    "order 3": lambda: ms.FactorGraph([2, 3, 2, 2], [(0, 1, 2), (2, 3)]),
    "forbidden": lambda: ms.FactorGraph([3, 2, 2], [(0, 1), (1, 2)]).clamp([1, -1, -1]),
    "paths": dag,
}


def drawn(rng, structure, spread, tied):
    score = rng.standard_normal(structure.size)
    return spread * (np.round(score) if tied else score)


def every(structure):
    """All outcomes, one per row; of paths and b-matchings by trying every set of parts."""
    if not isinstance(structure, (ms.Paths, ms.BMatching)):
        return outcomes(structure)
    n = structure.size
    rows = (np.arange(1 << n)[:, None] >> np.arange(n) & 1).astype(float)
    return rows[structure.contains(rows)]


def listed(structure, score):
    """log Z and E[v] over the list of all outcomes."""
    rows = every(structure)
    total = rows @ score
    weight = np.exp(total - total.max())
    return float(np.log(weight.sum()) + total.max()), weight @ rows / weight.sum()


@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("name", STRUCTURES)
@pytest.mark.parametrize("tied", [False, True])
def test_exact_routines_certify_to_the_last_digits(name, spread, tied, rng):
    structure = STRUCTURES[name]()
    for _ in range(3):
        score = drawn(rng, structure, spread, tied)
        batch = ms.Batch.of(structure, count=1)
        assert routine(Entropy.of(batch)).exact
        found = marginals(batch, score)
        log_z, tau = listed(structure, score)
        assert found.lower[0] <= log_z + 1e-12 * abs(log_z)
        assert found.upper[0] >= log_z - 1e-12 * abs(log_z)
        assert np.abs(found.tau - tau).max() <= 1e-9
        assert 0 <= found.certificate.relative <= 1e-8


SUMMED = {  # what no routine computes exactly: every outcome is summed
    "grid": lambda: grid(2, 3),
    "matching": lambda: ms.BipartiteMatching(3),
    "partial": lambda: ms.BipartiteMatching(2, 3, "partial"),
    "odd": lambda: ms.Matching(5, kind="partial"),
    "b-matching": lambda: ms.BMatching(4, capacity=2),
}


def learned(rng, structures, spread, tied, make):
    """A fit whose outcomes are the best ones of perturbed scores."""
    size = sum(s.size for s in structures)
    X = rng.standard_normal((size, 3))
    X = spread * (np.round(X) if tied else X)
    scores = X @ np.array([1.0, -0.5, 0.3]) + rng.gumbel(size=size)
    batch = ms.Batch.of(structures, ms.inference.best(ms.Batch.of(structures), scores)[0])
    learner = make(regulariser=0.5, solver=ms.FrankWolfe(tol=1e-10, rounds=3000))
    return learner.fit(batch, ms.Dense.of(batch, X)), batch, X


@pytest.mark.parametrize("spread", [*SPREADS, 3.0])
@pytest.mark.parametrize("name", [*STRUCTURES, *SUMMED])
@pytest.mark.parametrize("tied", [False, True])
def test_fits_are_certified_at_their_exact_optimum(name, spread, tied, rng):
    structure = (STRUCTURES | SUMMED)[name]()
    make = ms.learners.exact_mle if name in SUMMED else ms.mle_struct
    model, batch, X = learned(rng, [structure] * 6, spread, tied, make)
    assert model.certificate.relative <= 1e-8
    log_z = [listed(structure, one)[0] for one in (X @ model.theta).reshape(6, -1)]
    value = np.sum(log_z) - batch.target @ X @ model.theta + 0.25 * model.theta @ model.theta
    assert abs(abs(model.certificate.objective) - value) <= 1e-7 * max(1.0, value)


RING = [(v, (v + 1) % 8) for v in range(8)] + [(0, 4), (1, 5)]
MATCHINGS = {
    "perfect 4": lambda: ms.BipartiteMatching(4),
    "partial 2": lambda: ms.BipartiteMatching(2, kind="partial"),
    "partial 3 × 5": lambda: ms.BipartiteMatching(3, 5, kind="partial"),
    "partial 5": lambda: ms.BipartiteMatching(5, kind="partial"),
    "one-sided": lambda: ms.BipartiteMatching(3, 5, "one_sided"),
    "one-sided 5 × 9": lambda: ms.BipartiteMatching(5, 9, "one_sided"),
    "general": lambda: ms.Matching(6),
    "general, partial": lambda: ms.Matching(7, kind="partial"),
    "sparse": lambda: ms.Matching(8, RING, "partial"),
}


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("rho", [0.0, 0.003, 0.01, 0.03, 0.1, 0.25, 0.5])
@pytest.mark.parametrize("name", MATCHINGS)
def test_scaling_proves_itself_near_vertices(name, rho, tied, rng):
    """Prices bound the maximum at ρ ≤ ½ too: the oracle's tangent alone was off by nats there.

    Slacks whose entropy hardly counts (ρ ≤ .1) once made prices negative, and then NaN.
    """
    structure, count = MATCHINGS[name](), 12
    batch = ms.Batch.of(structure, count=count)
    entropy = Entropy.of(batch, rho)
    scaling = routine(entropy)
    for spread in (0.1, 1.0, 8.0, 20.0, 50.0):
        scores = np.concatenate([drawn(rng, structure, spread, tied) for _ in range(count)])
        found = scaling.many(batch, scores)
        value = entropy.each(found.tau) + batch.totals(scores * found.tau)
        upper = scaling.above(batch, scores, found.warm, value)
        assert (upper - value >= -1e-9 * (1.0 + np.abs(value))).all()
        assert (upper - value).max() <= 1e-6
        assert structure.contains(found.tau.reshape(count, -1)).all()

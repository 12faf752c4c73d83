"""The nodes' own bound: above the maximum at any prices, at it at best, and near vertices too."""

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.inference import best
from mlestruct.inference.exact import exact
from mlestruct.inference.matching import approach, live_edges, price_bounds
from mlestruct.structures.entropy import Entropy
from tests.reference.bethe_vertex import is_bethe_vertex

STRUCTURES = {
    "perfect": ms.BipartiteMatching(5),
    "one-sided": ms.BipartiteMatching(3, 5, "one_sided"),
    "partial": ms.BipartiteMatching(4, 5, "partial"),
    "general": ms.Matching(6),
    "general, partial": ms.Matching(7, kind="partial"),
    "clamped": ms.BipartiteMatching(5, forbidden=[(0, 1), (2, 2)], required=[(1, 3)]),
}
RHOS = 0.51, 0.7, 0.9, 1.0


def lone_bound(graph, rho, score, x):
    return price_bounds(graph, rho, score[None], x[None])[0]


def known(structure, scores, rho):
    """What the kernels take, and what the coordinates that are not live add."""
    graph, edge, base, _ = live_edges(structure)
    sure = 0.0 if base is None else float(base @ scores)
    return (graph, rho, scores if edge is None else scores[edge]), graph, sure


@pytest.mark.parametrize("rho", RHOS)
@pytest.mark.parametrize("name", STRUCTURES)
def test_no_feasible_point_is_above_the_bound_at_any_prices(name, rho, rng):
    """Mixtures of vertices, at scores up to 100; the objective there by the entropy itself."""
    structure = STRUCTURES[name]
    for scale in (1.0, 10.0, 100.0):
        scores = scale * rng.standard_normal(structure.size)
        given, graph, sure = known(structure, scores, rho)
        x = scale * rng.standard_normal(graph.nodes)
        bound = sure + lone_bound(*given, np.where(graph.strict, x, np.abs(x)))
        many = ms.Batch.of(structure, count=30)
        corners = best(many, np.concatenate([scores] * 30) + scale * rng.gumbel(size=many.size))[0]
        mix = rng.dirichlet(np.full(30, 0.2)) @ np.array([structure.encode(c) for c in corners])
        batch = ms.Batch.of(structure, count=1)
        for tau in (mix, structure.encode(best(batch, scores)[0][0])):
            assert scores @ tau + Entropy.of(batch, rho).each(tau)[0] <= bound + 1e-9 * abs(bound)


@pytest.mark.parametrize("rho", RHOS)
@pytest.mark.parametrize("name", STRUCTURES)
def test_the_least_bound_is_reached_by_a_point(name, rho, rng):
    """Newton's prices close the gap to a point that Frank-Wolfe finds without them."""
    structure = STRUCTURES[name]
    scores = 2.0 * rng.standard_normal(structure.size)
    given, graph, sure = known(structure, scores, rho)
    x = np.zeros(graph.nodes)
    assert approach(*given, x, 1e-11, 100)[1] < 1e-6
    bound = sure + lone_bound(*given, x)
    if structure.default_oracle == "assignment":  # no odd sets: the degrees are the hull
        slow = ms.marginals(
            ms.Batch.of(structure, count=1), scores, rho=rho, solver=ms.FrankWolfe(tol=1e-6)
        )
        assert slow.lower[0] - 1e-9 <= bound <= slow.upper[0] + 1e-4
    assert lone_bound(*given, x + 0.3 * rng.standard_normal(len(x))) >= bound - sure - 1e-12


@pytest.mark.parametrize("rho", [0.6, 0.9, 1.0])
@pytest.mark.parametrize("scale", [50.0, 200.0])
def test_marginals_near_a_vertex_are_certified(rho, scale, rng):
    """Scores of 50 and more: the interval is closed, and brackets log Z where theorems say so."""
    structure = ms.BipartiteMatching(6)
    scores = scale * rng.standard_normal(8 * structure.size)
    batch = ms.Batch.of(structure, count=8)
    found = ms.marginals(batch, scores, rho=rho)
    assert found.certificate.gap <= 1e-6 * max(1.0, abs(found.certificate.objective))
    for m, row in enumerate(scores.reshape(8, -1)):
        log_z = exact(structure, row).log_z
        top = best(ms.Batch.of(structure, count=1), row)
        assert found.upper[m] >= top[1][0] - 1e-9 * abs(log_z)
        if rho == 1.0:
            assert found.lower[m] <= log_z * (1 + 1e-12)
            if is_bethe_vertex(structure, row, structure.encode(top[0][0])):
                assert found.upper[m] == pytest.approx(top[1][0], rel=1e-9)


def test_rivals_near_a_tie_at_bethe_are_certified():
    """Where messages creep: the spectral radius of the rivals' odds beside one."""
    base = np.full((6, 6), -40.0)
    np.fill_diagonal(base, 0.0)
    for shift in (-0.05, -1e-3, 0.0, 1e-3, 0.05):
        scores = base.copy()
        for k in range(6):
            scores[k, (k + 1) % 6] = shift
        found = ms.marginals(ms.Batch.of(ms.BipartiteMatching(6), count=1), scores.ravel(), rho=1.0)
        assert found.upper[0] - found.lower[0] <= 1e-4

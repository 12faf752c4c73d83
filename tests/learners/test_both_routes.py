"""By messages or with nothing but MAP answers: one optimum, for every convex learner."""

from __future__ import annotations

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.learners import LEARNERS
from mlestruct.learning.frank_wolfe import FrankWolfe
from mlestruct.oracle import Counted

LAM, COUNT = 1.0, 4
LADDER = [(0, 1), (0, 2), (1, 3), (2, 3), (1, 2)]
STRUCTURES = {
    "chain": ms.chain(3, 3),
    "tree": ms.tree([(0, 1), (0, 2), (2, 3)], [2, 3, 2, 2]),
    "order 3": ms.FactorGraph([2, 2, 3, 2], [(0, 1, 2), (2, 3)]),
    "forbidden": ms.chain(4, 3).forbid(states=[(1, 2)], configurations=[(2, (0, 1))]),
    "grid": ms.grid(2, 3),
    "grid of three states": ms.grid(2, 2, 3),
    "perfect": ms.BipartiteMatching(3),
    "partial": ms.BipartiteMatching(3, kind="partial"),
    "paths": ms.Paths(LADDER, 0, 3),
}
GRAPHS = ("chain", "tree", "grid", "grid of three states")
LIKELIHOODS = [("mle_struct", name) for name in STRUCTURES] + [
    (learner, name) for learner in ("camel0", "piecewise", "trw") for name in GRAPHS
]
LIKELIHOODS += [("camel", name) for name in ("chain", "tree")]  # on grids its rounds take minutes


def problem(name, rng):
    """Random features; outcomes are the structure's best at random scores."""
    structure = STRUCTURES[name]
    batch = ms.Batch.of(structure, count=COUNT)
    found, _ = ms.oracle.resolve(None, batch).many(batch, rng.standard_normal(batch.size))
    outcomes = [structure.decode(found[batch.coordinates(m)]) for m in range(COUNT)]
    batch = ms.Batch.of(structure, outcomes)
    return batch, ms.Dense.of(batch, rng.standard_normal((batch.size, 3)))


@pytest.mark.parametrize(("learner", "name"), LIKELIHOODS)
def test_the_routes_agree_within_their_certificates(learner, name, rng):
    """Values differ by no more than the gaps, weights by no more than √(2·gap/λ) each."""
    batch, features = problem(name, rng)
    oracle = Counted(ms.oracle.resolve(None, batch))
    models = [
        LEARNERS[learner](
            regulariser=LAM, route=route, oracle=own, solver=FrankWolfe(tol=1e-6, rounds=300)
        ).fit(batch, features)
        for route, own in (("direct", None), ("frank_wolfe", oracle))
    ]
    assert oracle.calls > 0
    fast, slow = (model.certificate for model in models)
    assert [model.route for model in models] == ["direct", "frank_wolfe"]
    assert fast.relative <= 1e-5
    assert slow.relative <= 1e-2
    assert abs(fast.objective - slow.objective) <= fast.gap + slow.gap + 1e-10
    radius = sum(np.sqrt(2.0 * max(proof.gap, 0.0) / LAM) for proof in (fast, slow))
    assert np.linalg.norm(models[0].theta - models[1].theta) <= radius + 1e-9


@pytest.mark.parametrize("name", STRUCTURES)
def test_max_margin_has_one_route_and_refuses_the_other(name, rng):
    batch, features = problem(name, rng)
    solver = FrankWolfe(tol=1e-6, rounds=300)
    model = LEARNERS["ssvm"](regulariser=LAM, solver=solver).fit(batch, features)
    assert model.route == "frank_wolfe"
    assert model.certificate.relative <= 1e-3
    with pytest.raises(ValueError, match="no direct route"):
        LEARNERS["ssvm"](regulariser=LAM, route="direct").fit(batch, features)

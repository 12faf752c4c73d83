"""Frank-Wolfe may begin on the boundary, where an entropy has no slope: it steps inside first."""

from __future__ import annotations

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.inference import best

TRIANGLES = [(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5)]
STRUCTURES = {
    "prism": [ms.Matching(6, [*TRIANGLES, (0, 3), (1, 4), (2, 5)])] * 3,
    "two triangles": [ms.Matching(6, [*TRIANGLES, (0, 3)])] * 3,
    "partial": [ms.BipartiteMatching(4, kind="partial")] * 3,
    "chain": [ms.chain(4, 2)] * 3,
}


@pytest.mark.parametrize("name", STRUCTURES)
@pytest.mark.parametrize("rho", [0.5, 1.0])
@pytest.mark.parametrize("seed", [3, 4])
def test_a_start_at_vertices_proves_what_any_start_does(name, rho, seed):
    """Once a start on the boundary was certified to 8e-14 at an objective 1.6e-4 too high."""
    rng = np.random.default_rng(seed)
    structures = STRUCTURES[name]
    X = 3.0 * rng.standard_normal((sum(s.size for s in structures), 3))
    scores = X @ np.array([1.0, -0.5, 0.3]) + rng.gumbel(size=len(X))
    batch = ms.Batch.of(structures, best(ms.Batch.of(structures), scores)[0])
    solver = ms.FrankWolfe(tol=1e-6, rounds=150)
    learner = ms.mle_struct(rho, regulariser=0.3, route="frank_wolfe", solver=solver)
    features = ms.Dense.of(batch, X)
    cold = learner.fit(batch, features)
    edge = learner.fit(batch, features, start=batch.target)
    for one, other in ((cold, edge), (edge, cold)):
        proof = one.certificate
        assert proof.objective - proof.gap <= other.certificate.objective + 1e-9

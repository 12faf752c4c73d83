"""Max-margin by the proximal bundle: the same optimum in fewer calls, under any regulariser."""

import numpy as np
import pytest

from mlestruct.batch import Batch
from mlestruct.features import Tied
from mlestruct.frank_wolfe import FrankWolfe
from mlestruct.learners import ssvm
from mlestruct.oracle import resolve
from mlestruct.regulariser import Regulariser
from mlestruct.structures import grid

REGULARISERS = [
    {},
    {"prior": 0.3},
    {"l1": 0.2},
    {"lower": -0.4, "upper": 0.5},
    {"lam": [0.1, 1.0, 0.1, 0.5]},
]


def grids(seed):
    rng = np.random.default_rng(seed)
    batch = Batch.of(grid(6, 6), list(rng.integers(0, 2, (6, 36))))
    features = Tied.of(batch, rng.standard_normal((6 * 36, 2)))
    return batch, features


@pytest.mark.parametrize("setting", REGULARISERS)
@pytest.mark.parametrize("step", ["pairwise", "block"])
def test_the_optimum_is_the_problems_own(setting, step):
    batch, features = grids(0)
    own = setting.get("lam", 0.1)
    lam = np.resize(own, features.d)
    given = {name: value for name, value in setting.items() if name != "lam"}
    dual = ssvm(regulariser=Regulariser.of(features.d, lam, **given)).dual(batch, features)
    oracle = resolve(None, batch)
    found = [
        FrankWolfe(tol=1e-3, rounds=120, centre=centre, step=one).solve(dual, oracle).certificate
        for centre, one in ((True, step), (False, "pairwise"))
    ]
    assert min(found[0].relative, found[1].relative) <= 1e-2
    assert abs(found[0].objective - found[1].objective) <= max(one.gap for one in found)


def test_it_takes_half_of_the_calls():
    """Where λ is small against the pixels: alone, θ leaps to where no plane is known."""
    calls = np.zeros((2, 3))
    for seed in range(3):
        batch, features = grids(seed)
        dual = ssvm(regulariser=0.02).dual(batch, features)
        for row, centre in enumerate((True, False)):
            solver = FrankWolfe(tol=1e-3, rounds=400, centre=centre)
            state = solver.solve(dual, resolve(None, batch))
            assert state.certificate.relative <= 1e-3
            calls[row, seed] = state.calls
    assert (calls[0] <= calls[1]).all()
    assert calls[0].sum() <= 0.5 * calls[1].sum()

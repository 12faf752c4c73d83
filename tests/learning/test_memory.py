"""Nothing of a fit outlives it, whether or not the garbage collector comes."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.learning.frank_wolfe import OraclePart, OracleRun
from mlestruct.learning.loop import Loop
from mlestruct.learning.minimise import LBFGS
from mlestruct.learning.problem import Part, Problem

KINDS = Part, Problem, Loop, LBFGS, OraclePart, OracleRun, ms.Batch


@pytest.mark.parametrize("settings", [{}, {"solver": "frank_wolfe"}, {"alpha": [0.1, 1.0]}])
@pytest.mark.parametrize("model", [ms.MatchingModel, ms.SequenceModel])
def test_a_fit_leaves_no_cycles_behind(rng, model, settings):
    if model is ms.MatchingModel:
        X, y = rng.standard_normal((8, 4, 4, 2)), [rng.permutation(4) for _ in range(8)]
    else:
        X, y = rng.standard_normal((8, 4, 2)), list(rng.integers(0, 2, (8, 4)))
    model(**settings).fit(X, y)
    gc.collect()
    gc.disable()
    try:
        before = sum(isinstance(one, KINDS) for one in gc.get_objects())
        fitted = model(**settings).fit(X, y)
        after = sum(isinstance(one, KINDS) for one in gc.get_objects())
    finally:
        gc.enable()
    assert np.isfinite(fitted.coef_).all()
    assert after == before

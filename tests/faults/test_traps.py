"""Traps seen in other packages: what they accept in silence is refused here, or done right."""

from functools import partial

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.errors import Infeasible
from mlestruct.inference import best
from mlestruct.inference.sampling import sample
from mlestruct.learners import LEARNERS

IMPOSSIBLE = [
    ms.chain(3, 2).forbid(configurations=[(0, (a, b)) for a in (0, 1) for b in (0, 1)]),
    ms.grid(2, 2).forbid([(0, 0), (0, 1)]),
    ms.BipartiteMatching(2, forbidden=[(0, 0), (0, 1)]),
    ms.Matching(4, [(0, 1), (0, 2), (0, 3)]),
    ms.Paths([(0, 1), (2, 3)], 0, 3),
]


@pytest.mark.parametrize("structure", IMPOSSIBLE, ids=lambda s: type(s).__name__)
def test_impossible_tables_are_errors_in_words(structure):
    batch, none = ms.Batch.of(structure), np.zeros(structure.size)
    for ask in (best, ms.marginals):
        with pytest.raises(Infeasible, match=r"\w+ \w+"):
            ask(batch, none)
    with pytest.raises(Infeasible, match=r"\w+ \w+"):
        ms.exact(structure, none)


def test_impossible_labellings_have_no_samples(rng):
    for structure in (IMPOSSIBLE[0], IMPOSSIBLE[1], IMPOSSIBLE[4]):
        with pytest.raises(Infeasible, match=r"\w+ \w+"):
            sample(structure, np.zeros(structure.size), 2, rng)


def test_features_whose_sum_is_negative_count():
    X = [[{"x": -1.0}, {"y": 1.0}], [{"x": -1.5}, {"y": 1.0}]]
    y = [["a", "b"], ["a", "b"]]
    mirrored = [[{k: -v if k == "x" else v for k, v in p.items()} for p in x] for x in X]
    one, other = (
        ms.SequenceModel(weights="all", alpha=0.1, tol=1e-8).fit(x, y) for x in (X, mirrored)
    )
    assert one.attributes_.names == ["x", "y"]
    assert abs(one.coef_[:2]).min() > 0.1
    np.testing.assert_allclose(one.coef_[:2], -other.coef_[:2], atol=1e-4)


def test_unconverged_inference_proves_nothing(rng):
    X = [np.ones((3, 3, 1)) * k for k in (1.0, 2.0)]
    y = [np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]]), np.ones((3, 3), dtype=int)]
    learner = partial(LEARNERS["procedural"], begin=None)
    with pytest.warns(ms.ConvergenceWarning, match="its rounds ran out"):
        model = ms.GridModel(learner=learner, max_rounds=3).fit(X, y)
    assert model.certificate_.gap == np.inf
    assert "not convex" in str(model.certificate_)

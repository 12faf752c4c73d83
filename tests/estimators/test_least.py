"""The least that an example may be: one label, one node, one arc, one outcome, columns of zeros."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.learners import LEARNERS
from tests.estimators.test_scale_everywhere import NO_SUCH

NOT_ITS = re.compile("no reweighted Bethe entropy|clusters are tables of labelled graphs")
RNG = np.random.default_rng(0)


def structured(structure):
    return ms.StructuredModel, {"structure": structure}


LEAST = {
    "one label": (ms.SequenceModel, {}, [(3, 2), (1, 2)], [list("aaa"), ["a"]]),
    "one label, pixels": (ms.GridModel, {}, [(2, 2, 1)], [np.zeros((2, 2), int)]),
    "single tokens": (ms.SequenceModel, {}, [(1, 2)] * 2, [["b"], ["a"]]),
    "single pixels": (ms.GridModel, {}, [(1, 1, 1)] * 2, [[[1]], [[0]]]),
    "one pair": (ms.MatchingModel, {}, [(1, 1, 2)], [[0]]),
    "one of each kind": (
        ms.MatchingModel,
        {"kind": "partial"},
        [(1, 1, 2), (1, 3, 2), (2, 1, 2)],
        [[-1], [2], [0, -1]],
    ),
    "two people": (*structured(ms.Matching(2)), [(1, 2)], [[(0, 1)]]),
    "one arc": (*structured(ms.Paths([(0, 1)], 0, 1)), [(1, 2)], [[0]]),
    "no capacity": (*structured(ms.BMatching(3, capacity=0)), [(3, 2)], [[]]),
    "all edges": (
        *structured(ms.BMatching(3, capacity=2, exact=True)),
        [(3, 2)],
        [[(0, 1), (1, 2), (0, 2)]],
    ),
    "one tie": (*structured(ms.Ising(2, np.array([[0, 1]]))), [(1, 2)] * 2, [[0, 1], [0, 0]]),
    "one label that applies": (ms.MultiLabelModel, {}, [(2,)] * 3, [[1], [0], [1]]),
}


def zeros(shape):
    return np.zeros(shape)


def normal(shape):
    return RNG.normal(size=shape)


@pytest.mark.parametrize("filled", [normal, pytest.param(zeros, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("case", LEAST)
def test_it_is_learned_from_and_answered(case, learner, filled):
    make, own, shapes, y = LEAST[case]
    X = [filled(shape) for shape in shapes]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ms.ConvergenceWarning)
        try:
            model = make(**own, learner=learner, max_rounds=20).fit(X, y)
        except ValueError as error:
            if NO_SUCH.search(str(error)) or NOT_ITS.search(str(error)):
                return
            raise
        tau, answers = model.predict_marginals(X), model.decode(X)
    assert np.isfinite(model.coef_).all()
    assert all(((part >= -1e-9) & (part <= 1 + 1e-9)).all() for part in map(np.asarray, tau))
    assert answers.proven.all()
    if filled is zeros and not hasattr(model, "classes_"):  # of labels constants are learned
        assert not model.coef_.any()

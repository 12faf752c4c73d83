"""A loss without a table to learn from is refused, not minimised at 0."""

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.learners import implicit, procedural


@pytest.mark.parametrize("learner", [implicit, procedural])
@pytest.mark.parametrize("loss", ["ccl", "cquad"])
def test_a_clique_loss_of_no_whole_table_is_refused(learner, loss, rng):
    X = [rng.standard_normal((5, 2)) for _ in range(4)]
    y = [[0, None, 1, None, int(k % 2)] for k in range(4)]
    settings = {"loss": loss, "begin": None}
    model = ms.SequenceModel(learner=lambda **given: learner(**settings, **given))
    with pytest.raises(ValueError, match="no factor was seen whole"):
        model.fit(X, y)


def test_what_was_seen_is_learned_from(rng):
    X = [rng.standard_normal((5, 2)) for _ in range(4)]
    y = [[0, 1, 1, None, int(k % 2)] for k in range(4)]
    model = ms.SequenceModel(learner=lambda **given: implicit(loss="ccl", **given)).fit(X, y)
    assert np.abs(model.coef_).max() > 0

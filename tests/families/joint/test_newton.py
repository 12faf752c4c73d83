"""How marginals answer to scores, by dense algebra, is their derivative."""

import numpy as np
import pytest

from mlestruct.batch import Batch
from mlestruct.dual import Dual
from mlestruct.entropy import Entropy
from mlestruct.families.joint.newton import response
from mlestruct.families.joint.prediction import beliefs
from mlestruct.features import NoFeatures
from mlestruct.regulariser import Regulariser
from mlestruct.structures import grid


def test_response_is_the_derivative_of_the_marginals(rng):
    structure = grid(2, 2)
    score, direction = rng.normal(size=(2, structure.size))
    h = 1e-5
    tau, high, low = (beliefs(structure, score + s * direction, 0.5) for s in (0.0, h, -h))
    batch = Batch.of(structure, bias=score)
    entropy = Entropy.of(batch, 0.5)
    dual = Dual(batch, NoFeatures(batch.size, 1), entropy, Regulariser.of(0))
    other = rng.normal(size=structure.size)
    found = response(dual, tau, np.stack([other, direction]))
    assert found[0, 1] == pytest.approx(other @ (high - low) / (2 * h), abs=1e-6)

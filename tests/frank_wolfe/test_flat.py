"""Max-margin rounds: settled blocks, sparse moments, and the best weights so far."""

from functools import partial

import numpy as np
import pytest

from mlestruct.batch import Batch
from mlestruct.features import Tied
from mlestruct.frank_wolfe import FrankWolfe
from mlestruct.learners import ssvm
from mlestruct.structures import chain

TIGHT = FrankWolfe(tol=1e-7, rounds=400)


@pytest.fixture
def words(rng):
    """Chains of one-hot inputs: each touches few of the weights."""
    lengths = rng.integers(3, 7, 8)
    seen = [np.eye(12)[rng.integers(0, 12, n)] for n in lengths]
    labels = [(x.argmax(axis=1) + rng.integers(0, 2, len(x))) % 5 for x in seen]
    batch = Batch.of([chain(int(n), 5) for n in lengths], labels, weight=0.5 + rng.random(8))
    return batch, Tied.of(batch, seen)


def test_pairwise_steps_and_settled_ones_agree(words, monkeypatch):
    """A bound that never binds takes the general steps: the same optimum."""
    bounded = partial(ssvm, solver=TIGHT)
    from mlestruct.regulariser import Regulariser

    d = words[1].d
    one = bounded(regulariser=0.5).fit(*words)
    two = bounded(regulariser=Regulariser.of(d, 0.5, upper=1e6)).fit(*words)
    assert one.certificate.relative <= 1e-7
    gaps = one.certificate.gap + two.certificate.gap
    assert abs(one.certificate.objective - two.certificate.objective) <= gaps
    np.testing.assert_allclose(one.theta, two.theta, atol=np.sqrt(2 * gaps / 0.5) + 1e-6)

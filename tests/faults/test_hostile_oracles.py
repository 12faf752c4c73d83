"""Oracles that do wrong end a fit with an error that names the example, or change no claim."""

import numpy as np
import pytest

import mlestruct as ms
from benchmarks._faults.hostile import DEADLY, HOSTILE, fault


@pytest.mark.parametrize("case", HOSTILE, ids=lambda case: case.name)
def test_a_hostile_oracle_does_no_harm(case):
    assert fault(case) is None


@pytest.mark.nightly
@pytest.mark.parametrize("case", DEADLY, ids=lambda case: case.name)
def test_a_deadly_oracle_costs_a_worker(case):
    assert fault(case) is None


def crooked(size):
    """A solver that answers ones for structures of this size."""
    return lambda score: np.ones(len(score)) if len(score) == size else np.eye(len(score))[0]


@pytest.mark.parametrize(
    "learn",
    [
        lambda oracle: ms.mle_struct(oracle=oracle).fit,
        lambda oracle: ms.learners.perceptron(oracle=oracle).fit,
    ],
    ids=["asked for the interior", "one example after the other"],
)
def test_whoever_asks_the_example_is_counted_in_the_whole_batch(learn):
    structures = [ms.Custom(n, exactly_one=[range(n)]) for n in (3, 4, 5, 6)]
    batch = ms.Batch.of(structures, [np.eye(s.size)[1] for s in structures])
    features = ms.Dense.of(batch, np.eye(batch.size))
    with pytest.raises(ValueError, match="example 2: "):
        learn(crooked(5))(batch, features)


def test_what_the_oracle_calls_impossible_was_observed():
    """Its bound says that no answer uses a part; an observed outcome does."""
    batch = ms.Batch.of(ms.Custom(3), [[1, 0, 0], [0, 0, 1]])
    with pytest.raises(ValueError, match=r"example 0: .* no answer uses coordinate 0, but"):
        ms.mle_struct(oracle=lambda score: [0, float(score[1] > 0), float(score[2] > 0)]).fit(
            batch, ms.Dense.of(batch, np.eye(6))
        )

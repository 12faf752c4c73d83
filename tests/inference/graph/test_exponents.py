"""Logarithms and exponentials of rows are NumPy's to the last digit, whatever is beside them."""

from __future__ import annotations

import numpy as np
import pytest

from mlestruct.inference.graph.exponents import LEAST, exponentiate, take_logs


@pytest.mark.parametrize("count", [1, 3, 8, 1000])
def test_logarithms_are_right_to_the_last_digit(count, rng):
    for spread in (1e-8, 0.7, 700.0):
        numbers = np.exp(rng.uniform(-spread, spread, count))
        ours = numbers.copy()
        take_logs(ours, 0, count)
        truth = np.log(numbers)
        assert np.all(np.abs(ours - truth) <= np.spacing(np.abs(truth)))


@pytest.mark.parametrize("count", [1, 3, 8, 1000])
def test_exponentials_are_right_to_the_last_digit(count, rng):
    for spread in (1e-8, 0.7, 700.0):
        exponents = rng.uniform(-spread, spread, count)
        ours = exponents.copy()
        exponentiate(ours, 0, count)
        truth = np.exp(exponents)
        assert np.all(np.abs(ours - truth) <= np.spacing(truth))


def test_what_is_too_small_is_nothing():
    row = np.array([-np.inf, 2 * LEAST, LEAST, 0.0])
    exponentiate(row, 0, 4)
    np.testing.assert_array_equal(row, [0.0, 0.0, 0.0, 1.0])


def test_a_number_does_not_feel_its_neighbours(rng):
    """Bits are the same in rows of every length: processors take several numbers together."""
    whole = rng.uniform(1e-3, 1e3, 67)
    alone, together = whole.copy(), whole.copy()
    take_logs(together, 0, len(whole))
    for k in range(len(whole)):
        take_logs(alone, k, k + 1)
    np.testing.assert_array_equal(alone, together)

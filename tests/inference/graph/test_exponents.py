"""Logarithms and exponentials of rows are NumPy's to the last digit, whatever is beside them."""

from __future__ import annotations

import numpy as np
import pytest

from mlestruct.inference.graph.exponents import LEAST, exponentiate, logarithm
from mlestruct.kernels import kernel
from mlestruct.lanes import Row, rows

EIGHTS = [1, 3, 125]


@rows
def take_logs(x: Row) -> Row:
    return logarithm(x)


@kernel
def logs(row):
    take_logs(len(row) >> 3, row, 0, row, 0)


@kernel
def exponentials(row):
    exponentiate(len(row) >> 3, row, 0, row, 0)


@pytest.mark.parametrize("eights", EIGHTS)
def test_logarithms_are_right_to_the_last_digit(eights, rng):
    for spread in (1e-8, 0.7, 700.0):
        numbers = np.exp(rng.uniform(-spread, spread, 8 * eights))
        ours = numbers.copy()
        logs(ours)
        truth = np.log(numbers.astype(np.longdouble)).astype(float)  # NumPy's own may be off by one
        assert np.all(np.abs(ours - truth) <= np.spacing(np.abs(truth)))


@pytest.mark.parametrize("eights", EIGHTS)
def test_exponentials_are_right_to_the_last_digit(eights, rng):
    for spread in (1e-8, 0.7, 700.0):
        exponents = rng.uniform(-spread, spread, 8 * eights)
        ours = exponents.copy()
        exponentials(ours)
        truth = np.exp(exponents.astype(np.longdouble)).astype(float)
        assert np.all(np.abs(ours - truth) <= np.spacing(truth))


def test_what_is_too_small_is_nothing():
    row = np.array([-np.inf, -1e300, 2 * LEAST, LEAST, 0.0, 1.0, -1.0, -700.0])
    truth = np.exp(row)
    exponentials(row)
    np.testing.assert_array_equal(row[:5], [0.0, 0.0, 0.0, 0.0, 1.0])
    np.testing.assert_allclose(row[4:], truth[4:], rtol=1e-15)


def test_a_number_does_not_feel_its_neighbours(rng):
    """Bits are the same beside whatever else."""
    numbers = rng.uniform(1e-3, 1e3, 64)
    together = numbers.copy()
    logs(together)
    turned = np.roll(numbers, 5)
    logs(turned)
    np.testing.assert_array_equal(np.roll(together, 5), turned)

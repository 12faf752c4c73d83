"""Logarithms and exponentials of kernels are right to the last digit, alone and eight together."""

from __future__ import annotations

import numpy as np
import pytest

from mlestruct.native._door import exponentials, logarithms

SIZES = [0, 1, 7, 8, 9, 17, 1000]


def taken(function, numbers):
    out = np.empty_like(numbers)
    function(len(numbers), numbers, out)
    return out


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("spread", [1e-8, 0.7, 700.0])
def test_logarithms_are_right_to_the_last_digit(size, spread, rng):
    numbers = np.exp(rng.uniform(-spread, spread, size))
    truth = np.log(numbers.astype(np.longdouble)).astype(float)  # NumPy's own may be off by one
    assert np.all(np.abs(taken(logarithms, numbers) - truth) <= np.spacing(np.abs(truth)))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("spread", [1e-8, 0.7, 700.0])
def test_exponentials_are_right_to_the_last_digit(size, spread, rng):
    exponents = rng.uniform(-spread, spread, size)
    truth = np.exp(exponents.astype(np.longdouble)).astype(float)
    assert np.all(np.abs(taken(exponentials, exponents) - truth) <= np.spacing(truth))


def test_exponentials_of_small_exponents_are_zero():
    exponents = np.array([-np.inf, -1e300, -1416.0, -708.0, 0.0, 1.0, -1.0, -700.0])
    truth = np.exp(exponents)
    found = taken(exponentials, exponents)
    np.testing.assert_array_equal(found[:5], [0.0, 0.0, 0.0, 0.0, 1.0])
    np.testing.assert_allclose(found[4:], truth[4:], rtol=1e-15)


@pytest.mark.parametrize("function", [exponentials, logarithms])
def test_numbers_alone_have_the_bits_of_numbers_side_by_side(function, rng):
    numbers = rng.uniform(1e-3, 300.0, 64)
    alone = np.concatenate([taken(function, numbers[k : k + 1].copy()) for k in range(64)])
    np.testing.assert_array_equal(taken(function, numbers), alone)

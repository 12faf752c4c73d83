"""Loops over rows of eight give what NumPy gives; their formulas are part of kernels' sources."""

from __future__ import annotations

import numpy as np
import pytest

from mlestruct.kernels import kernel
from mlestruct.lanes import across, add, alone, down, most, rows


@rows
def mixed(x, y, k):
    return (x - k * y) / 2.0, 1.0 - x.most(y).least(0.5)


@rows(join=add)
def inner(x, y):
    return x * y


@rows(join=most)
def largest(x):
    return x


@alone
def positive(x):
    return x.where_above(0.0, 3.0 / x, x.bits().floats() * 0.0)


@kernel
def loops(x, y, positions, one, other, k):
    eights = len(one) // 8
    mixed(eights, one, 0, other, 0, x, positions, 0, y, 0, k)
    return inner(eights, x, 0, y, 0), largest(eights, x, 0)


@kernel
def numbers(x):
    return positive(x)


@kernel
def sums(out, scale, table, step, count, values, flat):
    if flat:
        down(out, 1, scale, table, 2, step, count, values, 3)
    else:
        across(out, 1, scale, table, 2, step, count, step >> 3, values, 3)


@pytest.mark.parametrize("eights", [0, 1, 5])
def test_formulas_are_numpys(eights, rng):
    x, y = rng.standard_normal((2, 8 * eights))
    positions = rng.permutation(8 * eights)
    one, other = np.empty((2, 8 * eights))
    product, top = loops(x, y, positions, one, other, 0.7)
    np.testing.assert_allclose(one, (x[positions] - 0.7 * y) / 2.0, rtol=1e-14, atol=1e-15)
    np.testing.assert_array_equal(other, 1.0 - np.minimum(np.maximum(x[positions], y), 0.5))
    assert product == pytest.approx(x @ y, abs=1e-12)
    assert top == max(x, default=-np.inf)


def test_formulas_of_single_numbers():
    assert numbers(4.0) == 0.75
    assert numbers(-4.0) == 0.0


@pytest.mark.parametrize("count", [1, 7, 8, 13])
@pytest.mark.parametrize("width", [8, 24, 32, 56])  # eights beside four, and alone
def test_both_ways_through_a_table(count, width, rng):
    table, values = (
        rng.standard_normal(2 + count * width),
        rng.standard_normal(3 + max(count, width)),
    )
    rowwise, out = table[2:].reshape(count, width), np.full(2 + width, 9.0)
    sums(out, 0.5, table, width, count, values, True)
    np.testing.assert_allclose(out[1:-1], 0.5 * values[3 : 3 + count] @ rowwise, atol=1e-13)
    assert out[0] == out[-1] == 9.0
    out = np.full(10, 9.0)
    sums(out, 0.5, table, width, count, values, False)
    truth = 0.5 * rowwise @ values[3 : 3 + width]
    np.testing.assert_allclose(out[1:9], truth[np.minimum(np.arange(8), count - 1)], atol=1e-13)
    assert out[0] == out[9] == 9.0

"""Odd inputs that are right are read right; wrong ones are refused in words: 300 of them."""

from __future__ import annotations

import pytest

from benchmarks._faults.odd_doors import misread, odd, wrong
from benchmarks._faults.refusal import fault

ODD, WRONG = list(odd()), wrong()


@pytest.mark.parametrize("case", ODD, ids=str)
def test_odd_inputs_that_are_right_are_read_right(case):
    assert misread(case) is None


@pytest.mark.parametrize("case", WRONG, ids=[f"{k} {case}" for k, case in enumerate(WRONG)])
def test_wrong_inputs_are_refused(case):
    assert fault(case) is None

"""Every bad input is a ValueError with its place, in under a second, and changes nothing."""

import pytest

from benchmarks._faults.bad_input import cases
from benchmarks._faults.refusal import fault

CASES = cases()


@pytest.mark.parametrize("case", CASES, ids=[f"{k} {case}" for k, case in enumerate(CASES)])
def test_bad_input_is_refused(case):
    assert fault(case) is None

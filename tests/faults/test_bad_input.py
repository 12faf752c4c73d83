"""Every bad input is a ValueError with its place, in under a second, and changes nothing."""

import pytest

from benchmarks._faults.bad_input import cases
from benchmarks._faults.refusal import bad, fault

CASES = cases()


@pytest.mark.parametrize("case", CASES, ids=[f"{k} {case}" for k, case in enumerate(CASES)])
def test_bad_input_is_refused(case):
    assert fault(case) is None


def test_a_refusal_that_is_none_is_noticed():
    """The judge itself: acceptance, other errors, other words, and changed arguments."""

    def late(given):
        given.append(1)
        raise ValueError("no")

    assert fault(bad("x", "no", lambda: None)) == "it was accepted"
    assert fault(bad("x", "no", lambda: 1 / 0)) == "it raised ZeroDivisionError: division by zero"
    assert fault(bad("x", "yes", late, [])) == "it said 'no'"
    assert fault(bad("x", "no", late, [])) == "it changed what it was given"
    assert fault(bad("x", "no", exit)).startswith("it raised SystemExit")

"""Oracles that do wrong end a fit with an error that names the example, or change no claim."""

import pytest

from benchmarks._faults.hostile import DEADLY, HOSTILE, fault


@pytest.mark.parametrize("case", HOSTILE, ids=lambda case: case.name)
def test_a_hostile_oracle_does_no_harm(case):
    """Named, or within the certificate; and a healthy one goes on from the checkpoint."""
    assert fault(case) is None


@pytest.mark.nightly
@pytest.mark.parametrize("case", DEADLY, ids=lambda case: case.name)
def test_a_deadly_oracle_costs_a_worker(case):
    """The same where it takes its process with it; a few seconds each, to find the example."""
    assert fault(case) is None

"""Damaged and forged files are ValueErrors, soon and in little memory; nothing in them runs."""

import pickle
from pathlib import Path

import pytest

from benchmarks._faults.damage import Damage, Kind, Trap, damaged, fault, kinds


def wrong(count, seed):
    return [f"{damage}: {why}" for damage in damaged(count, seed) if (why := fault(damage))]


def test_whole_files_load():
    """What is damaged below is no wreck from the start."""
    for kind in kinds():
        assert fault(Damage(kind, "whole", kind.whole, True)) is None
        assert fault(Damage(kind, "whole", kind.whole, False)) == "it was accepted"


def test_a_pickle_that_runs_is_noticed():
    careless = Kind("pickle", ".pkl", b"", lambda path: pickle.loads(Path(path).read_bytes()), True)
    trap = Damage(careless, "a trap", pickle.dumps(Trap()), True)
    assert fault(trap) == "it was executed"


@pytest.mark.parametrize("seed", range(2))
def test_damaged_files_are_refused(seed):
    """Cut, flipped, noisy, doubled, oversized, pickled; with the right checksum, too."""
    assert wrong(150, seed) == []


@pytest.mark.nightly
def test_five_thousand_damaged_files_are_refused():
    assert wrong(5000, 2) == []

"""Damaged and forged files are ValueErrors, soon and in little memory; nothing in them runs."""

import pytest

from benchmarks._faults.damage import Damage, damaged, fault, kinds


def wrong(count, seed):
    return [f"{damage}: {why}" for damage in damaged(count, seed) if (why := fault(damage))]


def test_whole_files_load():
    for kind in kinds():
        assert fault(Damage(kind, "whole", kind.whole, True)) is None
        assert fault(Damage(kind, "whole", kind.whole, False)) == "it was accepted"


@pytest.mark.parametrize("seed", range(2))
def test_damaged_files_are_refused(seed):
    assert wrong(150, seed) == []


@pytest.mark.nightly
def test_five_thousand_damaged_files_are_refused():
    assert wrong(5000, 2) == []

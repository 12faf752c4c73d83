"""What is worked out of a structure is kept on it, and on it alone."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.structures import chain, grid
from mlestruct.structures.base import KEPT, SHORT, kept, lasting
from tests.test_laws import STRUCTURES

CALLS = []


@kept
def worked_out(structure, times=1):
    CALLS.append((id(structure), times))
    return structure.fixed.tobytes() * times


@pytest.fixture(autouse=True)
def _none():
    CALLS.clear()


@pytest.mark.parametrize("name", STRUCTURES)
def test_an_answer_is_worked_out_once_and_leaves_no_trace(name):
    """Equality, pickles and copies are as before; a copy with other fixed parts begins anew."""
    structure = copy.deepcopy(STRUCTURES[name])
    bare = pickle.dumps(structure)
    assert worked_out(structure) is worked_out(structure)
    assert worked_out(structure, 2) == 2 * worked_out(structure)
    assert len(CALLS) == 2
    hash(structure)
    assert len(pickle.dumps(structure)) == len(bare)
    for twin in (copy.copy(structure), pickle.loads(bare), structure.refix(structure.fixed.copy())):
        assert twin == structure
        worked_out(twin)
    assert len(CALLS) == 5
    free = np.flatnonzero(structure.fixed < 0)
    if len(free):
        fixed = structure.fixed.copy()
        fixed[free[0]] = 0
        other = structure.refix(fixed)
        assert other != structure
        assert worked_out(other) == fixed.tobytes()


def test_of_many_answers_the_last_are_kept():
    structure = chain(3, 2)
    for times in range(1, 3 * KEPT + 1):
        worked_out(structure, times)
    before = len(CALLS)
    for times in range(2 * KEPT + 1, 3 * KEPT + 1):
        worked_out(structure, times)
    assert len(CALLS) == before
    worked_out(structure, 1)
    assert len(CALLS) == before + 1


def test_settings_by_name_are_settings():
    structure = chain(3, 2)
    assert worked_out(structure, times=3) == 3 * worked_out(structure)


def test_small_structures_of_ours_outlast_their_batch():
    """The first of equal ones; never one that holds a user's data, or of a user's class."""

    class Own(ms.Custom):
        pass

    one, other = grid(3, 4), grid(3, 4)
    assert lasting(one) is lasting(other)
    assert lasting(one).refix(one.fixed) == one
    for make in (
        lambda: Own(3),
        lambda: ms.Custom(3).carrying({"capacity": 1}, 1),
        lambda: chain(SHORT, 2),
    ):
        first, second = make(), make()
        assert lasting(first) is first
        assert lasting(second) is second

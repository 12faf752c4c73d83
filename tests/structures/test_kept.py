"""What is worked out of a structure is kept on it, and on it alone."""

import copy
import pickle

import numpy as np
import pytest

from mlestruct.structures.base import kept
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

"""Equal values have equal digests, others have others."""

import subprocess
import sys
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp

from mlestruct.storage.digest import digest
from mlestruct.structures import BipartiteMatching, chain


@dataclass
class Data:
    values: object
    _cache: dict = field(default_factory=dict)


class Table:
    """Somebody's container."""

    def __init__(self, rows):
        self.rows = np.array(rows)

    def __array__(self, dtype=None, copy=None):
        return self.rows


class Features:
    """A user's own: all that is known of them is what they answer."""

    d = 2

    def __init__(self, matrix):
        self.matrix = matrix

    def potentials(self, theta):
        return self.matrix @ theta


def best(score):
    return score


DIFFERENT = [
    None, 0, False, 0.0, -0.0, 1, 1.0, "1", b"1", (), [1], ["1"], [[1]], [1, [2]], [1, 2], {1: 2},
    {2: 1}, {1, 2}, np.zeros(2), np.zeros(2, np.float32), np.zeros((2, 1)), np.zeros((1, 2)),
    np.array(["a"]), np.array([None]), np.array([[1, 2], [3, 4]]), np.array([[1, 3], [2, 4]]),
    sp.csr_array(np.eye(2)), sp.csr_array(2 * np.eye(2)), sp.coo_array(np.eye(2)), Data(1), Data(2),
    Data(np.zeros(1)), Table([1]), Table([2]), best, partial(best, 1), partial(best, 2),
    BipartiteMatching(2), BipartiteMatching(3), BipartiteMatching(2, forbidden=[(0, 0)]),
    chain(3, 2), Features(np.eye(2)), Features(-np.eye(2)),
]  # fmt: skip


def test_different_values_have_different_digests():
    assert len({digest(value) for value in DIFFERENT}) == len(DIFFERENT)


@pytest.mark.parametrize(
    ("one", "same"),
    [
        (np.array([[1, 2], [3, 4]]), np.array([[1, 3], [2, 4]]).T),
        (np.arange(6)[::2], np.array([0, 2, 4])),
        (Data(1), Data(1, {"known": 3})),
        (BipartiteMatching(2), BipartiteMatching(2)),
        ({3, 1, 2}, {1, 2, 3}),
    ],
)
def test_equal_values_have_equal_ones(one, same):
    assert digest(one) == digest(same)


def test_another_process_agrees():
    code = (
        "from mlestruct.storage.digest import digest; from mlestruct.structures import chain;"
        "print(digest({'b', 'a', 'c'}, chain(4, 3), [1.5, 'x']))"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.strip()
        for _ in range(2)
    }
    assert found == {digest({"a", "b", "c"}, chain(4, 3), [1.5, "x"])}

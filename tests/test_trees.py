"""Trees of arrays go through JSON and back, bit for bit, and nothing else does."""

import json

import numpy as np
import pytest

from mlestruct.storage.trees import pack, unpack

TREE = {
    "none": None,
    "numbers": [True, 2**130, 5e-324, float("-inf"), "…"],
    ("a", 1): (np.arange(6).reshape(2, 3).T, [np.zeros(0, np.int8)], {}),
    "text": np.array(["ć"]),
}


def same(a, b):
    if isinstance(a, np.ndarray):
        alike = (a.dtype, a.shape, a.flags.c_contiguous) == (b.dtype, b.shape, b.flags.c_contiguous)
        return alike and a.tobytes() == b.tobytes()
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (tuple, list)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


def test_a_tree_goes_through_json_and_back():
    packed, arrays = pack(TREE)
    assert same(TREE, unpack(json.loads(json.dumps(packed)), arrays))


def test_numpy_numbers_become_plain_ones():
    packed, _ = pack([np.float64(0.1), np.int64(3), np.bool_(True)])
    assert json.dumps(packed) == "[0.1, 3, true]"


@pytest.mark.parametrize("what", [{1, 2}, object(), lambda: 0, 1j, b"bytes"])
def test_what_is_no_tree_is_refused(what):
    with pytest.raises(TypeError, match="is no value"):
        pack({"deep": [what]})

"""The door to the kernels: what it writes from a header, and which arrays it refuses."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from mlestruct.native import arrays

FOLDER = Path(arrays.__file__).parent
HEADER = """
extern "C" {
/** A graph. */
struct graph {
    int64_t nodes;
    const int64_t *start N(nodes + 1);
    const int64_t *head N(start[-1]) BELOW(nodes);
};
struct walk;
/** Sum what lies there. */
EXPORT double graph_sum(const struct graph *g, const double *score N(max(g.nodes, 1) * 2),
                        double *out N(g.nodes) MAYBE);
EXPORT struct walk *walk_new(int64_t size);
EXPORT void walk_free(struct walk *self);
EXPORT status walk_on(struct walk *self, bool far);
}
"""


@pytest.fixture
def written(tmp_path, monkeypatch):
    """What the door writes from the header, as text."""
    spec = importlib.util.spec_from_file_location("door", FOLDER / "door.py")
    door = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "door", door)
    spec.loader.exec_module(door)
    folder = tmp_path / "mlestruct" / "native"
    folder.mkdir(parents=True)
    (folder / "some.h").write_text(HEADER)
    door.write_door(folder, "0123")
    return (folder / "_door.py").read_text()


def test_every_declaration_becomes_a_checked_function(written):
    compile(written, "_door.py", "exec")
    assert "class Graph:" in written
    assert 'integers(head, start[-1], "Graph.head")' in written
    assert 'below(head, nodes, "Graph.head")' in written
    assert "def graph_sum(g: Graph, score: Array, out: Array | None) -> float:" in written
    assert 'doubles(score, max(g.nodes, 1) * 2, "score")' in written
    assert 'NULL if out is None else doubles(out, g.nodes, "out", True)' in written
    assert "FFI.gc(made, LIB.walk_free)" in written
    assert "def walk_free" not in written
    assert "def walk_on(self: Walk, far: bool) -> None:" in written


RIGHT = np.arange(12.0)


@pytest.mark.parametrize(
    ("array", "said"),
    [
        (RIGHT.astype(np.float32), "12 numbers <f4, in order.* takes a plain array of 12 .* <f8"),
        (RIGHT.astype(">f8"), ">f8, in order"),
        (RIGHT.astype(int), "<i8, in order"),
        (RIGHT.tolist(), "score is list; a kernel takes"),
        (RIGHT[:-1], "11 numbers <f8"),
        (np.arange(24.0)[::2], "not contiguous"),
        (RIGHT[::-1], "not contiguous"),
        (np.asfortranarray(RIGHT.reshape(3, 4)), "not contiguous"),
        (np.ma.array(RIGHT), "score is MaskedArray"),
    ],
)
def test_an_array_that_would_be_misread_is_refused_by_name(array, said):
    with pytest.raises(TypeError, match=said):
        arrays.doubles(array, 12, "score")


def test_an_array_that_is_written_to_must_be_writable():
    frozen = RIGHT.copy()
    frozen.flags.writeable = False
    arrays.doubles(frozen, 12, "score")
    with pytest.raises(TypeError, match=r"read-only; .* writable"):
        arrays.doubles(frozen, 12, "score", True)


def test_indices_beyond_the_end_are_refused():
    arrays.below(np.array([0, 2]), 3, "head")
    for wrong in (-1, 3):
        with pytest.raises(IndexError, match=f"head holds {wrong}; indices there are 0 to 2"):
            arrays.below(np.array([0, wrong]), 3, "head")

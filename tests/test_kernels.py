"""Compiled code is cached on disk and releases the GIL, all of it."""

from __future__ import annotations

import ast
from pathlib import Path

import mlestruct_oracles
import pytest

import mlestruct

MODULES = sorted(
    path
    for package in (mlestruct, mlestruct_oracles)
    for path in Path(package.__file__).parent.rglob("*.py")
)
NAMES = {"njit", "jit", "vectorize", "guvectorize"}


def compiling(tree):
    """Every call of a Numba compiler, and every decorator that is one without a call."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and named(node.func):
            yield node, {word.arg: getattr(word.value, "value", None) for word in node.keywords}
        for decorator in getattr(node, "decorator_list", ()):
            if named(decorator):
                yield decorator, {}


def named(node):
    """``numba.njit`` by any way of importing it; an alias made by a call is held where it is."""
    if isinstance(node, ast.Attribute):
        return node.attr in NAMES and getattr(node.value, "id", "") in ("nb", "numba")
    return isinstance(node, ast.Name) and node.id in NAMES - {"jit"}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_kernels_are_cached_and_release_the_gil(path):
    for node, words in compiling(ast.parse(path.read_text())):
        place = f"{path}:{node.lineno}"
        assert words.get("cache") is True, f"{place}: compiled anew by every process"
        assert words.get("nogil") is True, f"{place}: holds the GIL"


def test_the_scan_sees_what_it_is_for():
    found = "import numba as nb\n@nb.njit\ndef f(): ...\n@nb.njit(cache=True)\ndef g(): ...\n"
    assert [words for _, words in compiling(ast.parse(found))] == [{}, {"cache": True}]

"""`import mlestruct` costs next to nothing, and every name it offers is there when asked for."""

import ast
import resource
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import mlestruct as ms
from mlestruct.lazy import homes

ROOT = Path(ms.__file__).parents[1]
PACKAGES = sorted(
    ".".join(file.parent.relative_to(ROOT).parts)
    for file in (ROOT / "mlestruct").rglob("__init__.py")
)
MODULES = [name for name, home in homes("mlestruct").items() if home == "mlestruct"]
ALLOWED = 0.15  # seconds over bare Python and NumPy


def cost(code):
    """CPU seconds of a fresh interpreter, the least of five."""
    spent = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(spent)


def test_import_costs_at_most_a_blink_over_numpy():
    """CPU time, so that a busy machine does not matter."""
    assert cost("import numpy, mlestruct") - cost("import numpy") <= ALLOWED


@pytest.mark.parametrize("name", ms.__all__)
def test_every_exported_name_is_there(name):
    assert getattr(ms, name) is not None
    assert name in dir(ms)


@pytest.mark.parametrize("name", MODULES)
def test_modules_come_with_the_first_use(name):
    assert getattr(ms, name).__name__ == f"mlestruct.{name}"


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="module 'mlestruct' has no attribute 'magic'"):
        _ = ms.magic


@pytest.mark.parametrize("package", PACKAGES)
def test_what_type_checkers_see_is_there_and_nothing_else(package) -> None:
    module = import_module(package)
    shown = {
        alias.asname: node.module
        for block in ast.parse(Path(module.__file__).read_text(encoding="utf-8")).body
        if isinstance(block, ast.If)
        for node in block.body
        for alias in node.names
    }
    assert homes(package) == shown
    for name, home in shown.items():
        if home != package:
            assert getattr(module, name) is getattr(import_module(home), name)

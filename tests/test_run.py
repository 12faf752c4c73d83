"""run.py needs nothing installed, and its `demo` is the room-mates example."""

import ast
import importlib.util
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).resolve().parents[1] / "run.py"


@pytest.fixture
def run(monkeypatch):
    """The script as a module; what it would start is kept in ``started``."""
    spec = importlib.util.spec_from_file_location("run", RUN)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.started = []
    monkeypatch.setattr(module, "set_up", lambda extra: None)
    monkeypatch.setattr(module.subprocess, "call", lambda command: module.started.append(command))
    return module


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        (["demo"], ["roommates"]),
        (["demo", "--out", "here"], ["roommates", "--out", "here"]),
        (["infer", "--map"], ["infer", "--map"]),
    ],
)
def test_commands_are_those_of_mlestruct(run, arguments, command):
    run.main(arguments)
    assert [Path(run.started[0][0]).stem, *run.started[0][1:]] == ["mlestruct", *command]


def test_it_imports_the_standard_library_only():
    tree = ast.parse(RUN.read_text(encoding="utf-8"))
    named = {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    named |= {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in named} <= sys.stdlib_module_names

"""Nothing in papers/ reaches around the public API."""

from __future__ import annotations

import ast
import importlib
import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NAMED_TUPLES = {"_replace", "_asdict", "_fields"}  # public in spite of their underscore


def is_module(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def defined(module: str) -> set[str]:
    """What the API pages list of a module: ``__all__``, else what it defines itself."""
    found = importlib.import_module(module)
    if hasattr(found, "__all__"):
        return set(found.__all__)
    assert found.__file__ is not None
    body = ast.parse(Path(found.__file__).read_text(encoding="utf-8")).body
    names = {node.name for node in body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    targets = [t for node in body if isinstance(node, ast.Assign) for t in node.targets]
    targets += [node.target for node in body if isinstance(node, ast.AnnAssign)]
    names |= {n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)}
    return {name for name in names if not name.startswith("_")}


def public(module: str, name: str) -> bool:
    """Whether ``from module import name`` is within the documented API."""
    if any(part.startswith("_") for part in f"{module}.{name}".split(".")):
        return False
    return name in defined(module) or (
        hasattr(importlib.import_module(module), "__path__") and is_module(f"{module}.{name}")
    )


def objections(source: str) -> Iterator[str]:
    """What a file uses that no page of the API lists."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names if alias.name.startswith("mlestruct")]
            yield from (f"import {name}" for name in names if name != "mlestruct")
        elif isinstance(node, ast.ImportFrom) and node.module:
            module, package = node.module, node.module.split(".")[0]
            if package in ("mlestruct_oracles", "benchmarks", "tests"):
                yield f"from {module} import …"
            elif package == "mlestruct":
                for alias in node.names:
                    if not public(module, alias.name):
                        yield f"from {module} import {alias.name}"
        elif isinstance(node, ast.Attribute):
            of_library = isinstance(node.value, ast.Name) and node.value.id == "ms"
            if of_library and not public("mlestruct", node.attr):
                yield f"ms.{node.attr}"
            elif node.attr.startswith("_") and node.attr not in NAMED_TUPLES:
                yield f"….{node.attr}"


@pytest.mark.parametrize(
    "path", sorted((ROOT / "papers").rglob("*.py")), ids=lambda p: str(p.relative_to(ROOT))
)
def test_papers_use_what_is_documented(path: Path) -> None:
    assert list(objections(path.read_text(encoding="utf-8"))) == []

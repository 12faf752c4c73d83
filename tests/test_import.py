"""`import mlestruct` costs next to nothing, and every name it offers is there when asked for."""

import resource
import subprocess
import sys

import pytest

import mlestruct as ms

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
    """Lazy names resolve, and dir() lists them."""
    assert getattr(ms, name) is not None
    assert name in dir(ms)


@pytest.mark.parametrize("name", ms._MODULES)
def test_modules_come_with_the_first_use(name):
    """ms.plot needs no import of its own."""
    assert getattr(ms, name).__name__ == f"mlestruct.{name}"


def test_unknown_names_are_attribute_errors():
    """As in any module."""
    with pytest.raises(AttributeError, match="module 'mlestruct' has no attribute 'magic'"):
        _ = ms.magic


def test_lazy_names_are_what_they_say_whoever_came_first() -> None:
    """No name of a lazy package is a module of it: importing that would take the name's place."""
    import importlib
    import pkgutil
    from types import ModuleType

    import mlestruct

    for found in pkgutil.walk_packages(mlestruct.__path__, "mlestruct."):
        if found.name.endswith("__main__"):
            continue
        importlib.import_module(found.name)
    for found in pkgutil.walk_packages(mlestruct.__path__, "mlestruct."):
        package = importlib.import_module(found.name)
        if not found.ispkg:
            continue
        for name in getattr(package, "__all__", []):
            assert not isinstance(getattr(package, name), ModuleType), f"{found.name}.{name}"

"""A package's names are imported when they are first asked for."""

from __future__ import annotations

import pkgutil
import re
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from mlestruct.errors import refuse_removed

_SHOWN = re.compile(r"^    from (\S+) import (\w+) as ", re.MULTILINE)


def lazily(package: str) -> tuple[Callable[[str], Any], list[str]]:
    """A package's ``__getattr__`` and ``__all__``, of the names it shows to type checkers."""
    home = homes(package)
    return getter(package, home), sorted(name for name in home if home[name] != package)


def homes(package: str) -> dict[str, str]:
    """The module of every name that a package's own source imports for type checkers only.

    These are its indented lines ``from module import name as name``: no second list says it again.
    """
    source = pkgutil.get_data(package, "__init__.py")
    if source is None:
        raise ImportError(f"{package} finds its names in its source, which this installation lacks")
    return {name: module for module, name in _SHOWN.findall(source.decode())}


def getter(package: str, home: Mapping[str, str]) -> Callable[[str], Any]:
    """A package's ``__getattr__``: ``home`` says which module holds each name, or is it."""

    def get(name: str) -> Any:
        if name not in home:
            refuse_removed(f"{package}.{name}", ImportError)
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if home[name] == package:
            return import_module(f"{package}.{name}")
        value = getattr(import_module(home[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return get

"""A package's names are imported when they are first asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazily(package: str, modules: Mapping[str, str]) -> tuple[Callable[[str], Any], list[str]]:
    """A package's ``__getattr__`` and ``__all__``; ``modules`` of mlestruct and their names."""
    home = {name: module for module, names in modules.items() for name in names.split()}
    return getter(package, home), sorted(home)


def getter(package: str, home: Mapping[str, str]) -> Callable[[str], Any]:
    """A package's ``__getattr__``: ``home`` says which module of mlestruct holds each name."""

    def get(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"mlestruct.{home[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return get

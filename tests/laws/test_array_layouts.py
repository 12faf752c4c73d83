"""Numbers of any type and memory layout give the plain array's answer, or are refused by name.

Every public function and method that takes numbers is found by walking the public names; each is
called by a scenario below, recorded, and called again with its arrays in other types and layouts.
What no scenario calls fails the last test, unless ``EXEMPT`` says why it may.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import inspect
import re
import sys
import types
import warnings
from fnmatch import fnmatch

import numpy as np
import pytest
import scipy.sparse as sp

import mlestruct as ms
from mlestruct.compiler import Kernel
from mlestruct.dual import Dual
from mlestruct.inference.routine import ROUTINES, routine
from mlestruct.lazy import homes
from mlestruct.oracle import Answer, BruteForce, Cached, Counted, Solver, Validated, load, one_by_one
from mlestruct.oracle.registry import CATALOGUE, PerStructure
from mlestruct.structures.base import Structure, one_of
from mlestruct.testing import vertices

TAKES_NUMBERS = re.compile(r"\b(Array|ArrayLike|NDArray\[Any\]|NDArray\[np\.float64\])")
BY_NAME = {"X", "y", "matrix", "nodes", "factors", "outcome", "observed"}
LABELS = {"y", "labels"}  # anything that can be told apart is a label, text too
BASES = "mlestruct", "mlestruct_oracles"

EXEMPT = {
    "*.Batch.__init__": "Batch.of checks; select makes the same from checked parts",
    "*.__init__[bounds]": "a setting, read by Regulariser.of when it is fitted",
}


def _functions():
    """Qualified name, owner, attribute and numeric parameters of every public function."""
    found = {}

    def take(owner, attribute, function, name):
        if isinstance(function, classmethod | staticmethod):
            function = function.__func__
        if not isinstance(function, types.FunctionType) or isinstance(function, Kernel):
            return
        numbers = []
        for one in inspect.signature(function).parameters.values():
            kind = str(one.annotation)
            if "Callable" not in kind and (TAKES_NUMBERS.search(kind) or one.name in BY_NAME):
                numbers.append(one.name)
        if numbers:
            found[name] = owner, attribute, numbers

    def enter(thing):
        if inspect.isclass(thing):
            for base in thing.__mro__:
                if base.__module__.split(".")[0] in BASES and not getattr(base, "_is_protocol", 0):
                    for attribute, value in vars(base).items():
                        if attribute == "__init__" or not attribute.startswith("_"):
                            name = f"{base.__module__}.{base.__qualname__}.{attribute}"
                            take(base, attribute, value, name)
        elif getattr(thing, "__module__", "").startswith("mlestruct"):
            take(None, thing, thing, f"{thing.__module__}.{thing.__name__}")

    modules = [importlib.import_module(f"mlestruct.{name}") for name in _public_modules()]
    for module in [ms, *modules]:
        own = [n for n in vars(module) if not n.startswith("_")]
        for name in getattr(module, "__all__", own):
            thing = getattr(module, name)
            if getattr(thing, "__module__", module.__name__).startswith("mlestruct"):
                enter(thing)
    for place in [entry.place for entry in CATALOGUE.values()] + [place for place, *_ in ROUTINES]:
        module, name = place.split(":")
        enter(getattr(importlib.import_module(module), name))
    return found


def _public_modules():
    return sorted(name for name, home in homes("mlestruct").items() if home == "mlestruct")

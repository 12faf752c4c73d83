"""A digest of all the sources that an entry is made of, in every file that they are in."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
from numba.core.dispatcher import Dispatcher

from mlestruct.kernels import VARIANTS


def digest(kernel: Dispatcher) -> str:
    """A hash over the code and constants of a kernel and of all it calls, and over this folder."""
    seen: dict[int, str] = {}
    return hashlib.sha256("\n".join((_own(), *_sources(kernel, seen))).encode()).hexdigest()


@functools.cache
def _own() -> str:
    """What decides, beside sources, which machine code they become."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def _sources(value: Any, seen: dict[int, str]) -> Iterator[str]:
    if id(value) in seen:
        yield seen[id(value)]
        return
    if isinstance(value, Dispatcher):
        seen[id(value)] = f"kernel {value.py_func.__module__}.{value.py_func.__qualname__}"
        yield seen[id(value)]
        yield f"unrolled {getattr(value, 'unrolled', True)}"
        for name, option in sorted(value.targetoptions.items()):
            yield f"{name} {sorted(option) if isinstance(option, set) else option}"
        yield from _function(value.py_func, seen)
    elif isinstance(value, FunctionType) and (value in VARIANTS or _ours(value.__module__)):
        seen[id(value)] = f"function {value.__module__}.{value.__qualname__}"
        yield seen[id(value)]
        yield from _function(value, seen)
        for choice in VARIANTS.get(value, ()):
            yield from (choice,) if isinstance(choice, str) else _function(choice, seen)
    elif isinstance(value, np.ndarray):
        yield f"{value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
    elif isinstance(value, (set, frozenset)):
        yield repr(sorted(map(repr, value)))
    elif isinstance(value, tuple):
        for one in value:
            yield from _sources(one, seen)
    elif isinstance(value, (int, float, complex, str, bytes, np.dtype, type(None))):
        yield repr(value)
    elif isinstance(value, type):
        yield f"{value.__module__}.{value.__qualname__} {getattr(value, '_fields', '')}"
    elif not isinstance(value, ModuleType):
        yield type(value).__qualname__


def _ours(module: str) -> bool:
    return module.split(".")[0].startswith("mlestruct")  # the solvers are a package of their own


def _function(function: Any, seen: dict[int, str]) -> Iterator[str]:
    names: list[str] = []
    yield from _code(function.__code__, names)
    yield repr(function.__defaults__)
    for cell in function.__closure__ or ():
        yield from _sources(cell.cell_contents, seen)
    for name in names:
        value = function.__globals__.get(name)
        yield name
        yield from _sources(value, seen)
        if isinstance(value, ModuleType) and _ours(value.__name__):
            for one in names:
                yield from _sources(getattr(value, one, None), seen)


def _code(code: CodeType, names: list[str]) -> Iterator[str]:
    yield code.co_code.hex()
    names.extend(code.co_names)
    for constant in code.co_consts[1 if _documented(code) else 0 :]:
        if isinstance(constant, CodeType):
            yield from _code(constant, names)
        else:
            yield repr(sorted(map(repr, constant)) if isinstance(constant, frozenset) else constant)


def _documented(code: CodeType) -> bool:
    """The first constant of a function is its docstring, if it has one: no part of what it does."""
    return bool(code.co_consts) and isinstance(code.co_consts[0], str)

"""Kernels: plain functions over arrays that Numba compiles, once, at their first call.

``@kernel`` is the one place that says how: the GIL is released, machine code is kept on disk, and
Numba is loaded when the first module with kernels is. The folder is Numba's; NUMBA_CACHE_DIR names
another one. :mod:`mlestruct.compiler` says what is compiled when.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, overload

Function = TypeVar("Function", bound=Callable[..., Any])

OPTIONS = {"nopython": True, "nogil": True}
MANY = 2_000_000  # objects of Numba's, some 200 MB
USUAL = "2 to 11 s"  # that a first fit compiles for: `python -m benchmarks first_use`

# What kernels do where they call a stub, by the stub: functions, and texts that say how they are
# compiled. All of it is part of the kernels' source, see compiler.digest.
VARIANTS: dict[Any, list[Callable[..., Any] | str]] = {}


@overload
def kernel(function: Function, /) -> Function: ...
@overload
def kernel(**options: Any) -> Callable[[Function], Function]: ...
def kernel(function: Any = None, /, **options: Any) -> Any:
    """``@kernel`` or ``@kernel(fastmath=…, error_model=…, forceinline=…)``: Numba's own options.

    ``unrolled`` is ours: where loops gain by it, which takes longer to compile. A kernel that
    Python calls is compiled at the first call with arguments of these types; one that kernels call
    becomes part of theirs.
    """
    if function is None:
        return lambda function: _made(function, options)
    return _made(function, options)


def _made(function: Any, options: dict[str, Any]) -> Any:
    import numba

    if numba.config.DISABLE_JIT:
        return function
    from mlestruct.compiler import Kernel

    unrolled = options.pop("unrolled", False)
    return Kernel(function, unrolled=unrolled, targetoptions={**OPTIONS, **options})


def variant(stub: Any, **options: Any) -> Callable[[Function], Function]:
    """Numba's ``overload``: what a kernel does where it calls ``stub``, by the types it has there.

    ``options`` are :func:`kernel`'s.
    """
    from numba.extending import overload as register

    named = {name: sorted(one) if isinstance(one, set) else one for name, one in options.items()}

    def registered(choice: Function) -> Function:
        VARIANTS.setdefault(stub, []).extend([choice, repr(sorted(named.items()))])
        register(stub, jit_options=options)(choice)
        return choice

    return registered


def class_of(kind: Any) -> type | None:
    """Of the Numba type of a named tuple its class: what a variant chooses by."""
    return getattr(kind, "instance_class", None)


class Compiled:
    """What this process compiled, and for how long; Numba compiles in one thread at a time."""

    kernels = 0
    seconds = 0.0
    objects = 0  # made while compiling, since garbage was last looked for
    folder: str | None = None  # where machine code is kept if the usual folders are read-only


def clock() -> float:
    """Seconds on a clock that stands still while kernels compile: for fits and their budgets."""
    return time.perf_counter() - Compiled.seconds


@contextmanager
def compiling() -> Iterator[None]:
    """:func:`clock` stands still; whoever sits at the screen is told once why they wait."""
    if Compiled.kernels == 0 and watched():
        kept = f", kept in {Compiled.folder}" if Compiled.folder else ""
        sys.stderr.write(f"mlestruct: compiling once, {USUAL}{kept}\n")
        sys.stderr.flush()
    Compiled.kernels += 1
    began = time.perf_counter()
    try:
        with uncollected():
            yield
    finally:
        Compiled.seconds += time.perf_counter() - began


@contextmanager
def uncollected() -> Iterator[None]:
    """No garbage is collected, and what is alive at the end counts as old: it is not looked at.

    Numba makes many small objects, most of which stay: looking at them was a tenth of compiling.
    What does not stay waits for the next collection of all, which comes after ``MANY`` objects.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()
            Compiled.objects += gc.get_count()[0]
            if Compiled.objects > MANY:
                Compiled.objects = 0
                gc.collect()
            elif gc.get_freeze_count() == 0:  # thawing is for all, the caller's too
                gc.freeze()
                gc.unfreeze()


def watched() -> bool:
    """Whether somebody sits at a terminal or a notebook, and this is not one of several workers."""
    multiprocessing = sys.modules.get("multiprocessing")
    if multiprocessing is not None and multiprocessing.parent_process() is not None:
        return False
    return "ipykernel" in sys.modules or bool(sys.stderr and sys.stderr.isatty())

"""What ``@kernel`` makes of a function: it compiles when it is called, or takes what is kept."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from numba.core import sigutils, typing
from numba.core.caching import NullCache
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher
from numba.core.types import BooleanLiteral, IntegerLiteral

from mlestruct.compiler.kept import Kept, alone, constants
from mlestruct.compiler.sources import digest
from mlestruct.kernels import compiling


class Kernel(CPUDispatcher):  # type: ignore[misc]
    """Entries for Python, by Numba's name ``overloads``, and parts for other kernels."""

    def __init__(
        self, function: Callable[..., Any], *settings: Any, unrolled: bool = False, **more: Any
    ) -> None:
        super().__init__(function, *settings, **more)
        self.unrolled = unrolled
        self.parts: dict[tuple[Any, ...], Any] = {}
        self.kept: Any = None
        self.sources: str | None = None

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """What a calling kernel is typed by."""
        signature, args = self._compiler.fold_argument_types(args, kws)
        args = tuple(_any_of(one) for one in args)
        self.part(args)
        name = self.py_func.__name__
        known = [part.signature for part in self.parts.values()]
        return typing.make_concrete_template(name, name, known), signature, args, {}

    def get_overload(self, sig: Any) -> Any:
        """What a calling kernel links."""
        return self.parts[tuple(sigutils.normalize_signature(sig)[0])].entry_point

    def part(self, args: tuple[Any, ...]) -> Any:
        """The kernel for these types, without machine code."""
        from mlestruct.compiler.linking import lowered

        with global_compiler_lock, self._compiling_counter:
            if args not in self.parts:
                self.parts[args] = lowered(self, args)
            return self.parts[args]

    def compile(self, sig: Any) -> Any:
        """The kernel for these types as Python calls it: from disk, or made and put there."""
        args = tuple(sigutils.normalize_signature(sig)[0])
        with global_compiler_lock:
            if args in self.overloads:
                return self.overloads[args].entry_point
            found, kept = None, self._kept()
            with constants():
                found = kept.load_overload(args, self.targetctx)
            if found is None:
                found = self._made(args)
            else:
                self.add_overload(found)
            return found.entry_point

    def _made(self, args: tuple[Any, ...]) -> Any:
        from mlestruct.compiler.linking import entry

        cache, found = self._kept(), None
        with compiling(), alone(cache, f"{self.digest()} {args}"):
            with constants():  # of a process that we waited for
                found = cache.load_overload(args, self.targetctx)
            if found is None:
                found = entry(self, self.part(args))
                with contextlib.suppress(OSError):  # the disk is full: compile again next time
                    cache.save_overload(args, found)
            self.add_overload(found)
        return found

    def digest(self) -> str:
        """A hash over all the sources that an entry is made of."""
        if self.sources is None:
            self.sources = digest(self)
        return self.sources

    def _kept(self) -> Any:
        if self.kept is None:
            self.kept = NullCache()
            with contextlib.suppress(RuntimeError):  # no folder at all can be written
                self.kept = self._cache = Kept(self.py_func)
                self.kept.digest = self.digest()
        return self.kept


def _any_of(one: Any) -> Any:
    """True and False are one type, as 1 and 2 are, or each would have a kernel of its own."""
    known = isinstance(one, BooleanLiteral | IntegerLiteral)
    return one.literal_type if known else one

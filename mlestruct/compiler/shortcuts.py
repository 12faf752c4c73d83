"""What Numba works out several times without need, worked out once; in place while we compile."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from numba.core import base, compiler, targetconfig, transforms, types
from numba.core.postproc import PostProcessor, VariableLifetime
from numba.extending import overload
from numba.np import arrayobj

from mlestruct.compiler.kept import instead


@contextlib.contextmanager
def shortcuts() -> Iterator[None]:
    """All of this module instead of Numba's own; its lock is held."""
    with (
        instead(compiler, "Flags", Settings),
        instead(arrayobj, SHAPES, _sizes_differ),
        instead(PostProcessor, "run", _process),
        instead(types.functions.BaseFunction, "get_call_type", _typed_call),
        instead(base.BaseContext, "get_abi_sizeof", _size),
    ):
        yield


class Settings(compiler.Flags):  # type: ignore[misc]
    """Numba's flags, compared by what is set and not by every default: every typed call does it."""

    __slots__ = ()

    def __hash__(self) -> int:
        return NAMES

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Settings):
            return self is other or self._values == other._values
        return super().__eq__(other)


NAMES = hash(compiler.Flags())


_whole_typed_call = types.functions.BaseFunction.get_call_type
_typed: list[tuple[Any, dict[Any, Any]]] = []  # (flags, answers by who is called with which types)
PLAIN = (
    types.Number,
    types.Boolean,
    types.Array,
    types.containers.BaseTuple,
    types.Literal,
    types.misc.SliceType,
)


def _typed_call(self: Any, context: Any, args: Any, kws: Any) -> Any:
    """Numba's answer, remembered for numbers and arrays: it tries every meaning of `+` each time.

    By identity, for types are made once, and hashing them is half of the work.
    """
    if kws or not all(isinstance(one, PLAIN) for one in args):
        return _whole_typed_call(self, context, args, kws)
    flags = targetconfig.ConfigStack.top_or_none()
    known = next((answers for of, answers in _typed if of is flags or of == flags), None)
    if known is None:
        known = {}
        _typed.append((flags and flags.copy(), known))
    key = id(self), id(context), *map(id, args)
    if key not in known:  # with all that is named by identity, which so stays what it is
        known[key] = _whole_typed_call(self, context, args, kws), self, context, args
    return known[key][0]


_whole_process = PostProcessor.run


def _process(self: Any, emit_dels: bool = False, extend_lifetimes: bool = False) -> None:
    """Which variables live where is asked once, before lowering; Numba works it out eight times."""
    if emit_dels or self.func_ir.is_generator:
        _whole_process(self, emit_dels, extend_lifetimes)
    else:
        self.func_ir.blocks = transforms.canonicalize_cfg(self.func_ir.blocks)
        self.func_ir.variable_lifetime = VariableLifetime(self.func_ir.blocks)  # when asked


_whole_size = base.BaseContext.get_abi_sizeof
_sizes: dict[tuple[int, str], int] = {}


def _size(self: Any, kind: Any) -> int:
    """Bytes of a type; LLVM reads a module with a variable of it each time."""
    key = id(self.target_data), str(kind)
    if key not in _sizes:
        _sizes[key] = _whole_size(self, kind)
    return _sizes[key]


# x[:] = y compiles some twenty functions on texts, to name both shapes should they differ.
SHAPES = "raise_with_shape_context"


def _sizes_differ(source: Any, place: Any) -> None:
    """A stub, as Numba's of that name."""


@overload(_sizes_differ)
def _(source: Any, place: Any) -> Any:
    def refuse(source: Any, place: Any) -> None:
        raise ValueError("cannot assign slice from input of different size")

    return refuse

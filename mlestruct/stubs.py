"""Functions that kernels call and whose LLVM code we write ourselves."""

from __future__ import annotations

import os
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types, typing
from numba.core.typing.templates import AbstractTemplate, infer_global
from numba.extending import lower_builtin

from mlestruct.kernels import VARIANTS

YIELD = "SwitchToThread" if os.name == "nt" else "sched_yield"
ANY = types.VarArg(types.Any)  # type: ignore[attr-defined]


def known(function: Any, returned: Any, emit: Any, *made_by: Any) -> Any:
    """Kernels may call ``function``: they are compiled again if anything here is changed."""

    def generic(self: Any, args: Any, kws: Any) -> Any:
        return typing.signature(returned, *args)

    template = type(function.__name__, (AbstractTemplate,), {"key": function, "generic": generic})
    infer_global(function, types.Function(template))
    lower_builtin(function, ANY)(emit)
    VARIANTS[function] = list(made_by)
    return function


def add(board: Any, place: int, one: int) -> int:
    """Adds to a number on the board, at once for all threads; returns what was there."""
    raise NotImplementedError


def look(board: Any, place: int) -> int:
    """A number on the board, as it is now."""
    raise NotImplementedError


def give_way() -> int:
    """Lets another thread on this processor."""
    raise NotImplementedError


def _place(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    data = context.make_array(signature.args[0])(context, builder, args[0]).data
    return builder.gep(data, [args[1]])


def _add(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    place = _place(context, builder, signature, args)
    return builder.atomic_rmw("add", place, args[2], "seq_cst")


def _look(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return builder.load_atomic(_place(context, builder, signature, args), "seq_cst", 8)


def _give_way(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    kind = ir.FunctionType(ir.IntType(32), [])
    called = builder.call(cgutils.get_or_insert_function(builder.module, kind, YIELD), [])
    return builder.sext(called, ir.IntType(64))


known(add, types.int64, _add, _add, _place)
known(look, types.int64, _look, _look, _place)
known(give_way, types.int64, _give_way, _give_way)

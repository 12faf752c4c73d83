"""Functions that kernels call and whose LLVM code we write ourselves."""

from __future__ import annotations

from typing import Any

from numba.core import types, typing
from numba.core.typing.templates import AbstractTemplate, infer_global
from numba.extending import lower_builtin

from mlestruct.kernels import VARIANTS

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

"""Numba's passes over a function, where ours do less."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from numba.core import compiler, errors, ir, rewrites, types
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering, NopythonRewrites
from numba.core.untyped_passes import InlineClosureLikes, fixup_var_define_in_scope


@register_pass(mutates_CFG=False, analysis_only=True)
class Lowering(NativeLowering):  # type: ignore[misc]
    """Without counts of who holds an array, where a kernel makes none and returns none.

    Its caller holds every array it sees. Counts are atomic, and a field taken out of a tuple of
    arrays is counted up and down: half the instructions of such kernels.
    """

    _name = "lowering"

    def run_pass(self, state: Any) -> bool:
        """Numba's pass, first without counts where that is right."""
        counted = state.targetctx
        if counted.enable_nrt and _borrows(state):
            state.targetctx = counted.subtarget(enable_nrt=False)
            state.targetctx.__dict__.pop("nrt", None)  # made for the other one
            with contextlib.suppress(errors.NumbaRuntimeError):  # a copy in between, say
                return bool(super().run_pass(state))
            state.targetctx = counted
        return bool(super().run_pass(state))


# Expressions of arrays that are arguments' own, or parts or views of them.
VIEWS = {
    *("getattr", "getitem", "static_getitem", "typed_getitem", "exhaust_iter", "build_tuple"),
    *("cast", "phi", "getiter", "iternext", "pair_first", "pair_second"),
}


def _borrows(state: Any) -> bool:
    """Every array of this function is an argument, or a part or view of one, and none leaves it."""
    if state.func_ir.is_generator or _counts(state, state.return_type):
        return False
    return not any(
        isinstance(one.value, ir.Expr)
        and _counts(state, state.typemap[one.target.name])
        and one.value.op not in VIEWS
        and not _named_tuple(state, one.value)
        for block in state.func_ir.blocks.values()
        for one in block.find_insts(ir.Assign)
    )


def _counts(state: Any, kind: Any) -> bool:
    return bool(state.targetctx.data_model_manager[kind].contains_nrt_meminfo())


def _named_tuple(state: Any, made: Any) -> bool:
    return made.op == "call" and isinstance(state.typemap[made.func.name], types.NamedTupleClass)


@register_pass(mutates_CFG=True, analysis_only=False)
class Closures(InlineClosureLikes):  # type: ignore[misc]
    """Numba's pass, where there is a closure, a list or a reduction for it to find."""

    _name = "inline_closure_likes"

    def run_pass(self, state: Any) -> bool:
        """As Numba's, which works out who lives where before it looks."""
        names = set(state.func_id.code.co_names)
        made = {one.op for one in _expressions(state.func_ir)} & {"make_function", "build_list"}
        if made or "reduce" in names:
            return bool(super().run_pass(state))
        fixup_var_define_in_scope(state.func_ir.blocks)
        return False


@register_pass(mutates_CFG=True, analysis_only=False)
class ArrayExpressions(NopythonRewrites):  # type: ignore[misc]
    """Numba's pass; who lives where matters to it only where an expression makes an array."""

    _name = "nopython_rewrites"

    def run_pass(self, state: Any) -> bool:
        """As Numba's, or what it does beside arrays."""
        if any(
            isinstance(state.typemap.get(one.target.name), types.Array)
            and getattr(one.value, "op", None) in ("unary", "binop", "call")
            for block in state.func_ir.blocks.values()
            for one in block.find_insts(ir.Assign)
        ):
            return bool(super().run_pass(state))
        rewrites.rewrite_registry.apply("after-inference", state)
        return True


def _expressions(func_ir: Any) -> Iterator[Any]:
    for block in func_ir.blocks.values():
        yield from block.find_exprs()


OWN = {NativeLowering: Lowering, InlineClosureLikes: Closures, NopythonRewrites: ArrayExpressions}


class Pipeline(compiler.CompilerBase):  # type: ignore[misc]
    """Numba's own, but for the passes above."""

    def define_pipelines(self) -> list[Any]:
        """The passes in order; the only list of them that is ever tried."""
        made = compiler.DefaultPassBuilder.define_nopython_pipeline(self.state)
        made.passes = [(OWN.get(one, one), why) for one, why in made.passes]
        made.finalize()
        return [made]

"""Numba, asked to compile less: a kernel once, and machine code only for what Python calls.

By itself Numba makes machine code of every function, with two doors for Python and C, and links,
optimises and emits it again inside each of its callers. Here a kernel that kernels call is a
*part*: its LLVM code as Numba lowers it and nothing more. A kernel that Python calls is an *entry*:
its parts are linked, optimised and emitted with it, once. A first matching fit took 15 instead of
33 CPU s by that alone. Kernels that only look at their arguments' arrays do not count who holds
them, entries are optimised once instead of twice, and what Numba works out several times without
need is worked out once: a third less again.

Entries are kept on disk by a digest of all the sources they are made of and of this file, so that
a kernel changed in another file is seen, and so is another way to compile. Numba's internals are
used as they are from 0.59 to 0.68.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
from llvmlite import binding
from llvmlite.binding import Linkage, parse_assembly
from numba.core import (
    caching,
    cgutils,
    codegen,
    compiler,
    config,
    errors,
    ir,
    rewrites,
    sigutils,
    targetconfig,
    transforms,
    types,
    typing,
)
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import register_pass
from numba.core.dispatcher import Dispatcher
from numba.core.postproc import PostProcessor, VariableLifetime
from numba.core.registry import CPUDispatcher
from numba.core.typed_passes import NativeLowering, NopythonRewrites
from numba.core.types import BooleanLiteral, IntegerLiteral
from numba.core.untyped_passes import InlineClosureLikes, fixup_var_define_in_scope
from numba.extending import overload
from numba.np import arrayobj

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

from mlestruct import prebuilt
from mlestruct.kernels import VARIANTS, Compiled, compiling


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
        with global_compiler_lock, self._compiling_counter:
            if args not in self.parts:
                self.parts[args] = self._lowered(args)
            return self.parts[args]

    def compile(self, sig: Any) -> Any:
        """The kernel for these types as Python calls it: from disk, or made and put there."""
        args = tuple(sigutils.normalize_signature(sig)[0])
        with global_compiler_lock:
            if args in self.overloads:
                return self.overloads[args].entry_point
            found = prebuilt.find(args, self.digest(), self.targetctx)
            if found is None:
                found = self._kept().load_overload(args, self.targetctx)
            if found is None:
                found = self._made(args)
            else:
                self.add_overload(found)
            return found.entry_point

    def _made(self, args: tuple[Any, ...]) -> Any:
        prebuilt.missing(self.py_func.__qualname__, args)
        cache = self._kept()
        with compiling(), _alone(cache, f"{self.digest()} {args}"):
            found = cache.load_overload(args, self.targetctx)  # of a process that we waited for
            if found is None:
                found = self._entry(self.part(args))
                prebuilt.record(args, self.digest(), found)
                with contextlib.suppress(OSError):  # the disk is full: compile again next time
                    cache.save_overload(args, found)
            self.add_overload(found)
        return found

    def digest(self) -> str:
        """A hash over all the sources that an entry is made of."""
        if self.sources is None:
            self.sources = digest(self)
        return self.sources

    def _lowered(self, args: tuple[Any, ...]) -> Any:
        flags = Settings()
        self.targetdescr.options.parse_as_flags(flags, self.targetoptions)
        flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
        library = Part(self.targetctx.codegen(), self.py_func.__qualname__)
        with _parts_only(library._codegen):
            return compiler.compile_extra(
                self.typingctx, self.targetctx, self.py_func, args, None, flags, {}, library,
                Pipeline,
            )  # fmt: skip

    def _entry(self, part: Any) -> Any:
        """The part with a door for Python, optimised and emitted."""
        context, made = part.target_context, self.targetctx.codegen()
        library = Whole(made, part.library.name)
        library.unrolled = self.unrolled
        library.enable_object_caching()
        library.add_linking_library(part.library)
        context.create_cpython_wrapper(
            library, part.fndesc, part.environment, part.call_helper, release_gil=True
        )
        found = part._replace(
            library=library,
            entry_point=context.get_executable(library, part.fndesc, part.environment),
        )
        for environment in found._find_referenced_environments():
            made.set_env(environment.env_name, environment)
        return found

    def _kept(self) -> Any:
        if self.kept is None:
            self.kept = caching.NullCache()
            with contextlib.suppress(RuntimeError):  # no folder at all can be written
                self.kept = self._cache = Kept(self.py_func)
                self.kept.digest = self.digest()
        return self.kept


def _any_of(one: Any) -> Any:
    """True and False are one type, as 1 and 2 are, or each would have a kernel of its own."""
    known = isinstance(one, BooleanLiteral | IntegerLiteral)
    return one.literal_type if known else one


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


class Part(codegen.JITCodeLibrary):  # type: ignore[misc]
    """A library for others to link; it is optimised and emitted only if asked for an address."""

    emitted = False
    merged: Any = None

    def add_ir_module(self, module: Any) -> None:
        """Neither checked nor optimised, as Numba does function by function; entries are, whole.

        Numba's own functions come with a door for C, which nobody uses.
        """
        if module.name != "cfunc_wrapper":
            parsed = parse_assembly(cgutils.normalize_ir_text(str(module)))
            parsed.data_layout = self._codegen._data_layout
            self._final_module.link_in(parsed)

    def finalize(self) -> None:
        """Nothing is linked before an entry asks."""
        self._raise_if_finalized()
        _link_as(self._final_module, Linkage.external, Linkage.linkonce_odr)
        self._finalized = True

    def _get_module_for_linking(self) -> Any:
        """The functions of this part and of all parts below it."""
        self._ensure_finalized()
        if self.merged is None:
            merged = self._final_module.clone()
            for library in self._below():
                apart = isinstance(library, Part) and not library.emitted
                source = library._final_module if apart else library._get_module_for_linking()
                merged.link_in(source, preserve=True)
            self.merged = merged
        return self.merged

    def _below(self) -> list[Any]:
        """Every library this one links, parts of parts too, each once."""
        found: dict[Any, None] = {}
        waiting = list(self._linking_libraries)
        while waiting:
            library = waiting.pop()
            if library not in found and library is not self:
                found[library] = None
                if hasattr(library, "_reload_init"):  # a newer Numba's
                    self._reload_init.update(library._reload_init)
                if isinstance(library, Part):
                    waiting += library._linking_libraries
        return list(found)

    def get_pointer_to_function(self, name: str) -> int:
        """The address of a function of this library alone; Numba's runtime asks for some."""
        self._ensure_finalized()
        if not self.emitted and any(one.name == name for one in self.get_defined_functions()):
            self._get_module_for_linking()
            self.emitted, self._finalized = True, False
            _link_as(self._final_module, Linkage.linkonce_odr, Linkage.external)
            super().finalize()
        return int(super().get_pointer_to_function(name))

    @property
    def codegen(self) -> Any:
        """Numba sets a global of each library it has emitted; here there is none yet."""
        return self._codegen if self.emitted else _Silent(self._codegen)


class Whole(codegen.JITCodeLibrary):  # type: ignore[misc]
    """An entry with its parts, optimised once; Numba does it twice, for counts that are left out.

    Loops are not unrolled unless the kernel says so: a third of emission, and no slower but for
    Viterbi's (6 %) and the assignment's (a fifth). Parts are not optimised before entries link
    them: with variables in registers by then, loops over pairs of states ran a third slower.
    """

    unrolled = False

    def _optimize_final_module(self) -> None:
        if not hasattr(self._codegen, "_pass_builder"):  # older passes of LLVM
            return super()._optimize_final_module()
        with _instead(self._codegen, "_pass_builder", self._builder):
            passes, builder = self._codegen._module_pass_manager()
        passes.run(self._final_module, builder)

    def _builder(self) -> Any:
        """Numba's, and what it leaves to LLVM."""
        tuning = binding.create_pipeline_tuning_options(config.OPT)  # of newer llvmlites
        tuning.loop_vectorization = config.LOOP_VECTORIZE
        tuning.slp_vectorization = config.SLP_VECTORIZE
        tuning.loop_unrolling = self.unrolled
        return binding.create_pass_builder(self._codegen._tm, tuning)


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


def _link_as(module: Any, old: Linkage, new: Linkage) -> None:
    for one in module.functions:
        if not one.is_declaration and one.linkage == old:
            one.linkage = new


class _Silent:
    def __init__(self, made: Any) -> None:
        self.made = made

    def __getattr__(self, name: str) -> Any:
        return getattr(self.made, name)

    def set_env(self, name: str, environment: Any) -> None:
        pass


@contextlib.contextmanager
def _parts_only(made: Any) -> Iterator[None]:
    """Numba's own functions (np.empty and the like) are made as parts too; its lock is held."""
    with (
        _instead(made, "_library_class", Part),
        _instead(compiler, "Flags", Settings),
        _instead(arrayobj, SHAPES, _sizes_differ),
        _instead(PostProcessor, "run", _process),
        _instead(types.functions.BaseFunction, "get_call_type", _typed_call),
    ):
        yield


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


@contextlib.contextmanager
def _instead(place: Any, name: str, value: Any) -> Iterator[None]:
    before = place.__dict__.get(name)
    setattr(place, name, value)
    try:
        yield
    finally:
        delattr(place, name) if before is None else setattr(place, name, before)


# x[:] = y compiles some twenty functions on texts, to name both shapes should they differ.
SHAPES = "raise_with_shape_context"


def _sizes_differ(source: Any, place: Any) -> None:
    """A stub, as Numba's of that name."""


@overload(_sizes_differ)
def _(source: Any, place: Any) -> Any:
    def refuse(source: Any, place: Any) -> None:
        raise ValueError("cannot assign slice from input of different size")

    return refuse


_UserWide = getattr(caching, "UserWideCacheLocator", None) or caching._UserWideCacheLocator


class _Temporary(_UserWide):  # type: ignore[misc,valid-type]
    """A folder for temporary files, this user's own: for read-only installations without a home."""

    def __init__(self, function: Any, file: str) -> None:
        super().__init__(function, file)
        Compiled.folder = str(temporary())
        self._cache_path = str(temporary() / self.get_suitable_cache_subpath(file))


@functools.cache
def temporary() -> Path:
    """The same folder for every process of a user; a new one where that belongs to somebody else.

    Whoever can write where machine code is kept can run code of their own.
    """
    user = os.getuid() if hasattr(os, "getuid") else 0
    folder = Path(tempfile.gettempdir()) / f"mlestruct-kernels-{user}"
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        theirs = hasattr(os, "getuid") and (found.st_uid != user or found.st_mode & 0o077)
        if folder.is_dir() and not folder.is_symlink() and not theirs:
            return folder
    return Path(tempfile.mkdtemp(prefix="mlestruct-kernels-"))


@contextlib.contextmanager
def _alone(cache: Any, name: str) -> Iterator[None]:
    """One process at a time compiles the entry of this name for this cache; others wait for it.

    One byte of one file is locked, so that different entries do not wait. A lock ends with its
    process; without files that can be locked, each process compiles for itself.
    """
    with contextlib.ExitStack() as stack:
        if fcntl is not None and cache.cache_path is not None:
            with contextlib.suppress(OSError):
                place = Path(cache.cache_path) / "mlestruct.lock"
                place.parent.mkdir(parents=True, exist_ok=True)
                file = stack.enter_context(place.open("ab"))
                byte = int.from_bytes(hashlib.sha256(name.encode()).digest()[:7], "big")
                fcntl.lockf(file, fcntl.LOCK_EX, 1, byte)
        yield


class _KeptImpl(caching.CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = (*caching.CompileResultCacheImpl._locator_classes, _Temporary)


class _Index(caching.IndexDataCacheFile):  # type: ignore[misc]
    """What is kept of one kernel; nothing where another edition's classes are named in it."""

    def _load_index(self) -> Any:
        try:
            return super()._load_index()
        except (AttributeError, ImportError):
            return {}


class Kept(caching.FunctionCache):  # type: ignore[misc]
    """Numba's cache of compiled functions, by a digest of all that an entry is made of."""

    _impl_class = _KeptImpl
    digest = ""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file.__class__ = _Index

    def _index_key(self, sig: Any, made: Any) -> Any:
        return sig, made.magic_tuple(), self.digest


def digest(one: Kernel) -> str:
    """A hash over the code and constants of a kernel and of all it calls, and over this module."""
    seen: dict[int, str] = {}
    return hashlib.sha256("\n".join((_own(), *_sources(one, seen))).encode()).hexdigest()


@functools.cache
def _own() -> str:
    """What decides, beside sources, which machine code they become."""
    return hashlib.sha256(Path(__file__).read_bytes()).hexdigest()


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
            yield from _function(choice, seen)
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

"""From a kernel to machine code: parts are lowered apart, entries linked, optimised and emitted."""

from __future__ import annotations

from typing import Any

from llvmlite import binding
from llvmlite.binding import Linkage, parse_assembly
from numba.core import cgutils, codegen, compiler, config

from mlestruct.compiler.kept import instead
from mlestruct.compiler.passes import Pipeline
from mlestruct.compiler.shortcuts import Settings, shortcuts


def lowered(kernel: Any, args: tuple[Any, ...]) -> Any:
    """The part: the kernel's LLVM code for arguments of these types."""
    flags = Settings()
    kernel.targetdescr.options.parse_as_flags(flags, kernel.targetoptions)
    flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
    typing, target = kernel.typingctx, kernel.targetctx
    library = Part(target.codegen(), kernel.py_func.__qualname__)
    # Numba's own functions (np.empty and the like) are made as parts too.
    with instead(library._codegen, "_library_class", Part), shortcuts():
        return compiler.compile_extra(
            typing, target, kernel.py_func, args, None, flags, {}, library, Pipeline
        )


def entry(kernel: Any, part: Any) -> Any:
    """The part with a door for Python, optimised and emitted."""
    context, made = part.target_context, kernel.targetctx.codegen()
    library = Whole(made, part.library.name)
    library.unrolled = kernel.unrolled
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
        with instead(self._codegen, "_pass_builder", self._builder):
            passes, builder = self._codegen._module_pass_manager()
        passes.run(self._final_module, builder)

    def _builder(self) -> Any:
        """Numba's, and what it leaves to LLVM."""
        tuning = binding.create_pipeline_tuning_options(config.OPT)  # of newer llvmlites
        tuning.loop_vectorization = config.LOOP_VECTORIZE
        tuning.slp_vectorization = config.SLP_VECTORIZE
        tuning.loop_unrolling = self.unrolled
        return binding.create_pass_builder(self._codegen._tm, tuning)


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

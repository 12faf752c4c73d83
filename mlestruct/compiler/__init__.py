"""Numba, asked to compile less: a kernel once, and machine code only for what Python calls.

By itself Numba makes machine code of every function, with two doors for Python and C, and links,
optimises and emits it again inside each of its callers. Here a kernel that kernels call is a
*part*: its LLVM code as Numba lowers it and nothing more. A kernel that Python calls is an *entry*:
its parts are linked, optimised and emitted with it, once. A first matching fit took 15 instead of
33 CPU s by that alone. Kernels that only look at their arguments' arrays do not count who holds
them, entries are optimised once instead of twice, and what Numba works out several times without
need is worked out once: a third less again.

Entries are kept on disk by a digest of all the sources they are made of and of this folder, so that
a kernel changed in another file is seen, and so is another way to compile. Numba's internals are
used as they are from 0.59 to 0.68. What only compiling needs (``linking``, ``passes``,
``shortcuts``) is loaded when something is compiled.
"""

from mlestruct.compiler.kept import temporary
from mlestruct.compiler.kernel import Kernel
from mlestruct.compiler.sources import digest

__all__ = ["Kernel", "digest", "temporary"]

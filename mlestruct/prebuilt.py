"""Machine code that comes with the package, so that a first use compiles nothing.

``mlestruct warm --package`` puts archives into the folder ``_kernels`` beside this file, and a
wheel built then carries them: entries as Numba keeps them on disk, each by a digest of all the
sources it is made of. An archive serves one version of Numba, of Python and one platform, there
every processor of its level, and all of them with the same bits. Elsewhere, and for whatever is
not in it, kernels are compiled as ever.
"""

from __future__ import annotations

import functools
import hashlib
import io
import os
import pickle
import platform
import sys
import zipfile
from pathlib import Path
from typing import Any

import llvmlite
import numba
from llvmlite.binding import get_default_triple, get_host_cpu_features
from numba.core import config, serialize
from numba.core.compiler import CompileResult

FOLDER = Path(__file__).with_name("_kernels")
RECORD = "MLESTRUCT_RECORD"  # names a folder where every entry that is compiled is put
ONLY = "MLESTRUCT_PREBUILT_ONLY"  # set: whatever would be compiled is an error

SECOND = ("cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3")
THIRD = ("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave")
LEVELS = {"x86_64": ("x86-64-v3", SECOND + THIRD)}  # LLVM's names; processors since 2013
GENERIC: tuple[str, tuple[str, ...]] = ("generic", ())  # what every processor of the kind can do


def level() -> tuple[str, tuple[str, ...]]:
    """The name and the features of the processors that an archive made here is for."""
    return LEVELS.get(platform.machine().lower().replace("amd64", "x86_64"), GENERIC)


def place() -> Path:
    """The archive for this Numba, Python and platform."""
    python = "".join(map(str, sys.version_info[:2])) + getattr(sys, "abiflags", "")
    versions = f"numba{numba.__version__}-llvmlite{llvmlite.__version__}-cp{python}"
    return FOLDER / f"{versions}-{get_default_triple()}.zip"


@functools.cache
def archive() -> zipfile.ZipFile | None:
    """The archive, in memory; None where it is absent, for others, or not wanted.

    Whoever sets Numba's own CPU_NAME has chosen what to compile for.
    """
    if config.CPU_NAME is not None or config.USING_SVML or not place().exists():
        return None
    opened = zipfile.ZipFile(io.BytesIO(place().read_bytes()))  # a file's place is shared by forks
    needed, here = opened.read("features").decode().split(), get_host_cpu_features()
    return opened if all(here.get(feature) for feature in needed) else None


def find(args: tuple[Any, ...], digest: str, context: Any) -> Any:
    """The entry for arguments of these types, or None."""
    kept, name = archive(), _name(args, digest)
    if kept is not None and name in kept.NameToInfo:
        context.refresh()
        found = CompileResult._rebuild(context, *pickle.loads(kept.read(name)))
        if tuple(found.signature.args) == args:
            return found
    return None


def missing(kernel: str, args: tuple[Any, ...]) -> None:
    """Refuse to compile where only prebuilt machine code is to be used: for checks of archives."""
    if os.environ.get(ONLY):
        raise RuntimeError(f"{ONLY} is set, and {kernel} would be compiled for {args}")


def record(args: tuple[Any, ...], digest: str, found: Any) -> None:
    """Put the entry into the folder that is recorded to, if one is."""
    if os.environ.get(RECORD):
        path = Path(os.environ[RECORD]) / _name(args, digest)
        if not path.exists():
            partial = path.with_name(f"{path.name}.{os.getpid()}")
            partial.write_bytes(serialize.dumps(found._reduce()))
            partial.replace(path)


def pack(folder: Path) -> Path:
    """Put what was recorded into the archive for this place, in the order of names."""
    FOLDER.mkdir(exist_ok=True)
    with zipfile.ZipFile(place(), "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in [
            ("features", " ".join(level()[1]).encode()),
            *((path.name, path.read_bytes()) for path in sorted(folder.glob("*.entry"))),
        ]:
            made.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return place()


def _name(args: tuple[Any, ...], digest: str) -> str:
    return hashlib.sha256(f"{args} {digest}".encode()).hexdigest()[:32] + ".entry"

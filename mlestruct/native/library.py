"""Find and load the compiled kernels of this machine's processor."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

ENDING = {"win32": "dll", "darwin": "dylib"}.get(sys.platform, "so")
REBUILD = "python mlestruct/native/build.py, or install mlestruct again"
V3 = {"avx2", "bmi1", "bmi2", "fma", "f16c", "movbe", "abm"}  # as Linux spells them
FIRST = 8192  # characters of Linux's file, which hold what the first processor can do


def best_level() -> str:
    """Return the best level of this machine's processor; the baseline where Linux names none."""
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as known:
            return "v3" if {*known.read(FIRST).split()} >= V3 else "baseline"
    except OSError:
        return "baseline"


def load(ffi: Any, door: str, digest: str) -> Any:
    """Return the library beside ``door`` for the best level that this processor has.

    The environment variable ``MLESTRUCT_LEVEL`` names another one: ``baseline``, ``v3``, or a
    build of another kind, such as ``baseline-sanitize``. A library must have been built from the
    headers that Python's side knows.
    """
    level = os.environ.get("MLESTRUCT_LEVEL") or best_level()
    path = Path(door).parent / "lib" / f"{level}.{ENDING}"
    if not path.exists():
        raise ImportError(f"mlestruct's kernels are not built ({path} is missing): {REBUILD}")
    library = ffi.dlopen(str(path))
    if ffi.string(library.mlestruct_headers()).decode() != digest:
        raise ImportError(f"mlestruct's kernels in {path} are of another version: {REBUILD}")
    return library

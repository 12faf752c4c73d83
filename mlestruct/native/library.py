"""Find and load the compiled kernels of this machine's processor."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

ENDING = {"win32": "dll", "darwin": "dylib"}.get(sys.platform, "so")
REBUILD = "python mlestruct/native/build.py, or install mlestruct again"


def load(ffi: Any, door: str, digest: str) -> Any:
    """Return the library beside ``door`` for the best level that this processor has.

    The environment variable ``MLESTRUCT_LEVEL`` names another one: ``baseline``, ``v3``, or a
    build of another kind, such as ``baseline-sanitize``.
    """
    folder = Path(door).parent / "lib"
    named = os.environ.get("MLESTRUCT_LEVEL")
    if named:
        return _opened(ffi, folder / f"{named}.{ENDING}", digest)
    baseline, v3 = (folder / f"{level}.{ENDING}" for level in ("baseline", "v3"))
    if not baseline.exists():  # built on this machine for this machine
        return _opened(ffi, v3, digest)
    library = _opened(ffi, baseline, digest)
    if v3.exists() and library.mlestruct_level() >= 3:
        return _opened(ffi, v3, digest)
    return library


def _opened(ffi: Any, path: Path, digest: str) -> Any:
    """Return an opened library, if it was built from the headers that Python's side knows."""
    if not path.exists():
        raise ImportError(f"mlestruct's kernels are not built ({path} is missing): {REBUILD}")
    library = ffi.dlopen(str(path))
    built = ffi.string(library.mlestruct_headers()).decode()
    if built != digest:
        raise ImportError(f"mlestruct's kernels in {path} are of another version: {REBUILD}")
    return library

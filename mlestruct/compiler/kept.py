"""Entries on disk: by a digest of all they are made of, in a folder that is this user's own."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from numba.core import caching, environment

from mlestruct.kernels import Compiled

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

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
def alone(cache: Any, name: str) -> Iterator[None]:
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


@contextlib.contextmanager
def instead(place: Any, name: str, value: Any) -> Iterator[None]:
    before = place.__dict__.get(name)
    setattr(place, name, value)
    try:
        yield
    finally:
        delattr(place, name) if before is None else setattr(place, name, before)


class Otherwise(Exception):
    """Kept machine code counts on constants that this process numbers otherwise."""


@contextlib.contextmanager
def constants() -> Iterator[None]:
    """Entries are loaded inside; none is found where its constants are not those at hand.

    Machine code knows constants, such as the types of arrays for Python, by their places. Numba
    takes the list of a function's that is there: a part's, say, which has none for Python's door.
    """
    with (
        contextlib.suppress(Otherwise),
        instead(environment, "_rebuild_env", functools.partial(_agreed, environment._rebuild_env)),
    ):
        yield


def _agreed(numbas: Callable[..., Any], module: str, listed: list[Any], name: str) -> Any:
    """The environment of that name, with all that is listed in its place."""
    found = numbas(module, listed, name)
    for here, there in zip(found.consts, listed, strict=False):
        if here is not there and not (type(here) is type(there) and here == there):
            raise Otherwise
    found.consts.extend(listed[len(found.consts) :])
    return found


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

"""A checkpoint file is written by one fit at a time: a second fit is refused."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from filelock import FileLock, Timeout

_held: weakref.WeakValueDictionary[str, Lock] = weakref.WeakValueDictionary()


class Lock:
    """Hold ``path`` until ``release`` is called or the object is collected.

    The lock is the operating system's, on the file ``NAME.lock`` beside ``path``. It ends with its
    process, so a lock file that is left behind holds nobody up. A fit of the same thread, or of a
    thread that has ended, cannot be under way: what an error left of it gives way.

    Raises
    ------
    ValueError
        If another fit holds the path.
    OSError
        If no lock file can be made there.
    """

    release: Callable[[], object]

    def __init__(self, path: Path) -> None:
        beside = path.with_name(f"{path.name}.lock")
        key = os.path.realpath(beside)
        self.thread = threading.current_thread()
        before = _held.get(key)
        if before is not None and (before.thread is self.thread or not before.thread.is_alive()):
            before.release()
        lock = FileLock(beside, mode=0o600, blocking=False, thread_local=False)
        try:
            lock.acquire()
        except Timeout:
            raise ValueError(
                f"another fit keeps its checkpoint in {path}: give this one a file of its own, or "
                "wait until that one has ended"
            ) from None
        except OSError as error:
            why = f"{error.strerror}; no checkpoint can be kept there"
            raise OSError(error.errno, why, str(path)) from error
        self.release = weakref.finalize(self, _release, lock, beside, os.getpid())
        _held[key] = self


def _release(lock: FileLock, beside: Path, process: int) -> None:
    """Remove the lock file and free the lock; a forked child leaves its parent's alone."""
    if os.getpid() != process:
        return
    with suppress(OSError):  # Windows does not remove a file that is open
        beside.unlink()
    lock.release()

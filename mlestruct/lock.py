"""A file is written by one fit at a time: whoever comes second is told who was first.

The system's own locks are taken on a file beside it, ``NAME.lock``. They end with their process,
however that ends, so a lock file that is left behind holds nobody up.
"""

from __future__ import annotations

import os
import socket
import threading
import weakref
from contextlib import suppress
from pathlib import Path
from typing import Any

FAR = 1 << 30  # the byte that is locked: beyond the text, so that others may read who it is
TALK = 200  # bytes of a lock file that are read

Owner = tuple[int, threading.Thread]
_held: dict[str, tuple[Owner, int]] = {}  # locks of this process, which its system does not tell
_turn = threading.RLock()


class Lock:
    """Holds ``path`` until it is released, or nobody knows the lock any more.

    ValueError, naming the process, where another fit holds it. A fit of the same thread cannot be
    under way: what an error left of it gives way.
    """

    def __init__(self, path: Path) -> None:
        beside = path.with_name(f"{path.name}.lock")
        self.key = os.path.realpath(beside)
        me: Owner = os.getpid(), threading.current_thread()
        with _turn:
            self._take(beside, path, me)
        self.release = weakref.finalize(self, _release, self.key, self.file)

    def _take(self, beside: Path, path: Path, me: Owner) -> None:
        owner, file = _held.get(self.key, ((0, me[1]), -1))
        if owner[0] == me[0] and owner[1] is not me[1] and owner[1].is_alive():
            raise _refused(path, f"in the thread {owner[1].name!r} of this process")
        if owner[0] == me[0]:
            _release(self.key, file)
        self.file = _taken(beside, path)
        _held[self.key] = me, self.file


def _taken(beside: Path, path: Path) -> int:
    """The descriptor of the lock file, locked, with this process's name in it."""
    while True:
        file = _opened(beside, path)
        try:
            _lock(file)
        except OSError:
            who = os.pread(file, TALK, 0) if hasattr(os, "pread") else b""
            os.close(file)
            raise _refused(path, who.decode(errors="replace").strip() or "elsewhere") from None
        with suppress(OSError):
            if os.path.samestat(os.fstat(file), os.stat(beside)):
                break
        os.close(file)  # who had it before has just removed it
    with suppress(OSError):  # on a full disk nobody hears who it is; what is kept says the rest
        os.truncate(file, 0)
        os.write(file, f"in process {os.getpid()} on {socket.gethostname()}\n".encode())
    return file


def _opened(beside: Path, path: Path) -> int:
    try:
        return os.open(beside, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
    except OSError as error:
        why = f"{error.strerror}; no checkpoint can be kept there"
        raise OSError(error.errno, why, str(path)) from error


def _lock(file: int) -> None:
    """OSError where another process has it. Forked children do not inherit these locks."""
    lock: Any
    try:
        import fcntl as lock
    except ImportError:  # Windows
        import msvcrt as lock

        os.lseek(file, FAR, os.SEEK_SET)
        lock.locking(file, lock.LK_NBLCK, 1)
        os.lseek(file, 0, os.SEEK_SET)
    else:
        lock.lockf(file, lock.LOCK_EX | lock.LOCK_NB, 1, FAR)


def _release(key: str, file: int) -> None:
    """Free for the next; of a process that forked, only the one that took it."""
    with _turn:
        owner, held = _held.get(key, ((0, None), -1))
        if owner[0] != os.getpid() or held != file:
            return
        del _held[key]
        with suppress(OSError):  # on Windows it stays, unlocked
            os.unlink(key)
        os.close(file)


def _refused(path: Path, who: str) -> ValueError:
    return ValueError(
        f"another fit keeps its checkpoint in {path}, {who}: give this one a file of its own, or "
        "wait until that one has ended"
    )

"""Shards in processes of their own: a solver that crashes, hangs or swells costs one worker."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from mlestruct.engine.protocol import Maker
from mlestruct.engine.remote import Care, Gone, Remote
from mlestruct.engine.worker import Reply, Worker, packed, receive, send, unpacked

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

LEAST = 0.01  # seconds in which an answer that has come is read
START = """import sys; sys.path[:] = {path!r}
from mlestruct.engine.processes import work; work({fd}, {memory})"""


@dataclass(frozen=True, kw_only=True)
class Processes(Care):
    """``workers`` processes of this machine, for as long as this object lives.

    ``memory``: bytes of address space a worker may take before allocations fail. They are new
    processes, not forks: threads, locks and compiled solvers of the caller's do not follow. They
    are sent what they need once, and are kept for the next run. POSIX only.
    """

    workers: int = 1
    memory: int | None = None
    _idle: list[Process] = field(default_factory=list, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if resource is None:
            raise ValueError("engine='processes' needs Linux or macOS; use 'threads' or 'dask'")

    def start(self, makers: Sequence[Maker]) -> Remote:
        return Remote(makers, self.workers, self._hire, self)

    def close(self) -> None:
        """End the idle workers; runs that are under way keep theirs."""
        while self._idle:
            self._idle.pop().end()

    def _hire(self) -> Process:
        while self._idle:
            host = self._idle.pop()
            if host.alive:
                return host
        return Process(self.memory, self._idle, self.limit("make"))


class Process:
    """A worker process and the socket to it."""

    def __init__(self, memory: int | None, idle: list[Process], patience: float | None) -> None:
        self.idle, self.patience = idle, patience
        self.line, theirs = socket.socketpair()
        path = [place or os.getcwd() for place in sys.path]
        start = START.format(path=path, fd=theirs.fileno(), memory=memory)
        command = [sys.executable, "-c", start]
        self.child = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()])
        theirs.close()
        self._ended = weakref.finalize(self, _end, self.child, self.line)

    @property
    def pid(self) -> int:
        return self.child.pid

    @property
    def alive(self) -> bool:
        return self._ended.alive and self.child.poll() is None

    def send(self, request: str, *arguments: Any) -> None:
        frames = packed((request, *arguments))
        self.line.settimeout(self.patience)
        try:
            send(self.line, frames)
        except TimeoutError as error:
            raise Gone(f"did not take a question within {self.patience:.3g} s") from error
        except OSError as error:
            raise Gone(self._how()) from error

    def receive(self, seconds: float | None) -> Reply:
        self.line.settimeout(None if seconds is None else max(seconds, LEAST))
        try:
            frames = receive(self.line)
        except TimeoutError as error:
            raise Gone(f"did not answer within {seconds:.3g} s") from error
        except (EOFError, OSError) as error:
            raise Gone(self._how()) from error
        reply: Reply = unpacked(frames)
        return reply

    def release(self) -> None:
        """Empty, and ready for the next run."""
        try:
            self.send("make", {}, {})
            self.receive(self.patience)
            self.idle.append(self)
        except Gone:
            self.end()

    def end(self) -> None:
        self._ended()

    def _how(self) -> str:
        code = self.child.wait()
        if code >= 0:
            return f"ended itself with exit code {code}"
        return f"was ended by {signal.Signals(-code).name}"


def _end(child: subprocess.Popen[bytes], line: socket.socket) -> None:
    line.close()
    child.kill()
    child.wait()


def work(fd: int, memory: int | None) -> None:
    """A worker's life: answer requests until the caller has gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the caller's to deal with
    if memory is not None:
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    worker = Worker()
    with socket.socket(fileno=fd) as line:
        while True:
            try:
                frames = receive(line)
            except (EOFError, ConnectionError):
                return
            send(line, worker.reply(frames))

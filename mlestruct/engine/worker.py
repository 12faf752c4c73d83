"""What a worker does (makes shards, asks them, lets them remember), and the messages it is sent.

These are pickles over a socket, arrays beside them without another copy; only ever between a caller
and the workers it started itself: no pickle is read from anywhere else.
"""

from __future__ import annotations

import pickle
import socket
import struct
import traceback
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mlestruct.engine.protocol import Maker, Shard, Tree

Frame = Any
"""Bytes, in whatever holds them."""
SIZE = struct.Struct("!Q")


def packed(message: Any) -> list[Frame]:
    """A message as its pickle and the arrays' own memory; ValueError where it has no pickle."""
    buffers: list[pickle.PickleBuffer] = []
    pickler, hint = _pickler()
    try:
        body = pickler.dumps(message, protocol=5, buffer_callback=buffers.append)
    except Exception as error:
        raise ValueError(
            f"no other process can be sent this: {error}; {hint}make what is not data (locks, "
            "files, connections, solver handles) inside the call, or use engine='threads'"
        ) from error
    return [body, *(buffer.raw() for buffer in buffers)]


def _pickler() -> tuple[Any, str]:
    """cloudpickle also takes lambdas, closures and what a script or notebook defines."""
    try:
        import cloudpickle
    except ImportError:
        return pickle, "for functions of a script or notebook, pip install cloudpickle; "
    return cloudpickle, ""


def unpacked(frames: Sequence[Frame]) -> Any:
    """The message again, its arrays in memory of NumPy's own.

    Elsewhere it may be read-only, or not aligned: then sums take other instructions, with other
    last digits.
    """
    body, *rest = frames
    own = [b if isinstance(b, np.ndarray) else np.frombuffer(b, np.uint8).copy() for b in rest]
    return pickle.loads(body, buffers=own)


def send(line: socket.socket, frames: list[Frame]) -> None:
    line.sendall(SIZE.pack(len(frames)) + b"".join(SIZE.pack(len(frame)) for frame in frames))
    for frame in frames:
        line.sendall(frame)


def receive(line: socket.socket) -> list[Frame]:
    """The next message's frames; EOFError when the other end has gone."""
    (count,) = SIZE.unpack(_exactly(line, SIZE.size))
    sizes = struct.unpack(f"!{count}Q", _exactly(line, count * SIZE.size))
    return [_exactly(line, size) for size in sizes]


def _exactly(line: socket.socket, size: int) -> Frame:
    frame = np.empty(size, np.uint8)
    rest = frame.data
    while rest:
        got = line.recv_into(rest)
        if got == 0:
            raise EOFError("the other end has gone")
        rest = rest[got:]
    return frame


Reply = tuple[bool, Any]
"""(True, what was asked for) or (False, the exception it ended in)."""


class Worker:
    """Its shards by number, and one method per request; what they raise is an answer too."""

    def __init__(self) -> None:
        self.shards: dict[int, Shard] = {}

    def make(self, makers: Mapping[int, Maker], memories: Mapping[int, Tree]) -> None:
        """In the place of all shards before: none, to let them go."""
        self.shards.clear()
        for number, maker in makers.items():
            self.shards[number] = maker()
        for number, tree in memories.items():
            self.shards[number].remember(tree)

    def ask(self, questions: Mapping[int, Any]) -> dict[int, Any]:
        return {number: self.shards[number](question) for number, question in questions.items()}

    def memory(self) -> dict[int, Tree]:
        return {number: shard.memory() for number, shard in self.shards.items()}

    def remember(self, memories: Mapping[int, Tree]) -> None:
        for number, tree in memories.items():
            self.shards[number].remember(tree)

    def reply(self, frames: Sequence[Frame]) -> list[Frame]:
        """A packed ``(request, *arguments)`` → a packed :data:`Reply`."""
        try:
            request, *arguments = unpacked(frames)
            return packed((True, getattr(self, request)(*arguments)))
        except Exception as error:
            return packed((False, _portable(error)))


def _portable(error: Exception) -> Exception:
    """The exception with its traceback as a note, or its text where it has no pickle."""
    trace = "".join(traceback.format_exception(error))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        notes = getattr(error, "__notes__", [])
        error = RuntimeError(f"{type(error).__name__}: {error}")
        for note in notes:
            error.add_note(note)
    error.add_note(f"in a worker:\n{trace}")
    return error

"""Messages between processes: pickles over a socket, arrays beside them without another copy.

Only ever between a caller and the workers it started itself: no pickle is read from anywhere else.
"""

from __future__ import annotations

import pickle
import socket
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

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

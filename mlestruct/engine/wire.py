"""Messages between processes: pickles over a socket, arrays beside them without another copy.

Only ever between a caller and the workers it started itself: no pickle is read from anywhere else.
"""

from __future__ import annotations

import pickle
import socket
import struct
from collections.abc import Sequence
from typing import Any

Frame = bytes | bytearray | memoryview
SIZE = struct.Struct("!Q")


def packed(message: Any) -> list[Frame]:
    """A message as its pickle and the arrays' own memory; ValueError where it has no pickle."""
    import cloudpickle

    buffers: list[pickle.PickleBuffer] = []
    try:
        # Unlike pickle it also takes lambdas, closures and what a script or notebook defines.
        body = cloudpickle.dumps(message, protocol=5, buffer_callback=buffers.append)
    except Exception as error:
        raise ValueError(
            f"no other process can be sent this: {error}; make what is not data (locks, files, "
            "connections, solver handles) inside the call, or use engine='threads'"
        ) from error
    return [body, *(buffer.raw() for buffer in buffers)]


def unpacked(frames: Sequence[Frame]) -> Any:
    """The message again; arrays may be written to."""
    body, *rest = frames
    buffers = [bytearray(b) if memoryview(b).readonly else b for b in rest]
    return pickle.loads(body, buffers=buffers)


def send(line: socket.socket, frames: list[Frame]) -> None:
    line.sendall(SIZE.pack(len(frames)) + b"".join(SIZE.pack(len(frame)) for frame in frames))
    for frame in frames:
        line.sendall(frame)


def receive(line: socket.socket) -> list[Frame]:
    """The next message's frames; EOFError when the other end has gone."""
    (count,) = SIZE.unpack(_exactly(line, SIZE.size))
    sizes = struct.unpack(f"!{count}Q", _exactly(line, count * SIZE.size))
    return [_exactly(line, size) for size in sizes]


def _exactly(line: socket.socket, size: int) -> bytearray:
    frame = bytearray(size)
    rest = memoryview(frame)
    while rest:
        got = line.recv_into(rest)
        if got == 0:
            raise EOFError("the other end has gone")
        rest = rest[got:]
    return frame

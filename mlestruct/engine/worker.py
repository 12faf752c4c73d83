"""What a worker does, whoever carries its messages: make shards, ask them, let them remember."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Mapping, Sequence
from typing import Any

from mlestruct.engine.protocol import Maker, Shard, Tree
from mlestruct.engine.wire import Frame, packed, unpacked

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

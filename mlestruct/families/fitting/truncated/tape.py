"""A computation of T steps that can be walked back, in memory that does not grow with T."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlestruct.structures.base import Array

MEMORY = 1 << 22  # numbers a tape may hold before states are kept at intervals instead

State = tuple[Array, ...]
Steps = Callable[[int, int, State, Any], None]


class Tape:
    """Runs ``forward(begin, end, state, tape)`` and, for adjoints, ``backward`` over the same.

    Where all T steps do not fit, the state is copied every ``length`` steps and the steps between
    are done again on the way back: one more forward pass, √T memory.
    """

    def __init__(self, steps: int, numbers: int, room: Callable[[int], Any]) -> None:
        fits = max(1, MEMORY // max(numbers, 1))
        self.steps = steps
        self.length = max(1, steps if steps <= fits else min(fits, round(steps**0.5)))
        self.tape = room(self.length)
        self.kept: list[State] = []

    def run(self, forward: Steps, state: State) -> None:
        """All steps; ``state`` is changed in place."""
        self.kept = []
        for begin in range(0, self.steps, self.length):
            self.kept.append(tuple(part.copy() for part in state))
            forward(begin, min(begin + self.length, self.steps), state, self.tape)

    def back(self, forward: Steps, backward: Steps, adjoint: State) -> None:
        """Adjoints of the last state become those of the first, in place."""
        for number in range(len(self.kept) - 1, -1, -1):
            begin = number * self.length
            end = min(begin + self.length, self.steps)
            if number < len(self.kept) - 1:
                forward(begin, end, self.kept[number], self.tape)
            backward(begin, end, adjoint, self.tape)

"""Steps of L-BFGS one by one, and the rounds of a learner, for tests that look at each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from mlestruct.learning.loop import Found
from mlestruct.learning.minimise import LBFGS, Function
from mlestruct.learning.regulariser import Regulariser
from mlestruct.structures.base import Array


class Step(NamedTuple):
    """A point with value and gradient, whether the descent moved there, and its state."""

    theta: Array
    value: float
    gradient: Array
    moved: bool
    state: Any


def minimise(
    objective: Function,
    theta: Array,
    memory: int = 10,
    ridge: Regulariser | None = None,
    metric: Array | None = None,
    state: Any = None,
) -> Iterator[Step]:
    """Every point of a descent."""
    descent, moved = LBFGS(objective, theta, ridge, memory, metric, state=state), True
    while moved:
        moved = descent.step()
        yield Step(descent.theta, descent.value, descent.gradient, moved, descent.state())


def rounds(learner: Any, batch: Any, features: Any, start: Any = None) -> list[Found]:
    """What a learner says after every round, to the end."""
    said: list[Found] = []
    learner.fit(batch, features, start=start, told=said.append)
    assert np.isfinite(said[-1].theta).all()
    return said


def solved(solver: Any, dual: Any, oracle: Any, start: Any = None, **more: Any) -> list[Found]:
    """What a solver says after every round, to the end."""
    said: list[Found] = []
    solver.solve(dual, oracle, start, told=said.append, **more)
    return said


class Stopped(Exception):
    """What :func:`until` raises."""


def until(round: int) -> Any:
    """A function that is told of rounds, and ends the fit at one of them."""

    def told(said: Found) -> None:
        if said.round == round:
            raise Stopped

    return told

"""L-BFGS on a function, for whoever has one."""

from __future__ import annotations

from collections.abc import Iterator

from mlestruct.lbfgs import Function, Kinks, Step, descent, next_step
from mlestruct.structures.base import Array
from mlestruct.trees import Tree


def minimise(
    objective: Function,
    theta: Array,
    memory: int = 10,
    kinks: Kinks | None = None,
    first: float | None = None,
    since: Tree = None,
) -> Iterator[Step]:
    """The steps of :func:`descent` on a function."""
    asking = descent(theta, memory, kinks, first, since)
    while (step := next_step(asking, objective)) is not None:
        yield step

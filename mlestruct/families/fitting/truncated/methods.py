"""T iterations of messages or mean field: beliefs, and the exact gradient of any loss of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from mlestruct import Batch, FactorGraph
from mlestruct.families.fitting.truncated.compiled import (
    CompiledGraph,
    Order,
    compiled,
    refuse,
    there_and_back,
)
from mlestruct.families.fitting.truncated.runs import LANES, FieldRun, MessageRun
from mlestruct.structures.base import Array, Ints, as_numbers
from mlestruct.structures.entropy import Rho, counting_numbers


class Run(Protocol):
    """Beliefs of some examples after T iterations, one row each, and the way back.

    Interface: ``tau``; ``pull(slope)``, slopes by log-beliefs → slopes by scores, (sets × examples
    × coordinates). Where factors were not asked for, their part of both is 0.
    """

    tau: Array

    def pull(self, slope: Array) -> Array: ...


class Iteration(Protocol):
    """An iteration that can be cut short.

    Interface: ``run(graph, scores, iterations, whole)`` → :class:`Run`; ``scores`` (sets ×
    examples × coordinates) has a set per iteration, the last serving all that follow;
    ``whole`` asks for factor beliefs too.
    """

    def run(self, graph: FactorGraph, scores: Array, iterations: int, whole: bool) -> Run: ...


@dataclass(frozen=True)
class Messages:
    """Sum-product with counting numbers ρ (1: belief propagation), from messages 1.

    ``order`` makes one iteration's :class:`~mlestruct.families.fitting.truncated.compiled.Sweep`.
    """

    rho: Rho = 1.0
    order: Order = there_and_back

    def run(self, graph: FactorGraph, scores: Array, iterations: int, whole: bool) -> Run:
        return MessageRun(self.ready(graph), _ready(scores), iterations, whole)

    def ready(self, graph: FactorGraph) -> CompiledGraph:
        """With these counting numbers and this order."""
        refuse(graph)
        return compiled(graph, counting_numbers(graph, self.rho).tobytes(), self.order)


@dataclass(frozen=True)
class MeanField:
    """Sweeps over the variables in their order, from uniform distributions."""

    def run(self, graph: FactorGraph, scores: Array, iterations: int, whole: bool) -> Run:
        return FieldRun(_counted_once(graph), _ready(scores), iterations, whole)


def _ready(scores: Array) -> Array:
    return as_numbers(scores, "scores")


def _counted_once(graph: FactorGraph) -> CompiledGraph:
    refuse(graph)
    return compiled(graph, graph.counting(1.0).tobytes(), there_and_back)


def groups(batch: Batch[Any]) -> Iterator[tuple[Any, Ints]]:
    """Structures with at most ``LANES`` of their examples."""
    for structure, members in batch.groups():
        for first in range(0, len(members), LANES):
            yield structure, members[first : first + LANES]


def rows(batch: Batch[Any], sets: Sequence[Array], members: Ints) -> Array:
    """(sets × examples × coordinates) of flat scores."""
    return np.stack([batch.rows(scores, members) for scores in sets])


def beliefs(
    batch: Batch[Any], sets: Sequence[Array], method: Iteration, iterations: int, whole: bool = True
) -> Array:
    """What the iterations believe; a set of scores per iteration, the last for all that follow."""
    tau = np.empty(batch.size)
    for structure, members in groups(batch):
        run = method.run(structure, rows(batch, sets, members), iterations, whole)
        tau[batch.index(members)] = run.tau.ravel()
    return tau

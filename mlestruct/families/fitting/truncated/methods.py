"""T iterations of messages or mean field: beliefs, and the exact gradient of any loss of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from mlestruct.families.fitting.truncated import message_steps
from mlestruct.families.fitting.truncated.compiled import CompiledGraph, compiled, refuse
from mlestruct.families.fitting.truncated.runs import FieldRun, MessageRun, OddsRun
from mlestruct.families.fitting.truncated.schedule import Order, there_and_back
from mlestruct.inference.graph.plan import MessagePlan, plan
from mlestruct.reweighting import Rho
from mlestruct.structures.base import Array
from mlestruct.structures.graph import FactorGraph


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

    ``order`` makes one iteration's :class:`~mlestruct.families.fitting.truncated.schedule.Sweep`.
    """

    rho: Rho = 1.0
    order: Order = there_and_back
    _ready: dict[FactorGraph, CompiledGraph] = field(default_factory=dict, repr=False, init=False)

    def run(self, graph: FactorGraph, scores: Array, iterations: int, whole: bool) -> Run:
        ready = self.ready(graph)
        linear = ready.bethe and bool(message_steps.fits(scores, ready.plan))
        if linear and ready.binary:
            return OddsRun(ready, scores, iterations, whole)
        return MessageRun(ready, scores, iterations, whole, linear)

    def ready(self, graph: FactorGraph) -> CompiledGraph:
        """Compiled once per structure."""
        if graph not in self._ready:
            self._ready[graph] = compiled(graph, self.rho, self.order)
        return self._ready[graph]


@dataclass(frozen=True)
class MeanField:
    """Sweeps over the variables in their order, from uniform distributions."""

    _ready: dict[FactorGraph, MessagePlan] = field(default_factory=dict, repr=False, init=False)

    def run(self, graph: FactorGraph, scores: Array, iterations: int, whole: bool) -> Run:
        if graph not in self._ready:
            refuse(graph)
            self._ready[graph] = plan(graph, graph.counting(1.0))
        return FieldRun(self._ready[graph], scores, iterations, whole)

"""Contrastive free energies: what k steps of relaxation gain when they start at the data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from mlestruct.batch import Batch
from mlestruct.objectives.base import Values
from mlestruct.structures.base import Array, Ints
from mlestruct.structures.graph import FactorGraph


class Relaxed(NamedTuple):
    """Where a relaxation began and ended: F_0 and F_k per example, the moments' τ at both."""

    start: Array
    end: Array
    data: Array
    tau: Array
    warm: Any = None


class Relaxation(Protocol):
    """k steps that never raise a free energy F(τ) ≥ min F, from the batch's target.

    Interface: calling it with (batch, scores, warm) → :class:`Relaxed`; ``exact`` tells whether
    its end is a minimum, so that the ends' dependence on the scores does not count.
    """

    @property
    def exact(self) -> bool: ...

    def __call__(self, batch: Batch[Any], scores: Array, warm: Any) -> Relaxed: ...


@dataclass(frozen=True)
class Contrastive:
    """CF = Σ w_m (F_0 − F_k) ≥ 0, with the gradient of k steps held fixed: τ_k − τ_0.

    F_0 is taken at the data, hidden variables relaxed given what was seen, and F_k after k steps
    from there with everything free. A variable is hidden where its table in the batch's target is
    no vertex. Until the relaxation has converged the gradient ignores how its end moves with the
    weights: it is then not the gradient of CF.
    """

    relaxation: Relaxation

    @property
    def exact_gradient(self) -> bool:
        return self.relaxation.exact

    def __call__(
        self, batch: Batch[Any], heads: Mapping[str, Array], warm: Any, tol: float
    ) -> Values:
        if batch.target is None:
            raise ValueError("a contrastive free energy starts at the data; the batch has none")
        found = self.relaxation(batch, heads["score"], warm)
        gradient = (found.tau - found.data) * batch.weight[batch.owner]
        value = float(batch.weight @ (found.start - found.end))
        return Values(value, {"score": gradient}, found.tau, found.warm)


def seen(graph: FactorGraph, rows: Array) -> Any:
    """(examples × variables): whether a variable's table in each row of targets is a vertex."""
    hits = rows[:, : graph.node_start[-1]] == 1
    return np.add.reduceat(hits.astype(np.int64), graph.node_start[:-1], axis=1) == 1


def states(graph: FactorGraph, target: Array) -> Ints:
    """What ``clamp`` takes: the state of every variable seen in a target, −1 for the others."""
    return np.where(seen(graph, target[None])[0], graph.decode(target), -1)


def clamped(batch: Batch[FactorGraph]) -> Batch[FactorGraph] | None:
    """The same examples with what was seen held; None where nothing is hidden."""
    assert batch.target is not None
    structures = []
    for m in range(len(batch)):
        graph, target = batch.structure(m), batch.target[batch.coordinates(m)]
        if not isinstance(graph, FactorGraph):
            if not np.isin(target, (0, 1)).all() or not graph.contains(target):
                raise ValueError(f"example {m}: only labelled graphs may have hidden variables")
            continue
        structures.append(graph.clamp(states(graph, target)))
    if all((s.fixed[: s.node_start[-1]] >= 0).all() for s in structures):
        return None
    return Batch.of(structures, weight=batch.weight, bias=batch.bias)

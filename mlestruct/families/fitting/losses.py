"""Losses on beliefs: learning minimises what predictions will be judged by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mlestruct import Batch, FactorGraph
from mlestruct.entropy import TINY
from mlestruct.kernels import kernel
from mlestruct.structures.base import Array, Ints, as_vector
from mlestruct.structures.graph import only_graphs


class ObservedTables(NamedTuple):
    """The observed tables of a batch: coordinates first..last, the true entry, the weight."""

    first: Ints
    last: Ints
    truth: Ints
    weight: Array


def variables(batch: Batch[FactorGraph]) -> ObservedTables:
    """Every variable that is observed: univariate losses."""
    return _units(batch, lambda graph: graph.node_start)


def factors(batch: Batch[FactorGraph]) -> ObservedTables:
    """Every factor all of whose variables are observed: clique losses."""
    return _units(batch, lambda graph: graph.table_start)


def _units(batch: Batch[FactorGraph], starts: Callable[[FactorGraph], Ints]) -> ObservedTables:
    if batch.target is None:
        raise ValueError("a loss needs observed outcomes, and this batch has none")
    only_graphs(batch.structures, "a loss of beliefs")
    found: list[tuple[Ints, Ints, Ints, Ints]] = []
    for structure, members in batch.groups():
        start = starts(structure)
        for m in members:
            here = int(batch.offsets[m]) + start
            true = here[0] + np.flatnonzero(batch.target[here[0] : here[-1]] == 1)
            table = np.searchsorted(here, true, side="right") - 1
            found.append((here[table], here[table + 1], true, np.full(len(true), m)))
    first, last, truth, owner = (np.concatenate(part) for part in zip(*found, strict=True))
    return ObservedTables(first, last, truth, batch.weight[owner])


Measure = Callable[[Array, ObservedTables, Array], float]
"""A loss of tables: of (beliefs, units, slope) it adds b·∂L/∂b to slope and returns Σ L.

Slopes are taken by log-beliefs, so that they stay finite where a belief is 0.
"""


@kernel
def likelihood(tau: Array, units: ObservedTables, slope: Array) -> float:
    """−log b(ŷ)."""
    total = 0.0
    for u in range(len(units.truth)):
        total -= units.weight[u] * np.log(max(tau[units.truth[u]], TINY))
        slope[units.truth[u]] -= units.weight[u]
    return total


@kernel
def quadratic(tau: Array, units: ObservedTables, slope: Array) -> float:
    """Σ_y b(y)² − 2 b(ŷ): the squared distance from the observed vertex, less 1."""
    total = 0.0
    for u in range(len(units.truth)):
        weight, true = units.weight[u], units.truth[u]
        for k in range(units.first[u], units.last[u]):
            total += weight * tau[k] ** 2
            slope[k] += 2.0 * weight * tau[k] ** 2
        total -= 2.0 * weight * tau[true]
        slope[true] -= 2.0 * weight * tau[true]
    return total


def classification(
    tau: Array, units: ObservedTables, slope: Array, sharpness: float = 5.0
) -> float:
    """σ(λ (max_{y≠ŷ} b(y) − b(ŷ))): the 0/1 error, smoothed by ``sharpness`` λ."""
    return float(_classification(tau, units, sharpness, slope))


@dataclass(frozen=True)
class Loss:
    """Σ_m w_m Σ_u ℓ(b_u, ŷ_u) over the observed tables u: variables, or factors."""

    measure: Measure
    units: Callable[[Batch[Any]], ObservedTables] = variables

    @property
    def on_factors(self) -> bool:
        return self.units is factors

    def __call__(self, tau: Array, units: ObservedTables) -> tuple[float, Array]:
        """(L, b·∂L/∂b)."""
        slope = np.zeros(len(tau))
        return self.measure(tau, units, slope), slope


def where_seen(loss: Loss, heads: Callable[..., Any]) -> Callable[..., Any]:
    """The heads of a problem; a ValueError where the loss has no table to learn from."""

    def made(batch: Batch[Any], features: Any) -> Any:
        if len(loss.units(batch).truth) == 0:
            what = "factor was seen whole" if loss.on_factors else "label was seen"
            raise ValueError(f"no {what}: the loss has nothing to learn from (ucl needs labels)")
        return heads(batch, features)

    return made


LOSSES = {
    "ucl": Loss(likelihood),
    "uquad": Loss(quadratic),
    "uclass": Loss(classification),
    "ccl": Loss(likelihood, factors),
    "cquad": Loss(quadratic, factors),
    "cclass": Loss(classification, factors),
}
"""By the thesis's names: u(nivariate) or c(lique); conditional likelihood, quadratic, class."""


def named(loss: str | Loss) -> Loss:
    """A loss, or the one of that name."""
    if isinstance(loss, Loss):
        return loss
    if loss not in LOSSES:
        raise ValueError(f"no loss named {loss!r}; there are {', '.join(LOSSES)}")
    return LOSSES[loss]


def errors(tau: Array, units: ObservedTables) -> float:
    """The weighted share of tables whose most likely entry is not the true one; ties are errors."""
    return float(_wrong(as_vector(tau, "tau", np.size(tau)), units) / units.weight.sum())


@kernel
def _classification(tau: Array, units: ObservedTables, sharpness: float, slope: Array) -> float:
    total = 0.0
    for u in range(len(units.truth)):
        rival, true = -1, units.truth[u]
        for k in range(units.first[u], units.last[u]):
            if k != true and (rival < 0 or tau[k] > tau[rival]):
                rival = k
        if rival < 0:
            continue  # one state only: nothing to confuse it with
        chance = 1.0 / (1.0 + np.exp(sharpness * (tau[true] - tau[rival])))
        total += units.weight[u] * chance
        change = units.weight[u] * sharpness * chance * (1.0 - chance)
        slope[rival] += change * tau[rival]
        slope[true] -= change * tau[true]
    return total


@kernel
def _wrong(tau: Array, units: ObservedTables) -> float:
    total = 0.0
    for u in range(len(units.truth)):
        for k in range(units.first[u], units.last[u]):
            if k != units.truth[u] and tau[k] >= tau[units.truth[u]]:
                total += units.weight[u]
                break
    return total

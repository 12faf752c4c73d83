"""Losses on beliefs: learning minimises what predictions will be judged by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mlestruct import Batch, FactorGraph
from mlestruct.structures.base import Array, Ints, as_numbers
from mlestruct.structures.entropy import TINY
from mlestruct.structures.graph import only_graphs


class ObservedTables(NamedTuple):
    """The observed tables of a batch."""

    first: Ints  # coordinates of every table's first entry
    truth: Ints  # and of the true one
    weight: Array
    start: Ints  # where a table's entries start among all
    table: Ints  # of every entry
    entry: Ints  # its coordinate


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
    sizes = last - first
    start, table = np.cumsum(sizes) - sizes, np.repeat(np.arange(len(sizes)), sizes)
    entry = np.arange(len(table)) + (first - start)[table]
    return ObservedTables(first, truth, batch.weight[owner], start, table, entry)


Measure = Callable[[Array, ObservedTables, Array], float]
"""A loss of tables: of (beliefs, units, slope) it adds b·∂L/∂b to slope and returns Σ L.

Slopes are taken by log-beliefs, so that they stay finite where a belief is 0.
"""


def likelihood(tau: Array, units: ObservedTables, slope: Array) -> float:
    """−log b(ŷ)."""
    slope[units.truth] -= units.weight
    return -float(units.weight @ np.log(np.maximum(tau[units.truth], TINY)))


def quadratic(tau: Array, units: ObservedTables, slope: Array) -> float:
    """Σ_y b(y)² − 2 b(ŷ): the squared distance from the observed vertex, less 1."""
    true = units.weight * tau[units.truth]
    squares = units.weight[units.table] * tau[units.entry] ** 2
    slope[units.entry] += 2.0 * squares
    slope[units.truth] -= 2.0 * true
    return float(squares.sum() - 2.0 * true.sum())


def classification(
    tau: Array, units: ObservedTables, slope: Array, sharpness: float = 5.0
) -> float:
    """σ(λ (max_{y≠ŷ} b(y) − b(ŷ))): the 0/1 error, smoothed by ``sharpness`` λ."""
    best, tops = _rivals(tau, units)
    rival = np.full(len(best), -1)
    rival[units.table[tops[::-1]]] = units.entry[tops[::-1]]  # the first of those that tie
    some = best > -np.inf  # of one state only there is nothing to confuse it with
    truth, rival, weight = units.truth[some], rival[some], units.weight[some]
    with np.errstate(over="ignore"):
        chance = 1.0 / (1.0 + np.exp(sharpness * (tau[truth] - tau[rival])))
    change = weight * sharpness * chance * (1.0 - chance)
    slope[rival] += change * tau[rival]
    slope[truth] -= change * tau[truth]
    return float(weight @ chance)


def _rivals(tau: Array, units: ObservedTables) -> tuple[Array, Ints]:
    """The largest belief of every table besides the true entry's, and which entries have it.

    −∞ where there is no other entry.
    """
    among = tau[units.entry]
    among[units.truth - units.first + units.start] = -np.inf
    best = np.maximum.reduceat(among, units.start)
    return best, np.flatnonzero(among == best[units.table])


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
    tau = as_numbers(tau, "tau", np.size(tau))
    return float(units.weight @ (_rivals(tau, units)[0] >= tau[units.truth]) / units.weight.sum())

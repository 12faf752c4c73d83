"""The dual of convex inference: a price per equality of the local polytope, and no constraint.

Beliefs follow from prices, b = exp((η − Aᵀλ)/w − 1), and Σ w b + dᵀλ is least where they add up to
d. Tables are not eliminated, so it is slower than what they are, and owes it nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import spsolve

from mlestruct.families.fitting.condensed import Optima
from mlestruct.structures.base import Array
from mlestruct.structures.batch import Batch
from mlestruct.structures.graph import FactorGraph
from tests.reference.descents import minimise

NEAR = 1e-3  # violation from which Newton's method goes on
DAMP = 1e-12  # of the mean curvature: equalities say some things twice
HALVINGS = 40


@dataclass(frozen=True)
class Prices:
    """L-BFGS, and Newton's method near the end if ``newton``; positive weights only.

    ``tol`` is the largest violation of an equality; L-BFGS takes at most ``steps``.
    """

    tol: float = 1e-10
    steps: int = 2000
    newton: bool = True

    def minimise(self, batch: Batch[FactorGraph], score: Array, weight: Array) -> Optima:
        """From prices at which no table's belief exceeds 1/e."""
        if not (weight > 0).all():
            k = int(np.argmin(weight))
            raise ValueError(f"coordinate {k} has weight {weight[k]:g}; a dual needs positive ones")
        tau, gap = np.empty(batch.size), np.empty(len(batch))
        for m in range(len(batch)):
            here, graph = batch.coordinates(m), batch.structure(m)
            dual = Free(graph, score[here], weight[here])
            with np.errstate(over="ignore", invalid="ignore"):  # steps too long are worth infinity
                price = self._descend(dual, _start(graph, score[here]))
            tau[here], size = dual.beliefs(price), graph.n_nodes + graph.n_factors
            owed = np.abs(price) @ np.abs(dual(price)[1])
            gap[m] = owed / (size + np.abs(score[here] * tau[here]).sum())
        return Optima(tau, gap, np.zeros(batch.size))

    def _descend(self, dual: Free, price: Array) -> Array:
        until = NEAR if self.newton else self.tol
        for step in islice(minimise(dual, price), self.steps):
            price = step.theta
            if np.abs(step.gradient).max() <= until or not step.moved:
                break
        return dual.polished(price, self.tol) if self.newton else price


class Free:
    """λ → (Σ w b(λ) + dᵀλ, d − A b(λ))."""

    def __init__(self, graph: FactorGraph, score: Array, weight: Array) -> None:
        rows = graph.constraints()
        self.A, self.d, self.score, self.weight = rows.A, rows.lo, score, weight
        self.back: Any = sp.csr_array(rows.A.T)

    def beliefs(self, price: Array) -> Array:
        return np.asarray(np.exp((self.score - self.back @ price) / self.weight - 1.0))

    def __call__(self, price: Array) -> tuple[float, Array]:
        b = self.beliefs(price)
        return float(self.weight @ b + self.d @ price), self.d - self.A @ b

    def polished(self, price: Array, tol: float) -> Array:
        """Newton's steps with enough decrease, until rounding leaves none."""
        value, slope = self(price)
        while np.abs(slope).max() > tol:
            curve = self.A @ sp.diags_array(self.beliefs(price) / self.weight) @ self.back
            damp = DAMP * curve.diagonal().mean() * sp.eye_array(len(price))
            step = -spsolve(sp.csc_array(curve + damp), slope)
            for length in 0.5 ** np.arange(HALVINGS):
                fresh, bent = self(price + length * step)
                if fresh < value + 1e-4 * length * float(step @ slope):
                    break
            else:
                return price
            price, value, slope = price + length * step, fresh, bent
        return price


def _start(graph: FactorGraph, score: Array) -> Array:
    """Prices that bring every entry's exponent to −1 or less: nothing overflows."""
    n, tables = graph.n_nodes, graph.table_of
    states = graph.cards[graph.scope]
    highest = np.maximum.reduceat(score, np.flatnonzero(np.diff(tables, prepend=-1)))
    first = np.zeros(len(states), dtype=bool)
    first[graph.scope_start[:-1]] = True
    factor = np.repeat(np.arange(graph.n_factors), np.diff(graph.scope_start))
    taken = np.where(first, highest[n + factor], 0.0)
    moved = highest[:n] + np.bincount(graph.scope, weights=taken, minlength=n)
    return np.concatenate([moved, np.repeat(taken, states)])

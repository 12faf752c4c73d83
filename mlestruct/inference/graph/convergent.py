"""Where messages do not converge: Newton's method within the local polytope, which always does."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from mlestruct.inference.graph.plan import boxes
from mlestruct.limits import late
from mlestruct.native._door import MessageGraph, fit_tables
from mlestruct.structures.base import Array, Flags, Ints
from mlestruct.structures.graph import FactorGraph

ROUNDS, FIRST, FEW = 300, 40, 8  # at most; before cooling; and at each temperature
MIX = 1e-3  # of the uniform point in the start: no entry is zero
LEAST = 1e-280  # of an entry
FALL, RISE = -300.0, 30.0  # of the logarithm of an entry, in one step
END, ROUGH = 1e-14, 1e-6  # what a step may still gain, relative to the value
RIDGE = 1e-13  # for the constraints' redundant rows


def ascend(
    structure: FactorGraph, plan: MessageGraph, coefficient: Array, score: Array, tau: Array
) -> tuple[Array, float]:
    """A feasible τ with no smaller ⟨score, τ⟩ − Σ a τ log τ; its maximum, when that is concave.

    Newton's method from a mixture of τ with the uniform point. Where it jams, on the way to an
    optimum that is nearly a vertex, scores are divided by a temperature that falls to 1, each time
    from the point before: optima of neighbouring temperatures are near each other.
    Where configurations are forbidden by themselves the uniform point is none, and τ is returned.
    """
    start = _value(score, coefficient, tau)
    if not boxes(structure, plan):
        return tau, start
    newton = _Newton(structure, plan, coefficient)
    open_ = newton.open
    uniform = 1.0 / np.bincount(structure.table_of[open_])[structure.table_of[open_]]
    x, met = newton.run(score[open_], (1 - MIX) * tau[open_] + MIX * uniform, FIRST, END)
    found = [newton.full(x)]
    if not met and not late():
        found.append(newton.full(newton.cooled(score[open_], uniform)))
    values = [_value(score, coefficient, one) for one in found]
    best = int(np.argmax(values))
    return (found[best], values[best]) if values[best] > start else (tau, start)


class _Newton:
    """Newton's method on the open coordinates of one graph.

    Each step solves one sparse system in open coordinates and their constraints, scaled by √τ so
    that rare entries do not spoil it, and multiplies entries instead of adding to them: so those
    that vanish hold nobody up. Tables are then fitted to their nodes again.
    """

    def __init__(self, structure: FactorGraph, plan: MessageGraph, coefficient: Array) -> None:
        self.plan, self.open = plan, plan.open != 0
        self.A, self.scaled = _constraints(structure, self.open)
        self.a, self.size = coefficient[self.open], structure.size

    def full(self, x: Array) -> Array:
        """All coordinates of these open ones, made feasible."""
        tau, start = np.zeros(self.size), self.plan.node_start
        tau[self.open] = x
        nodes = tau[: start[-1]]
        nodes /= np.repeat(np.add.reduceat(nodes, start[:-1]), np.diff(start))
        fit_tables(self.plan, tau)
        return tau

    def _feasible(self, x: Array) -> Array:
        return np.maximum(self.full(x)[self.open], LEAST)

    def run(self, score: Array, x: Array, rounds: int, tol: float) -> tuple[Array, bool]:
        """Where it ends, and whether no step gains more than ``tol`` of the value there."""
        x = self._feasible(x)
        value = _value(score, self.a, x)
        for _ in range(rounds):
            if late():
                return x, False
            slope = score - self.a * (np.log(x) + 1.0)
            step = _step(x, slope, self.a, self.A, self.scaled)
            gain = float(slope @ step)
            if not gain > tol * max(1.0, abs(value)):
                return x, True
            gamma, reached = 1.0, -np.inf
            while gamma > 1e-12 and not reached >= value + 1e-4 * gamma * gain - END * abs(value):
                moved = self._feasible(x * np.exp(np.clip(gamma * step / x, FALL, RISE)))
                reached, gamma = _value(score, self.a, moved), gamma / 2
            if not reached > value:
                return x, False
            x, value = moved, reached
        return x, False

    def cooled(self, score: Array, x: Array) -> Array:
        """The optimum, from that of scores which are nearly equal."""
        heat = max(1.0, float(np.abs(score).max()) / 2)
        while heat > 1 and not late():
            x, _ = self.run(score / heat, x, FEW, ROUGH)
            cooler = max(1.0, heat / 2)
            x, heat = x ** (heat / cooler), cooler
        return self.run(score, x, ROUNDS, END)[0]


def _constraints(structure: FactorGraph, open_: Flags) -> tuple[sp.csr_array, Ints]:
    """The constraints on open coordinates, and whose marginal scales each row (−1: none).

    Rows of a node's state in a factor's slot are scaled by that state's marginal.
    """
    states = _states(structure)
    rows = np.concatenate(
        [np.arange(structure.n_nodes), structure.n_nodes + np.flatnonzero(open_[states])]
    )
    place = np.cumsum(open_) - 1
    scaled = np.concatenate([np.full(structure.n_nodes, -1), place[states[open_[states]]]])
    stated = structure.stated
    assert stated is not None
    return stated.A[rows][:, np.flatnonzero(open_)], scaled


def _states(structure: FactorGraph) -> Ints:
    """The node coordinate of every (slot, state)."""
    sizes = structure.cards[structure.scope]
    first = np.concatenate([[0], np.cumsum(sizes)])[:-1]
    shift = structure.node_start[structure.scope] - first
    return np.repeat(shift, sizes) + np.arange(int(sizes.sum()))


def _step(x: Array, slope: Array, coefficient: Array, A: sp.csr_array, scaled: Ints) -> Array:
    """max slope·d − ½ Σ (a/x) d² over A d = 0."""
    from scipy.sparse.linalg import splu

    root = np.sqrt(x)
    lift = np.where(scaled < 0, 1.0, 1.0 / root[scaled])
    B = sp.diags_array(lift) @ A @ sp.diags_array(root)
    corner = sp.diags_array(np.full(A.shape[0], -RIDGE))
    system = sp.block_array([[sp.diags_array(coefficient), B.T], [B, corner]], format="csc")
    right = np.concatenate([root * slope, np.zeros(A.shape[0])])
    factor = splu(system)
    found = factor.solve(right)
    found += factor.solve(right - system @ found)
    return np.asarray(root * found[: len(x)])


def _value(score: Array, coefficient: Array, tau: Array) -> float:
    inside = tau > 0
    t = tau[inside]
    return float(score @ tau - (coefficient[inside] * t) @ np.log(t))

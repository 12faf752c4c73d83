"""Where messages do not converge: Newton's method within the local polytope, which always does."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from mlestruct.inference.feasible import fit_all
from mlestruct.inference.message_plan import Plan
from mlestruct.structures.base import Array, Ints
from mlestruct.structures.graph import FactorGraph

ROUNDS = 300
MIX = 1e-3  # of the uniform point in the start: no entry is zero
SHORT = 0.98  # of the way to the nearest entry that would become zero
RIDGE = 1e-13  # for the constraints' redundant rows


def ascend(
    structure: FactorGraph, plan: Plan, coefficient: Array, score: Array, tau: Array
) -> tuple[Array, float]:
    """A feasible τ with no smaller ⟨score, τ⟩ − Σ a τ log τ; its maximum, when that is concave.

    Damped Newton from a mixture of τ with the uniform point: each step solves one sparse system
    in coordinates and constraints, scaled by √τ so that rare entries do not spoil it. Structures
    with closed entries are left to Frank-Wolfe: their τ comes back as it is.
    """
    start = _value(score, coefficient, tau)
    centre = structure.interior()
    rows = structure.constraints()
    if centre is None:
        return tau, start
    # rows of node k's state in a factor's slot are scaled by that state's marginal
    scaled = np.concatenate([np.full(structure.n_nodes, -1), _states(structure)])
    x = (1 - MIX) * tau + MIX * centre
    value = _value(score, coefficient, x)
    for _ in range(ROUNDS):
        slope = score - coefficient * (np.log(x) + 1.0)
        step = _step(x, slope, coefficient, rows.A, scaled)
        shrinking = step < 0
        gamma = min(1.0, SHORT * float((x[shrinking] / -step[shrinking]).min(initial=np.inf)))
        gain = float(slope @ step)
        if not gain > 1e-14 * max(1.0, abs(value)):
            break
        reached = -np.inf
        while gamma > 1e-10:
            reached = _value(score, coefficient, x + gamma * step)
            if reached >= value + 1e-4 * gamma * gain - 1e-14 * abs(value):
                break
            gamma /= 2
        if not reached > value:
            break
        x, value = x + gamma * step, reached
    x[: plan.node_start[-1]] /= np.repeat(
        np.add.reduceat(x[: plan.node_start[-1]], plan.node_start[:-1]), np.diff(plan.node_start)
    )
    fit_all(x, plan)
    value = _value(score, coefficient, x)
    return (x, value) if value > start else (tau, start)


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

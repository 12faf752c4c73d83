"""Where messages do not converge: Newton's method within the local polytope, which always does."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from mlestruct.inference.graph.feasible import fit_all
from mlestruct.inference.graph.plan import MessagePlan, boxes
from mlestruct.structures.base import Array, Flags, Ints
from mlestruct.structures.graph import FactorGraph

ROUNDS = 300
MIX = 1e-3  # of the uniform point in the start: no entry is zero
SHORT = 0.98  # of the way to the nearest entry that would become zero
LEAST = 1e-280  # of an entry: short steps to 0 would underflow
RIDGE = 1e-13  # for the constraints' redundant rows


def ascend(
    structure: FactorGraph, plan: MessagePlan, coefficient: Array, score: Array, tau: Array
) -> tuple[Array, float]:
    """A feasible τ with no smaller ⟨score, τ⟩ − Σ a τ log τ; its maximum, when that is concave.

    Damped Newton from a mixture of τ with the uniform point: each step solves one sparse system
    in open coordinates and their constraints, scaled by √τ so that rare entries do not spoil it.
    Where configurations are forbidden by themselves the uniform point is none, and τ is returned.
    """
    start = _value(score, coefficient, tau)
    if not boxes(structure, plan):
        return tau, start
    open_ = plan.open != 0
    A, scaled = _constraints(structure, open_)
    score_, a = score[open_], coefficient[open_]
    size = np.bincount(structure.table_of[open_])[structure.table_of[open_]]
    x = (1 - MIX) * tau[open_] + MIX / size
    value = _value(score_, a, x)
    for _ in range(ROUNDS):
        slope = score_ - a * (np.log(x) + 1.0)
        step = _step(x, slope, a, A, scaled)
        shrinking = step < 0
        gamma = min(1.0, SHORT * float((x[shrinking] / -step[shrinking]).min(initial=np.inf)))
        gain = float(slope @ step)
        if not gain > 1e-14 * max(1.0, abs(value)):
            break
        reached = -np.inf
        while gamma > 1e-10:
            reached = _value(score_, a, x + gamma * step)
            if reached >= value + 1e-4 * gamma * gain - 1e-14 * abs(value):
                break
            gamma /= 2
        if not reached > value:
            break
        x, value = np.maximum(x + gamma * step, LEAST), reached
    full = np.zeros(len(tau))
    full[open_] = x
    nodes = full[: plan.node_start[-1]]
    nodes /= np.repeat(np.add.reduceat(nodes, plan.node_start[:-1]), np.diff(plan.node_start))
    fit_all(full, plan)
    value = _value(score, coefficient, full)
    return (full, value) if value > start else (tau, start)


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
    return structure.constraints().A[rows][:, np.flatnonzero(open_)], scaled


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

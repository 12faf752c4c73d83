"""Newton steps to the least of the node-wise bound on matchings, in node prices.

``native/matching_beyond_half.cpp`` has the formula, the bound and its derivatives.
"""

from __future__ import annotations

import numpy as np

from mlestruct.inference.matching.graph import Layout
from mlestruct.limits import late
from mlestruct.native._door import MatchingResponse, matching_bound, matching_respond
from mlestruct.structures.base import Array

SHORT = (0.1, 0.01, 1e-3, 1e-4, 1e-5, 1e-6)  # of ρ = 1, where D has kinks and plateaus
LEAST = 1e-10  # damping; prices that trade with each other leave the Hessian singular


def price_bound(graph: Layout, rho: float, score: Array, x: Array) -> float:
    """Return a bound on max ⟨score, τ⟩ + H over the degrees at these prices."""
    value = np.empty(1)
    matching_bound(graph.native, rho, score, x, value)
    return float(value[0])


def approach(
    graph: Layout, rho: float, score: Array, x: Array, tau: Array, residual: float, rounds: int
) -> float:
    """Find the least bound in x, and τ: up to ρ = 1 through smaller ρ, each from the last's x."""
    worst = np.inf
    for short in SHORT:
        worst = descend(graph, min(rho, 1.0 - short), score, x, tau, residual, rounds)
    return worst


def descend(
    graph: Layout, rho: float, score: Array, x: Array, tau: Array, residual: float, rounds: int
) -> float:
    """Take damped Newton steps to the least bound; return the error of τ, the mean of both ends'.

    O(nodes³) a step. The damping falls as long as the bound does, so that steps become Newton's.
    """
    now, new = (_response(graph) for _ in range(2))
    matching_respond(graph.native, rho, score, x, now)
    damping = 1e-3
    for _ in range(rounds):
        if np.abs(now.slope).max() <= residual or damping > 1e12 or late():
            break
        damped = now.curvature + damping * np.eye(graph.nodes)
        trial = x - np.linalg.solve(damped, now.slope)
        matching_respond(graph.native, rho, score, trial, new)
        if new.value <= now.value:
            damping = max(0.1 * damping, LEAST)
            x[:], now, new = trial, new, now
        else:
            damping *= 10.0
    tau[:] = now.tau
    return float(np.abs(now.slope).max())


def _response(graph: Layout) -> MatchingResponse:
    n = graph.nodes
    tau, slope, curvature = np.empty(graph.live), np.empty(n), np.empty((n, n))
    return MatchingResponse(n, graph.live, tau, slope, curvature, np.empty(1))

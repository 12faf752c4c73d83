"""Inference on matchings node by node: a bound at any node prices, and Newton steps to the least.

With b = 2ρ − 1 and r = 1 − τ, the entropy for ½ ≤ ρ ≤ 1 is a sum over nodes of
½ Σ [−τ log τ + b r log r] − ρ s log s over their edges and slack s, each concave over what its node
can do. Prices x split an edge's score between its ends; let every node choose by itself,

    D(x) = ½ Σ_v { x_v + max_q Σ_e [(score_e − x_other) q_e − q_e log q_e + b r_e log r_e]
                          − x_v s − 2ρ s log s },

and D is convex, nowhere below the maximum over the degrees, and equal to it at best. A tangent
bounds every node's maximum, at any q: max_e [score_e − x_other − log q_e − b log r_e] (and
−x_v − 2ρ log s) + b Σ_e log r_e.
"""

from __future__ import annotations

import numpy as np

from mlestruct.inference.matching.kernels import entry
from mlestruct.kernels import kernel

NOTHING = 1e-17  # left to the others: the bound is what the likeliest is worth by itself
SHORT = np.array([0.1, 0.01, 1e-3, 1e-4, 1e-5, 1e-6])  # of ρ = 1, where D has kinks and plateaus
LEAST = 1e-10  # damping; prices that trade with each other leave the Hessian singular


@kernel
def split_value(score, ptr, head, strict, rho, x):
    """D at these prices, rounded up to a tangent's: a bound on max ⟨score, τ⟩ + H."""
    start, other, edge = sides(ptr, head)
    worth, total = score[edge] - x[other], 0.0
    for v in range(len(x)):
        if start[v + 1] > start[v]:
            total += level(worth[start[v] : start[v + 1]], x[v], strict[v], rho)[0]
    return 0.5 * total


@kernel
def sides(ptr, head):
    """Every node's edges, as tail or head: where they start, their other ends, their numbers."""
    n = len(ptr) - 1
    start = np.zeros(n + 1, dtype=np.int64)
    for u in range(n):
        start[u + 1] += ptr[u + 1] - ptr[u]
        for e in range(ptr[u], ptr[u + 1]):
            start[head[e] + 1] += 1
    start = np.cumsum(start)
    place = start[:n].copy()
    other, edge = np.empty(start[n], dtype=np.int64), np.empty(start[n], dtype=np.int64)
    for u in range(n):
        for e in range(ptr[u], ptr[u + 1]):
            v = head[e]
            other[place[u]], other[place[v]] = v, u
            edge[place[u]] = edge[place[v]] = e
            place[u] += 1
            place[v] += 1
    return start, other, edge


@kernel
def level(worth, x, strict, rho):
    """(twice a node's bound, the level at which its outcomes are worth the same, its likeliest).

    The likeliest (−1: none) takes what the others leave: no digit of its r, their sum, is lost near
    a vertex, and the bound is tight there too, also where the optimum at ρ = 1 is the vertex.
    """
    b, value, best = 2.0 * rho - 1.0, np.inf, x
    top = int(worth.argmax())
    half = 2.0 * rho * np.log(2.0) - x  # the level at which every second time it stays single
    if not strict and _others(worth, -1, half, x, strict, rho)[0] < 0.5:
        top = -1
    now, low, high, step = x, -np.inf, np.inf, 1e-6
    for _ in range(200):
        rest, curvature, most, off = _others(worth, top, now, x, strict, rho)
        error, slope = np.inf, 0.0
        if rest < 1.0:
            if top >= 0:
                own = worth[top] - np.log1p(-rest) - b * np.log(rest)
                off += b * np.log(rest)
                slope = curvature * (b / rest - 1.0 / (1.0 - rest)) - 1.0
            else:
                own = -x - 2.0 * rho * np.log1p(-rest)
                slope = -2.0 * rho * curvature / (1.0 - rest) - 1.0
            error = own - now
            if x + max(own, most) + off <= value:
                value, best = x + max(own, most) + off, now
            if abs(error) <= 1e-14 * (1.0 + abs(now)) or (rest < NOTHING and error > 0.0):
                break
        low, high = (now, high) if error > 0.0 else (low, now)
        now, step = _towards(now, low, high, error, slope, step)
    return value, best, top


@kernel
def _towards(now, low, high, error, slope, step):
    """Longer steps until there is a bracket; in it Newton's, or halves where they do not shrink."""
    if low == -np.inf or high == np.inf:
        return (now + step if error > 0.0 else now - step), 8.0 * step
    newton = -error / slope if slope < 0.0 else np.inf
    if low < now + newton < high and abs(newton) <= 0.5 * step:
        return now + newton, abs(newton)
    half = 0.5 * (low + high)
    return half, abs(half - now)


@kernel
def _others(worth, top, now, x, strict, rho):
    """All but the likeliest at a level: their mass, −its slope, the highest, and b Σ log r."""
    b = 2.0 * rho - 1.0
    rest, curvature, most, off = 1e-300, 0.0, now, 0.0
    for k in range(len(worth)):
        if k != top:
            q = entry(np.exp(worth[k] - now), -b)
            away = np.log1p(-q)
            rest += q
            curvature += q * (1.0 - q) / max(1.0 - (1.0 + b) * q, 1e-9)
            off += b * away
            if q > 1e-290:
                most = max(most, worth[k] - np.log(q) - b * away)
    if not strict and top >= 0:
        single = np.exp(-0.5 * (x + now) / rho)
        rest += single
        curvature += 0.5 * single / rho
    return rest, curvature, most, off


@kernel
def approach(score, ptr, head, strict, rho, x, tau, residual, rounds):
    """The least D in x, and τ: up to ρ = 1 through smaller ρ, each from where the last ended."""
    worst = np.inf
    for short in SHORT:
        near = min(rho, 1.0 - short)
        worst = descend(score, ptr, head, strict, near, x, tau, residual, rounds)
    return worst


@kernel
def descend(score, ptr, head, strict, rho, x, tau, residual, rounds):
    """Damped Newton steps to the least D; τ is what an edge's ends mean, the return their error.

    O(nodes³) a step. The damping falls as long as D does, so that steps become Newton's.
    """
    n = len(x)
    start, other, edge = sides(ptr, head)
    trial, slope, curvature = x.copy(), np.zeros(n), np.zeros((n, n))
    tried, steep, curved = np.zeros(len(score)), np.zeros(n), np.zeros((n, n))
    value = _respond(score, start, other, edge, strict, rho, x, tau, slope, curvature)
    damping = 1e-3
    for _ in range(rounds):
        if np.abs(slope).max() <= residual or damping > 1e12:
            break
        for v in range(n):
            curved[v] = curvature[v]
            curved[v, v] += damping
        trial[:] = x - np.linalg.solve(curved, slope)
        new = _respond(score, start, other, edge, strict, rho, trial, tried, steep, curved)
        if new <= value:
            damping = max(0.1 * damping, LEAST)
            value, x[:], tau[:], slope[:], curvature[:] = new, trial, tried, steep, curved
        else:
            damping *= 10.0
    return np.abs(slope).max()


@kernel
def _respond(score, start, other, edge, strict, rho, x, tau, slope, curvature):
    """2D, its slope and its Hessian; τ is the mean of what an edge's two ends choose."""
    b, total = 2.0 * rho - 1.0, 0.0
    tau[:], curvature[:], slope[:] = 0.0, 0.0, 1.0
    for v in range(len(x)):
        near, at = other[start[v] : start[v + 1]], edge[start[v] : start[v + 1]]
        if len(near) == 0:
            slope[v] = 0.0
            continue
        worth = score[at] - x[near]
        value, now, top = level(worth, x[v], strict[v], rho)
        total += value
        k = len(near)
        place, q, d = np.append(near, v), np.zeros(k + 1), np.zeros(k + 1)
        for i in range(k):
            if i != top:
                q[i] = entry(np.exp(worth[i] - now), -b)
                d[i] = q[i] * (1.0 - q[i]) / max(1.0 - (1.0 + b) * q[i], 1e-9)
        if not strict[v] and top >= 0:
            q[k] = np.exp(-0.5 * (x[v] + now) / rho)
            d[k] = 0.5 * q[k] / rho
        rest, moved = max(q.sum(), 1e-300), d.sum()
        far = 1.0 / (1.0 - rest) - b / rest if top >= 0 else 2.0 * rho / (1.0 - rest)
        # 1 + far · moved, without the difference that vanishes at a vertex
        left = 1.0 - b + moved / (1.0 - rest) - b * (d - q).sum() / rest
        left = left if top >= 0 else 1.0 + far * moved
        q[top] = 1.0 - rest  # −1 is the last: to stay single
        for i in range(k):
            tau[at[i]] += 0.5 * q[i]
        for i in range(k + 1):
            slope[place[i]] -= q[i]
        if rest < NOTHING or not left > 1e-12:
            continue
        d[top] = 0.0
        for i in range(k + 1):
            for j in range(k + 1):
                curvature[place[i], place[j]] -= far / left * d[i] * d[j]
            curvature[place[i], place[i]] += d[i]
            curvature[place[i], place[top]] -= d[i] / left
            curvature[place[top], place[i]] -= d[i] / left
        curvature[place[top], place[top]] += moved / left
    return total

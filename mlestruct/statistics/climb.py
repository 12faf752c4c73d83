"""The best mixture of a few points, by Newton's steps under a barrier (Boyd & Vandenberghe, 11.3).

A row maximises ⟨w, score⟩ − Σ a t log t + barrier Σ log w over Σ w = 1, with t = w · views. Steps
are taken in units of w, so that the weight of an idle atom may be as small as it likes.
"""

from __future__ import annotations

import numpy as np

from mlestruct.kernels import kernel
from mlestruct.structures.base import Array, Ints

NEWTON, HALVES = 100, 30  # steps at most, and halvings of one step
STILL = 1e-4  # of the barrier: Newton's decrement, squared, that is as good as none
BACK = 0.95  # of the way to a weight of 0 that one step may go
ROUNDING = 1e-13  # of a height


@kernel
def climb(score: Array, views: Array, a: Array, weight: Array, live: Ints, barrier: float) -> None:
    """Every row's ``weight`` becomes the best one; its first ``live[b]`` atoms are any."""
    k = score.shape[1]
    M, both, moved = np.empty((k, k)), np.empty((k, 2)), np.empty(k)
    t, curve, turned = np.empty(len(a)), np.empty(len(a)), np.empty((len(a), k))
    for b in range(len(score)):
        n = live[b]
        for i in range(n):
            for v in range(len(a)):
                turned[v, i] = views[b, i, v]
        for _ in range(NEWTON):
            _fill(score[b], views[b], turned, a, weight[b], n, barrier, t, curve, M, both)
            _eliminate(M, both, n)
            if _step(score[b], views[b], a, weight[b], n, barrier, t, both, moved):
                break


@kernel
def _fill(
    score: Array,
    views: Array,
    turned: Array,
    a: Array,
    w: Array,
    n: int,
    barrier: float,
    t: Array,
    curve: Array,
    M: Array,
    both: Array,
) -> None:
    """The scaled Hessian, and two right sides: the slope, and the weights (for Σ w = 1).

    A multiple of w wᵀ is added, which no step within Σ w = 1 feels: it makes the matrix definite
    where an entropy is concave only there. ``t`` is left holding minus the entropy's slopes;
    ``turned`` are the views with atoms along the rows, which products run along.
    """
    _mix(views, w, n, t)
    firm = 1.0
    for v in range(len(a)):
        firm += abs(a[v]) * t[v]
        curve[v] = a[v] / t[v]
        t[v] = a[v] * (np.log(t[v]) + 1.0)
    for i in range(n):
        slope = score[i]
        for v in range(len(a)):
            slope -= views[i, v] * t[v]
        both[i, 0] = w[i] * slope + barrier
        both[i, 1] = w[i]
        for j in range(i + 1):
            M[i, j] = firm
        for v in range(len(a)):
            scaled = views[i, v] * curve[v]
            if scaled != 0.0:
                for j in range(i + 1):
                    M[i, j] += scaled * turned[v, j]
        for j in range(i + 1):
            M[i, j] *= w[i] * w[j]
            M[j, i] = M[i, j]
        M[i, i] += barrier


@kernel
def _mix(views: Array, w: Array, n: int, t: Array) -> None:
    for v in range(len(t)):
        t[v] = 0.0
        for i in range(n):
            t[v] += w[i] * views[i, v]
        t[v] = max(t[v], 1e-300)


@kernel
def _eliminate(M: Array, both: Array, n: int) -> None:
    """M⁻¹ both, in place of both, by Gauss's steps with row pivots."""
    for c in range(n):
        p = c
        for i in range(c + 1, n):
            if abs(M[i, c]) > abs(M[p, c]):
                p = i
        if p != c:
            for j in range(n):
                M[c, j], M[p, j] = M[p, j], M[c, j]
            for j in range(2):
                both[c, j], both[p, j] = both[p, j], both[c, j]
        for i in range(c + 1, n):
            share = M[i, c] / M[c, c]
            for j in range(c + 1, n):
                M[i, j] -= share * M[c, j]
            both[i, 0] -= share * both[c, 0]
            both[i, 1] -= share * both[c, 1]
    for c in range(n - 1, -1, -1):
        for j in range(2):
            for i in range(c + 1, n):
                both[c, j] -= M[c, i] * both[i, j]
            both[c, j] /= M[c, c]


@kernel
def _step(
    score: Array,
    views: Array,
    a: Array,
    w: Array,
    n: int,
    barrier: float,
    t: Array,
    both: Array,
    moved: Array,
) -> bool:
    """One damped step of Newton's within Σ w = 1; whether the row is done."""
    top, bottom = 0.0, 0.0
    for i in range(n):
        top += w[i] * both[i, 0]
        bottom += w[i] * both[i, 1]
    rise, back = 0.0, 0.0
    for i in range(n):
        slope = score[i]
        for v in range(len(a)):
            slope -= views[i, v] * t[v]
        both[i, 0] -= top / bottom * both[i, 1]
        rise += (w[i] * slope + barrier) * both[i, 0]
        back = max(back, -both[i, 0])
    here = _height(score, views, a, w, n, barrier, t)
    step = min(1.0, BACK / max(back, 1e-300))
    for _ in range(HALVES):
        total = 0.0
        for i in range(n):
            moved[i] = w[i] * (1.0 + step * both[i, 0])
            total += moved[i]
        for i in range(n):
            moved[i] /= total
        there = _height(score, views, a, moved, n, barrier, t)
        if there >= here + 1e-4 * step * rise - ROUNDING * (1.0 + abs(here)):
            w[:n] = moved[:n]
            return rise <= STILL * barrier
        step /= 2.0
    return True


@kernel
def _height(
    score: Array, views: Array, a: Array, w: Array, n: int, barrier: float, t: Array
) -> float:
    _mix(views, w, n, t)
    found = 0.0
    for i in range(n):
        found += w[i] * score[i] + barrier * np.log(w[i])
    for v in range(len(a)):
        found -= a[v] * t[v] * np.log(t[v])
    return found

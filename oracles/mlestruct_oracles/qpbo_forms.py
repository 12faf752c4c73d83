"""Scores of pairwise binary models made ready for a cut: penalties, signs, whole numbers.

Every function takes a batch of models over the same edges; `qpbo` says what the words mean.
"""

import math

import numpy as np

from mlestruct.kernels import kernel
from mlestruct.structures.base import Array, Ints

TINIEST = 5e-324


# --- forbidden states and configurations --------------------------------------------------------


@kernel
def soften(edges: Ints, unary: Array, pair: Array) -> tuple[int, int, int]:
    n, m = unary.shape[1], len(edges)
    reach = np.empty(n)
    for k in range(len(unary)):
        for e in range(m):
            if not _lift_rows(pair[k, e], unary[k, edges[e, 0]], unary[k, edges[e, 1]]):
                return k, -1, e
        total = 0.0
        for i in range(n):
            reach[i] = _range(unary[k, i])
            if reach[i] < 0:
                return k, i, -1
            total += reach[i]
        for e in range(m):
            total += _range(pair[k, e].ravel())
        cost = _above(2 * total)
        for e in range(m):
            spread = _range(pair[k, e].ravel()) + _fill(pair[k, e].ravel(), cost)
            reach[edges[e, 0]] += spread
            reach[edges[e, 1]] += spread
        for i in range(n):
            _fill(unary[k, i], _above(2 * reach[i]))
    return -1, -1, -1


@kernel
def _lift_rows(table: Array, first: Array, second: Array) -> bool:
    """Moves a wholly forbidden row or column to its node; False if the whole table is forbidden."""
    for turn in range(2):
        view = table if turn == 0 else table.T
        node = first if turn == 0 else second
        dead0 = view[0, 0] == -np.inf and view[0, 1] == -np.inf
        dead1 = view[1, 0] == -np.inf and view[1, 1] == -np.inf
        if dead0 and dead1:
            return False
        if dead0 or dead1:
            dead = 0 if dead0 else 1
            node[dead] = -np.inf
            view[dead, 0] = view[1 - dead, 0]
            view[dead, 1] = view[1 - dead, 1]
    return True


@kernel
def _range(table: Array) -> float:
    """Largest minus least finite score, −1 if there is none."""
    low, high = np.inf, -np.inf
    for score in table:
        if score > -np.inf:
            low, high = min(low, score), max(high, score)
    return high - low if low <= high else -1.0


@kernel
def _fill(table: Array, cost: float) -> float:
    """Forbidden entries cost that much; returns what it added to the table's range."""
    low, used = np.inf, 0.0
    for score in table:
        if score > -np.inf:
            low = min(low, score)
    for k in range(len(table)):
        if table[k] == -np.inf:
            table[k], used = low - cost, cost
    return used


@kernel
def _above(bound: float) -> float:
    """A power of two well above the bound: it adds without rounding to scores on a coarse grid."""
    return 2.0 ** (np.ceil(np.log2(bound)) + 1) if bound > 0 else 1.0


# --- the signed form ----------------------------------------------------------------------------


@kernel
def _two_sum(a: float, b: float) -> tuple[float, float]:
    """The rounded a + b, and what rounding took from it, exactly (Knuth)."""
    total = a + b
    part = total - a
    return total, abs((a - (total - part)) + (b - part))


@kernel
def _differences(pair: Array, coupling: Array, down: Array, right: Array, slips: Array) -> None:
    """Couplings, what edges add to their ends' fields, and rounding errors. Without branches."""
    for e in range(len(pair)):
        down0, slip0 = _two_sum(pair[e, 1, 0], -pair[e, 0, 0])
        down1, slip1 = _two_sum(pair[e, 1, 1], -pair[e, 0, 1])
        right0, slip2 = _two_sum(pair[e, 0, 1], -pair[e, 0, 0])
        right1, slip3 = _two_sum(pair[e, 1, 1], -pair[e, 1, 0])
        coupling[e], slip4 = _two_sum(right1, -right0)
        down[e], slip5 = _two_sum(down0, down1)
        right[e], slip6 = _two_sum(right0, right1)
        slips[e] = slip0 + slip1 + 2 * (slip2 + slip3) + slip4 + slip5 + slip6


@kernel
def signed_form(edges: Ints, unary: Array, pair: Array) -> tuple[Array, Array, Array]:
    """The field (M, n), coupling (M, m), and the sum (M,) of all rounding errors made in them."""
    models, n, m = len(unary), unary.shape[1], len(edges)
    field, coupling, error = np.empty((models, n)), np.empty((models, m)), np.zeros(models)
    down, right, slips = np.empty(m), np.empty(m), np.empty(m)
    for k in range(models):
        lost = 0.0
        for i in range(n):
            field[k, i], slip = _two_sum(2 * unary[k, i, 1], -2 * unary[k, i, 0])
            lost += slip
        _differences(pair[k], coupling[k], down, right, slips)
        for e in range(m):
            i, j = edges[e]
            field[k, i], slip0 = _two_sum(field[k, i], down[e])
            field[k, j], slip1 = _two_sum(field[k, j], right[e])
            lost += slips[e] + slip0 + slip1
        error[k] = lost
    return field, coupling, error


def whole(
    field: Array, coupling: Array, error: Array, largest: float
) -> tuple[Array, Array, Array, Ints]:
    """Field and coupling × 2^shift as whole numbers up to `largest`; what all rounding may cost."""
    size = np.maximum(_most(field), _most(coupling))
    shift = (math.frexp(largest)[1] - 1 - np.frexp(size)[1]).astype(np.int64)
    whole_field, lost = _round(field, shift)
    whole_coupling, more = _round(coupling, shift)
    # Any two s differ by at most 1; half, because the form is twice the score. The factor
    # covers the rounding of these sums themselves.
    slack = 0.5 * (_scaled((lost + more)[:, None], -shift)[:, 0] + error) * (1 + 1e-9)
    slack = np.where(lost + more > 0, np.maximum(slack, TINIEST), slack)
    return whole_field, whole_coupling, slack, shift


def _most(values: Array) -> Array:
    return np.maximum(values.max(axis=1, initial=0.0), -values.min(axis=1, initial=0.0))


def _scaled(values: Array, shift: Ints) -> Array:
    """Each row's values × 2^shift, where 2^shift itself may be out of range."""
    half = shift // 2
    first, second = np.ldexp(1.0, half)[:, None], np.ldexp(1.0, shift - half)[:, None]
    return (
        values * (first * second)
        if np.abs(shift).max(initial=0) < 1000
        else values * first * second
    )


def _round(values: Array, shift: Ints) -> tuple[Array, Array]:
    """Values × 2^shift as whole numbers, and the sum of what that changed, for each row."""
    scaled = _scaled(values, shift)
    tiny = ((scaled == 0) & (values != 0)).sum(axis=1) if (shift < 0).any() else 0  # underflow
    out = np.rint(scaled)
    np.subtract(scaled, out, out=scaled)
    lost: Array = np.abs(scaled, out=scaled).sum(axis=1)
    return out, lost + TINIEST * tiny

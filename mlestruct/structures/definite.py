"""Positive definite systems: Cholesky's factor, above a size in blocks that threads share."""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cho_solve, cholesky, solve_triangular

from mlestruct.structures.base import Array
from mlestruct.threads import each

WIDE, FEW = 192, 64  # rows of a block; columns that are solved for at a time
LARGE = 1000  # rows from which there are blocks


def factor(table: Array) -> Array | None:
    """L with L Lᵀ = the matrix with this lower triangle, in its place; None if there is none."""
    try:
        if len(table) < LARGE:
            return np.asarray(cholesky(table, lower=True, overwrite_a=True, check_finite=False))
        for first in range(0, len(table), WIDE):
            _eliminate(table, first, min(first + WIDE, len(table)))
    except (LinAlgError, np.linalg.LinAlgError):
        return None
    return table


def solve(lower: Array, right: Array) -> Array:
    """The matrix with this factor, inverted, times the columns of ``right``."""
    if len(lower) < LARGE:
        return np.asarray(cho_solve((lower, True), right, check_finite=False))
    out = np.empty_like(right)

    def through(columns: slice) -> None:
        half = solve_triangular(lower, right[:, columns], lower=True, check_finite=False)
        out[:, columns] = solve_triangular(
            lower, half, lower=True, trans="T", check_finite=False, overwrite_b=True
        )

    each(through, [slice(k, k + FEW) for k in range(0, right.shape[1], FEW)])
    return out


def _eliminate(table: Array, first: int, last: int) -> None:
    """The columns' part of the factor, which is then taken off what lies to their right."""
    panel = table[:, first:last]
    corner = panel[first:last] = np.linalg.cholesky(panel[first:last])
    below = [slice(k, k + WIDE) for k in range(last, len(table), WIDE)]

    def divide(rows: slice) -> None:
        panel[rows] = solve_triangular(corner, panel[rows].T, lower=True, check_finite=False).T

    def subtract(rows: slice) -> None:
        table[rows, last : rows.stop] -= panel[rows] @ panel[last : rows.stop].T

    each(divide, below)
    each(subtract, below[::-1])

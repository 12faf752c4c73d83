"""Sparse symmetric systems of one pattern: LDLᵀ of several at once, or conjugate gradients.

Matrices of one pattern lie side by side (lanes), so that one walk through the pattern serves all.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from mlestruct.kernels import kernel
from mlestruct.structures.base import Ints

LANES = 8
WORK = 2e8  # multiplications of a factorisation above which conjugate gradients take over
TURNS, PRECISION = 2000, 1e-12  # of those


class Pattern(NamedTuple):
    """The upper triangle column by column in elimination order, and the pattern of its factor."""

    position: Ints  # of every unknown in that order
    start: Ints  # entries of column k are start[k]:start[k + 1]
    row: Ints  # their positions, the diagonal last
    below: Ints  # entries of the factor's column k are below[k]:below[k + 1]
    reach_start: Ints
    reach: Ints  # columns with an entry in row k of the factor, ascending
    direct: bool  # whether the factor is worth its work


def pattern(size: int, pairs: Ints) -> tuple[Pattern, sp.csr_array]:
    """From (entries × 2) pairs of unknowns; also where entry (i, j) lies among the values."""
    from scipy.sparse.linalg import splu

    i, j = pairs.T
    full = sp.csc_array((np.ones(len(i)), (i, j)), shape=(size, size))
    # diagonally dominant, and nothing above 0 beside the diagonal: no entry of a factor cancels
    full = sp.csc_array(4 * len(i) * sp.eye_array(size) - full - full.T)
    known = splu(full, "MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    order = np.argsort(known.perm_c)
    upper = sp.csc_array(sp.triu(full[order][:, order]))
    upper.sort_indices()
    start, row = upper.indptr.astype(np.int64), upper.indices.astype(np.int64)
    filled = sp.csr_array(sp.tril(known.L, -1))
    filled.eliminate_zeros()
    filled.sort_indices()
    reach_start, reach = filled.indptr.astype(np.int64), filled.indices.astype(np.int64)
    below = np.concatenate([[0], np.cumsum(np.bincount(reach, minlength=size))])
    work = float((np.diff(below).astype(float) ** 2).sum())
    place = np.argsort(order)
    number = sp.csr_array(sp.csc_array((np.arange(1, len(row) + 1), row, start)))
    back = number + sp.csr_array(sp.triu(number, 1)).T
    found = Pattern(place, start, row, below, reach_start, reach, work <= WORK)
    return found, sp.csr_array(back[place][:, place])


@kernel(error_model="numpy")
def factor(values, pattern, index, lower, pivot, row):
    """values = L D Lᵀ, row by row; returns the least pivot of every lane (≤ 0: not definite)."""
    n = len(pattern.start) - 1
    filled = pattern.below[:-1].copy()
    least = np.full(LANES, np.inf)
    row[:] = 0.0
    for k in range(n):
        for p in range(pattern.start[k], pattern.start[k + 1]):
            row[pattern.row[p]] = values[p]
        for lane in range(LANES):
            pivot[k, lane] = row[k, lane]
            row[k, lane] = 0.0
        for q in range(pattern.reach_start[k], pattern.reach_start[k + 1]):
            i = pattern.reach[q]
            end = filled[i]
            for p in range(pattern.below[i], end):
                j = index[p]
                for lane in range(LANES):
                    row[j, lane] -= lower[p, lane] * row[i, lane]
            for lane in range(LANES):
                share = row[i, lane] / pivot[i, lane]
                pivot[k, lane] -= share * row[i, lane]
                lower[end, lane] = share
                row[i, lane] = 0.0
            index[end] = k
            filled[i] += 1
        for lane in range(LANES):
            least[lane] = min(least[lane], pivot[k, lane])
    return least


@kernel(error_model="numpy")
def solve(pattern, index, lower, pivot, x):
    """In place, in elimination order."""
    n = len(pattern.start) - 1
    for k in range(n):
        for p in range(pattern.below[k], pattern.below[k + 1]):
            for lane in range(LANES):
                x[index[p], lane] -= lower[p, lane] * x[k, lane]
    for k in range(n - 1, -1, -1):
        for lane in range(LANES):
            x[k, lane] /= pivot[k, lane]
        for p in range(pattern.below[k], pattern.below[k + 1]):
            for lane in range(LANES):
                x[k, lane] -= lower[p, lane] * x[index[p], lane]


@kernel(error_model="numpy")
def multiply(values, pattern, x, out):
    out[:] = 0.0
    for k in range(len(pattern.start) - 1):
        for p in range(pattern.start[k], pattern.start[k + 1]):
            i = pattern.row[p]
            for lane in range(LANES):
                out[i, lane] += values[p, lane] * x[k, lane]
            if i != k:
                for lane in range(LANES):
                    out[k, lane] += values[p, lane] * x[i, lane]


@kernel(error_model="numpy")
def conjugate(values, pattern, x):
    """Conjugate gradients scaled by the diagonal, in place; a lane rests once it is precise.

    Returns the least curvature that each lane met (≤ 0: not definite).
    """
    n = len(pattern.start) - 1
    right, found, product = x.copy(), np.zeros_like(x), np.empty_like(x)
    scaled = np.empty_like(x)
    for k in range(n):
        for lane in range(LANES):
            scaled[k, lane] = right[k, lane] / values[pattern.start[k + 1] - 1, lane]
    towards = scaled.copy()
    length = (right * scaled).sum(axis=0)
    target, least = PRECISION**2 * length, np.full(LANES, np.inf)
    for _ in range(TURNS):
        if (length <= target).all():
            break
        multiply(values, pattern, towards, product)
        curvature = (towards * product).sum(axis=0)
        for lane in range(LANES):
            if length[lane] > target[lane]:
                least[lane] = min(least[lane], curvature[lane])
        step = np.where(length > target, length / curvature, 0.0)
        found += step * towards
        right -= step * product
        for k in range(n):
            for lane in range(LANES):
                scaled[k, lane] = right[k, lane] / values[pattern.start[k + 1] - 1, lane]
        fresh = (right * scaled).sum(axis=0)
        turn = np.where(length > target, fresh / length, 0.0)
        towards = scaled + turn * towards
        length = np.where(length > target, fresh, length)
    x[:] = found
    return least

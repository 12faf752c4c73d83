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
    numbered = np.arange(1, len(row) + 1), row, start
    number = sp.csr_array(sp.csc_array(numbered, shape=(size, size)))
    back = number + sp.csr_array(sp.triu(number, 1)).T
    found = Pattern(place, start, row, below, reach_start, reach, work <= WORK)
    return found, sp.csr_array(back[place][:, place])


@kernel(error_model="numpy")
def factor(values, pattern, index, lower, pivot, row):
    """values = L D Lᵀ, row by row; returns the least pivot of every lane (≤ 0: not definite)."""
    n = len(pattern.start) - 1
    filled, least = np.empty(n, np.int64), np.empty(LANES)
    for lane in range(LANES):
        least[lane] = np.inf
        for k in range(n):
            row[k, lane] = 0.0
    for k in range(n):
        filled[k] = pattern.below[k]
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
    for k in range(len(pattern.start) - 1):
        for lane in range(LANES):
            out[k, lane] = 0.0
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
    right, found, product, towards = np.empty((4, n, LANES))
    length, target, share, fresh, least = np.zeros((5, LANES))
    for lane in range(LANES):
        least[lane] = np.inf
    for k in range(n):
        for lane in range(LANES):
            right[k, lane], found[k, lane] = x[k, lane], 0.0
            towards[k, lane] = right[k, lane] / values[pattern.start[k + 1] - 1, lane]
            length[lane] += right[k, lane] * towards[k, lane]
    for lane in range(LANES):
        target[lane] = PRECISION**2 * length[lane]
    for _ in range(TURNS):
        if _precise(length, target):
            break
        multiply(values, pattern, towards, product)
        _step(length, target, towards, product, share, least)
        for lane in range(LANES):
            fresh[lane] = 0.0
        for k in range(n):
            for lane in range(LANES):
                found[k, lane] += share[lane] * towards[k, lane]
                right[k, lane] -= share[lane] * product[k, lane]
                product[k, lane] = right[k, lane] / values[pattern.start[k + 1] - 1, lane]
                fresh[lane] += right[k, lane] * product[k, lane]
        for lane in range(LANES):
            share[lane] = 0.0
            if length[lane] > target[lane]:
                share[lane], length[lane] = fresh[lane] / length[lane], fresh[lane]
        for k in range(n):
            for lane in range(LANES):
                towards[k, lane] = product[k, lane] + share[lane] * towards[k, lane]
    for k in range(n):
        for lane in range(LANES):
            x[k, lane] = found[k, lane]
    return least


@kernel
def _precise(length, target):
    for lane in range(LANES):  # noqa: SIM110 (compiled)
        if not length[lane] <= target[lane]:
            return False
    return True


@kernel(error_model="numpy")
def _step(length, target, towards, product, share, least):
    """How far every lane goes, 0 where it rests; its curvature among the least."""
    for lane in range(LANES):
        share[lane] = 0.0
    for k in range(len(towards)):
        for lane in range(LANES):
            share[lane] += towards[k, lane] * product[k, lane]
    for lane in range(LANES):
        curvature, share[lane] = share[lane], 0.0
        if length[lane] > target[lane]:
            least[lane] = min(least[lane], curvature)
            share[lane] = length[lane] / curvature

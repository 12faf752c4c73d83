"""The pattern of a sparse symmetric matrix and of its factor, worked out once by SciPy."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from mlestruct.structures.base import Ints

WORK = 2e8  # multiplications of a factorisation above which conjugate gradients take over


class Pattern(NamedTuple):
    """The upper triangle column by column in elimination order, and the pattern of its factor."""

    position: Ints  # of every unknown in that order
    start: Ints  # entries of column k are start[k]:start[k + 1]
    row: Ints  # their positions, the diagonal last
    column: Ints  # entries of the factor's column k are column[k]:column[k + 1]
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

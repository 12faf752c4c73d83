"""A complete graph's pairs u < v as rows of a matrix and back; apart, because it needs Numba."""

import numpy as np
from numba import njit

from mlestruct.structures.base import Array


@njit(cache=True, nogil=True)
def fold(block: Array, first: int, n: int, flat: Array) -> None:
    """Rows ``first``, … of a symmetric matrix, from column ``first`` on, into the list of pairs."""
    for i in range(len(block)):
        u = first + i
        start = u * (2 * n - u - 1) // 2
        for k in range(n - u - 1):
            flat[start + k] = block[i, i + 1 + k]


@njit(cache=True, nogil=True)
def unfold(flat: Array, first: int, n: int, block: Array) -> None:
    """The list of pairs back as those rows, zero up to the diagonal."""
    for i in range(len(block)):
        u = first + i
        start = u * (2 * n - u - 1) // 2
        block[i, : i + 1] = 0.0
        for k in range(n - u - 1):
            block[i, i + 1 + k] = flat[start + k]


@njit(cache=True, nogil=True)
def row_sums(flat: Array, n: int) -> Array:
    """Σ over each node's pairs."""
    out, k = np.zeros(n), 0
    for u in range(n):
        total = 0.0
        for v in range(u + 1, n):
            total += flat[k]
            out[v] += flat[k]
            k += 1
        out[u] += total
    return out

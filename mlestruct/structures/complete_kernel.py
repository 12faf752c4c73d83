"""A complete graph's pairs u < v as rows of a matrix and back; apart, because it needs Numba."""

import numpy as np

from mlestruct.kernels import kernel
from mlestruct.structures.base import Array, Ints

ROWS = 64  # nodes whose pairs are a matrix at a time


def symmetric(flat: Array, n: int) -> Array:
    """The list of pairs as an (n × n) matrix, zero on the diagonal."""
    table = np.empty((n, n))
    for first in range(0, n, ROWS):
        block = np.empty((min(ROWS, n - first), n - first))
        unfold(flat, first, n, block)
        last = first + len(block)
        block[:, : len(block)] += block[:, : len(block)].T
        table[first:last, first:] = block
        table[first:, first:last] = block.T
    return table


@kernel
def fold(block: Array, first: int, n: int, flat: Array) -> None:
    """Rows ``first``, … of a symmetric matrix, from column ``first`` on, into the list of pairs."""
    for i in range(len(block)):
        u = first + i
        start = u * (2 * n - u - 1) // 2
        for k in range(n - u - 1):
            flat[start + k] = block[i, i + 1 + k]


@kernel
def unfold(flat: Array, first: int, n: int, block: Array) -> None:
    """The list of pairs back as those rows, zero up to the diagonal."""
    for i in range(len(block)):
        u = first + i
        start = u * (2 * n - u - 1) // 2
        block[i, : i + 1] = 0.0
        for k in range(n - u - 1):
            block[i, i + 1 + k] = flat[start + k]


@kernel
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


@kernel
def meetings(
    flat: Array, at: Ints, first: Ints, size: Ints, start: Ints, low: int, high: int, out: Array
) -> None:
    """out[(q, k, l), (r, k', l')] = Σ of the pairs whose nodes have q: k, l and r: k', l'; q ≤ r.

    Of those pairs whose first node is from ``low`` to ``high``.

    ``at`` (nodes × questions) holds the place of every answer among all levels, their number where
    it is missing; those of question q are first[q], … (size[q] of them), its tables start[q].
    """
    n, questions = at.shape
    met = np.empty((first[-1] + 1, first[-1] + 1))
    pair = low * (2 * n - low - 1) // 2
    for u in range(low, high):
        met[:] = 0.0
        for v in range(u + 1, n):
            weight = flat[pair]
            pair += 1
            for q in range(questions):
                row = met[at[v, q]]
                for r in range(q, questions):
                    row[at[v, r]] += weight
        for q in range(questions):
            for r in range(q, questions):
                if at[u, q] == first[-1] or at[u, r] == first[-1]:
                    continue
                top = start[q] + (at[u, q] - first[q]) * size[q]
                left = start[r] + (at[u, r] - first[r]) * size[r]
                for k in range(size[q]):
                    for j in range(size[r]):
                        out[top + k, left + j] += met[first[q] + k, first[r] + j]

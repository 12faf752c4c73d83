"""A complete graph's pairs u < v as rows of a matrix and back."""

from __future__ import annotations

import numpy as np

from mlestruct.native._door import PairAnswers, pairs_meetings, pairs_sums
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


def fold(block: Array, first: int, n: int, flat: Array) -> None:
    """Rows ``first``, … of a symmetric matrix, from column ``first`` on, into the list of pairs."""
    start = first * (2 * n - first - 1) // 2
    for i, row in enumerate(block):
        end = start + n - first - i - 1
        flat[start:end] = row[i + 1 :]
        start = end


def unfold(flat: Array, first: int, n: int, block: Array) -> None:
    """The list of pairs back as those rows, zero up to the diagonal."""
    start = first * (2 * n - first - 1) // 2
    for i, row in enumerate(block):
        end = start + n - first - i - 1
        row[: i + 1] = 0.0
        row[i + 1 :] = flat[start:end]
        start = end


def row_sums(flat: Array, n: int) -> Array:
    """Σ over each node's pairs."""
    out = np.empty(n)
    pairs_sums(n, np.ascontiguousarray(flat), out)
    return out


def meetings(
    flat: Array, at: Ints, first: Ints, start: Ints, nodes: tuple[int, int], out: Array
) -> None:
    """out[(q, k, l), (r, k', l')] = Σ of the pairs whose nodes have q: k, l and r: k', l'; q ≤ r.

    Of those pairs whose first node is in the range ``nodes``, added to what ``out`` has.

    ``at`` (nodes × questions) holds the place of every answer among all levels, their number where
    it is missing; those of question q are first[q], …, its tables start[q].
    """
    n, questions = at.shape
    answers = PairAnswers(
        n, questions, int(first[-1]), len(out), np.ascontiguousarray(at), first, start
    )
    pairs_meetings(answers, flat, *nodes, out)

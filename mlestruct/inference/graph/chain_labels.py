"""The best labels of chains from the weights themselves: no structure, no table, no matrix.

:class:`~mlestruct.estimators.sequence.SequenceModel` predicts by this. The recursion is that of
the oracle ``viterbi`` (from the last position to the first; of equal labels the first), which
answers where this one finds nothing finite.
"""

from __future__ import annotations

import numpy as np

from mlestruct.kernels import kernel
from mlestruct.structures.base import Array, Ints, Shorts


@kernel
def add_weights(start: Ints, index: Shorts, value: Array, theta: Array, node: Array) -> None:
    """Add the weights (attributes × labels) of every position's attributes."""
    for i in range(len(node)):
        for e in range(start[i], start[i + 1]):
            for k in range(node.shape[1]):
                node[i, k] += value[e] * theta[index[e], k]


@kernel
def add_some_weights(
    start: Ints, index: Shorts, value: Array, first: Ints, label: Ints, theta: Array, node: Array
) -> None:
    """As ``add_weights``, where attribute a has weights first[a] to first[a + 1] − 1 only."""
    for i in range(len(node)):
        for e in range(start[i], start[i + 1]):
            for w in range(first[index[e]], first[index[e] + 1]):
                node[i, label[w]] += value[e] * theta[w]


@kernel
def label_chains(ends: Ints, node: Array, edges: Array, pair: Array, label: Ints) -> bool:
    """Each sequence's best labels, whose positions end at ``ends``; ``node`` is used up.

    ``edges`` add to the first and last positions' scores, ``pair`` (label × next label) to
    neighbours'.
    False where a sequence has no best score that is finite.
    """
    states, first = node.shape[1], 0
    choice = np.empty(node.shape, dtype=np.int64)
    for last in ends:
        node[first] += edges[0]
        node[last - 1] += edges[1]
        for i in range(last - 2, first - 1, -1):
            for k in range(states):
                best, chosen = -np.inf, 0
                for j in range(states):
                    value = pair[k, j] + node[i + 1, j]
                    if value > best:
                        best, chosen = value, j
                node[i, k] += best
                choice[i, k] = chosen
        label[first] = np.argmax(node[first])
        if not np.isfinite(node[first, label[first]]):
            return False
        for i in range(first + 1, last):
            label[i] = choice[i - 1, label[i - 1]]
        first = last
    return True

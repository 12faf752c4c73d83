"""The k best labellings of a chain: Viterbi, then best-first backwards.

Soong and Huang (1991), "A tree-trellis based fast search for finding the N best sentence
hypotheses". The value of a Viterbi prefix is the best completion of any suffix, exactly, so that
suffixes come off the list in the order of their best sequences. O(n K² + k n K) per chain.
"""

from __future__ import annotations

import numpy as np

from mlestruct.native._door import best_sequences
from mlestruct.structures.base import Array, Ints, refuse_made


def k_best(nodes: Array, steps: Array, k: int) -> tuple[Ints, Array]:
    """(sequences × length) states and their scores, best first: k, or all if there are fewer.

    ``nodes`` (length × K) scores of states, ``steps`` (length − 1 × K × K) of transitions; −inf
    where one is forbidden.

    >>> k_best(np.array([[0.0, 1.0], [0.0, 3.0]]), np.zeros((1, 2, 2)), 3)[0].tolist()
    [[1, 1], [0, 1], [1, 0]]
    """
    n, K = nodes.shape
    k = min(k, K**n)
    refuse_made(k * nodes.size, f"k={k}")
    states, scores = np.empty((k, n), dtype=np.int64), np.empty(k)
    nodes, steps = np.ascontiguousarray(nodes), np.ascontiguousarray(steps)
    found = best_sequences(n, K, nodes, steps, k, states, scores)
    return states[:found], scores[:found]

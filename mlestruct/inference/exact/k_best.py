"""The k best labellings of a chain: Viterbi, then best-first backwards.

Soong and Huang (1991), "A tree-trellis based fast search for finding the N best sentence
hypotheses". The value of a Viterbi prefix is the best completion of any suffix, exactly, so that
suffixes come off the list in the order of their best sequences. O(n K² + k n K) per chain.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mlestruct.kernels import kernel
from mlestruct.structures.base import Array, Ints, refuse_made


def k_best(nodes: Array, steps: Array, k: int) -> tuple[Ints, Array]:
    """(sequences × length) states and their scores, best first: k, or all if there are fewer.

    ``nodes`` (length × K) scores of states, ``steps`` (length − 1 × K × K) of transitions; −inf
    where one is forbidden.

    >>> k_best(np.array([[0.0, 1.0], [0.0, 3.0]]), np.zeros((1, 2, 2)), 3)[0].tolist()
    [[1, 1], [0, 1], [1, 0]]
    """
    ahead, k = _prefixes(nodes, steps), min(k, nodes.shape[1] ** len(nodes))
    refuse_made(k * nodes.size, f"k={k}")
    states, scores = np.empty((k, len(nodes)), dtype=np.int64), np.empty(k)
    found = _search(nodes, steps, ahead, states, scores)
    return states[:found], scores[:found]


@kernel
def _prefixes(nodes: Any, steps: Any) -> Any:
    """The best score of positions 0..t with state s at t."""
    n, K = nodes.shape
    best = np.empty((n, K))
    best[0] = nodes[0]
    for t in range(1, n):
        for s in range(K):
            top = -np.inf
            for r in range(K):
                top = max(top, best[t - 1, r] + steps[t - 1, r, s])
            best[t, s] = top + nodes[t, s]
    return best


@kernel
def _search(nodes: Any, steps: Any, ahead: Any, states: Any, scores: Any) -> int:
    """Fill in sequences, best first; how many there are.

    ``place[q]``, sorted by ``value``, are suffixes: position, state and the rest's number in the
    store. Only as many are kept as sequences are still wanted.
    """
    n, K = nodes.shape
    k = len(scores)
    size = 1 + K + k * n * K
    at, state, rest = (np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64))
    after = np.empty(size)  # the score of everything behind the suffix's first state
    value, place = np.empty(k), np.empty(k, np.int64)
    stored, waiting, found = 0, 0, 0
    for s in range(K):
        at[stored], state[stored], rest[stored], after[stored] = n - 1, s, -1, 0.0
        waiting = _insert(value, place, waiting, k, ahead[n - 1, s], stored)
        stored += 1
    while waiting > 0 and found < k:
        one, worth = place[0], value[0]
        for q in range(1, waiting):
            place[q - 1], value[q - 1] = place[q], value[q]
        waiting -= 1
        t, s = at[one], state[one]
        if t == 0:
            scores[found], link = worth, one
            for i in range(n):
                states[found, i] = state[link]
                link = rest[link]
            found += 1
            continue
        behind = after[one] + nodes[t, s]
        for r in range(K):
            total = ahead[t - 1, r] + steps[t - 1, r, s] + behind
            if waiting < k - found or total > value[waiting - 1]:
                at[stored], state[stored], rest[stored] = t - 1, r, one
                after[stored] = behind + steps[t - 1, r, s]
                waiting = _insert(value, place, waiting, k - found, total, stored)
                stored += 1
    return found


@kernel
def _insert(value: Any, place: Any, waiting: int, room: int, worth: float, one: int) -> int:
    """Keep the best ``room`` of a sorted list with one more; impossible ones are not taken."""
    if worth == -np.inf or room == 0:
        return waiting
    q = min(waiting, room - 1)
    if waiting >= room and worth <= value[room - 1]:
        return min(waiting, room)
    while q > 0 and value[q - 1] < worth:
        value[q], place[q] = value[q - 1], place[q - 1]
        q -= 1
    value[q], place[q] = worth, one
    return min(waiting + 1, room)

"""Forward-backward of chains with one table of transitions, in rows of whole eights of states.

Rows are padded: states that are none have the score −∞, so the probability 0.
"""

from __future__ import annotations

import numpy as np

from mlestruct.inference.graph.exponents import exponential
from mlestruct.kernels import kernel
from mlestruct.lanes import EIGHT, Row, add, down, most, rows
from mlestruct.structures.base import Array, Ints

# What underflowed in the forward sweep counts for itself times the backward sweep's largest entry:
# beyond these, messages in the log domain take over.
FAINT, LARGE = 1e-60, 1e200


def padded(states: int) -> int:
    """Whole eights for so many states."""
    return -(-states // EIGHT) * EIGHT


def aside(table: Array) -> Array:
    """A table whose rows are padded with zeros."""
    out = np.zeros((len(table), padded(table.shape[1])))
    out[:, : table.shape[1]] = table
    return out


@rows
def same(x: Row) -> Row:
    """A copy, or one number everywhere."""
    return x


@rows
def grow(sums: Row, x: Row, times: Row) -> Row:
    """Adds so many times a row."""
    return sums + x * times


@rows(join=most)
def _largest(x: Row) -> Row:
    return x


@rows
def _exponentials(x: Row, shift: Row) -> Row:
    return exponential(x - shift)


@rows(join=add)
def _met(x: Row, e: Row) -> tuple[Row, Row]:
    """Products and their sum."""
    return x * e, x * e


@rows
def _down_one(ahead: Row, e: Row, below: Row, scale: Row, top: Row) -> tuple[Row, Row, Row]:
    """What goes on backwards, the marginals, and the largest numbers met."""
    part = below * scale
    return e * part, ahead * part, below.most(top)


@kernel
def chains(
    start: Ints,
    node: Array,
    moves: Array,
    back: Array,
    top: float,
    weight: Array,
    log_z: Array,
    pair: Array,
) -> bool:
    """w_m times the marginals into ``node``, what is sent into ``pair``; False where digits fail.

    ``pair`` times the moves is w_m times the sum of the edges' marginals.
    """
    width, longest = moves.shape[1], 0
    for m in range(len(start) - 1):
        longest = max(longest, start[m + 1] - start[m])
    ahead, scale, spare = np.empty((longest, width)), np.empty(longest), np.empty((3, width))
    for m in range(len(start) - 1):
        first, last = start[m], start[m + 1]
        total = _ahead(first, last, node, moves, ahead, scale)
        log_z[m] = total + (last - first - 1) * top
        if total == -np.inf or not _behind(
            first, last, node, weight[m], back, ahead, scale, spare, pair
        ):
            return False
    return True


@kernel
def _ahead(first: int, last: int, node: Array, moves: Array, ahead: Array, scale: Array) -> float:
    """One chain's messages forwards, ``scale`` makes them sum to one; log Z, −∞ where digits fail.

    Scores become exponentials.
    """
    (states, width), total = moves.shape, 0.0
    eights = width // EIGHT
    for t in range(last - first):
        here, at = t * width, (first + t) * width
        shift = _largest(eights, node, at)
        _exponentials(eights, node, at, node, at, shift)
        if t == 0:
            same(eights, ahead, here, 1.0)
        else:
            down(ahead, here, scale[t - 1], moves, 0, width, states, ahead, here - width)
        norm = _met(eights, ahead, here, ahead, here, node, at)
        if not norm > FAINT:
            return -np.inf
        scale[t] = 1.0 / norm
        total += np.log(norm) + shift
    return total


@kernel
def _behind(
    first: int,
    last: int,
    node: Array,
    weight: float,
    back: Array,
    ahead: Array,
    scale: Array,
    spare: Array,
    pair: Array,
) -> bool:
    """One chain's messages backwards, and its marginals with them; False where digits fail."""
    states, width = back.shape
    eights, below, carry, top = width // EIGHT, 0, width, 2 * width
    same(eights, spare, below, weight)
    same(eights, spare, top, 0.0)
    for t in range(last - first - 1, -1, -1):
        here, at = t * width, (first + t) * width
        _down_one(
            eights, spare, carry, node, at, spare, top,
            ahead, here, node, at, spare, below, scale[t], spare, top,
        )  # fmt: skip
        if t > 0:
            down(spare, below, 1.0, back, 0, width, states, spare, carry)
            for j in range(states):
                mass = ahead[t - 1, j] * scale[t - 1]
                grow(eights, pair, j * width, pair, j * width, spare, carry, mass)
    return bool(_largest(eights, spare, top) <= LARGE * weight)

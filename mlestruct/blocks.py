"""Passes over many edges, shared out in blocks among the threads that run one kernel together.

Every thread runs the whole kernel, on nodes' arrays of its own; only passes over edges are shared
out. Blocks are cut by the graph alone, each is one thread's at a time, and what blocks add up to is
added in their order: so all threads know the same numbers, take the same turns, and come to the
same bits however many they are. A pass is::

    turn, b = begin(blocks), claim(blocks)
    while b >= 0:
        ...  # rows blocks.cut[b] to blocks.cut[b + 1], sums into part[turn, b]
        b = claim(blocks)

and at its end everybody has met. :func:`mlestruct.threads.abreast` starts the threads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlestruct.kernels import kernel
from mlestruct.stubs import add, give_way, look
from mlestruct.threads import abreast, at_hand

SIZE, MOST = 1 << 17, 64  # edges that are worth a block, and blocks at most
EACH = 8  # edges for every node that a block has sums of, or these cost more than they bring
LINE = 16  # whole numbers from one place on the board to the next: two lines of a cache
ARRIVED, CLAIMED, BROKEN = 0, LINE, 2 * LINE  # threads that came, blocks taken, an end to all
THREADS, RANK, MET, CLAIMS, TURN = range(5)  # places in a thread's own notes
WAITS = 1000  # looks at the board, before whoever else wants the processor is let on it


class Blocks(NamedTuple):
    """Rows from ``cut[b]`` to ``cut[b + 1]`` are block b's.

    ``part`` (2 × blocks × 2 × nodes) has room for two sums by node and block, in every other pass
    the same. It and the ``board`` are shared; ``own`` are a thread's notes.
    """

    board: NDArray[np.int64]
    own: NDArray[np.int64]
    cut: NDArray[np.int64]
    part: NDArray[np.float64]


def cuts(ptr: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where blocks of rows begin and end, of about equally many edges; ``ptr`` is where rows do."""
    edges, nodes = int(ptr[-1]), len(ptr) - 1
    return shares(ptr, min(edges // SIZE, edges // (EACH * max(nodes, 1)), MOST))


def shares(start: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Where ``count`` shares of rows begin and end, of about equally many entries each.

    ``start`` is where each row's entries begin, and where the last row's end.
    """
    count = max(count, 1)
    cut = np.searchsorted(start, np.arange(count) * int(start[-1]) // count)
    return np.append(cut, len(start) - 1).astype(np.int64)


def run_in_blocks(run: Callable[[Any], Any], cut: NDArray[np.int64], nodes: int) -> None:
    """``run(blocks)`` in all threads at hand; on a graph of one block ``run(None)``, here.

    Kernels are compiled apart for None, without a trace of blocks: small graphs take as long as
    ever, and who has no large one compiles nothing more.
    """
    if len(cut) == 2:
        run(None)
        return
    board, part = np.zeros(3 * LINE, dtype=np.int64), np.empty((2, len(cut) - 1, 2, nodes))
    threads = at_hand()

    def work(rank: int) -> None:
        run(Blocks(board, np.array([threads, rank, 0, 0, 0]), cut, part))

    def stop() -> None:
        board[BROKEN] = 1

    abreast(work, stop)


@kernel
def begin(blocks):
    """Where in ``part`` the pass that begins has its sums: the last one's may still be read."""
    blocks.own[TURN] = 1 - blocks.own[TURN]
    return blocks.own[TURN]


@kernel
def claim(blocks):
    """A block that is nobody's yet; −1 once every block is done."""
    own, count = blocks.own, len(blocks.cut) - 1
    b = add(blocks.board, CLAIMED, 1) - own[CLAIMS]
    if b < count and not broken(blocks):
        return b
    own[CLAIMS] += count + own[THREADS]  # every thread has asked once in vain
    own[MET] += 1
    add(blocks.board, ARRIVED, 1)
    waits = 0
    while look(blocks.board, ARRIVED) < own[MET] * own[THREADS] and not broken(blocks):
        waits += 1
        if waits > WAITS:
            give_way()
    return -1


@kernel
def broken(blocks):
    """Whether a thread has failed, or the caller wants no more: what follows means nothing."""
    return False if blocks is None else look(blocks.board, BROKEN) != 0


@kernel
def gather(blocks, turn, which, out):
    """Sums by node over all blocks."""
    out[:] = blocks.part[turn, 0, which]
    for b in range(1, len(blocks.cut) - 1):
        for v in range(len(out)):
            out[v] += blocks.part[turn, b, which, v]


@kernel
def total(blocks, turn):
    """A number of each block, which stands with its first node, over all blocks."""
    out = blocks.part[turn, 0, 0, 0]
    for b in range(1, len(blocks.cut) - 1):
        out += blocks.part[turn, b, 0, 0]
    return out


@kernel
def largest(blocks, turn, which):
    """The largest of the blocks' numbers."""
    out = blocks.part[turn, 0, which, 0]
    for b in range(1, len(blocks.cut) - 1):
        out = max(out, blocks.part[turn, b, which, 0])
    return out


@kernel
def leads(blocks):
    """Whether this thread writes what all have found, and does alone what is not shared out."""
    return True if blocks is None else blocks.own[RANK] == 0


@kernel
def tell(blocks, x, s, number, flag):
    """What the thread that leads has done alone, for all: nodes' numbers and two more."""
    if blocks is None:
        return number, flag
    part, turn = blocks.part, begin(blocks)
    if leads(blocks):
        part[turn, 0, 0], part[turn, 0, 1] = x, s
        part[turn, 1, 0, 0], part[turn, 1, 1, 0] = number, 1.0 if flag else 0.0
    while claim(blocks) >= 0:
        pass
    x[:], s[:] = part[turn, 0, 0], part[turn, 0, 1]
    return part[turn, 1, 0, 0], part[turn, 1, 1, 0] > 0.0

"""Exact grids, one site at a time: a table over the states of one row's worth of frontier.

After site (r, c) the frontier holds row r up to column c and row r − 1 beyond it. Summing the
next site's upper neighbour out costs states^(columns + 1), whatever the number of rows; the way
back needs the tables again, of which one a row is kept.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mlestruct.inference.exact.common import MEMORY, Exact, refuse_memory
from mlestruct.kernels import kernel
from mlestruct.structures.base import Array, as_numbers, kept
from mlestruct.structures.graph import FactorGraph, grid

RANGE = 300.0  # spread of logarithms within one table that linear numbers are trusted with


class Lattice(NamedTuple):
    """Scores of a grid, turned where it had more columns than rows."""

    node: Array  # (rows, columns, states)
    across: Array  # (rows, columns − 1, states, states)
    down: Array  # (rows − 1, columns, states, states)


@kept
def sides(graph: FactorGraph) -> tuple[int, int] | None:
    """Rows and columns, if the graph is laid out as ``grid`` does, nothing fixed."""
    n, pairs = graph.n_nodes, graph.n_factors
    if n == 0 or (graph.cards != graph.cards[0]).any() or (graph.fixed >= 0).any():
        return None
    # r·c = n and 2·r·c − r − c = pairs
    total = 2 * n - pairs
    root = math.isqrt(max(total * total - 4 * n, 0))
    for rows in {(total - root) // 2, (total + root) // 2}:
        if rows > 0 and n % rows == 0:
            twin = grid(rows, n // rows, int(graph.cards[0]))
            if twin.identity() == FactorGraph.identity(graph):
                return rows, n // rows
    return None


def grid_by_rows(
    rows: int, columns: int, states: int, score: ArrayLike, memory: float = MEMORY
) -> Exact:
    """A graph laid out as ``grid`` does: O(rows · columns · states^(shorter + 1)).

    Three passes for log Z and marginals; memory (shorter + longer + 2) tables of states^shorter.
    """
    lattice, flipped = _lattice(rows, columns, states, as_numbers(score, "scores"))
    long, short, _ = lattice.node.shape
    what = f"transfer over a {long} × {short} grid's frontier of {short} variables"
    refuse_memory((long + short + 2) * float(states) ** short, memory, what)
    node, across, down = (np.zeros_like(part) for part in lattice)
    log_z = _both_ways(*_tables(lattice), node, across, down)
    return Exact(log_z, _flat(Lattice(node, across, down), flipped))


def safe(rows: int, columns: int, states: int, score: Array) -> bool:
    """Whether no table can span more than e^±300: a frontier's own scores bound its spread."""
    lattice, _ = _lattice(rows, columns, states, score)
    if not np.isfinite(score).all():
        return False
    spread = [np.ptp(part.reshape(*part.shape[:2], -1), axis=2) for part in lattice]
    row = spread[0].sum(axis=1) + spread[1].sum(axis=1)
    row[1:] += spread[2].sum(axis=1)
    both = row[1:] + row[:-1] if len(row) > 1 else row
    below = spread[2].sum(axis=1).max(initial=0.0)
    return bool(both.max() + below < RANGE)


def _lattice(rows: int, columns: int, states: int, score: Array) -> tuple[Lattice, bool]:
    n = rows * columns
    node = score[: n * states].reshape(rows, columns, states)
    pair = score[n * states :].reshape(-1, states, states)
    across = pair[: rows * (columns - 1)].reshape(rows, columns - 1, states, states)
    down = pair[rows * (columns - 1) :].reshape(rows - 1, columns, states, states)
    if columns <= rows:
        return Lattice(node, across, down), False
    turned = Lattice(node.swapaxes(0, 1), down.swapaxes(0, 1), across.swapaxes(0, 1))
    return turned, True


def _flat(tau: Lattice, flipped: bool) -> Array:
    if flipped:
        tau = Lattice(tau.node.swapaxes(0, 1), tau.down.swapaxes(0, 1), tau.across.swapaxes(0, 1))
    return np.concatenate([part.ravel() for part in tau])


def _tables(lattice: Lattice) -> tuple[Array, Array, float]:
    """exp of (left, here) and (up, here) scores per site, largest 1, and what was taken off.

    Nodes go with (left, here). The first row hangs below an imagined one of state 0.
    """
    rows, columns, states = lattice.node.shape
    left = np.broadcast_to(lattice.node[:, :, None, :], (rows, columns, states, states)).copy()
    left[:, 1:] += lattice.across
    up = np.full((rows, columns, states, states), -np.inf)
    up[0, :, 0] = 0.0
    up[1:] = lattice.down
    shift = left.max(axis=(2, 3)), up.max(axis=(2, 3))
    left, up = (np.exp(t - s[:, :, None, None]) for t, s in zip((left, up), shift, strict=True))
    return left, up, float(sum(s.sum() for s in shift))


@kernel
def _step(table: Array, fresh: Array, left: Array, up: Array, first: bool, inner: int) -> float:
    """fresh[a, p, x, b] = left[p, x] Σ_y up[y, x] table[a, p, y, b]; returns the largest."""
    states = len(up)
    fore = 1 if first else states
    outer = len(table) // (fore * states * inner)
    top = 0.0
    for a in range(outer):
        for p in range(fore):
            at = (a * fore + p) * states * inner
            for x in range(states):
                to = at + x * inner
                for b in range(inner):
                    fresh[to + b] = 0.0
                for y in range(states):
                    w, here = left[p, x] * up[y, x], at + y * inner
                    for b in range(inner):
                        fresh[to + b] += w * table[here + b]
                for b in range(inner):
                    top = max(top, fresh[to + b])
    return top


@kernel(fastmath={"reassoc", "contract"})
def _back(
    table: Array,
    after: Array,
    fresh: Array,
    left: Array,
    up: Array,
    first: bool,
    inner: int,
    joint: Array,
) -> float:
    """``fresh`` is ``after`` one step earlier; joint[p, y, x] over (left, up, here).

    Sums of products in any order: all terms are positive.
    """
    states = len(up)
    fore = 1 if first else states
    outer = len(table) // (fore * states * inner)
    top = 0.0
    joint[:] = 0.0
    for a in range(outer):
        for p in range(fore):
            at = (a * fore + p) * states * inner
            for y in range(states):
                here = at + y * inner
                for b in range(inner):
                    fresh[here + b] = 0.0
                for x in range(states):
                    w, to, mass = left[p, x] * up[y, x], at + x * inner, 0.0
                    for b in range(inner):
                        fresh[here + b] += w * after[to + b]
                        mass += table[here + b] * after[to + b]
                    joint[p, y, x] += w * mass
                for b in range(inner):
                    top = max(top, fresh[here + b])
    return top


@kernel
def _forward_row(
    table: Array, fresh: Array, left: Array, up: Array, keep: Array
) -> tuple[float, Array, Array]:
    """Through one row; ``keep[c]`` the table before site c, where there is room. O(c·s^(c+1))."""
    columns, states = len(left), left.shape[1]
    log, inner = 0.0, len(table) // states
    for c in range(columns):
        if len(keep):
            keep[c] = table
        top = _step(table, fresh, left[c], up[c], c == 0, inner)
        fresh /= top
        log += np.log(top)
        table, fresh = fresh, table
        inner = max(inner // states, 1)
    return log, table, fresh


@kernel
def _both_ways(
    left: Array, up: Array, shift: float, node: Array, across: Array, down: Array
) -> float:
    rows, columns, states = left.shape[:3]
    size = states**columns
    begin, keep = np.zeros((rows, size)), np.empty((columns, size))
    table, fresh, none = np.zeros(size), np.zeros(size), np.empty((0, 0))
    table[0] = 1.0
    log_z = shift
    for r in range(rows):
        begin[r] = table
        log, table, fresh = _forward_row(table, fresh, left[r], up[r], none)
        log_z += log
    log_z += np.log(table.sum())
    after, joint = np.ones(size), np.zeros((states, states, states))
    for r in range(rows - 1, -1, -1):
        table[:] = begin[r]
        _, table, fresh = _forward_row(table, fresh, left[r], up[r], keep)
        inner = 1
        for c in range(columns - 1, -1, -1):
            top = _back(keep[c], after, fresh, left[r, c], up[r, c], c == 0, inner, joint)
            fresh /= top
            after, fresh = fresh, after
            joint /= joint.sum()
            for p in range(states):
                for y in range(states):
                    for x in range(states):
                        node[r, c, x] += joint[p, y, x]
                        if c > 0:
                            across[r, c - 1, p, x] += joint[p, y, x]
                        if r > 0:
                            down[r - 1, c, y, x] += joint[p, y, x]
            inner *= states
    return log_z

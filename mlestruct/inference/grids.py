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

from mlestruct.inference.elimination import MEMORY, refuse_memory
from mlestruct.native._door import GridTables, grid_marginals
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
) -> tuple[float, Array]:
    """log Z and τ of a graph laid out as ``grid`` does: O(rows · columns · states^(shorter + 1)).

    Three passes for log Z and marginals; memory (shorter + longer + 2) tables of states^shorter.
    """
    lattice, flipped = _lattice(rows, columns, states, as_numbers(score, "scores"))
    long, short, _ = lattice.node.shape
    what = f"transfer over a {long} × {short} grid's frontier of {short} variables"
    refuse_memory((long + short + 2) * float(states) ** short, memory, what)
    node, across, down = (np.zeros(part.shape) for part in lattice)
    (tables, shift), log_z = _tables(lattice), np.empty(1)
    grid_marginals(tables, log_z, node, across, down)
    if flipped:
        node, across, down = node.swapaxes(0, 1), down.swapaxes(0, 1), across.swapaxes(0, 1)
    return float(log_z[0]) + shift, np.concatenate([p.ravel() for p in (node, across, down)])


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


def _tables(lattice: Lattice) -> tuple[GridTables, float]:
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
    return GridTables(rows, columns, states, left, up), float(sum(s.sum() for s in shift))

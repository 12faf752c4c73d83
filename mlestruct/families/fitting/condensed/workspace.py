"""Working memory of a few examples of one graph, whose systems are solved side by side."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mlestruct.families.fitting.condensed.sparse import LANES, conjugate, factor, solve
from mlestruct.families.fitting.condensed.steps import condense, expand
from mlestruct.kernels import kernel
from mlestruct.structures.base import Array, Ints


class Workspace(NamedTuple):
    """A row per example, but for what a system of LANES of them needs."""

    values: Array
    right: Array  # becomes the unknowns
    under: Ints  # rows of the factor
    lower: Array
    pivot: Array
    row: Array
    squares: Array
    lift: Array
    likely: Ints
    place: Ints
    rise: Array  # of the prices of every factor's rows
    price: Array  # of every slot's states: Aᵀ price is ∇F where the last step led
    total: Array  # of every factor's total
    inverse: Array  # of every coordinate's curvature
    curve: Array  # of variables' states
    slope: Array
    delta: Array


@kernel
def workspaces(frame, count):
    """Lanes that serve no example hold the identity."""
    pattern = frame.pattern
    n, size, rows = len(pattern.start) - 1, frame.table_start[-1], frame.row_start[-1]
    stored = pattern.below[-1] if pattern.direct else 0
    values = np.zeros((len(pattern.row), LANES))
    for k in range(n):
        values[pattern.start[k + 1] - 1] = 1.0
    return Workspace(
        values,
        np.zeros((n, LANES)),
        np.empty(stored, np.int64),
        np.empty((stored, LANES)),
        np.empty((n, LANES)),
        np.empty((n, LANES)),
        np.empty((count, frame.square[-1])),
        np.empty((count, rows)),
        np.empty((count, len(frame.free) - 1), np.int64),
        np.empty((count, frame.slot_start[-1]), np.int64),
        np.empty((count, rows)),
        np.zeros((count, frame.slot_start[-1])),
        np.zeros((count, len(frame.square) - 1)),
        np.empty((count, size)),
        np.empty((count, frame.table_start[0])),
        np.empty((count, size)),
        np.empty((count, size)),
    )


@kernel(error_model="numpy")
def load(lane, b, frame, space):
    """One example's system, from its slope and curvature in ``space``."""
    condense(
        lane, b, space.inverse[lane], space.curve[lane], space.slope[lane], frame, space.values,
        space.right, space.squares[lane], space.lift[lane], space.likely[lane], space.place[lane],
        space.rise[lane],
    )  # fmt: skip


@kernel(error_model="numpy")
def answer(pattern, space):
    """Solve every lane's system in place; the least pivot or curvature of each."""
    if not pattern.direct:
        return conjugate(space.values, pattern, space.right)
    least = factor(space.values, pattern, space.under, space.lower, space.pivot, space.row)
    solve(pattern, space.under, space.lower, space.pivot, space.right)
    return least


@kernel(error_model="numpy")
def unload(lane, b, frame, space):
    """An example's step of every coordinate; prices rise to where it leads."""
    expand(
        lane, space.right, b, space.inverse[lane], space.slope[lane], frame, space.squares[lane],
        space.lift[lane], space.likely[lane], space.place[lane], space.delta[lane],
        space.rise[lane],
    )  # fmt: skip
    _rise(space.rise[lane], space.place[lane], space.price[lane], space.total[lane], frame)


@kernel(error_model="numpy")
def charge(slope, price, total, frame):
    """∇F − Aᵀ price in place of ∇F: steps are the same, and round by what is left, not by ∇F."""
    entry, scope, slot_start = frame.entry, frame.scope, frame.slot_start
    for f in range(len(frame.square) - 1):
        slots, at = frame.scope_start[f + 1] - frame.scope_start[f], frame.entry_at[f]
        for e in range(frame.table_start[f], frame.table_start[f + 1]):
            slope[e] -= total[f]
            for s in range(slots):
                slope[e] -= price[entry[at + s]]
            at += slots
    for s in range(len(scope)):
        first = frame.node_start[scope[s]] - slot_start[s]
        for k in range(slot_start[s], slot_start[s + 1]):
            slope[first + k] += price[k]


@kernel(error_model="numpy")
def _rise(rise, place, price, total, frame):
    for f in range(len(total)):
        h = frame.row_start[f]
        total[f] += rise[h]
        for s in range(frame.scope_start[f], frame.scope_start[f + 1]):
            for k in range(frame.slot_start[s], frame.slot_start[s + 1]):
                if place[k] >= 0:
                    price[k] += rise[h + place[k]]

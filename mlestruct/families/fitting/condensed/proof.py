"""How far beliefs are from the optimum at most: a bound by the prices of their last step.

F convex on the local polytope: F(b) − F(s) ≤ ⟨∇F(b), b − s⟩, and any prices y of the equalities
A s = d leave a maximum per table, Σ_t max_k r_k − ⟨r, b⟩ − ⟨y, d − A b⟩ with r = Aᵀy − ∇F(b).
"""

from __future__ import annotations

import numpy as np

from mlestruct.families.fitting.condensed.workspace import charge
from mlestruct.kernels import kernel


@kernel(error_model="numpy")
def shortfall(score, weight, b, price, total, frame, left):
    """The bound, with what rows are off counted at their price; ``left`` is scratch.

    No weight need be positive as long as the whole is convex.
    """
    for k in range(len(b)):
        left[k] = weight[k] * (np.log(b[k]) + 1.0) - score[k]
    charge(left, price, total, frame)
    short = 0.0
    for i in range(len(frame.free) - 1):
        if frame.free[i + 1] > frame.free[i]:
            short += _excess(left, b, frame.node_start[i], frame.node_start[i + 1])
    for f in range(len(total)):
        short += _excess(left, b, frame.table_start[f], frame.table_start[f + 1])
        short += abs(total[f] * (b[frame.table_start[f] : frame.table_start[f + 1]].sum() - 1.0))
    return short + _unpaid(b, price, frame, np.zeros(len(price)))


@kernel(error_model="numpy")
def _unpaid(b, price, frame, off):
    scope, slot_start = frame.scope, frame.slot_start
    for f in range(len(frame.square) - 1):
        slots, at = frame.scope_start[f + 1] - frame.scope_start[f], frame.entry_at[f]
        for e in range(frame.table_start[f], frame.table_start[f + 1]):
            for s in range(slots):
                off[frame.entry[at + s]] += b[e]
            at += slots
    due = 0.0
    for s in range(len(scope)):
        first = frame.node_start[scope[s]] - slot_start[s]
        for k in range(slot_start[s], slot_start[s + 1]):
            due += abs(price[k] * (off[k] - b[first + k]))
    return due


@kernel
def _excess(left, b, first, last):
    """The most that a table's mass could still gain."""
    least, mean = left[first], 0.0
    for k in range(first, last):
        least = min(least, left[k])
        mean += b[k] * left[k]
    return mean - least

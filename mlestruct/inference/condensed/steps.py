"""min ½ Σ δ²/P + g·δ over changes δ of marginals that restore A(b + δ) = d.

P = b/w is the inverse curvature of Σ w b log b. With g the gradient of the free energy δ is
Newton's step; with g = ∂L/∂b at an optimum it is ∂L/∂v. Variables may have P < 0 (counting numbers
of the tree-reweighted kind) as long as the whole is convex on A δ = 0: the system tells. Each
variable's most likely state is the one that follows from the others: with a rare one in its place
small differences of large numbers would decide.
"""

from __future__ import annotations

import numba as nb


@nb.njit(cache=True, nogil=True, error_model="numpy")
def condense(lane, b, inverse, curve, g, frame, values, right, squares, lift, likely, place, room):
    """One example's system into a lane; ``squares`` to ``place`` serve :func:`expand`.

    ``curve`` is 1/P of the variables' states, ``inverse`` P of the tables' entries.
    """
    values[:, lane] = 0.0
    for i in range(len(frame.free) - 1):
        first, last = frame.node_start[i], frame.node_start[i + 1]
        likely[i] = b[first:last].argmax()
        own, count = first + likely[i], frame.free[i + 1] - frame.free[i]
        lack = 1.0 - b[first:last].sum()
        for p in range(count):
            k = first + p + (1 if p >= likely[i] else 0)
            pull = g[k] - g[own] - curve[own] * lack
            right[frame.pattern.position[frame.free[i] + p], lane] = -pull
            for q in range(p, count):
                at = frame.node_map[frame.node_at[i] + p * count + q]
                values[at, lane] += curve[own] + (curve[k] if p == q else 0.0)
    _rows(frame, likely, place)
    _tables(b, inverse, g, frame, place, squares, lift)
    _spread(lane, frame, squares, lift, values, right, room)


@nb.njit(cache=True, nogil=True)
def _rows(frame, likely, place):
    """A factor's row for every state of its slots, after the total's; −1 for what is left out."""
    for f in range(len(frame.square) - 1):
        row = 1
        for s in range(frame.scope_start[f], frame.scope_start[f + 1]):
            for k in range(frame.slot_start[s], frame.slot_start[s + 1]):
                held = k - frame.slot_start[s] == likely[frame.scope[s]]
                place[k] = -1 if held else row
                row += 0 if held else 1


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _tables(b, inverse, g, frame, place, squares, lift):
    """C⁻¹ of every factor with C = M P Mᵀ, and h = what the table's sums lack + M P g."""
    squares[:], lift[:] = 0.0, 0.0
    _demand(b, frame, place, lift)
    for f in range(len(frame.square) - 1):
        C = squares[frame.square[f] : frame.square[f + 1]]
        h = lift[frame.row_start[f] : frame.row_start[f + 1]]
        h[0] = 1.0
        rows, slots = len(h), frame.scope_start[f + 1] - frame.scope_start[f]
        at = frame.entry_at[f]
        for e in range(frame.table_start[f], frame.table_start[f + 1]):
            weight = inverse[e]
            pull = weight * g[e] - b[e]
            h[0] += pull
            C[0] += weight
            for s in range(slots):
                row = place[frame.entry[at + s]]
                if row < 0:
                    continue
                h[row] += pull
                C[row * rows] += weight
                C[row * rows + row] += weight
                for r in range(s):
                    other = place[frame.entry[at + r]]
                    if other >= 0:
                        C[row * rows + other] += weight
            at += slots
        _invert(C, rows)


@nb.njit(cache=True, nogil=True)
def _demand(nodes, frame, place, lift):
    """Adds what variables' entries ask of every factor's rows, its total aside."""
    for f in range(len(frame.square) - 1):
        for s in range(frame.scope_start[f], frame.scope_start[f + 1]):
            first = frame.node_start[frame.scope[s]] - frame.slot_start[s]
            for k in range(frame.slot_start[s], frame.slot_start[s + 1]):
                if place[k] >= 0:
                    lift[frame.row_start[f] + place[k]] += nodes[first + k]


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _invert(C, n):
    """A small positive matrix, by its lower triangle, becomes its inverse (Gauss-Jordan)."""
    for i in range(n):
        for j in range(i):
            C[j * n + i] = C[i * n + j]
    for k in range(n):
        pivot = 1.0 / C[k * n + k]
        C[k * n + k] = 1.0
        for j in range(n):
            C[k * n + j] *= pivot
        for i in range(n):
            if i != k:
                share = C[i * n + k]
                C[i * n + k] = 0.0
                for j in range(n):
                    C[i * n + j] -= share * C[k * n + j]


@nb.njit(cache=True, nogil=True)
def _multiply(C, h, out):
    rows = len(h)
    for i in range(rows):
        out[i] = 0.0
        for j in range(rows):
            out[i] += C[i * rows + j] * h[j]


@nb.njit(cache=True, nogil=True)
def _spread(lane, frame, squares, lift, values, right, pull):
    """Every table's energy as one of its variables' unknowns: z = E x + h, ½ zᵀ C⁻¹ z."""
    for f in range(len(frame.square) - 1):
        C = squares[frame.square[f] : frame.square[f + 1]]
        h = lift[frame.row_start[f] : frame.row_start[f + 1]]
        _multiply(C, h, pull)
        rows, first, last = len(h), frame.unknown_at[f], frame.unknown_at[f + 1]
        for p in range(first, last):
            own = frame.unknown_row[p]
            right[frame.unknown[p], lane] -= pull[own]
            at = frame.factor_at[f] + (p - first) * (last - first) - first
            for q in range(p, last):
                values[frame.factor_map[at + q], lane] += C[own * rows + frame.unknown_row[q]]


@nb.njit(cache=True, nogil=True, error_model="numpy")
def expand(lane, x, b, inverse, g, frame, squares, lift, likely, place, delta, price):
    """δ of every coordinate from the unknowns."""
    for i in range(len(frame.free) - 1):
        first, last = frame.node_start[i], frame.node_start[i + 1]
        count = frame.free[i + 1] - frame.free[i]
        rest = 1.0 - b[first:last].sum() if count > 0 else 0.0
        for k in range(first, last):
            delta[k] = 0.0
        for p in range(count):
            step = x[frame.pattern.position[frame.free[i] + p], lane]
            delta[first + p + (1 if p >= likely[i] else 0)] = step
            rest -= step
        delta[first + likely[i]] = rest
    _demand(delta, frame, place, lift)  # now z
    for f in range(len(frame.square) - 1):
        C = squares[frame.square[f] : frame.square[f + 1]]
        _multiply(C, lift[frame.row_start[f] : frame.row_start[f + 1]], price)
        slots, at = frame.scope_start[f + 1] - frame.scope_start[f], frame.entry_at[f]
        for e in range(frame.table_start[f], frame.table_start[f + 1]):
            total = price[0] - g[e]
            for s in range(slots):
                row = place[frame.entry[at + s]]
                if row >= 0:
                    total += price[row]
            delta[e] = inverse[e] * total
            at += slots

"""min ½ Σ δ²/P + g·δ over changes δ of marginals that restore A(b + δ) = d.

P = b/w is the inverse curvature of Σ w b log b. With g the gradient of the free energy δ is
Newton's step; with g = ∂L/∂b at an optimum it is ∂L/∂v. Variables may have P < 0 (counting numbers
of the tree-reweighted kind) as long as the whole is convex on A δ = 0: the system tells. Each
variable's most likely state is the one that follows from the others: with a rare one in its place
small differences of large numbers would decide.
"""

from __future__ import annotations

from mlestruct.kernels import kernel


@kernel(error_model="numpy")
def condense(lane, b, inverse, curve, g, frame, values, right, squares, lift, likely, place, price):
    """One example's system into a lane; ``squares`` to ``place`` serve :func:`expand`.

    ``curve`` is 1/P of the variables' states, ``inverse`` P of the tables' entries.
    """
    for k in range(len(values)):
        values[k, lane] = 0.0
    _variables(lane, b, curve, g, frame, values, right, likely)
    _rows(frame, likely, place)
    _tables(b, inverse, g, frame, place, squares, lift)
    _spread(lane, frame, squares, lift, values, right, price)


@kernel(error_model="numpy")
def _variables(lane, b, curve, g, frame, values, right, likely):
    """What variables' own entropies add to the system."""
    free, position = frame.free, frame.pattern.position
    node_start, node_at, node_map = frame.node_start, frame.node_at, frame.node_map
    for i in range(len(free) - 1):
        first, last = node_start[i], node_start[i + 1]
        best, lack = first, 1.0
        for k in range(first, last):
            lack -= b[k]
            best = k if b[k] > b[best] else best
        likely[i] = best - first
        count = free[i + 1] - free[i]
        for p in range(count):
            k = first + p + (1 if p >= likely[i] else 0)
            pull = g[k] - g[best] - curve[best] * lack
            right[position[free[i] + p], lane] = -pull
            for q in range(p, count):
                at = node_map[node_at[i] + p * count + q]
                values[at, lane] += curve[best] + (curve[k] if p == q else 0.0)


@kernel
def _rows(frame, likely, place):
    """A factor's row for every state of its slots, after the total's; −1 for what is left out."""
    scope_start, scope, slot_start = frame.scope_start, frame.scope, frame.slot_start
    for f in range(len(scope_start) - 1):
        row = 1
        for s in range(scope_start[f], scope_start[f + 1]):
            for k in range(slot_start[s], slot_start[s + 1]):
                held = k - slot_start[s] == likely[scope[s]]
                place[k] = -1 if held else row
                row += 0 if held else 1


@kernel(error_model="numpy")
def _tables(b, inverse, g, frame, place, squares, lift):
    """C⁻¹ of every factor with C = M P Mᵀ, and h = what the table's sums lack + M P g."""
    square, row_start, scope_start = frame.square, frame.row_start, frame.scope_start
    table_start, entry_at, entry = frame.table_start, frame.entry_at, frame.entry
    for k in range(len(squares)):
        squares[k] = 0.0
    for k in range(len(lift)):
        lift[k] = 0.0
    _demand(b, frame, place, lift)
    for f in range(len(scope_start) - 1):
        C, h = square[f], row_start[f]
        rows, slots = row_start[f + 1] - h, scope_start[f + 1] - scope_start[f]
        at, mass, total = entry_at[f], 0.0, 1.0
        for e in range(table_start[f], table_start[f + 1]):
            weight = inverse[e]
            pull = weight * g[e] - b[e]
            mass += weight
            total += pull
            for s in range(slots):
                row = place[entry[at + s]]
                if row < 0:
                    continue
                lift[h + row] += pull
                squares[C + row * rows + row] += weight
                for r in range(s):
                    other = place[entry[at + r]]
                    if other >= 0:
                        squares[C + row * rows + other] += weight
            at += slots
        lift[h], squares[C] = total, mass
        for row in range(1, rows):
            squares[C + row * rows] = squares[C + row * rows + row]  # all of it within the total
        _invert(squares, C, rows)


@kernel
def _demand(nodes, frame, place, lift):
    """Adds what variables' entries ask of every factor's rows, its total aside."""
    scope_start, scope, slot_start = frame.scope_start, frame.scope, frame.slot_start
    row_start, node_start = frame.row_start, frame.node_start
    for f in range(len(scope_start) - 1):
        for s in range(scope_start[f], scope_start[f + 1]):
            first = node_start[scope[s]] - slot_start[s]
            for k in range(slot_start[s], slot_start[s + 1]):
                if place[k] >= 0:
                    lift[row_start[f] + place[k]] += nodes[first + k]


@kernel(error_model="numpy")
def _invert(squares, at, n):
    """A small positive matrix, by its lower triangle, becomes its inverse (Gauss-Jordan)."""
    for i in range(n):
        for j in range(i):
            squares[at + j * n + i] = squares[at + i * n + j]
    for k in range(n):
        own = at + k * n
        pivot = 1.0 / squares[own + k]
        squares[own + k] = 1.0
        for j in range(n):
            squares[own + j] *= pivot
        for i in range(n):
            if i != k:
                row = at + i * n
                share = squares[row + k]
                squares[row + k] = 0.0
                for j in range(n):
                    squares[row + j] -= share * squares[own + j]


@kernel
def _prices(squares, C, lift, h, rows, out):
    """C⁻¹ h."""
    for i in range(rows):
        out[h + i] = 0.0
        for j in range(rows):
            out[h + i] += squares[C + i * rows + j] * lift[h + j]


@kernel
def _spread(lane, frame, squares, lift, values, right, price):
    """Every table's energy as one of its variables' unknowns: z = E x + h, ½ zᵀ C⁻¹ z."""
    square, row_start, unknown_at = frame.square, frame.row_start, frame.unknown_at
    unknown, unknown_row = frame.unknown, frame.unknown_row
    factor_at, factor_map = frame.factor_at, frame.factor_map
    for f in range(len(square) - 1):
        C, h = square[f], row_start[f]
        rows = row_start[f + 1] - h
        _prices(squares, C, lift, h, rows, price)
        first, last = unknown_at[f], unknown_at[f + 1]
        for p in range(first, last):
            own = unknown_row[p]
            right[unknown[p], lane] -= price[h + own]
            at = factor_at[f] + (p - first) * (last - first) - first
            for q in range(p, last):
                values[factor_map[at + q], lane] += squares[C + own * rows + unknown_row[q]]


@kernel(error_model="numpy")
def expand(lane, x, b, inverse, g, frame, squares, lift, likely, place, delta, price):
    """δ of every coordinate from the unknowns."""
    _changes(lane, x, b, frame, likely, delta)
    _demand(delta, frame, place, lift)  # now z
    square, row_start, scope_start = frame.square, frame.row_start, frame.scope_start
    table_start, entry_at, entry = frame.table_start, frame.entry_at, frame.entry
    for f in range(len(square) - 1):
        h = row_start[f]
        _prices(squares, square[f], lift, h, row_start[f + 1] - h, price)
        slots, at = scope_start[f + 1] - scope_start[f], entry_at[f]
        for e in range(table_start[f], table_start[f + 1]):
            total = price[h] - g[e]
            for s in range(slots):
                row = place[entry[at + s]]
                if row >= 0:
                    total += price[h + row]
            delta[e] = inverse[e] * total
            at += slots


@kernel
def _changes(lane, x, b, frame, likely, delta):
    """Variables' part of δ; those that are not free stay."""
    free, node_start, position = frame.free, frame.node_start, frame.pattern.position
    for i in range(len(free) - 1):
        first, last = node_start[i], node_start[i + 1]
        count, rest = free[i + 1] - free[i], 1.0
        for k in range(first, last):
            rest -= b[k]
            delta[k] = 0.0
        for p in range(count):
            step = x[position[free[i] + p], lane]
            delta[first + p + (1 if p >= likely[i] else 0)] = step
            rest -= step
        delta[first + likely[i]] = rest if count > 0 else 0.0

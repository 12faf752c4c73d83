"""min ½ Σ δ²/P + g·δ over changes δ of marginals that restore A(b + δ) = d.

P = b/w is the inverse curvature of Σ w b log b. With g the gradient of the free energy δ is
Newton's step; with g = ∂L/∂b at an optimum it is ∂L/∂v. Variables may have P < 0 (counting numbers
of the tree-reweighted kind) as long as the whole is convex on A δ = 0: the system tells.
"""

from __future__ import annotations

import numba as nb


@nb.njit(cache=True, nogil=True, error_model="numpy")
def condense(lane, b, inverse, curve, g, frame, values, right, squares, lift, room):
    """One example's system into a lane; ``squares`` and ``lift`` keep what :func:`expand` needs.

    ``curve`` is 1/P of the variables' states, ``inverse`` P of the tables' entries.
    """
    values[:, lane] = 0.0
    place = frame.pattern.position
    for i in range(len(frame.free) - 1):
        first, last = frame.node_start[i], frame.node_start[i + 1] - 1
        start, count = frame.free[i], frame.free[i + 1] - frame.free[i]
        lack = 1.0 - b[first : last + 1].sum()
        for p in range(count):
            pull = g[first + p] - g[last] - curve[last] * lack
            right[place[start + p], lane] = -pull
            for q in range(p, count):
                at = frame.node_map[frame.node_at[i] + p * count + q]
                values[at, lane] += curve[last] + (curve[first + p] if p == q else 0.0)
    for f in range(len(frame.square) - 1):
        rows = frame.row_start[f + 1] - frame.row_start[f]
        C = squares[frame.square[f] : frame.square[f + 1]]
        h = lift[frame.row_start[f] : frame.row_start[f + 1]]
        _local(f, b, inverse, g, frame, C, h, rows)
        _invert(C, rows, room)
        _spread(f, lane, frame, C, h, rows, values, right, room)


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _local(f, b, inverse, g, frame, C, h, rows):
    """C = M P Mᵀ, h = what the table's sums lack + M P g."""
    C[:] = 0.0
    h[:] = 0.0
    slots = frame.scope_start[f + 1] - frame.scope_start[f]
    at = frame.entry_at[f]
    for e in range(frame.table_start[f], frame.table_start[f + 1]):
        weight = inverse[e]
        pull = weight * g[e] - b[e]
        for s in range(slots):
            row = frame.entry_row[at + s]
            if row >= 0:
                h[row] += pull
                for r in range(slots):
                    other = frame.entry_row[at + r]
                    if other >= 0:
                        C[row * rows + other] += weight
        at += slots
    row = 0
    for s in range(slots):
        i = frame.scope[frame.scope_start[f] + s]
        first, last = frame.node_start[i], frame.node_start[i + 1]
        for k in range(first, last if s == 0 else last - 1):
            h[row] += b[k]
            row += 1
        if s == 0 and frame.free[i + 1] > frame.free[i]:
            h[row - 1] += 1.0 - b[first:last].sum()


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _invert(C, n, room):
    """A small positive matrix by its inverse in place (Gauss-Jordan without pivots)."""
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


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _spread(f, lane, frame, C, h, rows, values, right, room):
    """The table's energy as one of its variables' unknowns: z = E x + h, ½ zᵀ C⁻¹ z."""
    first = frame.scope[frame.scope_start[f]]
    last = frame.node_start[first + 1] - frame.node_start[first] - 1  # the row that is −Σ x
    pull = room[:rows]
    for i in range(rows):
        pull[i] = 0.0
        for j in range(rows):
            pull[i] += C[i * rows + j] * h[j]
    at, row, count = frame.factor_at[f], 0, 0
    for s in range(frame.scope_start[f], frame.scope_start[f + 1]):
        count += frame.free[frame.scope[s] + 1] - frame.free[frame.scope[s]]
    p = 0
    for s in range(frame.scope_start[f], frame.scope_start[f + 1]):
        i = frame.scope[s]
        leading = s == frame.scope_start[f]
        states = frame.node_start[i + 1] - frame.node_start[i] - 1
        free = frame.free[i + 1] - frame.free[i]
        for k in range(free):
            own = row + k
            less = pull[last] if leading else 0.0
            right[frame.pattern.position[frame.free[i] + k], lane] -= pull[own] - less
            q, other = 0, 0
            for t in range(frame.scope_start[f], frame.scope_start[f + 1]):
                j = frame.scope[t]
                there = t == frame.scope_start[f]
                for m in range(frame.free[j + 1] - frame.free[j]):
                    if q >= p:
                        bend = C[own * rows + other + m]
                        if leading:
                            bend -= C[last * rows + other + m]
                        if there:
                            bend -= C[own * rows + last]
                        if leading and there:
                            bend += C[last * rows + last]
                        values[frame.factor_map[at + p * count + q], lane] += bend
                    q += 1
                other += frame.node_start[j + 1] - frame.node_start[j] - (0 if there else 1)
            p += 1
        row += states + (1 if leading else 0)


@nb.njit(cache=True, nogil=True, error_model="numpy")
def expand(lane, x, b, inverse, g, frame, squares, lift, delta, room):
    """δ of every coordinate from the unknowns."""
    place = frame.pattern.position
    for i in range(len(frame.free) - 1):
        first, last = frame.node_start[i], frame.node_start[i + 1] - 1
        count = frame.free[i + 1] - frame.free[i]
        rest = 1.0 - b[first : last + 1].sum() if count > 0 else 0.0
        for k in range(last - first + 1):
            delta[first + k] = 0.0
        for k in range(count):
            delta[first + k] = x[place[frame.free[i] + k], lane]
            rest -= delta[first + k]
        delta[last] = rest
    for f in range(len(frame.square) - 1):
        rows = frame.row_start[f + 1] - frame.row_start[f]
        C = squares[frame.square[f] : frame.square[f + 1]]
        z, price = room[:rows], room[rows : 2 * rows]
        for r in range(rows):
            z[r] = lift[frame.row_start[f] + r]
        row = 0
        for s in range(frame.scope_start[f], frame.scope_start[f + 1]):
            i, leading = frame.scope[s], s == frame.scope_start[f]
            states = frame.node_start[i + 1] - frame.node_start[i]
            lack = 0.0
            if leading and frame.free[i + 1] > frame.free[i]:  # already in ``lift``
                lack = 1.0 - b[frame.node_start[i] : frame.node_start[i + 1]].sum()
            for k in range(states if leading else states - 1):
                z[row] += delta[frame.node_start[i] + k]
                row += 1
            if leading:
                z[row - 1] -= lack
        for r in range(rows):
            price[r] = 0.0
            for q in range(rows):
                price[r] += C[r * rows + q] * z[q]
        at, slots = frame.entry_at[f], frame.scope_start[f + 1] - frame.scope_start[f]
        for e in range(frame.table_start[f], frame.table_start[f + 1]):
            total = -g[e]
            for s in range(slots):
                row = frame.entry_row[at + s]
                if row >= 0:
                    total += price[row]
            delta[e] = inverse[e] * total
            at += slots

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
def condense(lane, b, inverse, curve, g, frame, values, right, squares, lift, likely, room):
    """One example's system into a lane; ``squares``, ``lift``, ``likely`` serve :func:`expand`.

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
    for f in range(len(frame.square) - 1):
        rows = frame.row_start[f + 1] - frame.row_start[f]
        C = squares[frame.square[f] : frame.square[f + 1]]
        h = lift[frame.row_start[f] : frame.row_start[f + 1]]
        _local(f, b, inverse, g, frame, C, h, rows, likely)
        _invert(C, rows)
        _spread(f, lane, frame, C, h, rows, values, right, likely, room)


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _row(leading, before, state, likely):
    """The row of a slot's state; −1 for the one that follows from the others."""
    if leading:
        return state
    if state == likely:
        return -1
    return before + state - (1 if state > likely else 0)


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _local(f, b, inverse, g, frame, C, h, rows, likely):
    """C = M P Mᵀ, h = what the table's sums lack + M P g."""
    C[:] = 0.0
    h[:] = 0.0
    start, slots = frame.scope_start[f], frame.scope_start[f + 1] - frame.scope_start[f]
    at = frame.entry_at[f]
    for e in range(frame.table_start[f], frame.table_start[f + 1]):
        weight = inverse[e]
        pull = weight * g[e] - b[e]
        for s in range(slots):
            state, i = frame.entry_state[at + s], frame.scope[start + s]
            row = _row(s == 0, frame.before[start + s], state, likely[i])
            if row < 0:
                continue
            h[row] += pull
            for r in range(slots):
                state, i = frame.entry_state[at + r], frame.scope[start + r]
                other = _row(r == 0, frame.before[start + r], state, likely[i])
                if other >= 0:
                    C[row * rows + other] += weight
        at += slots
    for s in range(slots):
        i = frame.scope[start + s]
        first, last = frame.node_start[i], frame.node_start[i + 1]
        for k in range(last - first):
            row = _row(s == 0, frame.before[start + s], k, likely[i])
            if row >= 0:
                h[row] += b[first + k]
        if s == 0 and frame.free[i + 1] > frame.free[i]:
            h[likely[i]] += 1.0 - b[first:last].sum()


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _invert(C, n):
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
def _spread(f, lane, frame, C, h, rows, values, right, likely, room):
    """The table's energy as one of its variables' unknowns: z = E x + h, ½ zᵀ C⁻¹ z."""
    start, end = frame.scope_start[f], frame.scope_start[f + 1]
    held = likely[frame.scope[start]]  # the row that is −Σ x
    pull = room[:rows]
    for i in range(rows):
        pull[i] = 0.0
        for j in range(rows):
            pull[i] += C[i * rows + j] * h[j]
    count = 0
    for s in range(start, end):
        count += frame.free[frame.scope[s] + 1] - frame.free[frame.scope[s]]
    at, p = frame.factor_at[f], 0
    for s in range(start, end):
        i = frame.scope[s]
        for k in range(frame.free[i + 1] - frame.free[i]):
            own = frame.before[s] + k + (1 if s == start and k >= held else 0)
            less = pull[held] if s == start else 0.0
            right[frame.pattern.position[frame.free[i] + k], lane] -= pull[own] - less
            q = 0
            for t in range(start, end):
                j = frame.scope[t]
                for m in range(frame.free[j + 1] - frame.free[j]):
                    if q >= p:
                        other = frame.before[t] + m + (1 if t == start and m >= held else 0)
                        bend = C[own * rows + other]
                        if s == start:
                            bend -= C[held * rows + other]
                        if t == start:
                            bend -= C[own * rows + held]
                            if s == start:
                                bend += C[held * rows + held]
                        values[frame.factor_map[at + p * count + q], lane] += bend
                    q += 1
            p += 1


@nb.njit(cache=True, nogil=True, error_model="numpy")
def expand(lane, x, b, inverse, g, frame, squares, lift, likely, delta, room):
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
    for f in range(len(frame.square) - 1):
        rows = frame.row_start[f + 1] - frame.row_start[f]
        C = squares[frame.square[f] : frame.square[f + 1]]
        z, price = room[:rows], room[rows : 2 * rows]
        z[:] = lift[frame.row_start[f] : frame.row_start[f + 1]]
        start, slots = frame.scope_start[f], frame.scope_start[f + 1] - frame.scope_start[f]
        for s in range(slots):
            i = frame.scope[start + s]
            first, last = frame.node_start[i], frame.node_start[i + 1]
            for k in range(last - first):
                row = _row(s == 0, frame.before[start + s], k, likely[i])
                if row >= 0:
                    z[row] += delta[first + k]
            if s == 0 and frame.free[i + 1] > frame.free[i]:  # already in ``lift``
                z[likely[i]] -= 1.0 - b[first:last].sum()
        for r in range(rows):
            price[r] = 0.0
            for q in range(rows):
                price[r] += C[r * rows + q] * z[q]
        at = frame.entry_at[f]
        for e in range(frame.table_start[f], frame.table_start[f + 1]):
            total = -g[e]
            for s in range(slots):
                state, i = frame.entry_state[at + s], frame.scope[start + s]
                row = _row(s == 0, frame.before[start + s], state, likely[i])
                if row >= 0:
                    total += price[row]
            delta[e] = inverse[e] * total
            at += slots

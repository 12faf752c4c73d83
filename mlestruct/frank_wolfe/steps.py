"""Block steps: compiled, sequential, deterministic; O(support) where they can be.

Arguments are those of ``slopes`` (the problem p, the point x) and ``atoms``, with scratch s.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
from __future__ import annotations

from collections import namedtuple

from mlestruct.frank_wolfe.atoms import add_row, insert, score_atoms
from mlestruct.frank_wolfe.line_search import Line, search
from mlestruct.frank_wolfe.slopes import refresh_weights, rough_slope, smooth_slopes
from mlestruct.kernels import kernel

# delta: a direction, not zero on ``place`` alone; change: its moments, on the weights ``column``
Scratch = namedtuple("Scratch", "delta place column change a t dt theta score up down")

PAIRS = 2  # steps taken per scoring of an active set: a line search costs less than a scoring
FRESH = 4  # rounds, or corrective passes, between recomputations of stiffness


@kernel
def _collect(m, count, p, x, s):
    """The entropy's terms along s.delta; returns their number and the bias's part of φ′."""
    first, size, linear = p.offsets[m], 0, 0.0
    for i in range(count):
        k = s.place[i]
        step = s.delta[k - first]
        linear -= p.bias[k] * step
        if p.a[k] != 0.0:
            s.a[size], s.t[size], s.dt[size] = p.a[k], x.tau[k], step
            size += 1
        if p.b[k] != 0.0:
            s.a[size], s.t[size], s.dt[size] = p.b[k], 1.0 - x.tau[k], -step
            size += 1
    for v in range(p.start[m], p.start[m + 1]):
        if p.mixed[v] != 0.0:
            t, dt = p.c0[v], 0.0
            for e in range(p.ptr[v], p.ptr[v + 1]):
                t += p.value[e] * x.tau[p.index[e]]
                dt += p.value[e] * s.delta[p.index[e] - first]
            if dt != 0.0:
                s.a[size], s.t[size], s.dt[size] = p.mixed[v], t, dt
                size += 1
    return size, linear


@kernel
def move(m, most, count, wide, gamma, p, x, s):
    """Exact step along s.delta (on s.place[:count]) and s.change (on s.column[:wide]).

    Returns γ and the decrease. A given ``gamma`` ≥ 0 replaces the line search (the papers' fixed
    steps). The decrease is the trapezoid's, at most twice and at least half the truth at an
    interior minimum.
    """
    first, weight = p.offsets[m], p.weight[m]
    column = s.column
    size, linear = _collect(m, count, p, x, s)
    linear *= weight
    quadratic, slope = 0.0, 0.0
    for j in range(wide):
        s.change[j] *= weight
        if p.ridge:
            linear -= x.theta[column[j]] * s.change[j]
            quadratic += s.change[j] * s.change[j] / p.terms[0, column[j]]
    if gamma < 0.0:
        line = Line(
            linear, quadratic, x.r, s.change, column, wide, p.ridge, p.terms,
            weight, s.a, s.t, s.dt, size,
        )  # fmt: skip
        gamma, slope = search(line, most)
    if gamma > 0.0:
        for j in range(wide):
            x.r[column[j]] -= gamma * s.change[j]
        refresh_weights(column, wide, p, x)
        for i in range(count):
            k = s.place[i]
            x.tau[k] = min(max(x.tau[k] + gamma * s.delta[k - first], 0.0), 1.0)
        smooth_slopes(s.place, count, p, x)
        rough_slope(m, p, x)
    return gamma, -0.5 * slope * gamma


@kernel
def plain_step(m, vertices, moments, gamma, most, p, x, s):
    """τ_m towards its vertex; x.moment holds Φ_mᵀτ_m."""
    first, last = p.offsets[m], p.offsets[m + 1]
    for k in range(first, last):
        s.delta[k - first] = vertices[k] - x.tau[k]
        s.place[k - first] = k
    here = p.column_start[m]
    wide = p.column_start[m + 1] - here
    for j in range(wide):
        s.column[j] = p.column[here + j]
        s.change[j] = moments[here + j] - x.moment[here + j]
    taken, _ = move(m, most, last - first, wide, gamma, p, x, s)
    for j in range(here, p.column_start[m + 1]):
        x.moment[j] += taken * (moments[j] - x.moment[j])
    for k in range(last - first):
        s.delta[k] = 0.0


@kernel
def plain_pass(order, vertices, moments, p, x, s):
    """One plain step per block."""
    for m in order:
        plain_step(m, vertices, moments, -1.0, 1.0 - 1e-9, p, x, s)


@kernel
def _spread(m, slot, sign, count, p, atoms, s):
    """Add sign × atom to the direction; the support grows by coordinates not yet in it."""
    first = p.offsets[m]
    if slot < 0:
        for k in range(first, p.offsets[m + 1]):
            s.delta[k - first] += sign * atoms.base[k]
            s.place[k - first] = k
        return p.offsets[m + 1] - first
    own = atoms.vertex
    start = own.start[m] + slot * own.width[m]
    for e in range(start, start + own.length[m, slot]):
        k = own.place[e]
        if s.delta[k - first] == 0.0:
            s.place[count] = k
            count += 1
        s.delta[k - first] += sign * own.amount[e] if len(own.amount) > 0 else sign
    return count


@kernel
def _only_changed(m, count, p, s):
    """Drop coordinates whose changes cancelled."""
    kept = 0
    for i in range(count):
        k = s.place[i]
        if s.delta[k - p.offsets[m]] != 0.0:
            s.place[kept] = k
            kept += 1
    return kept


@kernel
def _difference(m, toward, away, p, atoms, s):
    """s.delta = toward − away; returns the size of its support."""
    if away >= 0 and toward >= 0:
        count = _spread(m, toward, 1.0, 0, p, atoms, s)
        count = _spread(m, away, -1.0, count, p, atoms, s)
        return _only_changed(m, count, p, s)
    count = _spread(m, -1, 1.0 if toward < 0 else -1.0, 0, p, atoms, s)
    other, sign = (toward, 1.0) if away < 0 else (away, -1.0)
    add_row(m, other, sign, atoms.vertex, p.offsets[m], s.delta)
    return _only_changed(m, count, p, s)


@kernel
def _changes(m, toward, away, p, atoms, s):
    """s.change = moments of toward − away, on s.column; returns the size of its support."""
    rows, here = atoms.moment, p.column_start[m]
    if len(rows.place) > 0 and toward >= 0 and away >= 0:
        return _sparse_changes(m, toward, away, rows, p.column, s)
    wide = p.column_start[m + 1] - here
    for j in range(wide):
        s.column[j], s.change[j] = p.column[here + j], 0.0
    for slot, sign in ((toward, 1.0), (away, -1.0)):
        if slot < 0:
            for j in range(wide):
                s.change[j] += sign * atoms.base_moment[here + j]
        else:
            add_row(m, slot, sign, rows, here, s.change)
    return wide


@kernel
def _sparse_changes(m, toward, away, rows, column, s):
    """The same by merging two rows of ascending places."""
    i, j, wide = rows.start[m] + toward * rows.width[m], rows.start[m] + away * rows.width[m], 0
    last_i, last_j = i + rows.length[m, toward], j + rows.length[m, away]
    while i < last_i or j < last_j:
        a = rows.place[i] if i < last_i else len(column)
        b = rows.place[j] if j < last_j else len(column)
        k, value = min(a, b), 0.0
        if a == k:
            value += rows.amount[i]
            i += 1
        if b == k:
            value -= rows.amount[j]
            j += 1
        if value != 0.0:
            s.column[wide], s.change[wide] = column[k], value
            wide += 1
    return wide


@kernel
def pairwise_step(m, toward, away, most, p, x, atoms, s):
    """Move weight from one atom to another: only coordinates where they differ are touched."""
    count = _difference(m, toward, away, p, atoms, s)
    wide = _changes(m, toward, away, p, atoms, s)
    gamma, decrease = move(m, most, count, wide, -1.0, p, x, s)
    for i in range(count):
        s.delta[s.place[i] - p.offsets[m]] = 0.0
    if gamma > 0.0:
        if away < 0:
            atoms.rest[m] -= gamma
        else:
            atoms.weight[m, away] = 0.0 if gamma == most else atoms.weight[m, away] - gamma
        if toward < 0:
            atoms.rest[m] += gamma
        else:
            atoms.weight[m, toward] += gamma
    return decrease


@kernel
def _heaviest(m, atoms):
    """The atom that is nearly the whole mean: then none lies below it."""
    found, most = -1, atoms.rest[m]
    for slot in range(atoms.known[m]):
        if atoms.weight[m, slot] > most:
            found, most = slot, atoms.weight[m, slot]
    return found


@kernel
def pair_steps(m, forced, fresh, now, floor, more, p, x, atoms, s):
    """The most promising pairwise steps of block m, the first towards ``forced`` where given.

    They are ``PAIRS``, and ``more`` for as many vertices as the block has parts.
    """
    known, loose = atoms.known[m], atoms.rest[m] > 2.0 * floor
    base_score = score_atoms(m, fresh, loose, p, x, atoms, s)
    spare = (atoms.rest[m] - floor) * -base_score if loose else 0.0
    decrease = 0.0
    for _ in range(PAIRS + more * known // (p.offsets[m + 1] - p.offsets[m])):
        toward, away, down = -2, -2, 0.0
        if spare > 0.0:
            away, down = -1, spare
        for slot in range(atoms.known[m]):
            if s.up[slot] > 0.0 and (toward < 0 or s.up[slot] > s.up[toward]):
                toward = slot
            if s.down[slot] > down:
                away, down = slot, s.down[slot]
        if forced >= 0:
            toward, forced = forced, -1
            away = _heaviest(m, atoms) if away == -2 else away
        if toward < 0 or away == -2 or toward == away:
            break
        most = atoms.rest[m] - floor if away < 0 else atoms.weight[m, away]
        atoms.used[m, toward] = now
        decrease += pairwise_step(m, toward, away, most, p, x, atoms, s)
        s.up[toward] = 0.0
        if away < 0:
            spare = 0.0
        else:
            s.down[away] = 0.0
    return decrease


@kernel
def _least(m, floor, atoms):
    """The base's least weight that leaves the interior point ``floor`` in it."""
    return floor / atoms.interior[m] if floor > 0.0 else 0.0


@kernel
def passes(new, count, least, order, vertices, moments, now, floor, more, p, x, atoms, s):
    """At most ``count`` passes over blocks, while one gains ``least``; returns the last one's gain.

    Every pass takes each block's best pairwise steps, one block after the other. With ``new``
    blocks' new vertices are inserted and stepped to; without, nothing was asked. One kernel for
    both: what they share is most of what a first fit by an oracle compiles.
    """
    decrease = 0.0
    for done in range(count):
        decrease, fresh = 0.0, (now if new else done) % FRESH == 0
        for m in order:
            forced = insert(m, vertices, moments, now, p, atoms) if new else -1
            low = _least(m, floor, atoms)
            decrease += pair_steps(m, forced, fresh, now, low, more, p, x, atoms, s)
        if decrease < least:
            break
    return decrease

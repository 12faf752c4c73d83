"""Block steps on active sets: compiled, sequential, deterministic; O(support) where they can be.

Letters as in the papers: τ the point, r the residual moments, θ the weights. Every array is flat
over the batch; block m owns coordinates offsets[m]:offsets[m+1], weights column[m]:column[m+1]
and ``cap`` atom slots. Slot −1 is the base: the interior point and whatever was merged into it.
"""

from __future__ import annotations

from collections import namedtuple

import numba as nb
import numpy as np

from mlestruct.frank_wolfe.line_search import FLOOR, search

Problem = namedtuple(
    "Problem",
    "offsets weight bias a b start ptr index value c0 mixed column_start column ridge terms",
)
Point = namedtuple("Point", "tau smooth rough stiff r theta moment")
Atoms = namedtuple(
    "Atoms",
    "cap support_start width place amount length moment weight used tag base base_moment rest interior",
)
Scratch = namedtuple("Scratch", "delta place change a t dt score")

jit = nb.njit(cache=True, nogil=True)
dot = nb.njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})


@dot
def _gathered(values, place, amount, first, count):
    total = 0.0
    for e in range(first, first + count):
        total += values[place[e]] * amount[e]
    return total


@dot
def _moved(theta, column, first, moment, at, count):
    total = 0.0
    for j in range(count):
        total += theta[column[first + j]] * moment[at + j]
    return total


@jit
def refresh_weights(m, p, x):
    """θ = ∇R*(r) on the weights of block m."""
    for j in range(p.column_start[m], p.column_start[m + 1]):
        k = p.column[j]
        pull = x.r[k] + p.terms[0, k] * p.terms[1, k]
        if p.ridge:
            x.theta[k] = pull / p.terms[0, k]
        else:
            pull = np.sign(pull) * max(abs(pull) - p.terms[2, k], 0.0)
            x.theta[k] = min(max(pull / p.terms[0, k], p.terms[3, k]), p.terms[4, k])


@jit
def smooth_slope(k, p, x):
    """Bias and entropy slope of one coordinate, mixed views left out."""
    slope, stiff = p.bias[k], 0.0
    if p.a[k] != 0.0:
        t = max(x.tau[k], FLOOR)
        slope -= p.a[k] * (np.log(t) + 1.0)
        stiff += p.a[k] / t
    if p.b[k] != 0.0:
        t = max(1.0 - x.tau[k], FLOOR)
        slope += p.b[k] * (np.log(t) + 1.0)
        stiff += p.b[k] / t
    x.smooth[k] = slope
    x.stiff[k] = max(stiff, 0.0)


@jit
def rough_slope(m, p, x):
    """Slope of block m's mixed views."""
    if p.start[m] == p.start[m + 1]:
        return
    for k in range(p.offsets[m], p.offsets[m + 1]):
        x.rough[k] = 0.0
    for v in range(p.start[m], p.start[m + 1]):
        if p.mixed[v] == 0.0:
            continue
        t = p.c0[v]
        for e in range(p.ptr[v], p.ptr[v + 1]):
            t += p.value[e] * x.tau[p.index[e]]
        slope = -p.mixed[v] * (np.log(max(t, FLOOR)) + 1.0)
        for e in range(p.ptr[v], p.ptr[v + 1]):
            x.rough[p.index[e]] += slope * p.value[e]


@jit
def refresh(p, x):
    """All slopes and weights from τ and r."""
    for m in range(len(p.weight)):
        for k in range(p.offsets[m], p.offsets[m + 1]):
            smooth_slope(k, p, x)
        rough_slope(m, p, x)
        refresh_weights(m, p, x)


@jit
def move(m, most, count, gamma, p, x, s):
    """Exact step along s.delta (support s.place[:count]) and s.change; returns the γ taken.

    A given ``gamma`` ≥ 0 replaces the line search (the papers' fixed steps).
    """
    first, size = p.offsets[m], 0
    column = p.column[p.column_start[m] : p.column_start[m + 1]]
    linear = 0.0
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
    weight = p.weight[m]
    linear *= weight
    quadratic = 0.0
    for j in range(len(column)):
        s.change[j] *= weight
        if p.ridge:
            linear -= x.theta[column[j]] * s.change[j]
            quadratic += s.change[j] * s.change[j] / p.terms[0, column[j]]
    if gamma < 0.0:
        gamma = search(
            linear, quadratic, x.r, s.change, column, p.ridge, p.terms, len(column),
            weight, s.a, s.t, s.dt, size, most,
        )  # fmt: skip
    if gamma > 0.0:
        for j in range(len(column)):
            x.r[column[j]] -= gamma * s.change[j]
        refresh_weights(m, p, x)
        for i in range(count):
            k = s.place[i]
            x.tau[k] = min(max(x.tau[k] + gamma * s.delta[k - first], 0.0), 1.0)
            smooth_slope(k, p, x)
        rough_slope(m, p, x)
    return gamma


@jit
def plain_step(m, vertices, moments, gamma, most, p, x, s):
    """τ_m towards its vertex; x.moment holds Φ_mᵀτ_m."""
    first, last = p.offsets[m], p.offsets[m + 1]
    for k in range(first, last):
        s.delta[k - first] = vertices[k] - x.tau[k]
        s.place[k - first] = k
    here = p.column_start[m]
    for j in range(p.column_start[m + 1] - here):
        s.change[j] = moments[here + j] - x.moment[here + j]
    taken = move(m, most, last - first, gamma, p, x, s)
    for j in range(here, p.column_start[m + 1]):
        x.moment[j] += taken * (moments[j] - x.moment[j])
    for k in range(last - first):
        s.delta[k] = 0.0


@jit
def plain_pass(order, vertices, moments, fixed, calls, p, x, s):
    """One plain step per block; with ``fixed``, the papers' 2M/(k+2M) counted from ``calls``."""
    blocks = len(p.weight)
    for m in order:
        gamma = 2.0 * blocks / (calls + 2.0 * blocks) if fixed else -1.0
        plain_step(m, vertices, moments, gamma, 1.0 - 1e-9, p, x, s)
        calls += 1


@jit
def atom_score(m, slot, p, x, atoms):
    """⟨Φθ + bias + ∇H(τ), atom⟩ of a slot, or of the base at −1."""
    first = p.column_start[m]
    count = p.column_start[m + 1] - first
    if slot < 0:
        total = _moved(x.theta, p.column, first, atoms.base_moment, first, count)
        for k in range(p.offsets[m], p.offsets[m + 1]):
            total += (x.smooth[k] + x.rough[k]) * atoms.base[k]
        return total
    total = _moved(x.theta, p.column, first, atoms.moment, atoms.cap * first + slot * count, count)
    start = atoms.support_start[m] + slot * atoms.width[m]
    length = atoms.length[m, slot]
    total += _gathered(x.smooth, atoms.place, atoms.amount, start, length)
    if p.start[m] < p.start[m + 1]:
        total += _gathered(x.rough, atoms.place, atoms.amount, start, length)
    return total


@jit
def _spread(m, slot, sign, count, p, atoms, s):
    """Add sign × atom to the direction; the support grows by coordinates not yet in it."""
    first = p.offsets[m]
    if slot < 0:
        for k in range(first, p.offsets[m + 1]):
            s.delta[k - first] += sign * atoms.base[k]
            s.place[k - first] = k
        return p.offsets[m + 1] - first
    start = atoms.support_start[m] + slot * atoms.width[m]
    for e in range(start, start + atoms.length[m, slot]):
        k = atoms.place[e]
        if s.delta[k - first] == 0.0:
            s.place[count] = k
            count += 1
        s.delta[k - first] += sign * atoms.amount[e]
    return count


@jit
def _only_changed(m, count, p, s):
    """Drop coordinates whose changes cancelled."""
    kept = 0
    for i in range(count):
        k = s.place[i]
        if s.delta[k - p.offsets[m]] != 0.0:
            s.place[kept] = k
            kept += 1
    return kept


@jit
def _moment_at(m, slot, j, p, atoms):
    first = p.column_start[m]
    if slot < 0:
        return atoms.base_moment[first + j]
    return atoms.moment[atoms.cap * first + slot * (p.column_start[m + 1] - first) + j]


@jit
def pairwise_step(m, toward, away, most, p, x, atoms, s):
    """Move weight from one atom to another: only coordinates where they differ are touched."""
    if away < 0 or toward < 0:
        count = _spread(m, -1, 1.0 if toward < 0 else -1.0, 0, p, atoms, s)
        other, sign = (toward, 1.0) if away < 0 else (away, -1.0)
        first = p.offsets[m]
        start = atoms.support_start[m] + other * atoms.width[m]
        for e in range(start, start + atoms.length[m, other]):
            s.delta[atoms.place[e] - first] += sign * atoms.amount[e]
    else:
        count = _spread(m, toward, 1.0, 0, p, atoms, s)
        count = _spread(m, away, -1.0, count, p, atoms, s)
    count = _only_changed(m, count, p, s)
    for j in range(p.column_start[m + 1] - p.column_start[m]):
        s.change[j] = _moment_at(m, toward, j, p, atoms) - _moment_at(m, away, j, p, atoms)
    gamma = move(m, most, count, -1.0, p, x, s)
    for k in range(p.offsets[m + 1] - p.offsets[m]):
        s.delta[k] = 0.0
    if gamma > 0.0:
        if away < 0:
            atoms.rest[m] -= gamma
        else:
            atoms.weight[m, away] = 0.0 if gamma == most else atoms.weight[m, away] - gamma
        if toward < 0:
            atoms.rest[m] += gamma
        else:
            atoms.weight[m, toward] += gamma
    return gamma


@jit
def atom_stiffness(m, slot, p, x, atoms):
    start = atoms.support_start[m] + slot * atoms.width[m]
    total = 1e-300
    for e in range(start, start + atoms.length[m, slot]):
        total += x.stiff[atoms.place[e]] * atoms.amount[e]
    return total


@jit
def best_pair_step(m, forced, now, floor, p, x, atoms, s):
    """The pairwise step that promises most among the atoms at hand (towards ``forced``, if any).

    An atom promises (slope against the mean)² / stiffness, or all its weight's worth where that
    is less: choosing by slope alone would forever chase coordinates of tiny probability.
    """
    mean, mass = 0.0, 0.0
    loose = atoms.rest[m] > 2.0 * floor
    base = atom_score(m, -1, p, x, atoms) if loose else 0.0
    if loose:
        mean, mass = base * atoms.rest[m], atoms.rest[m]
    for slot in range(atoms.cap):
        if atoms.length[m, slot] >= 0:
            s.score[slot] = atom_score(m, slot, p, x, atoms)
            mean += s.score[slot] * atoms.weight[m, slot]
            mass += atoms.weight[m, slot]
    if mass <= 0.0:
        return 0.0
    mean /= mass
    toward, away, most = forced, -2, 0.0
    up, down = 0.0, 0.0
    if loose:
        away, most = -1, atoms.rest[m] - floor
        down = most * (mean - base)
    for slot in range(atoms.cap):
        if atoms.length[m, slot] < 0:
            continue
        lead = s.score[slot] - mean
        if lead > 0.0 and forced < 0:
            promise = lead * lead / atom_stiffness(m, slot, p, x, atoms)
            if promise > up:
                toward, up = slot, promise
        elif lead < 0.0 and atoms.weight[m, slot] > 0.0:
            most_here = min(atoms.weight[m, slot], -lead / atom_stiffness(m, slot, p, x, atoms))
            if -lead * most_here > down:
                away, down, most = slot, -lead * most_here, atoms.weight[m, slot]
    if toward < 0 or away == -2 or toward == away:
        return 0.0
    atoms.used[m, toward] = now
    return pairwise_step(m, toward, away, most, p, x, atoms, s)


@jit
def insert(m, vertices, moments, now, p, atoms):
    """Put a vertex into a slot of block m: its own if known, a free one, else the least useful."""
    first, last = p.offsets[m], p.offsets[m + 1]
    tag, length = np.int64(7), 0
    for k in range(first, last):
        if vertices[k] != 0.0:
            tag = tag * np.int64(1000003) + np.int64(k - first) * 4 + np.int64(2.0 * vertices[k])
            length += 1
    chosen, lightest = -1, np.inf
    for slot in range(atoms.cap):
        if atoms.length[m, slot] < 0:
            if lightest > -1.0:
                chosen, lightest = slot, -1.0
            continue
        if atoms.tag[m, slot] == tag and _same(m, slot, vertices, p, atoms):
            atoms.used[m, slot] = now
            return slot
        weight = atoms.weight[m, slot]
        idle = now - atoms.used[m, slot]
        rank = weight if weight > 0.0 else 1.0 / (2.0 + idle) - 1.0
        if rank < lightest:
            chosen, lightest = slot, rank
    if atoms.weight[m, chosen] > 0.0:
        merge(m, chosen, p, atoms)
    start, e = atoms.support_start[m] + chosen * atoms.width[m], 0
    for k in range(first, last):
        if vertices[k] != 0.0:
            atoms.place[start + e] = k
            atoms.amount[start + e] = vertices[k]
            e += 1
    atoms.length[m, chosen] = length
    atoms.tag[m, chosen], atoms.used[m, chosen], atoms.weight[m, chosen] = tag, now, 0.0
    here = p.column_start[m]
    count = p.column_start[m + 1] - here
    for j in range(count):
        atoms.moment[atoms.cap * here + chosen * count + j] = moments[here + j]
    return chosen


@jit
def _same(m, slot, vertices, p, atoms):
    start = atoms.support_start[m] + slot * atoms.width[m]
    for e in range(start, start + atoms.length[m, slot]):
        if vertices[atoms.place[e]] != atoms.amount[e]:
            return False
    return True


@jit
def merge(m, slot, p, atoms):
    """Pour an atom's weight into the base, so that a full set forgets an atom but no mass."""
    weight, rest = atoms.weight[m, slot], atoms.rest[m]
    keep = rest / (rest + weight)
    for k in range(p.offsets[m], p.offsets[m + 1]):
        atoms.base[k] *= keep
    start = atoms.support_start[m] + slot * atoms.width[m]
    for e in range(start, start + atoms.length[m, slot]):
        atoms.base[atoms.place[e]] += (1.0 - keep) * atoms.amount[e]
    here = p.column_start[m]
    for j in range(p.column_start[m + 1] - here):
        extra = _moment_at(m, slot, j, p, atoms)
        atoms.base_moment[here + j] = keep * atoms.base_moment[here + j] + (1.0 - keep) * extra
    atoms.interior[m] *= keep
    atoms.rest[m] = rest + weight
    atoms.weight[m, slot] = 0.0


@jit
def pairwise_pass(order, vertices, moments, now, floor, p, x, atoms, s):
    """Insert every block's new vertex and take its steepest pairwise step, one after the other."""
    for m in order:
        new = insert(m, vertices, moments, now, p, atoms)
        best_pair_step(m, new, now, floor[m] / atoms.interior[m], p, x, atoms, s)


@jit
def corrective_pass(order, now, floor, p, x, atoms, s):
    """A pairwise step per block without any oracle call."""
    for m in order:
        best_pair_step(m, -1, now, floor[m] / atoms.interior[m], p, x, atoms, s)


@jit
def scaled_pass(vertices, moments, now, gamma, p, atoms):
    """Bookkeeping of a joint step of size γ: every weight shrinks, the new vertices get γ."""
    for m in range(len(p.weight)):
        chosen = insert(m, vertices, moments, now, p, atoms)
        atoms.rest[m] *= 1.0 - gamma
        for slot in range(atoms.cap):
            atoms.weight[m, slot] *= 1.0 - gamma
        atoms.weight[m, chosen] += gamma


@jit
def rebuild(p, x, atoms):
    """τ from the atoms, exactly: undoes the drift of many small updates."""
    for m in range(len(p.weight)):
        total = atoms.rest[m]
        for slot in range(atoms.cap):
            if atoms.length[m, slot] >= 0:
                total += atoms.weight[m, slot]
        atoms.rest[m] /= total
        for k in range(p.offsets[m], p.offsets[m + 1]):
            x.tau[k] = atoms.rest[m] * atoms.base[k]
        for slot in range(atoms.cap):
            if atoms.length[m, slot] >= 0 and atoms.weight[m, slot] > 0.0:
                atoms.weight[m, slot] /= total
                start = atoms.support_start[m] + slot * atoms.width[m]
                for e in range(start, start + atoms.length[m, slot]):
                    x.tau[atoms.place[e]] += atoms.weight[m, slot] * atoms.amount[e]

"""Bounded active sets as flat arrays: every example's known vertices, their weights, and a base.

Slots 0 … known−1 of an example hold vertices (some at weight 0, kept to be used again). Slot −1 is
the base: the interior point and whatever was merged into it. All kernels are deterministic.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
from __future__ import annotations

from collections import namedtuple

import numpy as np

from mlestruct.kernels import kernel

IDLE = 12  # rounds after which a vertex without weight may be forgotten
Atoms = namedtuple(
    "Atoms", "cap known vertex moment weight stiff used tag base base_moment rest interior"
)
# A row per slot: ``length`` entries from start[m] + slot · width[m] on, each an ``amount`` at a
# ``place`` of a flat array, ascending. Rows without places are dense: all of the block's. Rows
# without amounts are ones, as outcomes are: 4 bytes an entry, since scoring waits for memory.
Rows = namedtuple("Rows", "start width length place amount")


@kernel
def add_row(m, slot, factor, rows, first, out):
    """out += factor · a slot's row; ``out`` begins at the flat position ``first``."""
    start = rows.start[m] + slot * rows.width[m]
    count = rows.length[m, slot]
    if len(rows.place) == 0:
        for j in range(count):
            out[j] += factor * rows.amount[start + j]
    elif len(rows.amount) == 0:
        for k in rows.place[start : start + count]:
            out[k - first] += factor
    else:
        for e in range(start, start + count):
            out[rows.place[e] - first] += factor * rows.amount[e]


@kernel
def insert(m, vertices, moments, now, p, atoms):
    """Put a vertex into block m: in its own slot if known, else a free or the least useful one."""
    tag, length = _tag(m, vertices, p)
    stale, chosen, lightest = -1, -1, np.inf
    for slot in range(atoms.known[m]):
        if atoms.tag[m, slot] == tag and _same(m, slot, vertices, length, atoms):
            atoms.used[m, slot] = now
            return slot
        weight = atoms.weight[m, slot]
        idle = now - atoms.used[m, slot]
        if weight == 0.0 and idle > IDLE:
            stale = slot
        rank = weight if weight > 0.0 else -1.0 - idle
        if rank < lightest:
            chosen, lightest = slot, rank
    if stale >= 0:
        chosen = stale
    elif atoms.known[m] < atoms.cap:
        chosen = atoms.known[m]
        atoms.known[m] += 1
    elif atoms.weight[m, chosen] > 0.0:
        merge(m, chosen, p, atoms)
    _fill(m, chosen, vertices, p.offsets, atoms.vertex)
    _fill(m, chosen, moments, p.column_start, atoms.moment)
    atoms.stiff[m, chosen] = np.inf  # promises nothing until it is known
    atoms.tag[m, chosen], atoms.used[m, chosen], atoms.weight[m, chosen] = tag, now, 0.0
    return chosen


@kernel
def _tag(m, vertices, p):
    tag, length = np.int64(7), 0
    for k in range(p.offsets[m], p.offsets[m + 1]):
        if vertices[k] != 0.0:
            tag = tag * np.int64(1000003) + np.int64(k - p.offsets[m]) * 4
            tag += np.int64(2.0 * vertices[k])
            length += 1
    return tag, length


@kernel
def _fill(m, slot, flat, edges, rows):
    start = rows.start[m] + slot * rows.width[m]
    e, dense = start, len(rows.place) == 0
    for k in range(edges[m], edges[m + 1]):
        if dense or flat[k] != 0.0:
            if not dense:
                rows.place[e] = k
            if len(rows.amount) > 0:
                rows.amount[e] = flat[k]
            e += 1
    rows.length[m, slot] = e - start


@kernel
def _same(m, slot, vertices, length, atoms):
    own = atoms.vertex
    if own.length[m, slot] != length:
        return False
    start = own.start[m] + slot * own.width[m]
    different = 0
    for e in range(start, start + length):
        amount = own.amount[e] if len(own.amount) > 0 else 1.0
        different += vertices[own.place[e]] != amount
    return different == 0


@kernel
def merge(m, slot, p, atoms):
    """Add an atom's weight to the base, so that a full set forgets an atom but no mass."""
    weight, rest = atoms.weight[m, slot], atoms.rest[m]
    keep = rest / (rest + weight)
    for k in range(p.offsets[m], p.offsets[m + 1]):
        atoms.base[k] *= keep
    add_row(m, slot, 1.0 - keep, atoms.vertex, 0, atoms.base)
    here = p.column_start[m]
    own = atoms.base_moment[here : p.column_start[m + 1]]
    own *= keep
    add_row(m, slot, 1.0 - keep, atoms.moment, here, own)
    atoms.interior[m] *= keep
    atoms.rest[m] = rest + weight
    atoms.weight[m, slot] = 0.0


@kernel
def scaled_pass(vertices, moments, now, gamma, p, atoms):
    """Bookkeeping of a joint step of size γ: every weight shrinks, the new vertices get γ."""
    for m in range(len(p.weight)):
        chosen = insert(m, vertices, moments, now, p, atoms)
        atoms.rest[m] *= 1.0 - gamma
        for slot in range(atoms.known[m]):
            atoms.weight[m, slot] *= 1.0 - gamma
        atoms.weight[m, chosen] += gamma


@kernel
def rebuild(tau, p, atoms):
    """τ from the atoms, exactly: undoes the drift of many small updates."""
    for m in range(len(p.weight)):
        total = atoms.rest[m]
        for slot in range(atoms.known[m]):
            total += atoms.weight[m, slot]
        atoms.rest[m] /= total
        for k in range(p.offsets[m], p.offsets[m + 1]):
            tau[k] = atoms.rest[m] * atoms.base[k]
        for slot in range(atoms.known[m]):
            atoms.weight[m, slot] /= total
            if atoms.weight[m, slot] > 0.0:
                add_row(m, slot, atoms.weight[m, slot], atoms.vertex, 0, tau)


dot = kernel(fastmath={"reassoc", "contract"})


@dot
def products(m, known, values, first, rows, more, out):
    """⟨values, row⟩ of every slot, added to ``out`` or not; values begin at place ``first``."""
    place, amount, length = rows.place, rows.amount, rows.length[m]
    begin, width = rows.start[m], rows.width[m]
    for slot in range(known):
        start, count, total = begin + slot * width, length[slot], 0.0
        if len(place) == 0:
            own = amount[start : start + count]
            for j in range(count):
                total += values[j] * own[j]
        elif len(amount) == 0:
            for k in place[start : start + count]:
                total += values[k - first]
        else:
            for e in range(start, start + count):
                total += values[place[e] - first] * amount[e]
        out[slot] = out[slot] + total if more else total


@kernel
def _base_score(m, p, x, atoms, s):
    here, total = p.column_start[m], 0.0
    for j in range(p.column_start[m + 1] - here):
        total += s.theta[j] * atoms.base_moment[here + j]
    for k in range(p.offsets[m], p.offsets[m + 1]):
        total += (x.smooth[k] + x.rough[k]) * atoms.base[k]
    return total


@kernel
def score_atoms(m, fresh, loose, p, x, atoms, s):
    """Every atom's score ⟨Φθ + bias + ∇H(τ), atom − mean⟩ and what a step to or from it promises.

    That is score² / stiffness, or all its weight's worth where that is less: choosing by slope
    alone would forever chase coordinates of tiny probability. The stiffness may be a few passes
    old (a gather saved). Returns the base's score.
    """
    here, known = p.column_start[m], atoms.known[m]
    theta = s.theta[: p.column_start[m + 1] - here]
    for j in range(len(theta)):
        theta[j] = x.theta[p.column[here + j]]
    products(m, known, theta, here, atoms.moment, False, s.score)
    products(m, known, x.smooth, 0, atoms.vertex, True, s.score)
    if p.start[m] < p.start[m + 1]:
        products(m, known, x.rough, 0, atoms.vertex, True, s.score)
    if fresh:
        products(m, known, x.stiff, 0, atoms.vertex, False, atoms.stiff[m])
    score, weight, stiff = s.score, atoms.weight[m], atoms.stiff[m]
    mean, mass, base = 0.0, 0.0, 0.0
    if loose:
        base, mass = _base_score(m, p, x, atoms, s), atoms.rest[m]
        mean = base * mass
    for slot in range(known):
        mean += score[slot] * weight[slot]
        mass += weight[slot]
    mean /= max(mass, 1e-300)
    for slot in range(known):
        ahead = score[slot] - mean
        behind = max(-ahead, 0.0)
        curvature = stiff[slot] + 1e-12
        s.up[slot] = ahead * ahead / curvature if ahead > 0.0 else 0.0
        s.down[slot] = behind * min(weight[slot], behind / curvature)
    return base - mean

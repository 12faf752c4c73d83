"""Bounded active sets as flat arrays: every example's known vertices, their weights, and a base.

Slots 0 … known−1 of an example hold vertices (some at weight 0, kept to be used again). Slot −1 is
the base: the interior point and whatever was merged into it. All kernels are deterministic.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
from __future__ import annotations

from collections import namedtuple

import numba as nb
import numpy as np

IDLE = 12  # rounds after which a vertex without weight may be forgotten
Atoms = namedtuple(
    "Atoms",
    "cap known support_start width place amount length moment weight stiff used tag "
    "base base_moment rest interior",
)
jit = nb.njit(cache=True, nogil=True)


@jit
def add_moment(m, slot, factor, p, atoms, out, keep):
    """out = keep · out + factor · (a slot's moments, the base's at −1)."""
    first = p.column_start[m]
    count = p.column_start[m + 1] - first
    moment, at = atoms.moment, atoms.cap * first + slot * count
    if slot < 0:
        moment, at = atoms.base_moment, first
    for j in range(count):
        out[j] = keep * out[j] + factor * moment[at + j]


@jit
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
    _fill(m, chosen, vertices, moments, p, atoms)
    atoms.length[m, chosen] = length
    atoms.stiff[m, chosen] = np.inf  # promises nothing until it is known
    atoms.tag[m, chosen], atoms.used[m, chosen], atoms.weight[m, chosen] = tag, now, 0.0
    return chosen


@jit
def _tag(m, vertices, p):
    tag, length = np.int64(7), 0
    for k in range(p.offsets[m], p.offsets[m + 1]):
        if vertices[k] != 0.0:
            tag = tag * np.int64(1000003) + np.int64(k - p.offsets[m]) * 4
            tag += np.int64(2.0 * vertices[k])
            length += 1
    return tag, length


@jit
def _fill(m, slot, vertices, moments, p, atoms):
    e = atoms.support_start[m] + slot * atoms.width[m]
    for k in range(p.offsets[m], p.offsets[m + 1]):
        if vertices[k] != 0.0:
            atoms.place[e] = k
            atoms.amount[e] = vertices[k]
            e += 1
    here = p.column_start[m]
    count = p.column_start[m + 1] - here
    for j in range(count):
        atoms.moment[atoms.cap * here + slot * count + j] = moments[here + j]


@jit
def _same(m, slot, vertices, length, atoms):
    if atoms.length[m, slot] != length:
        return False
    start = atoms.support_start[m] + slot * atoms.width[m]
    different = 0
    for e in range(start, start + length):
        different += vertices[atoms.place[e]] != atoms.amount[e]
    return different == 0


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
    own = atoms.base_moment[p.column_start[m] : p.column_start[m + 1]]
    add_moment(m, slot, 1.0 - keep, p, atoms, own, keep)
    atoms.interior[m] *= keep
    atoms.rest[m] = rest + weight
    atoms.weight[m, slot] = 0.0


@jit
def scaled_pass(vertices, moments, now, gamma, p, atoms):
    """Bookkeeping of a joint step of size γ: every weight shrinks, the new vertices get γ."""
    for m in range(len(p.weight)):
        chosen = insert(m, vertices, moments, now, p, atoms)
        atoms.rest[m] *= 1.0 - gamma
        for slot in range(atoms.known[m]):
            atoms.weight[m, slot] *= 1.0 - gamma
        atoms.weight[m, chosen] += gamma


@jit
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
                start = atoms.support_start[m] + slot * atoms.width[m]
                for e in range(start, start + atoms.length[m, slot]):
                    tau[atoms.place[e]] += atoms.weight[m, slot] * atoms.amount[e]

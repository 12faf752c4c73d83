"""What one visit to a factor does to the state (lb, m), and to its adjoint on the way back.

Slots first..last are the factor's, ``at`` their place on the tape (near, sums) and e their table's
first entry. Kernels take plain arrays and offsets: views made inside a loop would be counted, which
costs more than the visit.
"""

from __future__ import annotations

import numpy as np

from mlestruct.kernels import kernel

LEAST = 1e-300  # sums are raised to this: their logarithm stays finite


@kernel(error_model="numpy")
def read(first, last, at, belief, message, near, linear, home, place):
    """u_s = exp(lb − m_s) for every slot of a factor, the largest 1 where logarithms are kept."""
    for s in range(first, last):
        node, sent, cards, top = home[s], place[s], place[s + 1] - place[s], -np.inf
        if linear:
            for k in range(cards):
                near[at + k] = belief[node + k] / message[sent + k]
            at += cards
            continue
        for k in range(cards):
            near[at + k] = belief[node + k] - message[sent + k]
            top = max(top, near[at + k])
        for k in range(cards):
            near[at + k] = np.exp(near[at + k] - top)
        at += cards


@kernel
def unread(first, last, at, belief, message, near, home, place):
    """``near`` holds adjoints of n: lb takes them, messages their negative."""
    for s in range(first, last):
        node, sent, cards = home[s], place[s], place[s + 1] - place[s]
        for k in range(cards):
            belief[node + k] += near[at + k]
            message[sent + k] -= near[at + k]
        at += cards


@kernel(error_model="numpy")
def send(first, last, at, belief, message, sums, linear, share, home, place):
    """m' = log Σ, lb' = lb + share · (m' − m); the largest of every new message is 1."""
    for s in range(first, last):
        node, sent, cards, top = home[s], place[s], place[s + 1] - place[s], LEAST
        for k in range(cards):
            top = max(top, sums[at + k])
        if linear:
            for k in range(cards):
                once = sums[at + k] / (top * message[sent + k])
                belief[node + k] *= once
                message[sent + k] *= once
            at += cards
            continue
        for k in range(cards):
            fresh = np.log(max(sums[at + k] / top, LEAST))
            belief[node + k] += share[s] * (fresh - message[sent + k])
            message[sent + k] = fresh
            sums[at + k] = max(sums[at + k], LEAST * top)
        at += cards


@kernel(error_model="numpy")
def unsend(first, last, at, belief, message, sums, share, home, place):
    """``sums`` becomes the adjoint of the sums; what is left to the old messages stays there."""
    for s in range(first, last):
        node, sent, cards, common = home[s], place[s], place[s + 1] - place[s], 0.0
        for k in range(cards):
            common += message[sent + k] + share[s] * belief[node + k]
        common /= cards  # 0 but for rounding, which would grow around every loop
        for k in range(cards):
            moved = share[s] * belief[node + k]
            sums[at + k] = (message[sent + k] + moved - common) / sums[at + k]
            message[sent + k] = -moved
        at += cards


@kernel(error_model="numpy", fastmath={"reassoc", "contract"})
def pair_sums(table, e, u, sums, at, n, m):
    """Both sums of an n × m table."""
    for a in range(n):
        mass = 0.0
        for b in range(m):
            mass += table[e + a * m + b] * u[at + n + b]
        sums[at + a] = mass
    for b in range(m):
        mass = 0.0
        for a in range(n):
            mass += table[e + a * m + b] * u[at + a]
        sums[at + n + b] = mass


@kernel(error_model="numpy", fastmath={"reassoc", "contract"})
def pair_slopes(table, e, u, back, slope, ahead, at, n, m, scale):
    """The table's slope, and u becomes the adjoint of n; slope starts at its own e."""
    ahead[: n + m] = 0.0
    for a in range(n):
        own, pull, mass = u[at + a], back[at + a], 0.0
        for b in range(m):
            entry, from_b = table[e + a * m + b], back[at + n + b]
            slope[e + a * m + b] += scale * entry * (u[at + n + b] * pull + own * from_b)
            mass += entry * from_b
            ahead[n + b] += entry * pull
        ahead[a] = mass
    for k in range(n + m):
        u[at + k] *= ahead[k]


@kernel
def any_sums(f, table, u, sums, at, plan):
    """Every slot's state: Σ of the entries that agree times the other slots' u."""
    first, last = plan.scope_start[f], plan.scope_start[f + 1]
    e, there = plan.table_start[f] - plan.table_start[0], at - plan.place[first]
    sums[at : there + plan.place[last]] = 0.0
    for k in range(plan.table_start[f + 1] - plan.table_start[f]):
        for s in range(first, last):
            chance = table[e + k]
            for r in range(first, last):
                if r != s:
                    chance *= u[there + state(k, r, plan)]
            sums[there + state(k, s, plan)] += chance


@kernel
def any_slopes(f, table, u, back, slope, ahead, at, plan):
    """As :func:`pair_slopes`, for factors of any order."""
    first, last = plan.scope_start[f], plan.scope_start[f + 1]
    e, origin = plan.table_start[f] - plan.table_start[0], plan.place[first]
    ahead[: plan.place[last] - origin] = 0.0
    for k in range(plan.table_start[f + 1] - plan.table_start[f]):
        for s in range(first, last):
            chance = table[e + k] * back[at - origin + state(k, s, plan)]
            for r in range(first, last):
                if r != s:
                    chance *= u[at - origin + state(k, r, plan)]
            slope[e + k] += chance / plan.counts[f]
            for r in range(first, last):
                if r != s:
                    ahead[state(k, r, plan) - origin] += chance
    for k in range(plan.place[last] - origin):
        u[at + k] = ahead[k]


@kernel
def state(entry, slot, plan):
    """Where a slot's message keeps the state that it has in this table entry."""
    first = plan.place[slot]
    return first + (entry // plan.stride[slot]) % (plan.place[slot + 1] - first)

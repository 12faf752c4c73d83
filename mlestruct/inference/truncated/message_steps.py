"""Truncated sum-product of any order and cards: the forward steps and their exact adjoint.

The state is (log-belief lb of every variable, message m of every slot); a visit does
n_s = lb − m_s, m_s' = log Σ exp(η_α/c_α + Σ_{r≠s} n_r), lb' = lb + (c_α/whole)(m_s' − m_s).
Beliefs do not see a constant added to a message, so none is subtracted in the adjoint. The tape
keeps u = exp n and the sums before the logarithm: the way back needs neither exp nor log. Where all
numbers count 1 and scores fit, the state is kept exponentiated, and the way there needs none too.
"""

from __future__ import annotations

import numba as nb
import numpy as np

LEAST = 1e-300  # sums are raised to this: their logarithm stays finite
RANGE = 600.0  # of log-beliefs that are safe as plain numbers


@nb.njit(cache=True, nogil=True)
def fits(score, plan):
    """Whether a variable's scores and the tables around it together range over at most RANGE."""
    reach = np.empty(len(plan.node_start) - 1)
    for k in range(score.shape[0]):
        for m in range(score.shape[1]):
            for i in range(len(reach)):
                reach[i] = _spread(score[k, m], plan.node_start[i], plan.node_start[i + 1])
            for f in range(len(plan.counts)):
                wide = _spread(score[k, m], plan.table_start[f], plan.table_start[f + 1])
                for s in range(plan.scope_start[f], plan.scope_start[f + 1]):
                    reach[plan.scope[s]] += wide
            for i in range(len(reach)):
                if not reach[i] <= RANGE:
                    return False
    return True


@nb.njit(cache=True, nogil=True)
def _spread(score, first, last):
    low = top = score[first]
    for k in range(first + 1, last):
        low, top = min(low, score[k]), max(top, score[k])
    return top - low


@nb.njit(cache=True, nogil=True)
def exponentials(score, plan, table):
    """exp(η_α/c_α), each table's largest entry 1; per set of scores and example."""
    skip = plan.table_start[0]
    for k in range(score.shape[0]):
        for m in range(score.shape[1]):
            for f in range(len(plan.counts)):
                first, last = plan.table_start[f], plan.table_start[f + 1]
                top = score[k, m, first:last].max()
                for e in range(first, last):
                    table[k, m, e - skip] = np.exp((score[k, m, e] - top) / plan.counts[f])


@nb.njit(cache=True, nogil=True, error_model="numpy")
def forward(score, table, begin, end, belief, message, near, sums, linear, plan, visits):
    """Iterations begin..end of every example, kept on the tape (near, sums).

    ``linear``: belief and message are exponentials, not logarithms.
    """
    last = score.shape[0] - 1
    for m in range(score.shape[1]):
        for t in range(begin, end):
            k = min(t, last)
            if t > 0 and t <= last:
                _exchange(score[k, m], score[k - 1, m], belief[m], linear, plan)
            some, total = near[m, t - begin], sums[m, t - begin]
            for g in range(len(visits.group) - 1):
                for v in range(visits.group[g], visits.group[g + 1]):
                    f, at = visits.factor[v], visits.place[v]
                    read(f, at, belief[m], message[m], some, linear, plan)
                for v in range(visits.group[g], visits.group[g + 1]):
                    f, at = visits.factor[v], visits.place[v]
                    _send(f, at, table[k, m], belief[m], message[m], some, total, linear, plan)


@nb.njit(cache=True, nogil=True, error_model="numpy")
def backward(score, table, begin, end, belief, message, near, sums, slope, plan, visits):
    """From adjoints of the state after iterations begin..end to those before; slope by score."""
    last = score.shape[0] - 1
    skip = plan.table_start[0]
    ahead = np.empty(near.shape[2])
    for m in range(score.shape[1]):
        for t in range(end - 1, begin - 1, -1):
            k = min(t, last)
            some, total = near[m, t - begin], sums[m, t - begin]
            for g in range(len(visits.group) - 2, -1, -1):
                for v in range(visits.group[g + 1] - 1, visits.group[g] - 1, -1):
                    f, at = visits.factor[v], visits.place[v]
                    held = belief[m], message[m], some, total
                    _unsend(f, at, table[k, m], held, slope[k, m, skip:], ahead, plan)
                for v in range(visits.group[g + 1] - 1, visits.group[g] - 1, -1):
                    unread(visits.factor[v], visits.place[v], belief[m], message[m], some, plan)
            if t > 0 and t <= last:
                _unexchange(slope[k, m], slope[k - 1, m], belief[m], plan)


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _exchange(new, old, belief, linear, plan):
    """Another iteration's node scores take the place of the last one's."""
    for i in range(len(plan.whole)):
        first, last = plan.node_start[i], plan.node_start[i + 1]
        top = (new[first:last] - old[first:last]).max()  # a constant that beliefs do not see
        for e in range(first, last):
            change = (new[e] - old[e] - top) / plan.whole[i]
            belief[e] = belief[e] * np.exp(change) if linear else belief[e] + change


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _unexchange(new, old, belief, plan):
    for i in range(len(plan.whole)):
        for e in range(plan.node_start[i], plan.node_start[i + 1]):
            new[e] += belief[e] / plan.whole[i]
            old[e] -= belief[e] / plan.whole[i]


@nb.njit(cache=True, nogil=True, error_model="numpy", inline="always")
def read(f, at, belief, message, near, linear, plan):
    """u_s = exp(lb − m_s) for every slot of a factor, the largest 1 where logarithms are kept."""
    for s in range(plan.scope_start[f], plan.scope_start[f + 1]):
        node, place = plan.node_start[plan.scope[s]], plan.place[s]
        cards, top = plan.place[s + 1] - place, -np.inf
        if linear:
            for k in range(cards):
                near[at + k] = belief[node + k] / message[place + k]
            at += cards
            continue
        for k in range(cards):
            near[at + k] = belief[node + k] - message[place + k]
            top = max(top, near[at + k])
        for k in range(cards):
            near[at + k] = np.exp(near[at + k] - top)
        at += cards


@nb.njit(cache=True, nogil=True, error_model="numpy", inline="always")
def unread(f, at, belief, message, near, plan):
    """``near`` holds adjoints of n: lb takes them, messages their negative."""
    for s in range(plan.scope_start[f], plan.scope_start[f + 1]):
        node, place = plan.node_start[plan.scope[s]], plan.place[s]
        cards = plan.place[s + 1] - place
        for k in range(cards):
            belief[node + k] += near[at + k]
            message[place + k] -= near[at + k]
        at += cards


@nb.njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _send(f, at, table, belief, message, near, sums, linear, plan):
    first, last = plan.scope_start[f], plan.scope_start[f + 1]
    skip = plan.table_start[0]
    entries = table[plan.table_start[f] - skip : plan.table_start[f + 1] - skip]
    width = plan.place[last] - plan.place[first]
    u, out = near[at : at + width], sums[at : at + width]
    if last - first == 2:
        _pair_sums(entries, u, out, plan.place[first + 1] - plan.place[first])
    else:
        _sums(f, entries, u, out, plan)
    j = 0
    for s in range(first, last):
        node, place = plan.node_start[plan.scope[s]], plan.place[s]
        share = plan.counts[f] / plan.whole[plan.scope[s]]
        cards, top = plan.place[s + 1] - place, LEAST
        for k in range(cards):
            top = max(top, out[j + k])
        if linear:
            for k in range(cards):
                once = out[j + k] / (top * message[place + k])
                belief[node + k] *= once
                message[place + k] *= once
            j += cards
            continue
        for k in range(cards):
            out[j + k] = max(out[j + k] / top, LEAST)
            fresh = np.log(out[j + k])
            belief[node + k] += share * (fresh - message[place + k])
            message[place + k] = fresh
            out[j + k] *= top
        j += cards


@nb.njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _pair_sums(entries, u, out, n):
    m = len(u) - n
    out[n:] = 0.0
    for a in range(n):
        mass = 0.0
        for b in range(m):
            mass += entries[a * m + b] * u[n + b]
            out[n + b] += entries[a * m + b] * u[a]
        out[a] = mass


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _sums(f, entries, u, out, plan):
    """Every slot's state: Σ of the entries that agree times the other slots' u."""
    first, last = plan.scope_start[f], plan.scope_start[f + 1]
    origin = plan.place[first]
    out[:] = 0.0
    for k in range(len(entries)):
        for s in range(first, last):
            chance = entries[k]
            for r in range(first, last):
                if r != s:
                    chance *= u[_state(k, r, origin, plan)]
            out[_state(k, s, origin, plan)] += chance


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _state(entry, slot, origin, plan):
    """Where a slot's state in this table entry lies among all states of its factor."""
    first = plan.place[slot]
    return first - origin + (entry // plan.stride[slot]) % (plan.place[slot + 1] - first)


@nb.njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _unsend(f, at, table, held, slope, ahead, plan):
    """Adjoints of messages and lb become those of n (left in ``near``) and of the scores."""
    belief, message, near, sums = held
    first, last = plan.scope_start[f], plan.scope_start[f + 1]
    skip, j = plan.table_start[0], at
    for s in range(first, last):
        node, place = plan.node_start[plan.scope[s]], plan.place[s]
        share = plan.counts[f] / plan.whole[plan.scope[s]]
        cards, common = plan.place[s + 1] - place, 0.0
        for k in range(cards):
            common += message[place + k] + share * belief[node + k]
        common /= cards  # 0 but for rounding, which would grow around every loop
        for k in range(cards):
            moved = share * belief[node + k]
            sums[j] = (message[place + k] + moved - common) / sums[j]
            message[place + k] = -moved
            j += 1
    entries = table[plan.table_start[f] - skip : plan.table_start[f + 1] - skip]
    out = slope[plan.table_start[f] - skip : plan.table_start[f + 1] - skip]
    u, back = near[at:j], sums[at:j]
    if last - first == 2:
        n = plan.place[first + 1] - plan.place[first]
        _pair_slopes(entries, u, back, out, ahead[: j - at], n, 1.0 / plan.counts[f])
    else:
        _slopes(f, entries, u, back, out, ahead[: j - at], plan)


@nb.njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _pair_slopes(entries, u, back, slope, ahead, n, scale):
    """One pass over the table; u ends as the adjoint of n."""
    m = len(u) - n
    ahead[:] = 0.0
    for a in range(n):
        own, pull, mass = u[a], back[a], 0.0
        for b in range(m):
            entry, from_b = entries[a * m + b], back[n + b]
            slope[a * m + b] += scale * entry * (u[n + b] * pull + own * from_b)
            mass += entry * from_b
            ahead[n + b] += entry * pull
        ahead[a] = mass
    for k in range(len(u)):
        u[k] *= ahead[k]


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _slopes(f, entries, u, back, slope, ahead, plan):
    first, last = plan.scope_start[f], plan.scope_start[f + 1]
    origin = plan.place[first]
    ahead[:] = 0.0
    for k in range(len(entries)):
        for s in range(first, last):
            chance = entries[k] * back[_state(k, s, origin, plan)]
            for r in range(first, last):
                if r != s:
                    chance *= u[_state(k, r, origin, plan)]
            slope[k] += chance / plan.counts[f]
            for r in range(first, last):
                if r != s:
                    ahead[_state(k, r, origin, plan)] += chance
    u[:] = ahead


@nb.njit(cache=True, nogil=True, error_model="numpy")
def beliefs(score, table, belief, message, near, tau, whole, plan):
    """b_i ∝ exp lb; where ``whole``, also b_α ∝ exp(η_α/c_α) Π u_s. Uses the last set's tables."""
    skip = plan.table_start[0]
    for m in range(score.shape[1]):
        for i in range(len(plan.whole)):
            first, last = plan.node_start[i], plan.node_start[i + 1]
            top = belief[m, first:last].max()
            for k in range(first, last):
                tau[m, k] = np.exp(belief[m, k] - top)
            tau[m, first:last] /= tau[m, first:last].sum()
        for f in range(len(plan.counts) if whole else 0):
            slots = plan.scope_start[f], plan.scope_start[f + 1]
            origin = plan.place[slots[0]]
            read(f, origin, belief[m], message[m], near[m], False, plan)
            for k in range(plan.table_start[f], plan.table_start[f + 1]):
                chance = table[m, k - skip]
                for s in range(slots[0], slots[1]):
                    entry = k - plan.table_start[f]
                    chance *= near[m, origin + _state(entry, s, origin, plan)]
                tau[m, k] = chance
            inside = tau[m, plan.table_start[f] : plan.table_start[f + 1]]
            inside /= max(inside.sum(), LEAST)


@nb.njit(cache=True, nogil=True, error_model="numpy")
def unbeliefs(tau, slope_tau, belief, message, slope, whole, plan):
    """Adjoints of log-beliefs into those of lb, messages and the last set's scores."""
    for m in range(tau.shape[0]):
        for i in range(len(plan.whole)):
            first, last = plan.node_start[i], plan.node_start[i + 1]
            held = slope_tau[m, first:last].sum()
            for k in range(first, last):
                belief[m, k] = slope_tau[m, k] - tau[m, k] * held
        for f in range(len(plan.counts) if whole else 0):
            first, last = plan.table_start[f], plan.table_start[f + 1]
            held = slope_tau[m, first:last].sum()
            origin = plan.place[plan.scope_start[f]]
            for k in range(first, last):
                change = slope_tau[m, k] - tau[m, k] * held
                slope[m, k] += change / plan.counts[f]
                for s in range(plan.scope_start[f], plan.scope_start[f + 1]):
                    state = _state(k - first, s, origin, plan)
                    own = plan.node_start[plan.scope[s]] + state + origin - plan.place[s]
                    belief[m, own] += change
                    message[m, origin + state] -= change

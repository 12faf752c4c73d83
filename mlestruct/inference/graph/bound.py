"""Upper bounds on the surrogate log Z from messages, whether or not they have converged.

−H is convex because c_α = c_αα + Σ_i x_αi and c_i = c_ii − Σ_α x_αi with nothing negative: H is a
sum of entropies and of conditional entropies H_α − H_i. Any multipliers for "the tables agree"
split the maximum into one problem per node and factor, and H_α − H_i ≤ −Σ τ_α log q(x_α | x_i) for
any q. With q_α = exp(η_α/c_α + Σ λ_αi) and the multipliers c_α λ_αi − x_αi log b_i that leaves

    Σ_i c_ii log Σ exp(u_i/c_ii) + Σ_α c_αα log Σ q_α exp(Σ_i x_αi log(q_αi/b_i) / c_αα)

with u_i = η_i − Σ_α (c_α λ_αi − x_αi log b_i), and a maximum in place of a logarithm where c = 0.
At a fixed point q_αi = b_i, and it is the surrogate's maximum.
"""

from __future__ import annotations

import numpy as np

from mlestruct.inference.graph.rows import largest
from mlestruct.kernels import kernel


@kernel(error_model="numpy")
def upper_bound(score, message, belief, share, gauge, table, plan):
    """The bound at messages and log-beliefs of the general kernel; ``share`` is x, slot by slot."""
    total = 0.0
    for i in range(len(plan.whole)):
        first, cards = plan.node_start[i], plan.node_start[i + 1] - plan.node_start[i]
        for k in range(cards):
            gauge[k] = score[first + k] if plan.open[first + k] else -np.inf
        own, paid = plan.whole[i], 0.0
        for p in range(plan.start[i], plan.start[i + 1]):
            s = plan.around[p]
            count = plan.counts[plan.owner[s]]
            own -= count - share[s]
            paid += count - share[s]
            for k in range(cards):
                gauge[k] += count * message[plan.place[s] + k]
        for k in range(cards):
            if plan.open[first + k]:
                gauge[k] -= paid * belief[first + k]
        total += _soft_maximum(gauge[:cards], own)
    for f in range(len(plan.counts)):
        total += _factor(f, score, message, belief, share, gauge, table, plan)
    return total


@kernel(error_model="numpy")
def _factor(f, score, message, belief, share, gauge, table, plan):
    first, last = plan.table_start[f], plan.table_start[f + 1]
    slots, rest = range(plan.scope_start[f], plan.scope_start[f + 1]), plan.counts[f]
    for k in range(first, last):
        table[k - first] = score[k] / plan.counts[f] if plan.open[k] else -np.inf
    values = table[: last - first]
    for s in slots:
        node, cards = plan.node_start[plan.scope[s]], plan.place[s + 1] - plan.place[s]
        rest -= share[s]
        for k in range(len(values)):
            if plan.open[first + k]:
                state = (k // plan.stride[s]) % cards
                values[k] += belief[node + state] - message[plan.place[s] + state]
    at = 0
    for s in slots:
        node, cards = plan.node_start[plan.scope[s]], plan.place[s + 1] - plan.place[s]
        _log_marginal(values, plan.stride[s], gauge[at : at + cards], gauge[len(gauge) - cards :])
        for k in range(cards):
            gauge[at + k] = share[s] * (gauge[at + k] - belief[node + k])
        at += cards
    for k in range(len(values)):
        if plan.open[first + k]:
            values[k] *= max(rest, 0.0)
            at = 0
            for s in slots:
                cards = plan.place[s + 1] - plan.place[s]
                values[k] += gauge[at + (k // plan.stride[s]) % cards]
                at += cards
    return _soft_maximum(values, rest)


@kernel(error_model="numpy")
def _log_marginal(values, stride, out, mass):
    out[:], mass[:] = -np.inf, 0.0
    for k in range(len(values)):
        state = (k // stride) % len(out)
        out[state] = max(out[state], values[k])
    for k in range(len(values)):
        state = (k // stride) % len(out)
        if values[k] > -np.inf:
            mass[state] += np.exp(values[k] - out[state])
    for state in range(len(out)):
        out[state] += np.log(mass[state])


@kernel(error_model="numpy")
def _soft_maximum(values, count):
    """c log Σ exp(v/c): the maximum of ⟨v, p⟩ + c H(p) over distributions p."""
    top, mass = largest(values), 0.0
    if count <= 0.0:
        return top
    for v in values:
        mass += np.exp((v - top) / count)
    return top + count * np.log(mass)

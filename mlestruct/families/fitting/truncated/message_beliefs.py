"""What messages and log-beliefs say of variables and factors, and the way back."""

from __future__ import annotations

import numpy as np

from mlestruct.families.fitting.truncated.message_visits import LEAST, read, state
from mlestruct.kernels import kernel


@kernel(error_model="numpy")
def beliefs(table, belief, message, near, tau, whole, plan, home):
    """b_i ∝ exp lb; where ``whole``, also b_α ∝ exp(η_α/c_α) Π u_s. Uses the last set's tables."""
    skip = plan.table_start[0]
    for m in range(len(tau)):
        for i in range(len(plan.whole)):
            first, last = plan.node_start[i], plan.node_start[i + 1]
            top = belief[m, first:last].max()
            for k in range(first, last):
                tau[m, k] = np.exp(belief[m, k] - top)
            tau[m, first:last] /= tau[m, first:last].sum()
        for f in range(len(plan.counts) if whole else 0):
            first, last = plan.scope_start[f], plan.scope_start[f + 1]
            at = plan.place[first]
            read(first, last, at, belief[m], message[m], near[m], False, home, plan.place)
            for k in range(plan.table_start[f], plan.table_start[f + 1]):
                chance = table[m, k - skip]
                for s in range(first, last):
                    chance *= near[m, state(k - plan.table_start[f], s, plan)]
                tau[m, k] = chance
            inside = tau[m, plan.table_start[f] : plan.table_start[f + 1]]
            inside /= max(inside.sum(), LEAST)


@kernel(error_model="numpy")
def unbeliefs(tau, slope_tau, belief, message, slope, whole, plan, home):
    """Adjoints of log-beliefs into those of lb, messages and the last set's scores."""
    for m in range(len(tau)):
        for i in range(len(plan.whole)):
            first, last = plan.node_start[i], plan.node_start[i + 1]
            held = slope_tau[m, first:last].sum()
            for k in range(first, last):
                belief[m, k] = slope_tau[m, k] - tau[m, k] * held
        for f in range(len(plan.counts) if whole else 0):
            first, last = plan.table_start[f], plan.table_start[f + 1]
            held = slope_tau[m, first:last].sum()
            for k in range(first, last):
                change = slope_tau[m, k] - tau[m, k] * held
                slope[m, k] += change / plan.counts[f]
                for s in range(plan.scope_start[f], plan.scope_start[f + 1]):
                    sent = state(k - first, s, plan)
                    belief[m, home[s] + sent - plan.place[s]] += change
                    message[m, sent] -= change

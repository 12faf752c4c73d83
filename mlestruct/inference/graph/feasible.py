"""Tables made to agree exactly with node marginals: proportional fitting, then rounding."""

from __future__ import annotations

import numpy as np

from mlestruct.inference.graph.exponents import logarithm
from mlestruct.inference.graph.rows import total
from mlestruct.kernels import kernel
from mlestruct.lanes import Row, add, rows

FITS = 200
FIT_TOL = 1e-15
TINY = 1e-300  # logarithms of rows take normal numbers
ONE = np.uint64(1)  # offsets are unsigned: signed ones are tested for counting from the end


@kernel(error_model="numpy")
def fit_all(tau, plan):
    """Every factor's table fitted to the node marginals of τ, in place: then τ is feasible.

    Returns the largest difference that there was between a table's marginal and its node's.
    """
    widest, apart = 0, 0.0
    for f in range(len(plan.counts)):
        first, last = plan.scope_start[f], plan.scope_start[f + 1]
        widest = max(widest, plan.place[last] - plan.place[first])
    sums = np.empty(widest)
    for f in range(len(plan.counts)):
        apart = max(apart, _fit(f, tau, sums, plan))
    return apart


@kernel(error_model="numpy")
def _fit(f, tau, sums, plan):
    """Scale the axes in turn; what is left after that is moved, not scaled."""
    table = tau[plan.table_start[f] : plan.table_start[f + 1]]
    before, first = np.inf, 0.0
    for turn in range(FITS):
        worst = 0.0
        for s in range(plan.scope_start[f], plan.scope_start[f + 1]):
            want = tau[plan.node_start[plan.scope[s]] :]
            got = sums[: plan.place[s + 1] - plan.place[s]]
            _marginal(table, plan.stride[s], got)
            for k in range(len(got)):
                worst = max(worst, abs(got[k] - want[k]))
                got[k] = want[k] / got[k] if got[k] > 0.0 else 0.0
            _scale(table, plan.stride[s], got)
        first = worst if turn == 0 else first
        if worst <= FIT_TOL or (turn > 20 and worst > 0.9 * before):
            break
        before = worst
    _round(f, table, tau, sums, plan)
    return first


@kernel(error_model="numpy")
def _round(f, table, tau, sums, plan):
    """Shrink until no marginal is too large, then add a product of what each still lacks."""
    for s in range(plan.scope_start[f], plan.scope_start[f + 1]):
        want = tau[plan.node_start[plan.scope[s]] :]
        got = sums[: plan.place[s + 1] - plan.place[s]]
        _marginal(table, plan.stride[s], got)
        for k in range(len(got)):
            got[k] = want[k] / got[k] if got[k] > want[k] else 1.0
        _scale(table, plan.stride[s], got)
    at, lack = 0, 0.0
    for s in range(plan.scope_start[f], plan.scope_start[f + 1]):
        want = tau[plan.node_start[plan.scope[s]] :]
        got = sums[at : at + plan.place[s + 1] - plan.place[s]]
        _marginal(table, plan.stride[s], got)
        for k in range(len(got)):
            got[k] = max(want[k] - got[k], 0.0)
        lack = total(got)
        if lack <= 1e-16:
            return
        if s > plan.scope_start[f]:
            for k in range(len(got)):
                got[k] /= lack
        at += len(got)
    for k in range(len(table)):
        value, at = 1.0, 0
        for s in range(plan.scope_start[f], plan.scope_start[f + 1]):
            cards = plan.place[s + 1] - plan.place[s]
            value *= sums[at + (k // plan.stride[s]) % cards]
            at += cards
        table[k] += value


@kernel(error_model="numpy")
def _marginal(table, stride, out):
    for k in range(len(out)):
        out[k] = 0.0
    for first in range(0, len(table), stride * len(out)):
        at = np.uint64(first)
        for k in range(len(out)):
            here = out[k]
            for _ in range(stride):
                here += table[at]
                at += ONE
            out[k] = here


@kernel(error_model="numpy")
def _scale(table, stride, factor):
    for first in range(0, len(table), stride * len(factor)):
        at = np.uint64(first)
        for k in range(len(factor)):
            for _ in range(stride):
                table[at] *= factor[k]
                at += ONE


@rows(join=add)
def _worth(score: Row, tau: Row, coefficient: Row) -> Row:
    """τ (score − a log τ), 0 where τ is."""
    worth = tau * (score - coefficient * logarithm(tau.most(TINY)))
    return tau.where_above(0.0, worth, 0.0)


@kernel
def value(score, tau, coefficient):
    """⟨score, τ⟩ − Σ a τ log τ: the surrogate at a feasible τ, below its maximum by its error."""
    eights = len(tau) >> 3
    total = _worth(eights, score, 0, tau, 0, coefficient, 0)
    for k in range(8 * eights, len(tau)):
        if tau[k] > 0.0:
            total += tau[k] * (score[k] - coefficient[k] * np.log(tau[k]))
    return total

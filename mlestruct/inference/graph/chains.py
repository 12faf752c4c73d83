"""Marginals of chains in the linear domain: two scaled passes per example, one exp per table."""

from __future__ import annotations

import numpy as np

from mlestruct.inference.graph.rows import copy, largest, total
from mlestruct.kernels import kernel
from mlestruct.structures.graph import FactorGraph

LOST = 1e280  # a weight below 1e-308 of its position's best could then count for 1e-28 at most


def is_chain(structure: FactorGraph) -> bool:
    """Factor i joins variables i and i + 1."""
    n = structure.n_nodes
    steps = np.arange(n - 1)
    expected = np.stack([steps, steps + 1], axis=1).ravel()
    return n > 1 and structure.is_pairwise and np.array_equal(structure.scope, expected)


@kernel(error_model="numpy")
def sweep_chains(offsets, scores, node_start, table_start, tau, log_z):
    """log Z and τ of equal chains; NaN where the linear domain may have lost what matters.

    Entries that are closed score −∞. With positions scaled to Σ a = 1, a·b are the marginals, and
    a weight that underflowed could have counted for no more than itself times the largest b / norm:
    that is what is checked. Neighbouring tables that are equal (tied weights) share exponentials.
    """
    n = len(node_start) - 1
    widest = 0
    for v in range(n):
        widest = max(widest, node_start[v + 1] - node_start[v])
    raw, shared = np.empty(widest * widest), np.empty(widest * widest)
    weight, alpha = np.empty(node_start[n]), np.empty(node_start[n])
    beta, ahead, norm = np.empty(widest), np.empty(widest), np.empty(n)
    kept, top = np.empty(n, dtype=np.int64), np.empty(n)
    raw[:], raw_top = np.nan, np.nan
    for m in range(len(offsets)):
        first = offsets[m]
        here, out = scores[first : first + table_start[n - 1]], tau[first:]
        log_z[m] = _enter(0, here, node_start, weight)
        copy(weight[: node_start[1]], alpha)
        norm[0] = _normalise(alpha[: node_start[1]])
        raw_top = _tables(here, out, node_start, table_start, raw, shared, raw_top, kept, top)
        for t in range(n - 1):
            log_z[m] += top[t] + _enter(t + 1, here, node_start, weight)
            start, middle, end = node_start[t], node_start[t + 1], node_start[t + 2]
            pair = shared if kept[t] < 0 else out[table_start[kept[t]] :]
            _forward(pair, alpha[start:middle], weight[middle:end], alpha[middle:end])
            norm[t + 1] = _normalise(alpha[middle:end])
        beta[:] = 1.0
        worst = 0.0
        for t in range(n - 1, -1, -1):
            log_z[m] += np.log(norm[t])
            middle, end = node_start[t], node_start[t + 1]
            for k in range(end - middle):
                out[middle + k] = alpha[middle + k] * beta[k]
                ahead[k] = beta[k] / norm[t]
                worst = max(worst, ahead[k]) if norm[t] > 0.0 else np.inf
                ahead[k] *= weight[middle + k]
            if t > 0:
                pair = shared if kept[t - 1] < 0 else out[table_start[kept[t - 1]] :]
                both = out[table_start[t - 1] : table_start[t]]
                _backward(
                    pair, alpha[node_start[t - 1] : middle], ahead[: end - middle], beta, both
                )
        if not worst <= LOST:
            log_z[m] = np.nan


@kernel
def _tables(scores, out, node_start, table_start, raw, shared, raw_top, kept, top):
    """exp of every distinct table, in ``shared`` or where its marginals will go."""
    current, length = -1, 0
    for t in range(len(table_start) - 1):
        table = scores[table_start[t] : table_start[t + 1]]
        size = len(table)
        if current < 0 and _equal(table, raw[:size]):
            kept[t], top[t] = -1, raw_top
        elif current >= 0 and size == length and _equal(table, scores[table_start[current] :]):
            kept[t], top[t] = current, top[current]
        else:
            kept[t] = t
            top[t] = _exponentiate(table, out[table_start[t] :])
            current, length = t, size
            if t == 0:
                raw_top, kept[0], current = top[0], -1, -1
                raw[size:] = np.nan
                copy(table, raw)
                copy(out[table_start[0] : table_start[1]], shared)
    return raw_top


@kernel
def _enter(v, scores, node_start, weight):
    """exp of a position's scores, the largest made one; returns the largest."""
    top = -np.inf
    for k in range(node_start[v], node_start[v + 1]):
        top = max(top, scores[k])
    for k in range(node_start[v], node_start[v + 1]):
        weight[k] = np.exp(scores[k] - top)
    return top


@kernel
def _normalise(values):
    mass = total(values)
    if mass > 0.0:
        for k in range(len(values)):
            values[k] /= mass
    return mass


@kernel
def _equal(one, other):
    for k in range(len(one)):  # noqa: SIM110 (compiled)
        if one[k] != other[k]:
            return False
    return True


@kernel
def _exponentiate(table, out):
    top = largest(table)
    for k in range(len(table)):
        out[k] = np.exp(table[k] - top)
    return top


@kernel(fastmath={"reassoc", "contract"})
def _forward(pair, before, weight, after):
    columns = len(after)
    after[:] = 0.0
    for i in range(len(before)):
        for j in range(columns):
            after[j] += before[i] * pair[i * columns + j]
    for j in range(columns):
        after[j] *= weight[j]


@kernel(fastmath={"reassoc", "contract"})
def _backward(pair, before, ahead, beta, out):
    """Pair marginals, and b one position earlier; ``out`` may be ``pair`` itself."""
    columns = len(ahead)
    for i in range(len(before)):
        mass = 0.0
        for j in range(columns):
            both = pair[i * columns + j] * ahead[j]
            mass += both
            out[i * columns + j] = before[i] * both
        beta[i] = mass

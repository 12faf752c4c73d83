"""Upper bounds on the surrogate log Z from messages, whether or not they have converged.

−H is convex because c_f = c_ff + Σ_i x_fi and c_i = c_ii − Σ_f x_fi with nothing negative: H is a
sum of entropies and of conditional entropies H_f − H_i. Any multipliers for "the tables agree"
split the maximum into one problem per node and factor, and H_f − H_i is at most
−Σ t_f log q(x_f | x_i) for any q. With q_f = exp(score_f / c_f + Σ l_fi), l_fi = log b_i −
message_fi, and the multipliers c_f l_fi − x_fi log b_i that leaves

    Σ_i c_ii log Σ exp(u_i / c_ii) + Σ_f c_ff log Σ q_f exp(Σ_i x_fi log(q_fi / b_i) / c_ff)

with u_i = score_i − Σ_f (c_f l_fi − x_fi log b_i), and a maximum in place of a logarithm where c is
0. At a fixed point q_fi = b_i, and it is the surrogate's maximum.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from mlestruct.inference.newton import layout
from mlestruct.native._door import MessageGraph
from mlestruct.structures.base import Array, Ints, kept
from mlestruct.structures.graph import FactorGraph


def bounds(
    structure: FactorGraph,
    plan: MessageGraph,
    paid: Array,
    score: Array,
    message: Array,
    belief: Array,
) -> Array:
    """Return a bound for each row of scores, messages and log-beliefs.

    ``paid`` is what every slot's factor pays towards its node's counting number, x.
    """
    at, nodes, open_ = layout(structure), int(plan.node_start[-1]), plan.open != 0
    sizes, counts = np.diff(plan.place), plan.counts[plan.owner]
    share, count = np.repeat(paid, sizes), np.repeat(counts, sizes)
    own = plan.whole - np.bincount(plan.scope, counts - paid, plan.nodes)
    rest = plan.counts - np.bincount(plan.owner, paid, plan.factors)
    of_node, agree, entry, first = _sums(structure)
    known = np.where(open_[:nodes], belief, 0.0)[:, at.state]
    paid_to = count * message - (count - share) * known
    u = np.where(open_[:nodes], score[:, :nodes] + (of_node @ paid_to.T).T, -np.inf)
    tables = score[:, nodes:] / plan.counts[at.table] + (agree @ (known - message).T).T
    tables[:, ~open_[nodes:]] = -np.inf
    with np.errstate(invalid="ignore"):  # of what is closed
        ratio = share * (_soft_maximum(tables[:, entry], first, np.ones(len(first))) - known)
        ratio[:, ~open_[at.state]] = 0.0
        values = tables * np.maximum(rest, 0.0)[at.table] + (agree @ ratio.T).T
    values[:, ~open_[nodes:]] = -np.inf
    found = _soft_maximum(u, plan.node_start[:-1], own).sum(axis=1)
    return np.asarray(
        found + _soft_maximum(values, plan.table_start[:-1] - nodes, rest).sum(axis=1)
    )


@kept
def _sums(structure: FactorGraph) -> tuple[sp.csr_array, sp.csr_array, Ints, Ints]:
    """Sums over slots' states by node and entry; entries by slots' states, and where they begin."""
    at, nodes = layout(structure), int(structure.node_start[-1])
    slots, order = len(at.state), np.argsort(at.slot, kind="stable")
    of_node = sp.csr_array((np.ones(slots), (at.state, np.arange(slots))), (nodes, slots))
    agree = sp.csr_array((np.ones(len(at.entry)), (at.entry, at.slot)), (len(at.table), slots))
    return of_node, agree, at.entry[order], np.searchsorted(at.slot[order], np.arange(slots))


def _soft_maximum(values: Array, start: Ints, c: Array) -> Array:
    """c log Σ exp(v / c) of the segments that begin at ``start``: max ⟨v, p⟩ + c H(p)."""
    if not len(start):
        return np.zeros((len(values), 0))
    sizes, top = np.diff(np.append(start, values.shape[1])), np.maximum.reduceat(values, start, 1)
    scale = np.repeat(1.0 / np.where(c > 0.0, c, 1.0), sizes)
    with np.errstate(invalid="ignore", divide="ignore"):  # where nothing is open
        part = np.exp((values - np.repeat(top, sizes, axis=1)) * scale)
        soft = c * np.log(np.add.reduceat(part, start, 1))
    return np.asarray(np.where((c > 0.0) & (top > -np.inf), top + soft, top))

"""Mean field: the best product of node distributions found by sequential updates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mlestruct.batch import Batch
from mlestruct.entropy import Entropy
from mlestruct.inference.graph.plan import MessagePlan, plan
from mlestruct.inference.routine import Beliefs, Routine
from mlestruct.kernels import kernel
from mlestruct.structures.base import Array, kept
from mlestruct.structures.graph import FactorGraph


@dataclass(frozen=True)
class NaiveMeanField(Routine):
    """The settings of :func:`mean_field`."""

    damping: float = 0.0
    tol: float = 1e-10
    sweeps: int = 1000

    def __post_init__(self) -> None:
        if not 0 <= self.damping < 1:
            raise ValueError(f"damping is {self.damping}; it must be at least 0 and below 1")

    @classmethod
    def serve(cls, entropy: Entropy) -> None:
        """None: it is asked for by name, as its entropy is no reweighted Bethe entropy."""

    def many(self, batch: Batch[FactorGraph], scores: Array, warm: Any = None) -> Beliefs:
        """From uniform marginals, or from a τ that is given; none is handed on."""
        scores = batch.vector(scores, "scores")
        tau = np.zeros(batch.size) if warm is None else batch.vector(warm, "start").copy()
        log_z = np.empty(len(batch))
        for structure, members in batch.groups():
            full = compiled(structure)
            if warm is None:
                tau[batch.index(members)] = np.tile(uniform(structure), len(members))
            part = np.empty(len(members))
            offsets = batch.offsets[members]
            _ascend(offsets, scores, self.damping, self.tol, self.sweeps, tau, part, full)
            log_z[members] = part
        return Beliefs(log_z, tau)


@kept
def compiled(structure: FactorGraph) -> MessagePlan:
    """For mean field, which refuses forbidden entries."""
    _refuse_hard(structure)
    return plan(structure, structure.counting(1.0))


def mean_field(
    batch: Batch[FactorGraph],
    scores: Array,
    *,
    damping: float = 0.0,
    tol: float = 1e-10,
    sweeps: int = 1000,
    start: Array | None = None,
) -> Beliefs:
    """log_z ≤ log Z, and it never falls: sequential coordinate ascent on ⟨score, τ⟩ + Σ H(τ_i).

    τ are products of its node marginals. Only a local maximum: ``start`` (a τ; default uniform)
    decides which. Factors may not have forbidden entries, which no product of positive
    distributions respects. ``damping`` is the share of the old marginal that is kept.
    O(Σ table sizes · order) per sweep.
    """
    return NaiveMeanField(damping, tol, sweeps).many(batch, scores, start)


def _refuse_hard(structure: FactorGraph) -> None:
    first = int(structure.node_start[-1])
    entry, node, _ = structure.below
    shut = structure.closed()
    beside = shut.copy()
    beside[entry[shut[node]]] = False
    hard = np.flatnonzero(beside[first:])
    if len(hard):
        f = int(structure.table_of[first + hard[0]]) - structure.n_nodes
        raise ValueError(f"factor {f} has a forbidden entry; mean field takes none: use messages")


def uniform(structure: FactorGraph) -> Array:
    """Uniform over every node's open states; tables are left as they come."""
    out = np.where(structure.closed(), 0.0, 1.0)
    first = int(structure.node_start[-1])
    count = np.add.reduceat(out[:first], structure.node_start[:-1])
    out[:first] /= np.repeat(count, structure.cards)
    return out


@kernel(error_model="numpy")
def _ascend(
    offsets: Any, scores: Any, damping: float, tol: float, sweeps: int,
    tau: Any, log_z: Any, plan: Any,
) -> None:  # fmt: skip
    n, size = len(plan.node_start) - 1, plan.table_start[-1]
    most = 1
    for i in range(n):
        most = max(most, plan.node_start[i + 1] - plan.node_start[i])
    field = np.empty(most)
    for m in range(len(offsets)):
        score = scores[offsets[m] : offsets[m] + size]
        q = tau[offsets[m] : offsets[m] + size]
        for _ in range(sweeps):
            moved = 0.0
            for i in range(n):
                moved = max(moved, update(i, score, damping, q, field, plan))
            if moved <= tol:
                break
        log_z[m] = finish(score, q, plan)


@kernel(error_model="numpy")
def update(i: int, score: Any, damping: float, q: Any, field: Any, plan: Any) -> float:
    """Node i moves to its best response; returns how far it moved."""
    respond(i, score, q, field, plan)
    first, moved = plan.node_start[i], 0.0
    for k in range(plan.node_start[i + 1] - first):
        change = (1.0 - damping) * (field[k] - q[first + k])
        q[first + k] += change
        moved = max(moved, abs(change))
    return moved


@kernel(error_model="numpy")
def respond(i: int, score: Any, q: Any, field: Any, plan: Any) -> None:
    """The best q_i given the others: ∝ exp(expected score of each state), left in ``field``."""
    first, last = plan.node_start[i], plan.node_start[i + 1]
    for k in range(last - first):
        field[k] = score[first + k]
    for p in range(plan.start[i], plan.start[i + 1]):
        s = plan.around[p]
        f = plan.owner[s]
        for k in range(plan.table_start[f], plan.table_start[f + 1]):
            at = k - plan.table_start[f]
            chance = 1.0
            for r in range(plan.scope_start[f], plan.scope_start[f + 1]):
                if r != s:
                    state = (at // plan.stride[r]) % (plan.place[r + 1] - plan.place[r])
                    chance *= q[plan.node_start[plan.scope[r]] + state]
            field[(at // plan.stride[s]) % (last - first)] += chance * score[k]
    top, mass = -np.inf, 0.0
    for k in range(last - first):
        if plan.open[first + k]:
            top = max(top, field[k])
    for k in range(last - first):
        field[k] = np.exp(field[k] - top) if plan.open[first + k] else 0.0
        mass += field[k]
    for k in range(last - first):
        field[k] /= mass


@kernel(error_model="numpy")
def finish(score: Any, q: Any, plan: Any) -> float:
    """Tables as products of their nodes; the value there."""
    total = 0.0
    for k in range(plan.node_start[-1]):
        if q[k] > 0.0:
            total += q[k] * (score[k] - np.log(q[k]))
    for f in range(len(plan.counts)):
        for k in range(plan.table_start[f], plan.table_start[f + 1]):
            at = k - plan.table_start[f]
            q[k] = 1.0
            for r in range(plan.scope_start[f], plan.scope_start[f + 1]):
                state = (at // plan.stride[r]) % (plan.place[r + 1] - plan.place[r])
                q[k] *= q[plan.node_start[plan.scope[r]] + state]
            if q[k] > 0.0:
                total += q[k] * score[k]
    return total

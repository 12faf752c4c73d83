"""Sequential tree-reweighted messages (Kolmogorov, PAMI 2006): MAP with a bound, multi-label."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mlestruct.errors import Infeasible
from mlestruct.oracle import HULL, Answers
from mlestruct.structures.base import Array, as_numbers, kept
from mlestruct.structures.batch import Batch
from mlestruct.structures.graph import FactorGraph
from mlestruct_oracles.native._door import MessageTask, NodeOrder, trw_s_solve


@dataclass(frozen=True)
class TRWS:
    """A good labelling of a pairwise graph and a bound on the best one. O(passes · Σ table sizes).

    Not exact: the bound tends to (at best) the value over the local polytope, the labelling is
    rounded and then improved one variable at a time. The difference widens the certificate, which
    stays valid. ``passes`` end early once the bound meets the labelling or improves by less than
    ``tol`` (relative) in ten passes. Batches run in compiled code; releases the GIL.
    """

    passes: int = 200
    tol: float = 1e-6
    polytope: str = HULL

    def many(self, batch: Batch[FactorGraph], scores: Array) -> Answers:
        scores = as_numbers(scores, "scores", batch.size)
        vertices, upper = np.zeros(batch.size), np.empty(len(batch))
        for structure, members in batch.groups():
            order, best = plan(structure), np.empty(len(members))
            room, labels = np.empty(order.message[-1]), np.empty(order.nodes, np.int64)
            size = len(members), batch.size, order.nodes, len(room)
            given = batch.offsets[members], scores, vertices, best
            task = MessageTask(
                *size, self.passes, self.tol, *given, room, labels, progress=np.zeros(5)
            )
            while trw_s_solve(order, task) < len(members):
                pass  # between two calls somebody may interrupt
            lost = np.flatnonzero(np.isneginf(best))
            if len(lost):
                raise _lost(structure, int(members[lost[0]]))
            upper[members] = best
        return vertices, upper


@kept
def plan(structure: FactorGraph) -> NodeOrder:
    """Nodes in their own order; every edge belongs to a chain from lower to higher nodes."""
    if not structure.is_pairwise:
        large = int(np.argmax(np.diff(structure.scope_start) != 2))
        raise ValueError(
            f"factor {large} joins {np.diff(structure.scope_start)[large]} variables; TRW-S takes "
            'pairs: try oracle="linear_program" or "cp_sat"'
        )
    n, ends = structure.n_nodes, structure.scope.reshape(-1, 2)
    around = np.argsort(structure.scope, kind="stable")
    start = np.searchsorted(structure.scope[around], np.arange(n + 1))
    later = np.bincount(ends.min(axis=1, initial=n), minlength=n)[:n]
    earlier = np.bincount(ends.max(axis=1, initial=0), minlength=n)[:n]
    sizes = structure.cards[structure.scope]
    message = np.concatenate([[0], np.cumsum(sizes)])
    gamma = 1.0 / np.maximum(np.maximum(later, earlier), 1)
    # Every sum of messages has at most a few terms per table, each rounded once at its scale.
    rounding = 8e-16 * float(np.log2(2.0 + n + len(ends)))
    starts = structure.node_start, structure.table_start, ends, start
    shut = structure.closed()
    own = around, message, gamma, shut if shut.any() else None
    return NodeOrder(n, len(ends), structure.size, rounding, *starts, *own)


def _lost(structure: FactorGraph, m: int) -> ValueError:
    why = structure.impossible()
    if why is not None:
        return Infeasible(f"example {m}: {why}")
    return ValueError(
        f"example {m}: TRW-S found no labelling without forbidden entries, and cannot tell whether "
        'there is one: use oracle="cp_sat" or "linear_program"'
    )

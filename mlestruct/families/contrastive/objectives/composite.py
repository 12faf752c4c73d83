"""Overlapping blocks, each given all others as observed: pseudo-likelihood and its relatives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from mlestruct.batch import Batch
from mlestruct.families.contrastive.objectives.base import BeforeAfter, seen
from mlestruct.families.contrastive.objectives.blocks import Block, expected, singles
from mlestruct.structures.base import Array
from mlestruct.structures.graph import FactorGraph


@dataclass(frozen=True)
class BlockSteps:
    """CF = −Σ over blocks of log p(y_block | the rest): one exact step for each from the data.

    ``blocks`` lists the variables of each block of a graph; they may overlap, and must be forests.
    Single variables give pseudo-likelihood. Blocks that hold or touch a hidden variable are
    omitted. O(blocks · their tables).
    """

    blocks: Callable[[FactorGraph], Iterable[Sequence[int]]] = singles
    exact: bool = True
    _ready: dict[FactorGraph, list[Block]] = field(default_factory=dict, repr=False, compare=False)

    def __call__(self, batch: Batch[FactorGraph], scores: Array, warm: None) -> BeforeAfter:
        assert batch.target is not None
        start, end = np.zeros(len(batch)), np.zeros(len(batch))
        data, tau = np.zeros(batch.size), np.zeros(batch.size)
        for graph, members in batch.groups():
            if graph not in self._ready:
                self._ready[graph] = [Block.of(graph, nodes) for nodes in self.blocks(graph)]
            here = batch.index(members)
            score = np.where(graph.closed(), -np.inf, batch.rows(scores, members))
            part = _steps(self._ready[graph], graph, score, batch.rows(batch.target, members))
            start[members], end[members] = part[:2]
            data[here], tau[here] = part[2].ravel(), part[3].ravel()
        return BeforeAfter(start, end, data, tau)


def _steps(
    blocks: list[Block], graph: FactorGraph, score: Array, target: Array
) -> tuple[Array, Array, Array, Array]:
    """F_0, F, and the sums over blocks of their tables before and after."""
    known = np.pad(seen(graph, target), ((0, 0), (0, 1)), constant_values=True)
    start, end = np.zeros(len(score)), np.zeros(len(score))
    data, tau = np.zeros_like(score), np.zeros_like(score)
    for block in blocks:
        rows = known[:, np.unique(np.append(block.around(graph), block.nodes))].all(axis=1)
        if not rows.any():
            continue
        chance = block.chances(target[rows])
        log_z, inside = block.marginals(block.scores(score[rows], chance))
        here = np.ix_(rows, block.used)
        start[rows] -= expected(score[here], target[here])
        end[rows] -= log_z
        data[here] += target[here]
        tau[here] += chance * inside[:, block.into]
    return start, end, data, tau

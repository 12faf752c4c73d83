"""Very large graphs block by block: each is minimised with the marginals around it held."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from mlestruct.batch import Batch
from mlestruct.families.fitting.condensed.descent import MAJORISE, NEWTON, descend
from mlestruct.families.fitting.condensed.frame import Frame, frame
from mlestruct.families.fitting.condensed.optima import Optima
from mlestruct.structures.base import Array, Ints
from mlestruct.structures.graph import FactorGraph

STEPS = 150
SIDE, OVERLAP = 55, 5  # Domke's blocks, and how far neighbours reach into each other


def grid_blocks(rows: int, columns: int, side: int = SIDE, overlap: int = OVERLAP) -> list[Ints]:
    """Squares of a grid's variables, overlapping, that cover it."""
    if not 0 <= overlap < side:
        raise ValueError(f"an overlap of {overlap} does not fit blocks of side {side}")
    node = np.arange(rows * columns).reshape(rows, columns)
    down, across = (
        range(0, max(length - overlap, 1), side - overlap) for length in (rows, columns)
    )
    return [node[r : r + side, c : c + side].ravel() for r in down for c in across]


class Block(NamedTuple):
    """A part of a graph: its coordinates there, and its systems, free inside only."""

    coordinates: Ints
    frame: Frame


@dataclass(frozen=True)
class Blockwise:
    """Sweeps of block minimisations until no entry changes by more than ``tol`` of itself.

    A block frees its variables and every factor that touches one, so that single variables would
    do: the free energy falls with each block to the one minimum. Memory is that of one block.
    """

    blocks: Callable[[FactorGraph], Sequence[Ints]]
    tol: float = 1e-8
    sweeps: int = 200
    _ready: dict[FactorGraph, list[Block]] = field(default_factory=dict, repr=False, init=False)

    def minimise(self, batch: Batch[FactorGraph], score: Array, weight: Array) -> Optima:
        """From uniform tables; the last sweep's largest relative move stands for a gap."""
        tau, moved = np.empty(batch.size), np.full(len(batch), np.inf)
        for m in range(len(batch)):
            graph, here = batch.structure(m), batch.coordinates(m)
            b = graph.interior()
            if b is None:
                raise ValueError("blocks need a graph without fixed entries")
            for turn in range(self.sweeps):
                before = b.copy()
                for block in self.ready(graph):
                    self._solve(block, score[here], weight[here], b, NEWTON if turn else MAJORISE)
                moved[m] = float(np.abs(b / before - 1.0).max())
                if moved[m] <= self.tol:
                    break
            tau[here] = b
        return Optima(tau, moved, np.zeros(batch.size))

    def _solve(self, block: Block, score: Array, weight: Array, b: Array, phase: int) -> None:
        at = block.coordinates
        part, phases, gap = b[at][None].copy(), np.array([phase]), np.empty(1)
        eta, w, slack = score[at][None], weight[at][None], np.zeros((1, len(at)))
        descend(eta, w, part, slack, block.frame, STEPS, 0.1 * self.tol, phases, gap)
        b[at] = part[0]

    def ready(self, graph: FactorGraph) -> list[Block]:
        """Compiled once per structure."""
        if graph not in self._ready:
            parts = self.blocks(graph)
            missed = np.setdiff1d(np.arange(graph.n_nodes), np.concatenate(list(parts)))
            if len(missed):
                raise ValueError(f"variable {missed[0]} is in no block")
            self._ready[graph] = [_block(graph, nodes) for nodes in parts]
        return self._ready[graph]


def _block(graph: FactorGraph, nodes: Ints) -> Block:
    """The block's variables, the factors that touch them, and those factors' other variables."""
    order = np.diff(graph.scope_start)
    factor = np.repeat(np.arange(graph.n_factors), order)
    touched = np.unique(factor[np.isin(graph.scope, nodes)])
    scopes = [graph.scope[graph.scope_start[f] : graph.scope_start[f + 1]] for f in touched]
    seen = np.unique(np.concatenate([nodes, *scopes]))
    small = FactorGraph(
        graph.cards[seen], [np.searchsorted(seen, scope).tolist() for scope in scopes]
    )
    tables = np.isin(graph.table_of, np.concatenate([seen, graph.n_nodes + touched]))
    return Block(np.flatnonzero(tables), frame(small, np.searchsorted(seen, nodes)))

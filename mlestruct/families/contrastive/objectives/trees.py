"""CF_k with structured mean field: independent trees instead of independent variables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mlestruct.batch import Batch
from mlestruct.families.contrastive.objectives.base import BeforeAfter, seen
from mlestruct.families.contrastive.objectives.blocks import Block, expected, trees
from mlestruct.structures.base import Array, kept
from mlestruct.structures.graph import FactorGraph

CLAMPED, TOL = 1000, 1e-8  # sweeps over hidden variables until F falls no further


@dataclass(frozen=True)
class TreeSteps:
    """Pairwise graphs, any number of labels: one block after the other to its exact best.

    ``blocks`` splits a graph's variables into disjoint forests (default: few, greedily). Within a
    block nothing is approximated, between blocks marginals multiply; F cannot rise. O(k · size).
    """

    steps: int = 10
    blocks: Callable[[FactorGraph], Sequence[Sequence[int]]] = trees
    exact: bool = False

    def __call__(self, batch: Batch[FactorGraph], scores: Array, warm: Any) -> BeforeAfter:
        assert batch.target is not None
        start, end = np.empty(len(batch)), np.empty(len(batch))
        data, tau = np.empty(batch.size), np.empty(batch.size)
        for graph, members in batch.groups():
            here = batch.index(members)
            score = np.where(graph.closed(), -np.inf, batch.rows(scores, members))
            product = Product(
                _product(graph, self.blocks), score, batch.rows(batch.target, members).copy()
            )
            product.complete(graph)
            start[members], data[here] = product.free_energy(), product.tau.ravel()
            for _ in range(self.steps):
                product.sweep(score)
            end[members], tau[here] = product.free_energy(), product.tau.ravel()
        return BeforeAfter(start, end, data, tau)


@kept
def _product(
    graph: FactorGraph, chosen: Callable[[FactorGraph], Sequence[Sequence[int]]]
) -> list[Block]:
    blocks = [list(nodes) for nodes in chosen(graph)]
    held = sorted(v for nodes in blocks for v in nodes)
    if not graph.is_pairwise or held != list(range(graph.n_nodes)):
        raise ValueError(
            "tree mean field needs a pairwise graph, and blocks that hold every variable once; "
            f"got {blocks}"
        )
    return [Block.of(graph, nodes) for nodes in blocks]


class Product:
    """τ = ∏ over blocks, for all examples of one graph; each block keeps its entropy."""

    def __init__(self, blocks: list[Block], score: Array, tau: Array) -> None:
        self.blocks, self.score, self.tau = blocks, score, tau
        self.entropy = np.zeros((len(blocks), len(tau)))

    def free_energy(self) -> Array:
        return -expected(self.score, self.tau) - self.entropy.sum(axis=0)

    def sweep(self, score: Array) -> None:
        """Every block to its best given the others; ``score`` may forbid more than the model."""
        for number, block in enumerate(self.blocks):
            chance = block.chances(self.tau)
            inside = block.scores(score, chance)
            log_z, best = block.marginals(inside)
            self.tau[:, block.used] = chance * best[:, block.into]
            self.entropy[number] = log_z - expected(inside, best)

    def complete(self, graph: FactorGraph) -> None:
        """Hidden variables relaxed, those seen in the target held."""
        known = np.repeat(seen(graph, self.tau), graph.cards, axis=1)
        if known.all():
            return
        first = graph.node_start[-1]
        held = self.score.copy()
        held[:, :first] = np.where(known & (self.tau[:, :first] == 0), -np.inf, held[:, :first])
        even = np.repeat(1.0 / graph.cards, graph.cards)
        self.tau[:, :first] = np.where(known, self.tau[:, :first], even)
        before = np.full(len(self.tau), np.inf)
        for _ in range(CLAMPED):
            self.sweep(held)
            reached = self.free_energy()
            if (reached >= before - TOL).all():
                return
            before = reached

"""The surrogate likelihood of chains whose transitions are tied: never a table per edge."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mlestruct.engine import Shard
from mlestruct.features import Shared, Tied
from mlestruct.inference.forests import ForwardBackward
from mlestruct.inference.routine import Routine
from mlestruct.native._door import (
    Sequences,
    tied_marginals,
)
from mlestruct.objectives.base import Cheaper, EvaluationPoint, Head, ShardValue
from mlestruct.objectives.tied_weights import Weights, padded, weights_of
from mlestruct.structures.base import Array, Ints
from mlestruct.structures.batch import Batch
from mlestruct.structures.graph import FactorGraph
from mlestruct.trees import Tree


@dataclass(frozen=True)
class Shape:
    """A batch of chains whose weights are tied, as the kernels want it."""

    batch: Batch[FactorGraph]
    tied: Tied
    weights: Weights
    edge: NDArray[np.bool_]
    shut: tuple[Ints, ...]

    @classmethod
    def of(cls, batch: Batch[Any], heads: Mapping[str, Head]) -> Shape | None:
        """Chains with one pattern of transitions, tied features with a constant 1 per edge."""
        head = heads["score"]
        features: Any = head.features
        shared = features if isinstance(features, Shared) else None
        tied = features if shared is None else shared.inner
        if shared is not None and shared.index is None:
            return None  # two weights of a table are one
        if not isinstance(tied, Tied) or head.exponential or np.any(head.bias):
            return None
        if tied.factors.shape[1] != 1 or sp.issparse(tied.factors) or (tied.factors != 1).any():
            return None
        opened = [_open(s) for s in batch.structures if _is_chain(s)]
        if len(opened) < len(batch.structures):
            return None
        edge = np.ones((tied.states, tied.states), dtype=bool)
        for _, ends, edges in opened:  # short chains may leave open what longer ones forbid
            edge &= ~(ends & ~edges).any(axis=0)
        if not all(((ends & edge) == edges).all() for _, ends, edges in opened):
            return None
        shut = tuple(np.flatnonzero(~node.ravel()) for node, _, _ in opened)
        index = None if shared is None else shared.index
        return cls(batch, tied, weights_of(tied, index), edge, shut)


def pieces(routine: Routine, batch: Batch[Any], heads: Mapping[str, Head]) -> Cheaper | None:
    """Makes the pieces, where the routine is exact on chains and their transitions are tied."""
    shape = Shape.of(batch, heads) if isinstance(routine, ForwardBackward) else None
    return None if shape is None else partial(TiedChains, shape)


class TiedChains:
    """Value and gradient from scores per position and one K × K table of transitions.

    Forward-backward in the linear domain, scaled at every position: O(N K²) multiply-adds and
    O(N K) exponentials for N positions, in rows of whole eights. Where scaling loses digits the
    general piece answers.
    """

    def __init__(self, shape: Shape, members: Ints, general: Callable[[Ints], Shard]) -> None:
        batch, tied = shape.batch, shape.tied
        first, last = int(members[0]), int(members[-1]) + 1  # shards are contiguous
        self.members, self.general = members, general
        self.fallback: Shard | None = None
        self.edge, self.states = shape.edge, tied.states
        self.weights = shape.weights
        rows = slice(int(tied.node_start[first]), int(tied.node_start[last]))
        self.nodes: Any = self.weights.rows_of(tied.nodes[rows])
        self.start = tied.node_start[first : last + 1] - tied.node_start[first]
        self.weight = batch.weight[first:last]
        self.width = padded(self.states)
        self.scores = np.empty((int(self.start[-1]), self.width))
        self.chains = Sequences(last - first, self.start, len(self.scores), self.states, self.width)
        shut = [shape.shut[k] for k in batch.which[first:last]]
        places = [s + k * self.states for s, k in zip(shut, self.start, strict=False)]
        position, state = np.divmod(np.concatenate(places), self.states)
        self.shut = position * self.width + state
        self.constant = 0.0
        if batch.constant is not None:
            self.constant = float(self.weight @ batch.constant[first:last])
        self.observed = self._observed(batch, tied, slice(first, last))

    def _observed(self, batch: Batch[FactorGraph], tied: Tied, members: slice) -> Array:
        """Σ w_m φ_m of these examples."""
        assert batch.target is not None
        node_start, factor_start = (
            start[members.start : members.stop + 1]
            for start in (tied.node_start, tied.factor_start)
        )
        node = tied.node_part(batch.target)[node_start[0] : node_start[-1]]
        pairs = tied.factor_part(batch.target)[factor_start[0] : factor_start[-1]]
        pair = (pairs * np.repeat(self.weight, np.diff(factor_start))[:, None]).sum(axis=0)
        self.scores[:] = 0.0
        self.scores[:, : self.states] = node * np.repeat(self.weight, np.diff(node_start))[:, None]
        return self.weights.pull(self.nodes, self.scores, pair)

    def __call__(self, question: Any) -> Any:
        if not isinstance(question, EvaluationPoint):
            return self.general(self.members)(question)
        theta = question.theta
        table, scores = self.weights.table(theta), self.scores
        self.weights.scores(theta, self.nodes, scores)
        scores.ravel()[self.shut] = -np.inf
        top = float(table[self.edge].max(initial=-np.inf)) if self.edge.any() else 0.0
        moves = np.where(self.edge, np.exp(np.minimum(table - top, 0.0)), 0.0)
        log_z, pair = np.empty(len(self.weight)), np.empty((self.states, self.states))
        if not tied_marginals(self.chains, self.weight, top, moves, scores, log_z, pair):
            self.fallback = self.general(self.members) if self.fallback is None else self.fallback
            return self.fallback(question)
        gradient = self.weights.pull(self.nodes, scores, pair)
        gradient -= self.observed
        value = float(self.weight @ log_z) - float(theta @ self.observed) + self.constant
        return ShardValue(value, gradient)

    def memory(self) -> None:
        """Exact sums need no start."""

    def remember(self, tree: Tree) -> None:
        pass


def _is_chain(structure: Any) -> bool:
    if not isinstance(structure, FactorGraph) or len(set(structure.cards.tolist())) != 1:
        return False
    n = structure.n_nodes
    step = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1).ravel()
    return structure.n_factors == n - 1 and np.array_equal(structure.scope, step)


def _open(structure: FactorGraph) -> tuple[NDArray[np.bool_], ...]:
    """Open states per position, transitions between open states, and those that are open."""
    k = int(structure.cards[0])
    open_ = ~structure.closed()
    nodes = open_[: structure.node_start[-1]].reshape(-1, k)
    edges = open_[structure.node_start[-1] :].reshape(-1, k, k)
    return nodes, nodes[:-1, :, None] & nodes[1:, None, :], edges

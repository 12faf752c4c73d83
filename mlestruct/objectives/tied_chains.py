"""The surrogate likelihood of chains whose transitions are tied: never a table per edge."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mlestruct.batch import Batch
from mlestruct.engine import Shard
from mlestruct.features import Masked, Tied
from mlestruct.inference.graph.forward_backward import ForwardBackward
from mlestruct.inference.routine import Routine
from mlestruct.kernels import kernel
from mlestruct.objectives.base import Cheaper, EvaluationPoint, Head, ShardValue
from mlestruct.objectives.tied_weights import Weights, weights_of
from mlestruct.structures.base import Array, Ints
from mlestruct.structures.graph import FactorGraph
from mlestruct.trees import Tree

# What underflowed in the forward sweep counts for itself times the backward sweep's largest entry:
# beyond these, messages in the log domain take over.
FAINT, LARGE = 1e-60, 1e200


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
        tied = features.inner if isinstance(features, Masked) else features
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
        index = features.index if isinstance(features, Masked) else None
        return cls(batch, tied, weights_of(tied, index), edge, shut)


def pieces(routine: Routine, batch: Batch[Any], heads: Mapping[str, Head]) -> Cheaper | None:
    """Makes the pieces, where the routine is exact on chains and their transitions are tied."""
    shape = Shape.of(batch, heads) if isinstance(routine, ForwardBackward) else None
    return None if shape is None else partial(TiedChains, shape)


class TiedChains:
    """Value and gradient from scores per position and one K × K table of transitions.

    Forward-backward in the linear domain, scaled at every position: O(N K²) multiply-adds and
    O(N K) exponentials for N positions. Where scaling loses digits the general piece answers.
    """

    def __init__(self, shape: Shape, members: Ints, general: Callable[[Ints], Shard]) -> None:
        batch, tied = shape.batch, shape.tied
        first, last = int(members[0]), int(members[-1]) + 1  # shards are contiguous
        self.members, self.general = members, general
        self.fallback: Shard | None = None
        self.edge, self.states = shape.edge, tied.states
        self.weights = shape.weights
        rows = slice(int(tied.node_start[first]), int(tied.node_start[last]))
        self.nodes: Any = tied.nodes[rows]
        self.start = tied.node_start[first : last + 1] - tied.node_start[first]
        self.weight = batch.weight[first:last]
        self.scores = np.empty((int(self.start[-1]), self.states))
        shut = [shape.shut[k] for k in batch.which[first:last]]
        self.shut = np.concatenate(
            [s + k * self.states for s, k in zip(shut, self.start, strict=False)]
        )
        self.constant = 0.0
        if batch.constant is not None:
            self.constant = float(self.weight @ batch.constant[first:last])
        self.observed = self._observed(batch, slice(first, last))

    def _observed(self, batch: Batch[FactorGraph], members: slice) -> Array:
        """Σ w_m φ_m of these examples."""
        assert batch.target is not None
        offsets, nodes = batch.offsets[members.start : members.stop + 1], self.scores
        pair = np.zeros(self.states**2)
        _collect(offsets, self.start, batch.target, self.weight, nodes, pair)
        return self.weights.pull(self.nodes, nodes, pair)

    def __call__(self, question: Any) -> Any:
        if not isinstance(question, EvaluationPoint):
            return self.general(self.members)(question)
        theta = question.theta
        table, scores = self.weights.table(theta), self.scores
        self.weights.scores(theta, self.nodes, scores)
        top = float(table[self.edge].max(initial=-np.inf)) if self.edge.any() else 0.0
        moves = np.where(self.edge, np.exp(np.minimum(table - top, 0.0)), 0.0)
        shift = np.empty(len(scores))
        _lower(scores, shift)
        np.exp(scores, out=scores)
        scores.ravel()[self.shut] = 0.0
        log_z, pair = np.empty(len(self.weight)), np.zeros_like(moves)
        if not _chains(self.start, scores, shift, moves, top, self.weight, log_z, pair):
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


@kernel
def _collect(
    offsets: Ints, start: Ints, flat: Array, weight: Array, node: Array, pair: Array
) -> None:
    """w_m times an example's node tables, and their edge tables' sum."""
    states = node.shape[1]
    for m in range(len(weight)):
        k = offsets[m]
        for i in range(start[m], start[m + 1]):
            for j in range(states):
                node[i, j] = weight[m] * flat[k]
                k += 1
        while k < offsets[m + 1]:
            for j in range(len(pair)):
                pair[j] += weight[m] * flat[k + j]
            k += len(pair)


@kernel
def _lower(scores: Array, shift: Array) -> None:
    """Subtract every row's largest score, in place."""
    for i in range(len(scores)):
        top = scores[i, 0]
        for k in range(1, scores.shape[1]):
            top = max(top, scores[i, k])
        for k in range(scores.shape[1]):
            scores[i, k] -= top
        shift[i] = top


@kernel(fastmath={"reassoc", "contract", "nsz"})
def _chains(
    start: Ints,
    node: Array,
    shift: Array,
    moves: Array,
    top: float,
    weight: Array,
    log_z: Array,
    pair: Array,
) -> bool:
    """w_m times the marginals into ``node``, their sum into ``pair``; False where digits fail."""
    states = len(moves)
    longest = 0
    for m in range(len(start) - 1):
        longest = max(longest, start[m + 1] - start[m])
    ahead, back = np.empty((longest, states)), moves.T.copy()
    scale, spare = np.empty(longest), np.empty((2, states))
    for m in range(len(start) - 1):
        first, last = start[m], start[m + 1]
        total = _ahead(node[first:last], shift[first:last], moves, ahead, scale)
        log_z[m] = total + (last - first - 1) * top
        if total == -np.inf or not _behind(node[first:last], weight[m], back, ahead, scale,
                                           spare[0], spare[1], pair):  # fmt: skip
            return False
    for j in range(states):
        for k in range(states):
            pair[j, k] *= moves[j, k]
    return True


@kernel
def _ahead(node: Array, shift: Array, moves: Array, ahead: Array, scale: Array) -> float:
    """One chain's messages forwards, scaled to sum to one; log Z, −∞ where digits fail."""
    states, total = len(moves), 0.0
    for t in range(len(node)):
        row, e = ahead[t], node[t]
        if t == 0:
            for k in range(states):
                row[k] = e[k]
        else:
            row[:] = 0.0
            for j in range(states):
                mass = ahead[t - 1, j]
                for k in range(states):
                    row[k] += mass * moves[j, k]
            for k in range(states):
                row[k] *= e[k]
        norm = 0.0
        for k in range(states):
            norm += row[k]
        if not norm > FAINT:
            return -np.inf
        scale[t] = 1.0 / norm
        for k in range(states):
            row[k] *= scale[t]
        total += np.log(norm) + shift[t]
    return total


@kernel
def _behind(
    node: Array,
    weight: float,
    back: Array,
    ahead: Array,
    scale: Array,
    below: Array,
    carry: Array,
    pair: Array,
) -> bool:
    """One chain's messages backwards, and its marginals with them; False where digits fail."""
    states = len(below)
    below[:] = weight
    for t in range(len(node) - 1, -1, -1):
        row, e = ahead[t], node[t]
        for k in range(states):
            carry[k] = e[k] * below[k] * scale[t]
        for k in range(states):
            e[k] = row[k] * below[k]
        if t > 0:
            below[:] = 0.0
            for j in range(states):
                mass = carry[j]
                for k in range(states):
                    below[k] += mass * back[j, k]
            largest = 0.0
            for k in range(states):
                largest = max(largest, below[k])
            if not largest <= LARGE * weight:
                return False
            for j in range(states):
                mass = ahead[t - 1, j]
                for k in range(states):
                    pair[j, k] += mass * carry[k]
    return True

"""The surrogate likelihood of chains whose transitions are tied: never a table per edge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mlestruct.features import Shared, Tied
from mlestruct.learning.problem import LikelihoodPart, Value
from mlestruct.learning.tied_weights import padded, weights_of
from mlestruct.native._door import (
    Sequences,
    tied_marginals,
)
from mlestruct.storage.trees import Tree
from mlestruct.structures.base import Array
from mlestruct.structures.graph import FactorGraph


def tied(part: LikelihoodPart) -> LikelihoodPart:
    """The part by sums over positions, where its chains have one table of transitions.

    They have if the features have a constant 1 per edge, and one pattern of transitions is open.
    """
    features: Any = part.features
    shared = features if isinstance(features, Shared) else None
    inner = features if shared is None else shared.inner
    if shared is not None and shared.index is None:
        return part  # two weights of a table are one
    if not isinstance(inner, Tied) or np.any(part.bias):
        return part
    if inner.factors.shape[1] != 1 or sp.issparse(inner.factors) or (inner.factors != 1).any():
        return part
    if not all(map(_is_chain, part.batch.structures)):
        return part
    opened = [_open(structure) for structure in part.batch.structures]
    edge = np.ones((inner.states, inner.states), dtype=bool)
    for _, ends, edges in opened:  # short chains may leave open what longer ones forbid
        edge &= ~(ends & ~edges).any(axis=0)
    if not all(((ends & edge) == edges).all() for _, ends, edges in opened):
        return part
    weights = weights_of(inner, None if shared is None else shared.index)
    return TiedPart(**vars(part), edge=edge, weights=weights)


@dataclass(frozen=True, eq=False, kw_only=True)
class TiedPart(LikelihoodPart):
    """Value and gradient from scores per position and one K × K table of transitions.

    Forward-backward in the linear domain, scaled at every position: O(N K²) multiply-adds and
    O(N K) exponentials for N positions, in rows of whole eights. Where scaling loses digits the
    general part answers. ``edge`` are the open transitions.
    """

    edge: NDArray[np.bool_]
    weights: Any

    def evaluate(self, theta: Array, tol: float, warm: Any) -> tuple[Value, Any]:
        work = Work(self) if warm is None else warm
        found = work.evaluate(theta)
        return super().evaluate(theta, tol, None)[0] if found is None else found, work

    def pack(self, warm: Any) -> Tree:
        return None


class Work:
    """Attributes of the positions of some chains, and room for their scores."""

    def __init__(self, part: TiedPart) -> None:
        batch, features = part.batch, part.features
        tied: Any = features.inner if isinstance(features, Shared) else features
        self.edge, self.weights, self.states = part.edge, part.weights, tied.states
        self.nodes, self.start = self.weights.rows_of(tied.nodes), tied.node_start
        self.weight, width = batch.weight, padded(self.states)
        self.scores = np.empty((int(self.start[-1]), width))
        self.chains = Sequences(len(batch), self.start, len(self.scores), self.states, width)
        closed = [np.flatnonzero(~_open(one)[0].ravel()) for one in batch.structures]
        shut = [closed[k] + s * self.states for k, s in zip(batch.which, self.start, strict=False)]
        position, state = np.divmod(np.concatenate(shut), self.states)
        self.shut = position * width + state
        known = batch.constant
        self.constant = 0.0 if known is None else float(self.weight @ known)
        # Σ w_m φ_m of the examples.
        node, pairs = tied.node_part(batch.target), tied.factor_part(batch.target)
        pair = (pairs * np.repeat(self.weight, np.diff(tied.factor_start))[:, None]).sum(axis=0)
        self.scores[:] = 0.0
        self.scores[:, : self.states] = node * np.repeat(self.weight, np.diff(self.start))[:, None]
        self.observed = self.weights.pull(self.nodes, self.scores, pair)

    def evaluate(self, theta: Array) -> Value | None:
        """Value and gradient at θ, or None where scaling has lost digits."""
        table, scores = self.weights.table(theta), self.scores
        self.weights.scores(theta, self.nodes, scores)
        scores.ravel()[self.shut] = -np.inf
        top = float(table[self.edge].max(initial=-np.inf)) if self.edge.any() else 0.0
        moves = np.where(self.edge, np.exp(np.minimum(table - top, 0.0)), 0.0)
        log_z, pair = np.empty(len(self.weight)), np.empty((self.states, self.states))
        if not tied_marginals(self.chains, self.weight, top, moves, scores, log_z, pair):
            return None
        gradient = self.weights.pull(self.nodes, scores, pair)
        gradient -= self.observed
        value = float(self.weight @ log_z) - float(theta @ self.observed) + self.constant
        return Value(value, gradient)


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

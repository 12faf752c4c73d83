"""The surrogate likelihood of chains whose transitions are tied: never a table per edge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mlestruct.features import Shared, Tied
from mlestruct.learning.problem import LikelihoodPart, Value
from mlestruct.native._door import (
    Sequences,
    SharedWeights,
    score_positions,
    sum_positions,
    tied_marginals,
)
from mlestruct.storage.trees import Tree
from mlestruct.structures.base import Array, Ints
from mlestruct.structures.graph import FactorGraph

EIGHT = 8  # numbers that kernels take side by side


def tied(part: LikelihoodPart) -> LikelihoodPart:
    """The part by sums over positions, where its chains have one table of transitions.

    They have if the features have a constant 1 per edge, and one pattern of transitions is open.
    """
    features: Any = part.features
    if isinstance(features, Shared):
        if features.index is None:
            return part  # two weights of a table are one
        features = features.inner
    if not isinstance(features, Tied) or np.any(part.bias):
        return part
    constant = features.factors.shape[1] == 1 and not sp.issparse(features.factors)
    if not constant or (features.factors != 1).any():
        return part
    edge = np.ones((features.states, features.states), dtype=bool)
    seen = []
    for structure in part.batch.structures:
        n = structure.n_nodes if isinstance(structure, FactorGraph) else 0
        step = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1).ravel()
        if n == 0 or structure.n_factors != n - 1 or not np.array_equal(structure.scope, step):
            return part
        nodes, edges = _open(structure)
        ends = nodes[:-1, :, None] & nodes[1:, None, :]
        edge &= ~(ends & ~edges).any(axis=0)  # short chains may leave open what longer ones forbid
        seen.append((ends, edges))
    if not all(((ends & edge) == edges).all() for ends, edges in seen):
        return part
    return TiedPart(**vars(part), edge=edge)


@dataclass(frozen=True, eq=False, kw_only=True)
class TiedPart(LikelihoodPart):
    """Value and gradient from scores per position and one K × K table of transitions.

    Forward-backward in the linear domain, scaled at every position: O(N K²) multiply-adds and
    O(N K) exponentials for N positions, in rows of whole eights. Where scaling loses digits the
    general part answers. ``edge`` are the open transitions.
    """

    edge: NDArray[np.bool_]

    def evaluate(self, theta: Array, tol: float, warm: Any) -> tuple[Value, Any]:
        work = Work(self) if warm is None else warm
        found = work.evaluate(theta)
        return super().evaluate(theta, tol, None)[0] if found is None else found, work

    def pack(self, warm: Any) -> Tree:
        return None


class Work:
    """Attributes of the positions of some chains, and room for their scores.

    Of θ the first ``split`` weights are of (attribute, state) pairs, the others of those
    transitions that are ``moves``. Where only some pairs are allowed, or attributes are sparse,
    ``lists`` hold each position's weights: those of attributes with many weights in whole rows of a
    table, whose places ``inside`` are for the weights ``many``.
    """

    def __init__(self, part: TiedPart) -> None:
        batch, features = part.batch, part.features
        tied: Any = features
        index: Any = None
        if isinstance(features, Shared):
            tied, index = features.inner, features.index
        few = index is not None or sp.issparse(tied.nodes)
        index = np.arange(tied.d) if index is None else index
        self.nodes, start, self.states = tied.nodes, tied.node_start, tied.states
        self.d, self.split = len(index), int(np.searchsorted(index, tied.split))
        self.moves, self.edge = index[self.split :] - tied.split, part.edge
        self.weight, width = batch.weight, -(-self.states // EIGHT) * EIGHT  # whole eights
        self.scores = np.empty((int(start[-1]), width))
        self.chains = Sequences(len(batch), start, len(self.scores), self.states, width)
        self.lists: SharedWeights | None = None
        if few:
            self._list(index, width)
        closed = [np.flatnonzero(~_open(one)[0].ravel()) for one in batch.structures]
        shut = [closed[k] + s * self.states for k, s in zip(batch.which, start, strict=False)]
        position, state = np.divmod(np.concatenate(shut), self.states)
        self.shut = position * width + state
        known = batch.constant
        self.constant = 0.0 if known is None else float(self.weight @ known)
        # Σ w_m φ_m of the examples.
        node, pairs = tied.tables(batch.target)
        pair = (pairs * np.repeat(self.weight, np.diff(tied.factor_start))[:, None]).sum(axis=0)
        self.scores[:] = 0.0
        self.scores[:, : self.states] = node * np.repeat(self.weight, np.diff(start))[:, None]
        self.observed = self._pull(pair)

    def _list(self, index: Ints, width: int) -> None:
        """List the allowed weights of every position's attributes."""
        csr, states = sp.csr_array(self.nodes), self.states
        attribute, positions = csr.indices, csr.shape[0]
        first = np.searchsorted(index, np.arange(csr.shape[1] + 1) * states)
        label, count = (index[: self.split] % states).astype(np.int32), np.diff(first)
        owner = np.repeat(np.arange(positions), np.diff(csr.indptr))

        def weights(attributes: Ints) -> Ints:
            """The numbers of these attributes' weights, one attribute's after the other's."""
            own = count[attributes]
            before = np.cumsum(own) - own
            return np.arange(own.sum()) + np.repeat(first[attributes] - before, own)

        def starts(owner: Ints) -> Ints:
            """Where each position's entries begin, and their number."""
            return np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=positions))])

        full = 3 * count[attribute] >= states
        common, row = np.unique(attribute[full], return_inverse=True)
        self.many, weight, each = (
            weights(common),
            weights(attribute[~full]),
            count[attribute[~full]],
        )
        rows = np.repeat(np.arange(len(common)), count[common])
        self.inside = rows * width + label[self.many]
        values, few = csr.data.astype(float), starts(np.repeat(owner[~full], each))
        whole: Any = starts(owner[full]), row.astype(np.int32), values[full]
        single: Any = few, weight.astype(np.int32), label[weight], np.repeat(values[~full], each)
        sizes = positions, states, width, len(common), self.d
        self.lists = SharedWeights(*sizes, *whole, *single)

    def evaluate(self, theta: Array) -> Value | None:
        """Value and gradient at θ, or None where scaling has lost digits."""
        scores, states, table = self.scores, self.states, np.zeros(self.states**2)
        table[self.moves] = theta[self.split :]
        table = table.reshape(states, states)
        if self.lists is None:
            weights = theta[: self.split].reshape(-1, states)
            np.matmul(self.nodes, weights, out=scores[:, :states])
        else:
            rows = np.zeros(self.lists.rows * self.lists.width)
            rows[self.inside] = theta[self.many]
            score_positions(self.lists, theta, rows, scores)
        scores[:, states:] = -np.inf
        scores.ravel()[self.shut] = -np.inf
        top = float(table[self.edge].max(initial=-np.inf)) if self.edge.any() else 0.0
        moves = np.where(self.edge, np.exp(np.minimum(table - top, 0.0)), 0.0)
        log_z, pair = np.empty(len(self.weight)), np.empty((states, states))
        if not tied_marginals(self.chains, self.weight, top, moves, scores, log_z, pair):
            return None
        gradient = self._pull(pair.ravel()) - self.observed
        value = float(self.weight @ log_z) - float(theta @ self.observed) + self.constant
        return Value(value, gradient)

    def _pull(self, pair: Array) -> Array:
        """The gradient by θ from those by scores of positions and by the table of transitions."""
        gradient = np.zeros(self.d)
        if self.lists is None:
            head = gradient[: self.split].reshape(-1, self.states)
            np.matmul(self.nodes.T, self.scores[:, : self.states], out=head)
        else:
            rows = np.zeros(self.lists.rows * self.lists.width)
            sum_positions(self.lists, self.scores, rows, gradient)
            gradient[self.many] = rows[self.inside]
        gradient[self.split :] = pair[self.moves]
        return gradient


def _open(structure: FactorGraph) -> tuple[NDArray[np.bool_], ...]:
    """Which states of every position are open, and which transitions to the next."""
    k, first = int(structure.cards[0]), int(structure.node_start[-1])
    open_ = ~structure.closed()
    return open_[:first].reshape(-1, k), open_[first:].reshape(-1, k, k)

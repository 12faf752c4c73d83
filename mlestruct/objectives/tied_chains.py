"""The surrogate likelihood of chains whose transitions are tied: never a table per edge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numba as nb
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mlestruct.batch import Batch
from mlestruct.features import Masked, Tied
from mlestruct.inference.forward_backward import ForwardBackward
from mlestruct.inference.messages import Messages
from mlestruct.objectives.base import Head, Part, Piece
from mlestruct.structures.base import Array
from mlestruct.structures.graph import FactorGraph

FAINT = 1e-200  # a step that keeps less mass than this may have lost digits: messages take over


class TiedChains:
    """Value and gradient from scores per position and one K × K table of transitions.

    Forward-backward in the linear domain, scaled at every position: O(N K²) multiply-adds and
    O(N K) exponentials for N positions. Where scaling loses digits the general piece answers.
    """

    def __init__(self, batch: Batch[FactorGraph], features: Tied | Masked, general: Part) -> None:
        tied = features.inner if isinstance(features, Masked) else features
        self.features, self.general, self.weight = features, general, batch.weight
        self.states, self.d = tied.states, tied.d
        self.nodes: Any = tied.nodes
        self.start = tied.node_start
        assert batch.target is not None
        weighed = batch.target * batch.weight[batch.owner]
        self.observed = features.moments(weighed)
        self.constant = 0.0 if batch.constant is None else float(batch.weight @ batch.constant)
        open_ = [_open(s) for s in batch.structures]
        self.edge = open_[0][1]
        shut = [np.flatnonzero(~node.ravel()) for node, _ in open_]
        self.shut = np.concatenate(
            [
                shut[k] + first * self.states
                for k, first in zip(batch.which, self.start, strict=False)
            ]
        )
        self.scores = np.empty((int(self.start[-1]), self.states))

    @classmethod
    def serve(cls, batch: Batch[Any], heads: Mapping[str, Head], part: Part) -> Piece | None:
        """Chains with one pattern of transitions, tied features with a constant 1 per edge."""
        head = heads["score"]
        features: Any = head.features
        tied = features.inner if isinstance(features, Masked) else features
        if not isinstance(tied, Tied) or head.exponential or np.any(head.bias):
            return None
        constant = tied.factors.shape[1] == 1 and not sp.issparse(tied.factors)
        if not constant or (tied.factors != 1).any():
            return None
        opened = [_open(s) for s in batch.structures if _is_chain(s)]
        if len(opened) < len(batch.structures) or any(edge is None for _, edge in opened):
            return None
        # A chain of one position has no transitions to disagree on.
        edges = [edge for node, edge in opened if len(node) > 1]
        if any((edge != edges[0]).any() for edge in edges):
            return None
        piece = cls(batch, features, part)
        piece.edge = edges[0] if edges else piece.edge
        return piece

    def __call__(self, theta: Array, tol: float) -> tuple[float, Array, Array | None]:
        full = self.features.spread(theta) if isinstance(self.features, Masked) else theta
        split = int(self.nodes.shape[1]) * self.states
        table = full[split:].reshape(self.states, self.states)
        scores = self._scores(full[:split].reshape(-1, self.states))
        top = float(table[self.edge].max(initial=-np.inf)) if self.edge.any() else 0.0
        moves = np.where(self.edge, np.exp(np.minimum(table - top, 0.0)), 0.0)
        shift = np.empty(len(scores))
        _lower(scores, shift)
        np.exp(scores, out=scores)
        scores.ravel()[self.shut] = 0.0
        log_z, pair = np.empty(len(self.weight)), np.zeros_like(moves)
        ok = _chains(self.start, scores, shift, moves, top, self.weight, log_z, pair)
        if not ok:
            return self.general(theta, tol)
        gradient = self._pull(scores, pair)
        gradient -= self.observed
        value = float(self.weight @ log_z) - float(theta @ self.observed) + self.constant
        return value, gradient, None

    def _scores(self, weights: Array) -> Array:
        if sp.issparse(self.nodes):
            csr: Any = self.nodes
            _csr_times(
                csr.indptr, csr.indices, csr.data, np.ascontiguousarray(weights), self.scores
            )
            return self.scores
        return np.matmul(self.nodes, weights, out=self.scores)

    def _pull(self, nodes: Array, pair: Array) -> Array:
        full = np.zeros(self.d)
        split = int(self.nodes.shape[1]) * self.states
        head = full[:split].reshape(-1, self.states)
        if sp.issparse(self.nodes):
            csr: Any = self.nodes
            _csr_gather(csr.indptr, csr.indices, csr.data, nodes, head)
        else:
            np.matmul(self.nodes.T, nodes, out=head)
        if len(full) > split:
            full[split:] = pair.ravel()
        return self.features.gather(full) if isinstance(self.features, Masked) else full


def special(messages: Messages) -> Any:
    """The cheaper piece to offer to ``parts``, where the messages are exact on chains."""
    return TiedChains.serve if isinstance(messages, ForwardBackward) else None


def _is_chain(structure: Any) -> bool:
    if not isinstance(structure, FactorGraph) or len(set(structure.cards.tolist())) != 1:
        return False
    n = structure.n_nodes
    step = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1).ravel()
    return structure.n_factors == n - 1 and np.array_equal(structure.scope, step)


def _open(structure: FactorGraph) -> tuple[NDArray[np.bool_], Any]:
    """Open states per position, and the open transitions: None where edges differ in them."""
    k = int(structure.cards[0])
    open_ = ~structure.closed()
    nodes = open_[: structure.node_start[-1]].reshape(-1, k)
    edges = open_[structure.node_start[-1] :].reshape(-1, k, k)
    ends = nodes[:-1, :, None] & nodes[1:, None, :]
    free = np.ones((k, k), dtype=bool) & ~(ends & ~edges).any(axis=0)
    return nodes, free if ((ends & free) == edges).all() else None


@nb.njit(cache=True, nogil=True)
def _lower(scores, shift):
    """Subtract every row's largest score, in place."""
    for i in range(len(scores)):
        top = scores[i, 0]
        for k in range(1, scores.shape[1]):
            top = max(top, scores[i, k])
        for k in range(scores.shape[1]):
            scores[i, k] -= top
        shift[i] = top


@nb.njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def _chains(start, node, shift, moves, top, weight, log_z, pair):
    """w_m times the marginals into ``node``, their sum into ``pair``; False where digits fail."""
    states = len(moves)
    longest = 0
    for m in range(len(start) - 1):
        longest = max(longest, start[m + 1] - start[m])
    ahead, back = np.empty((longest, states)), moves.T.copy()
    scale, below, carry = np.empty(longest), np.empty(states), np.empty(states)
    for m in range(len(start) - 1):
        first, n = start[m], start[m + 1] - start[m]
        total = 0.0
        for t in range(n):
            row, e = ahead[t], node[first + t]
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
                return False
            scale[t] = 1.0 / norm
            for k in range(states):
                row[k] *= scale[t]
            total += np.log(norm) + shift[first + t]
        log_z[m] = total + (n - 1) * top
        below[:] = weight[m]
        for t in range(n - 1, -1, -1):
            row, e = ahead[t], node[first + t]
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
                for j in range(states):
                    mass = ahead[t - 1, j]
                    for k in range(states):
                        pair[j, k] += mass * carry[k]
    for j in range(states):
        for k in range(states):
            pair[j, k] *= moves[j, k]
    return True


@nb.njit(cache=True, nogil=True)
def _csr_times(indptr, indices, data, weights, out):
    for i in range(len(out)):
        row = out[i]
        row[:] = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            x, w = data[e], weights[indices[e]]
            for k in range(len(row)):
                row[k] += x * w[k]


@nb.njit(cache=True, nogil=True)
def _csr_gather(indptr, indices, data, rows, out):
    for i in range(len(rows)):
        row = rows[i]
        for e in range(indptr[i], indptr[i + 1]):
            x, g = data[e], out[indices[e]]
            for k in range(len(row)):
                g[k] += x * row[k]

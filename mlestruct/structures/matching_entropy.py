"""The entropies of matchings: what bipartite and general ones have in common."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from mlestruct.structures.base import Array, Bound, Folded, Ints, Structure, Views, as_numbers


class OneToOne(Structure):
    """Edges among nodes, at most one at each; the ``optional`` nodes may stay single."""

    n_nodes: int
    kind: Any

    @property
    def optional(self) -> Ints:
        raise NotImplementedError

    def incidence(self) -> sp.csr_array:
        raise NotImplementedError

    @property
    def movable(self) -> bool:
        return self.kind != "partial"

    def views(self) -> Views:
        return matching_views(self.incidence(), self.optional)

    def folded(self, counting: Array) -> Folded:
        """The coefficients of those views, without listing them where all nodes count alike."""
        counting = as_numbers(counting, "counting")
        edge, rho = np.split(counting, [self.size])
        single = self.optional
        slack = self.incidence()[single] if len(single) else sp.csr_array((0, self.size))
        used = rho[single] != 0
        return Folded(
            edge + self._at_ends(rho),
            edge.copy(),
            sp.csr_array(-slack[used]),
            np.ones(int(used.sum())),
            rho[single][used],
        )

    def _at_ends(self, rho: Array) -> Array | float:
        """ρ_u + ρ_v of every edge."""
        return 2.0 * float(rho[0]) if np.ptp(rho) == 0 else np.asarray(self.incidence().T @ rho)

    def counting(self, rho: float | ArrayLike | None = None) -> Array:
        """c = 1 − ρ_u − ρ_v on edges and ρ_v on vertices; default ρ = ½."""
        given = as_numbers(0.5 if rho is None else rho, "rho")
        weight = np.broadcast_to(given, (self.n_nodes,))
        out = np.empty(self.size + self.n_nodes)
        out[: self.size] = 1.0 - self._at_ends(weight)
        out[self.size :] = weight
        return out

    def convex(self, counting: Array) -> bool:
        """Concave for every ρ in [0, 1]^V on any graph (theorem of the MLE-Struct paper)."""
        counting = as_numbers(counting, "counting")
        rho = counting[self.size :]
        return bool(((rho >= 0) & (rho <= 1)).all()) and self.is_matching_entropy(counting)

    def is_matching_entropy(self, counting: Array) -> bool:
        edge, rho = np.split(counting, [self.size])
        expected = 1.0 - self._at_ends(rho)
        if np.ndim(expected) == 0:
            edge = np.array([edge.min(), edge.max()])
        return bool(np.allclose(edge, expected))

    def bound(self, counting: Array) -> Bound:
        """An upper bound where no edge's counting number is negative; else none known."""
        counting = as_numbers(counting, "counting")
        if not self.is_matching_entropy(counting):
            return Bound("none", "counting numbers of no known theorem")
        if counting.min() >= -1e-12:
            return Bound("upper", "Shearer: ρ_u + ρ_v ≤ 1 on every edge")
        return Bound("none", "no theorem for this ρ")


def matching_views(incidence: sp.csr_array, optional: Ints) -> Views:
    """Edges, their complements, and the slack 1 − Σ τ of each vertex that may stay single.

    ``incidence`` is (vertices × edges). Distributions: every edge's {τ, 1−τ}, then every vertex's
    {its edges, its slack}; so c = (1 − ρ_u − ρ_v, ρ_v) gives the matching entropies of MLE-Struct.
    """
    n_vertices, n_edges = incidence.shape
    edge = np.arange(n_edges, dtype=np.int32)
    vertex = n_edges + incidence.tocsc().indices.reshape(-1, 2)
    slack = incidence[optional]
    C = _rows(
        [(np.ones(n_edges), edge, 1), (-np.ones(n_edges), edge, 1)], slack.shape[1], (-slack,)
    )
    in_both = np.column_stack([edge, vertex]).astype(np.int32).ravel()
    memberships = [(np.ones(3 * n_edges), in_both, 3), (np.ones(n_edges), edge, 1)]
    memberships.append((np.ones(len(optional)), (n_edges + optional).astype(np.int32), 1))
    return Views(
        C,
        np.repeat([0.0, 1.0], [n_edges, n_edges + len(optional)]),
        _rows(memberships, n_edges + n_vertices),
        np.stack([vertex.ravel(), np.repeat(edge, 2)], axis=1).astype(np.int64),
    )


def _rows(
    blocks: list[tuple[Array, Any, int]], width: int, more: tuple[sp.csr_array, ...] = ()
) -> sp.csr_array:
    """Blocks of (values, columns, entries per row), one below the other, without copies of them."""
    lengths = [np.full(len(values) // each, each) for values, _, each in blocks]
    lengths += [np.diff(part.indptr) for part in more]
    pointer = np.concatenate([[0], np.cumsum(np.concatenate(lengths))]).astype(np.int32)
    values = np.concatenate([*(b[0] for b in blocks), *(part.data for part in more)])
    columns = np.concatenate([*(b[1] for b in blocks), *(part.indices for part in more)])
    return sp.csr_array((values, columns, pointer), shape=(len(pointer) - 1, width))

"""The entropies of matchings: what bipartite and general ones have in common."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from mlestruct.structures.base import Array, Bound, Ints, Views


def matching_views(incidence: sp.csr_array, loose: Ints) -> Views:
    """Edges, their complements, and the slack 1 − Σ τ of each vertex that may stay single.

    ``incidence`` is (vertices × edges). Distributions: every edge's {τ, 1−τ}, then every vertex's
    {its edges, its slack}; so c = (1 − ρ_u − ρ_v, ρ_v) gives the matching entropies of MLE-Struct.
    """
    n_vertices, n_edges = incidence.shape
    edge = np.arange(n_edges, dtype=np.int32)
    vertex = n_edges + incidence.tocsc().indices.reshape(-1, 2)
    slack = incidence[loose]
    C = _rows(
        [(np.ones(n_edges), edge, 1), (-np.ones(n_edges), edge, 1)], slack.shape[1], (-slack,)
    )
    in_both = np.column_stack([edge, vertex]).astype(np.int32).ravel()
    memberships = [(np.ones(3 * n_edges), in_both, 3), (np.ones(n_edges), edge, 1)]
    memberships.append((np.ones(len(loose)), (n_edges + loose).astype(np.int32), 1))
    return Views(
        C,
        np.repeat([0.0, 1.0], [n_edges, n_edges + len(loose)]),
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


def matching_counting(incidence: sp.csr_array, rho: float | ArrayLike | None) -> Array:
    """c = 1 − ρ_u − ρ_v on edges and ρ_v on vertices; default ρ = ½."""
    weight = np.broadcast_to(
        np.asarray(0.5 if rho is None else rho, dtype=float), (incidence.shape[0],)
    )
    if np.ptp(weight) == 0:
        return np.repeat([1.0 - 2.0 * weight[0], weight[0]], incidence.shape[::-1])
    return np.concatenate([1.0 - incidence.T @ weight, weight])


def matching_concave(incidence: sp.csr_array, counting: Array) -> bool:
    """Concave for every ρ in [0, 1]^V on any graph (theorem of the MLE-Struct paper)."""
    rho = counting[incidence.shape[1] :]
    return bool(((rho >= 0) & (rho <= 1)).all()) and is_matching_entropy(incidence, counting)


def is_matching_entropy(incidence: sp.csr_array, counting: Array) -> bool:
    rho = counting[incidence.shape[1] :]
    return bool(np.allclose(counting, matching_counting(incidence, rho)))


def shearer(incidence: sp.csr_array, counting: Array) -> Bound:
    """An upper bound on any graph where no edge's counting number is negative; else none known."""
    if not is_matching_entropy(incidence, counting):
        return Bound("none", "counting numbers of no known theorem")
    if (counting >= -1e-12).all():
        return Bound("upper", "Shearer: ρ_u + ρ_v ≤ 1 on every edge")
    return Bound("none", "no theorem for this ρ")

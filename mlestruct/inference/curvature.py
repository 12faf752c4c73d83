"""How τ answers to scores, seen through the features: the Hessian of the surrogate log Z."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.linalg import LinAlgError, cho_factor, cho_solve, solve

from mlestruct.dual import Dual
from mlestruct.structures.base import Array, Ints, Structure
from mlestruct.structures.bipartite import BipartiteMatching
from mlestruct.structures.matching import Matching

RIDGE = 1e-13  # for the constraints' redundant rows, relative


class Response(NamedTuple):
    """One example: the Hessian Φᵀ(∂τ/∂score)Φ, and its households' rows once nodes are taken out.

    ``rows(vertex)`` are the feature rows of a matching's pairs, and of who stays single, less what
    their nodes explain: they add up to the observed moments less a constant. None elsewhere.
    """

    hessian: Array
    rows: Any


def binding(dual: Dual, theta: Array) -> list[Any]:
    """What binds every example beside its own constraints: odd sets of general matchings."""
    if not any(isinstance(structure, Matching) for structure in dual.batch.structures):
        return [None] * len(dual.batch)
    from mlestruct.inference.matching.odd import binding

    return list(binding(dual.entropy, dual.scores(theta)))


def respond(dual: Dual, m: int, tau: Array, sets: Any = None) -> Response:
    """The response of example m at its maximiser τ (a flat array of the whole batch).

    Matchings by a dense solve in the nodes and the odd ``sets`` that bind, other structures by a
    sparse one in coordinates and constraints; features that offer ``weighted`` are never expanded.
    """
    batch, entropy = dual.batch, dual.entropy
    structure, part = batch.structure(m), batch.coordinates(m)
    features, point = dual.features.select(np.array([m])), tau[part]
    a, b = entropy.a[part], entropy.b[part]
    if not isinstance(structure, (Matching, BipartiteMatching)):
        rows = slice(int(entropy.mixed.start[m]), int(entropy.mixed.start[m + 1]))
        C = sp.csr_array(entropy.mixed_matrix()[rows][:, part])
        views = C @ point + entropy.mixed.c0[rows]
        full = expanded(features)
        moved = _kkt(structure, point, a, b, C, entropy.mixed.a[rows] / views, full)
        return Response(full.T @ moved, None)
    diagonal = a * (1.0 - point) + b * point
    v = np.divide(point * (1.0 - point), diagonal, out=np.zeros_like(point), where=diagonal != 0)
    rho = float(entropy.counting[batch.which[m]][-1]) * entropy.temperature
    return _nodes(structure, features, v, point, rho, sets)


def expanded(features: Any) -> Array:
    """Φ as a matrix, a column per weight."""
    return np.stack([features.potentials(unit) for unit in np.eye(features.d)], axis=1)


def _nodes(
    structure: Any, features: Any, v: Array, tau: Array, rho: float, sets: Any = None
) -> Response:
    """V − V Bᵀ (K + B V Bᵀ)⁻¹ B V between the features: B the nodes' edges, K what slack gives.

    Below the nodes' edges B has those inside every odd set that binds.
    """
    system = edge_weights(structure, v)
    if hasattr(features, "weighted"):
        second, sums = features.weighted(v)
        given: Callable[[Ints], Array] = partial(_rows, structure, features)
    else:
        full = expanded(features)
        given = full.__getitem__
        second, sums = full.T @ (v[:, None] * full), node_sums(structure, v[:, None] * full)
    if len(structure.optional):
        optional = structure.optional
        slack = np.maximum(1.0 - node_sums(structure, tau[:, None])[optional, 0], 0.0)
        system[optional, optional] += slack / max(rho, 1e-12)
    diagonal = np.einsum("ii->i", system)
    diagonal[diagonal == 0] = 1.0  # nodes without a live edge
    diagonal += RIDGE * diagonal.mean()  # the gauge between two sides
    some = sets is not None and len(sets) > 0
    inside = np.asarray(sets, dtype=float).T if some else np.zeros((len(system), 0))
    if some:
        system, more = _with_sets(structure, system, v, inside, given)
        sums = np.vstack([sums, more])
    effects = _solved(system, sums)

    def rows(vertex: Array) -> Array:
        k = np.flatnonzero(vertex > 0.5)
        u, w = structure.nodes_of(k)
        shared = effects[u] + effects[w] + (inside[u] * inside[w]) @ effects[len(inside) :]
        alone = np.setdiff1d(structure.optional, np.concatenate([u, w]))
        return np.concatenate([given(k) - shared, -effects[alone]])

    return Response(second - sums.T @ effects, rows)


def _solved(system: Array, sums: Array) -> Array:
    """system⁻¹ sums. Definite up to ρ = ½ where no sets bind; Cholesky takes half the time then."""
    try:
        factor = cho_factor(system, lower=True, check_finite=False)
        return np.asarray(cho_solve(factor, sums, check_finite=False))
    except LinAlgError:
        return solve(system, sums, assume_a="sym", overwrite_a=True, check_finite=False)


def _rows(structure: Any, features: Any, k: Ints) -> Array:
    """The feature rows of edges."""
    return np.asarray(features.rows(*structure.nodes_of(k)))


def _with_sets(
    structure: Any, matrix: Array, v: Array, inside: Array, rows: Callable[[Ints], Array]
) -> tuple[Array, Array]:
    """(the nodes' system bordered by sets, whose flags are columns; Σ v φ inside each set)."""
    u, w = structure.nodes_of(np.arange(len(v)))
    held = inside[u] * inside[w]
    weighed = v[:, None] * held
    across = node_sums(structure, weighed)
    system = np.block([[matrix, across], [across.T, held.T @ weighed]])
    found = [v[k] @ rows(k) for k in (np.flatnonzero(column) for column in held.T)]
    return system, np.array(found)


def edge_weights(structure: Any, v: Array) -> Array:
    """B V Bᵀ = diag(row sums) + V of a matching's graph with a weight per edge."""
    n = structure.n_nodes
    if isinstance(structure, Matching) and structure.graph.complete:
        from mlestruct.structures.complete_kernel import symmetric

        table = symmetric(v, n)
    else:
        low, high = structure.nodes_of(np.arange(structure.size))
        table = np.zeros((n, n))
        table[low, high] = table[high, low] = v
    table[np.diag_indices(n)] = table.sum(axis=0)
    return table


def node_sums(structure: Any, columns: Array) -> Array:
    """What the edges of every node add up to, in each column."""
    low, high = structure.nodes_of(np.arange(structure.size))
    out = np.zeros((structure.n_nodes, columns.shape[1]))
    np.add.at(out, low, columns)
    np.add.at(out, high, columns)
    return out


def _kkt(
    structure: Structure, tau: Array, a: Array, b: Array, C: sp.csr_array, mixed: Array, rhs: Array
) -> Array:
    """max ⟨δ, x⟩ − ½ xᵀ∇²(−H)x over constraints kept, for every column δ; scaled by √τ."""
    from scipy.sparse.linalg import splu

    constraints = structure.constraints()
    if constraints is None or (constraints.lo != constraints.hi).any():
        raise ValueError(
            f"the Hessian needs a {type(structure).__name__}'s outcomes as equalities, "
            "or a matching"
        )
    root = np.sqrt(np.maximum(tau, 0.0))
    scale = sp.diags_array(root)
    diagonal = a + b * tau / np.maximum(1.0 - tau, 1e-300) + (tau <= 0)
    lifted = sp.diags_array(np.sqrt(np.abs(mixed))) @ C @ scale
    signed = sp.diags_array(np.sign(mixed)) @ lifted
    B = sp.csr_array(constraints.A @ scale)
    top = sp.diags_array(diagonal) + lifted.T @ signed
    corner = sp.diags_array(np.full(B.shape[0], -RIDGE))
    system = sp.block_array([[top, B.T], [B, corner]], format="csc")
    right = np.vstack([root[:, None] * rhs, np.zeros((B.shape[0], rhs.shape[1]))])
    factor = splu(system)
    found = factor.solve(right)
    found += factor.solve(right - system @ found)
    return np.asarray(root[:, None] * found[: len(tau)])

"""Odd sets: a point of the degree polytope proven to lie among the matchings, by one Cholesky."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import LinAlgError, cholesky
from scipy.sparse.csgraph import connected_components

from mlestruct.batch import Batch
from mlestruct.dual import Certificate, Dual
from mlestruct.entropy import Entropy
from mlestruct.inference.matching_values import tangent_value
from mlestruct.inference.scaling import Scaling, prepared
from mlestruct.structures.base import Array
from mlestruct.structures.bipartite import BipartiteMatching


def odd_set_proof(structure: Any, tau: Array) -> bool:
    """True only if τ, feasible for the degrees, is a mixture of the structure's matchings.

    An odd set S of k nodes with a cut (singles included) of at least one holds no violated
    inequality. The cut is at least k(1 − (k−1)τ_max), and at least α k(n−k)/n (perfect) or αk
    (partial) where no eigenvalue besides the constant's exceeds 1 − α: small sets pass by the
    first, large by the second once a Cholesky factor proves α. O(n³) per component, .2 s at
    n = 2,400. False means not proven, no more.
    """
    if isinstance(structure, BipartiteMatching) or structure.graph.sides is not None:
        return bool(structure.contains(tau))
    if not structure.contains(tau):
        return False
    perfect = structure.kind == "perfect"
    if structure.graph.complete:
        return _proven(_dense(structure.n_nodes, structure.ends, tau), perfect)
    ends = structure.ends[tau > 0]
    graph = sp.csr_array((tau[tau > 0], (ends[:, 0], ends[:, 1])), shape=(structure.n_nodes,) * 2)
    count, label = connected_components(graph, directed=False)
    for number in range(count):
        nodes = np.flatnonzero(label == number)
        part = graph[nodes][:, nodes].toarray()
        if not _proven(part + part.T, perfect):
            return False
    return True


def _dense(n: int, ends: Any, tau: Array) -> Array:
    table = np.zeros((n, n))
    table[ends[:, 0], ends[:, 1]] = tau
    table += table.T
    return table


def _proven(table: Array, perfect: bool) -> bool:
    """One component, its symmetric matrix of τ; the matrix is overwritten."""
    n = len(table)
    if perfect and n % 2:
        return False
    largest = float(table.max())
    # Sets of at most k nodes pass by size: the first odd size left is k + 2.
    k = int(np.floor(1.0 / max(largest, 1.0 / (n + 2)) + 1e-12))
    first = (k - 1 + k % 2) + 2
    if first > (n // 2 if perfect else n):
        return True
    alpha = n / (first * (n - first)) if perfect else 1.0 / first
    np.negative(table, out=table)
    table[np.diag_indices(n)] += 1.0 - alpha - 1e-11
    if perfect:
        table += 1.0 / n
    try:
        cholesky(table, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return False
    return True


def dual_certificate(dual: Dual, theta: Array, tau: Array, warm: Any) -> Certificate:
    """The certificate of (θ, τ) without an oracle call: node prices bound the tangent's maximum.

    Over all degree-feasible points; over the matchings' hull where :func:`odd_set_proof` passes
    for every τ, which it also says. ``warm`` is what inference at θ returned: for ρ ≤ ½ its dual
    is the bound, above that the tangent at τ. O(coordinates), and the odd sets' O(nodes³).
    At the message solution every perfect matching ties, and an oracle would take its worst time.
    """
    batch = dual.batch
    scores, rho = dual.scores(theta), _common(dual.entropy)
    for structure, members in batch.groups():
        if not structure.contains(batch.rows(tau, members), 1e-8).all():
            raise ValueError("tau is not feasible, so no gap would mean anything")
    if rho <= 0.5:
        upper = Scaling(rho).many(batch, scores, warm).log_z
    else:
        upper = _tangents(batch, scores, rho, tau, warm)
    hull = all(
        odd_set_proof(batch.structure(m), tau[batch.coordinates(m)]) for m in range(len(batch))
    )
    gaps = upper - dual.entropy.each(tau) - batch.totals(scores * tau)
    r = dual.residual(tau)
    bracket = dual.regulariser.value(theta) + dual.regulariser.conj(r) - float(theta @ r)
    return Certificate(
        float(batch.weight @ np.maximum(gaps, 0.0)) + bracket,
        0.0,
        dual.value(tau),
        "matchings" if hull else "degree polytope",
        str(dual.entropy.bound),
    )


def _tangents(batch: Batch[Any], scores: Array, rho: float, tau: Array, warm: Any) -> Array:
    """Every example's upper bound from the tangent beside τ and the node prices of inference."""
    upper = np.empty(len(batch))
    for number, (structure, members) in enumerate(batch.groups()):
        graph, centre = prepared(structure)
        asked = batch.rows(scores, members)
        score, live = graph.gather(asked), graph.gather(batch.rows(tau, members))
        s, y, spare = np.empty(graph.nodes), np.empty(graph.nodes), np.empty(graph.live)
        known, x = (graph.ptr, graph.head, graph.strict, rho), warm[number].x
        upper[members] = [
            tangent_value(score[m], *known, x[m], live[m], centre, s, y, spare)[1]
            for m in range(len(members))
        ]
        if graph.base is not None:
            upper[members] += asked @ graph.base
    return upper


def _common(entropy: Entropy) -> float:
    """The one ρ of all nodes."""
    rho = {float(counting[-1]) for counting in entropy.counting}
    if len(rho) != 1:
        raise ValueError(f"dual_certificate needs one rho for all examples, got {sorted(rho)}")
    return rho.pop()

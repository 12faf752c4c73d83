"""Tree-reweighted surrogate likelihood: by its dual with features, in closed form without."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mlestruct.learners.convex import Learner
from mlestruct.learners.mle_struct import mle_struct
from mlestruct.reweighting import Rho, counting_numbers
from mlestruct.structures import FactorGraph
from mlestruct.structures.base import Array


def trw(rho: Rho = None, **settings: Any) -> Learner:
    """Σ_m [⟨θ, φ_m⟩ − B_ρ(θ, x_m)] − R(θ), B_ρ the tree-reweighted bound on log Z.

    ``rho`` is a number, one per edge, or a name; the default is every edge's share of the uniform
    spanning trees, 1 on forests, where the bound is exact. With penalty λ_n‖θ‖² on a mean
    over M samples, ``regulariser`` is 2Mλ_n.
    """
    return replace(mle_struct(rho, **settings), name="trw")


@dataclass(frozen=True)
class Matched:
    """Scores whose surrogate marginals are ``mean``, up to a constant per table."""

    theta: Array
    mean: Array
    rho: Array
    log_likelihood: float
    """⟨θ, mean⟩ − B(θ) per sample; B(θ) is 0."""


def match_moments(
    graph: FactorGraph, mean: ArrayLike, rho: Rho = None, smoothing: float = 0.0
) -> Matched:
    """θ_s = log μ_s and θ_α = ρ_α log(μ_α / Π μ_s): the optimum without features or penalty.

    ``mean`` is a mean of outcomes, or marginals; ``smoothing`` ε replaces it by
    (1−ε)·mean + ε·uniform, and an entry 0 needs it. Where the entropy is not concave (ρ = 1 on
    several cycles) the marginals are only a stationary point of the surrogate.
    """
    mean = np.asarray(mean, dtype=float)
    if mean.shape != (graph.size,) or not graph.contains(mean, 1e-8):
        raise ValueError("the moments are no point of the graph's local polytope")
    if not 0 <= smoothing <= 1:
        raise ValueError(f"smoothing is {smoothing}; it must be in 0..1")
    sizes = np.bincount(graph.table_of).astype(float)
    mean = (1 - smoothing) * mean + smoothing / sizes[graph.table_of]
    if (mean <= 0).any():
        k = int(np.argmin(mean))
        raise ValueError(f"coordinate {k} has moment {mean[k]:g}: its score is −∞; use smoothing")
    weight = counting_numbers(graph, rho)[graph.n_nodes :]
    log: Array = np.log(mean)
    entry, node, _ = graph.below
    theta = log - np.bincount(entry, weights=log[node], minlength=graph.size)
    theta[graph.node_start[-1] :] *= np.repeat(weight, np.diff(graph.table_start))
    return Matched(theta, mean, weight, float(theta @ mean))

"""Joint estimation and prediction: latent labels seen through a Gaussian mixture."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mlestruct import Batch, Entropy, exact
from mlestruct.errors import ConvergenceWarning, outside
from mlestruct.inference import marginals
from mlestruct.inference.sum_product import SumProduct
from mlestruct.learners.tree_reweighted import Matched
from mlestruct.structures import FactorGraph
from mlestruct.structures.base import Array, as_numbers
from mlestruct.structures.entropy import Rho

NUDGE, LEFT = 1e-8, 1e-4  # a change of scores, and how far it may move marginals that are stable
TINY, HUGE = 1e-100, 1e100  # variances and log-likelihoods beyond leave floating point


@dataclass(frozen=True)
class Mixture:
    """Z | label j ~ N(ν_j, σ_j²), seen as Y = αZ + √(1−α²) W with W ~ N(0, 1); NaN is unseen.

    >>> Mixture(0.6, [-1.0, 1.0], [0.5, 0.5]).estimates([0.9]).round(4).tolist()
    [[-0.4512, 1.1098]]
    """

    alpha: float
    nu: ArrayLike
    sigma2: ArrayLike

    def __post_init__(self) -> None:
        nu, sigma2 = as_numbers(self.nu, "nu"), as_numbers(self.sigma2, "sigma2")
        as_numbers(self.alpha, "alpha")
        if not 0 <= self.alpha <= 1:
            raise ValueError(f"alpha is {self.alpha}; it must be in 0..1")
        if nu.ndim != 1 or nu.shape != sigma2.shape or len(nu) == 0:
            raise ValueError(f"nu and sigma2 need an entry per label, got {nu} and {sigma2}")
        wrong = np.flatnonzero(~(np.isfinite(nu) & np.isfinite(sigma2) & (sigma2 > 0)))
        if len(wrong):
            j = int(wrong[0])
            raise ValueError(f"label {j} has nu {nu[j]} and variance {sigma2[j]}; expected > 0")
        object.__setattr__(self, "nu", nu)
        object.__setattr__(self, "sigma2", sigma2)
        if self._spread.min() < TINY:
            raise ValueError(f"sigma2 is {sigma2}: what is seen of a value has no spread")

    @property
    def _spread(self) -> Array:
        """Var(Y | j)."""
        return np.asarray(self.alpha**2 * np.asarray(self.sigma2) + 1 - self.alpha**2)

    @property
    def omega(self) -> Array:
        """ω_j: how far an observation moves the estimate of Z."""
        return np.asarray(self.alpha * np.asarray(self.sigma2) / self._spread)

    def log_likelihood(self, y: ArrayLike) -> Array:
        """log p(y_s | j), (sites, labels); 0 at unseen sites."""
        off = as_numbers(y, "observations")[:, None] - self.alpha * np.asarray(self.nu)
        value = -0.5 * off**2 / self._spread - 0.5 * np.log(2 * np.pi * self._spread)
        return np.where(np.isnan(off), 0.0, value)

    def estimates(self, y: ArrayLike) -> Array:
        """E[Z_s | y_s, j] = ν_j + ω_j(y_s − αν_j), (sites, labels)."""
        nu = np.asarray(self.nu)
        off = as_numbers(y, "observations")[:, None] - self.alpha * nu
        return np.asarray(nu + self.omega * np.where(np.isnan(off), 0.0, off))


@dataclass(frozen=True)
class Prediction:
    """Labels' (pseudo-)marginals given the observations, and the estimate of every Z_s."""

    tau: Array
    labels: Array
    z: Array


def predict(
    graph: FactorGraph, theta: Array, mixture: Mixture, y: ArrayLike, rho: Rho = 1.0
) -> Prediction:
    """ẑ_s = Σ_j τ_s(j) E[Z_s | y_s, j], τ the surrogate's marginals at θ + log p(y | ·).

    Use the ``rho`` that θ was learned with: errors of learning and prediction then cancel. None
    is exact inference, by elimination.
    """
    check_mixture(graph, mixture)
    y = as_numbers(y, "observations")
    if np.isinf(y).any():
        raise ValueError(f"the observation of site {np.flatnonzero(np.isinf(y))[0]} is infinite")
    if np.shape(y) != (graph.n_nodes,):
        raise ValueError(
            f"observations have shape {np.shape(y)}; expected one of each of {graph.n_nodes} sites "
            "(NaN: unseen)"
        )
    score = np.array(theta, dtype=float)
    with np.errstate(over="ignore"):
        likelihood = mixture.log_likelihood(y)
    far = np.flatnonzero(~(np.abs(likelihood) <= HUGE).all(axis=1))
    if len(far):
        raise ValueError(f"the observation of site {far[0]} is {y[far[0]]:g}; no label explains it")
    score[: graph.node_start[-1]] += likelihood.ravel()
    tau = exact(graph, score).tau if rho is None else beliefs(graph, score, rho)
    labels = tau[: graph.node_start[-1]].reshape(graph.n_nodes, -1)
    return Prediction(tau, labels, (labels * mixture.estimates(y)).sum(axis=1))


def check_mixture(graph: FactorGraph, mixture: Mixture) -> None:
    """Every site has a label for each component."""
    states = len(np.asarray(mixture.nu))
    if (graph.cards != states).any():
        site = int((graph.cards != states).argmax())
        raise ValueError(f"site {site} has {graph.cards[site]} labels, the mixture {states}")


def beliefs(graph: FactorGraph, score: Array, rho: Rho) -> Array:
    """argmax ⟨score, τ⟩ + H_ρ(τ): by messages where they converge, else as :func:`marginals` does.

    A stationary point only where H is not concave; a :class:`ConvergenceWarning` where it is none.
    ρ = 0 is independent sites in closed form.
    """
    if _alone(rho):
        return independent(graph, score)
    batch: Batch[Any] = Batch.of(graph)
    entropy = Entropy.of(batch, rho, allow_nonconvex=True)
    found = SumProduct.of(entropy, takeover=False, residual=1e-12).many(batch, score)
    left = float(found.warm[graph].residual[0])
    if left <= 1e-10:
        return found.tau
    if entropy.concave:
        return marginals(batch, score, rho=rho).tau
    warnings.warn(
        f"messages have not converged: log-beliefs still move by {left:.1g}, and no proof is known "
        f"of an entropy that is not concave, as with rho={rho!r}; rho='trees' has one",
        ConvergenceWarning,
        stacklevel=outside(),
    )
    return found.tau


def strays(graph: FactorGraph, matched: Matched, rho: Rho) -> bool:
    """Whether messages leave the matched moments once scores are nudged; a warning says how far.

    The moments are a stationary point at their weights. Where the entropy is not concave it may
    be no maximum: messages go elsewhere then, and so does every prediction.
    """
    nudge = NUDGE * np.random.default_rng(0).standard_normal(graph.size)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # what they reach is judged here
        reached = beliefs(graph, matched.theta + nudge, rho)
    off = float(np.abs(reached - matched.mean)[: graph.node_start[-1]].max())
    if off <= LEFT:
        return False
    warnings.warn(
        f"the moments are a stationary point of the surrogate with rho={rho!r} at these weights, "
        f"and no maximum that holds: where nothing is seen, marginals are predicted up to "
        f"{off:.2g} away from them; rho='trees' has one maximum, the moments",
        ConvergenceWarning,
        stacklevel=outside(),
    )
    return True


def _alone(rho: Rho) -> bool:
    return isinstance(rho, float | int) and rho == 0


def independent(graph: FactorGraph, score: Array) -> Array:
    """Sites by their own scores, factor tables their products."""
    tau = np.zeros(graph.size)
    first = graph.node_start[-1]
    top = np.maximum.reduceat(score[:first], graph.node_start[:-1])
    tau[:first] = np.exp(score[:first] - np.repeat(top, graph.cards))
    tau[:first] /= np.repeat(np.add.reduceat(tau[:first], graph.node_start[:-1]), graph.cards)
    entry, node, _ = graph.below
    log = np.log(np.maximum(tau, 1e-300))
    product = np.bincount(entry, weights=log[node], minlength=graph.size)
    tau[first:] = np.exp(product[first:])
    return tau

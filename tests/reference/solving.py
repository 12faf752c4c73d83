"""Convex problems of reference cases, solved by Frank-Wolfe and certified by the oracle."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mlestruct.features import Dense, Features
from mlestruct.inference.exact import exact, outcomes
from mlestruct.learning.dual import Dual, certificate
from mlestruct.learning.frank_wolfe import FrankWolfe
from mlestruct.learning.regulariser import Regulariser
from mlestruct.oracle import Validated, resolve
from mlestruct.structures import BipartiteMatching, FactorGraph, Matching, Structure
from mlestruct.structures.base import Array
from mlestruct.structures.batch import Batch
from mlestruct.structures.entropy import Entropy
from tests.reference.bethe_vertex import is_bethe_vertex
from tests.reference.cases import Place
from tests.reference.core import Got
from tests.reference.newton import polish

TIGHT = 1e-12
FIRST, ROUNDS = 25, 400
CERTIFIED, NEAR = 1e-11, 1e-8


@dataclass(frozen=True)
class Solved:
    """τ, θ and the objective of a dual, with the gap that bounds its error."""

    dual: Dual
    tau: Array
    theta: Array
    objective: float
    gap: float
    proven: bool

    @property
    def theta_within(self) -> float:
        """‖θ − θ*‖ ≤ √(2·gap/λ)."""
        return float(np.sqrt(2 * self.gap / self.dual.regulariser.lam.min()))

    @property
    def tau_within(self) -> float:
        """‖τ − τ*‖ ≲ √(2·gap): −H is about 1-strongly convex where views are probabilities."""
        return float(np.sqrt(2 * self.gap)) if self.proven else 0.0

    @property
    def note(self) -> str:
        if self.proven:
            return f"within gap {self.gap:.1e}"
        return f"stationary to {self.gap:.1e}; not concave, so no certificate"

    def value(self, place: Place, value: float) -> Got:
        """A value of the objective, or of anything between it and its bound."""
        return Got(place, value, self.gap if self.proven else 0.0, self.note)

    def weights(self, place: Place) -> Got:
        return Got(place, self.theta, self.theta_within if self.proven else 0.0, self.note)

    def point(self, place: Place, shape: tuple[int, ...]) -> Got:
        return Got(place, self.tau.reshape(shape), self.tau_within, self.note)


def oracle_for(batch: Batch[Any], oracle: Any = None) -> Validated:
    """The named oracle; the structure's own, or an LP where a graph has cycles."""
    if oracle is None and isinstance(batch.structures[0], FactorGraph):
        forest = all(structure.is_forest for structure in batch.structures)
        oracle = "viterbi" if forest else "linear_program"
    return Validated(resolve(oracle, batch))


def solve(dual: Dual, oracle: Any = None) -> Solved:
    """Frank-Wolfe, then Newton from its end; more of both where that left a gap. All certified.

    Newton keeps the structure's equalities only, so a general graph's hull of matchings, which has
    odd-set inequalities besides, is left to Frank-Wolfe: outside the hull no gap means anything.
    """
    asked = oracle_for(dual.batch, oracle)
    newton = oracle == "linear_program" or not isinstance(dual.batch.structures[0], Matching)
    found: list[Solved] = []
    for tol, rounds in ((1e-6, FIRST), (TIGHT, ROUNDS)):
        tau = FrankWolfe(tol=tol, rounds=rounds).solve(dual, asked).tau.copy()
        found.append(_certified(dual, asked, tau))
        if newton:
            found.append(_certified(dual, asked, polish(dual, tau)))
        if not _enough(found) and _is_exact(dual):
            found.append(_by_outcomes(dual))
        if not _enough(found):
            found += _at_vertex(dual, asked)
        if _enough(found):
            break
    return min(found, key=lambda solved: solved.gap)


def polished(dual: Dual, start: Array) -> Solved:
    """Newton from a point near the optimum; the long way where that does not end in an optimum."""
    asked = oracle_for(dual.batch)
    middle = dual.batch.structures[0].interior()
    for share in (0.0, 0.5, 1.0) if middle is not None else (0.0,):
        from_here = start if middle is None else (1 - share) * start + share * middle
        near = _certified(dual, asked, polish(dual, from_here))
        if near.gap <= NEAR * max(1.0, abs(near.objective)):
            return near
    return solve(dual)


def _enough(found: list[Solved]) -> bool:
    return any(one.gap <= CERTIFIED * max(1.0, abs(one.objective)) for one in found)


def _is_exact(dual: Dual) -> bool:
    """On forests at ρ = 1 the surrogate is the likelihood, at any temperature."""
    graphs = dual.batch.structures
    forests = all(isinstance(graph, FactorGraph) and graph.is_forest for graph in graphs)
    return forests and _plain_bethe(dual)


def _plain_bethe(dual: Dual) -> bool:
    rho = dual.entropy.rho
    return rho is not None and not callable(rho) and bool((np.asarray(rho) == 1.0).all())


def _at_vertex(dual: Dual, asked: Validated) -> list[Solved]:
    """The best permutation, where it is the Bethe optimum and a gradient cannot show it."""
    batch, structure = dual.batch, dual.batch.structures[0]
    bipartite = isinstance(structure, BipartiteMatching) and structure.kind == "perfect"
    if not bipartite or len(batch) > 1 or dual.features.d or not _plain_bethe(dual):
        return []
    vertex, _ = asked.many(batch, batch.bias)
    if not is_bethe_vertex(structure, batch.bias, vertex):
        return []
    return [Solved(dual, vertex, np.zeros(0), dual.value(vertex), 0.0, True)]


def _by_outcomes(dual: Dual) -> Solved:
    """Newton in θ over listed outcomes: low temperatures leave Newton in τ no digits."""
    batch, temperature = dual.batch, float(dual.entropy.a.max())
    theta = np.zeros(0)
    if dual.features.d:
        lam = float(dual.regulariser.lam[0])
        theta = maximum_likelihood(batch, dual.features, lam, temperature)[1]
    score = dual.scores(theta) / temperature
    parts = [exact(batch.structure(m), score[batch.coordinates(m)]) for m in range(len(batch))]
    tau = np.concatenate([part.tau for part in parts])
    likelihood = float(theta @ dual.observed) - dual.regulariser.value(theta)
    likelihood -= temperature * sum(part.log_z for part in parts)
    likelihood -= 0.0 if batch.constant is None else float(batch.constant.sum())
    gap = abs(dual.value(tau) - likelihood)  # the optimum lies between the two
    return Solved(dual, tau, theta, dual.value(tau), gap, True)


def _certified(dual: Dual, asked: Validated, tau: Array) -> Solved:
    theta = dual.theta(tau)
    proof = certificate(dual, asked, theta, tau)
    gap = max(proof.gap, 0.0) if np.isfinite(proof.gap) else float("inf")
    return Solved(dual, tau, theta, dual.value(tau), gap, dual.entropy.concave)


def entropy_of(batch: Batch[Any], rho: Any, temperature: float = 1.0) -> Entropy:
    """Non-concave entropies too: their stored value is the one that every restart reaches."""
    return Entropy.of(batch, rho, temperature=temperature, allow_nonconvex=True)


def infer(structure: Structure, score: ArrayLike, rho: Any, oracle: Any = None) -> Solved:
    """max ⟨score, τ⟩ + H_ρ(τ) over the oracle's polytope; log Z is minus the objective."""
    return solve(inference_dual(structure, score, rho), oracle)


def infer_many(batch: Batch[Any], scores: Array, rho: Any, oracle: Any = None) -> Solved:
    """The same for every example at once; minus the objective is the sum of their log Z."""
    return solve(_without_weights(replace(batch, target=None, bias=scores), rho), oracle)


def inference_dual(structure: Structure, score: ArrayLike, rho: Any) -> Dual:
    """The dual without weights whose bias is the score."""
    return _without_weights(Batch.of(structure, bias=np.asarray(score, dtype=float)), rho)


def _without_weights(batch: Batch[Any], rho: Any) -> Dual:
    nothing = Dense(np.zeros((batch.size, 0)), batch.offsets)
    return Dual(batch, nothing, entropy_of(batch, rho), Regulariser.of(0))


def learn(
    batch: Batch[Any], features: Features, rho: Any, lam: float, oracle: Any = None
) -> Solved:
    """The dual of MLE-Struct; the surrogate log-likelihood at its optimum is the objective."""
    return solve(learning_dual(batch, features, rho, lam), oracle)


def learning_dual(batch: Batch[Any], features: Features, rho: Any, lam: float) -> Dual:
    return Dual(batch, features, entropy_of(batch, rho), Regulariser.of(features.d, lam))


def observed(batch: Batch[Any], features: Features) -> Array:
    assert batch.target is not None
    return features.moments(batch.target)


def log_likelihood(batch: Batch[Any], features: Features, lam: float, theta: Array) -> float:
    """Σ [⟨θ, φ⟩ − log Z] − (λ/2)‖θ‖², exactly."""
    scores = features.potentials(theta) + batch.bias
    log_z = sum(
        exact(batch.structure(m), scores[batch.coordinates(m)]).log_z for m in range(len(batch))
    )
    return float(theta @ observed(batch, features) - log_z - lam / 2 * (theta @ theta))


def maximum_likelihood(
    batch: Batch[Any], features: Features, lam: float, temperature: float = 1.0
) -> tuple[float, Array]:
    """Newton on Σ [⟨θ, φ⟩ − T log Σ exp((bias + ⟨θ, φ(y)⟩)/T)] − (λ/2)‖θ‖² by listed outcomes."""
    tables = list(_outcome_features(batch, features))
    seen, theta = observed(batch, features), np.zeros(features.d)

    def value(at: Array) -> float:
        log_z = sum(_moments(rows, bias, at, temperature)[0] for rows, bias in tables)
        return float(at @ seen - log_z - lam / 2 * (at @ at))

    for _ in range(100):
        parts = [_moments(rows, bias, theta, temperature) for rows, bias in tables]
        slope = seen - sum(mean for _, mean, _ in parts) - lam * theta
        curvature = sum(spread for _, _, spread in parts) + lam * np.eye(len(theta))
        step = np.linalg.solve(curvature, slope)
        decrement = float(step @ slope)
        here, gamma = value(theta), 1.0
        while gamma > 1e-9 and value(theta + gamma * step) < here - 1e-13 * abs(here):
            gamma /= 2
        theta = theta + gamma * step
        if decrement < 1e-28:
            break
    return value(theta), theta


def _outcome_features(batch: Batch[Any], features: Features) -> Iterator[tuple[Array, Array]]:
    columns = np.array([features.potentials(e) for e in np.eye(features.d)]).T
    for m in range(len(batch)):
        listed, part = outcomes(batch.structure(m)), batch.coordinates(m)
        yield listed @ columns[part], listed @ batch.bias[part]


def _moments(rows: Array, bias: Array, theta: Array, temperature: float) -> tuple[float, Any, Any]:
    total = (rows @ theta + bias) / temperature
    top = total.max()
    p = np.exp(total - top)
    log_z = temperature * float(top + np.log(p.sum()))
    p /= p.sum()
    mean = p @ rows
    return log_z, mean, ((rows - mean).T * (p / temperature)) @ (rows - mean)

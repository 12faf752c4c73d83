"""Predictions: MAP by one oracle call, marginals by messages or Frank-Wolfe, both proven."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mlestruct.batch import Batch
from mlestruct.dual import Certificate, Dual, block_gaps, interior
from mlestruct.entropy import Entropy
from mlestruct.features import NoFeatures
from mlestruct.frank_wolfe import FrankWolfe
from mlestruct.inference.messages import routine
from mlestruct.oracle import Oracle, Validated, resolve
from mlestruct.regulariser import Regulariser
from mlestruct.reweighting import Rho
from mlestruct.structures.base import Array, Bound

AnyOracle = Oracle[Any] | Callable[..., Any] | str | None


@dataclass(frozen=True)
class Marginals:
    """(Pseudo-)probabilities of every coordinate, and an interval for each surrogate log Z.

    ``lower[m] ≤ max ⟨score, τ⟩ + H(τ) ≤ upper[m]``; ``bound`` says what that maximum is to the
    exact log Z. The probabilities are exact only where ``bound.kind`` is ``exact``.
    """

    tau: Array
    lower: Array
    upper: Array
    bound: Bound
    certificate: Certificate


def best(
    batch: Batch[Any], scores: ArrayLike, oracle: AnyOracle = None
) -> tuple[list[Any], Array, Array]:
    """Most probable outcomes, their scores, and bounds on the best scores."""
    scores = _flat(batch, scores)
    vertices, upper = Validated(resolve(oracle, batch)).many(batch, scores)
    outcomes = [
        batch.structure(m).decode(vertices[batch.coordinates(m)]) for m in range(len(batch))
    ]
    reached = batch.totals(np.where(vertices != 0, scores, 0.0) * vertices)
    return outcomes, reached, upper


def marginals(
    batch: Batch[Any],
    scores: ArrayLike,
    oracle: AnyOracle = None,
    *,
    rho: Rho = None,
    temperature: float = 1.0,
    solver: FrankWolfe | None = None,
) -> Marginals:
    """Maximise ⟨score, τ⟩ + T·H(τ) per example, and prove how close it came.

    Directly where messages exist (and no oracle is given), else by Frank-Wolfe: the dual with no
    features and the score as bias, one oracle call per example and round. The proof is one more
    oracle call per example.
    """
    asked, scores = Validated(resolve(oracle, batch)), _flat(batch, scores)
    if (~np.isfinite(scores)).any():
        k = int(np.flatnonzero(~np.isfinite(scores))[0])
        raise ValueError(f"example {batch.owner[k]}: score of a coordinate is {scores[k]}")
    plain = replace(batch, bias=scores, target=None, constant=None)
    entropy = Entropy.of(plain, rho, temperature=temperature)
    dual = Dual(plain, NoFeatures(plain.size, len(plain)), entropy, Regulariser.of(0))
    inner = interior(plain, asked, entropy)
    messages = routine(entropy) if oracle is None and solver is None else None
    if messages is None:
        solver = FrankWolfe(tol=1e-4) if solver is None else solver
        last = solver.solve(dual, asked)
        point, at = last.tau, last.at  # the tangent the run was certified by
    else:
        point, at = inner.pull(messages.many(plain, plain.bias)[1]), None
    dual = replace(dual, entropy=inner.entropy)
    gaps, slack = block_gaps(dual, asked, np.zeros(0), point, at)
    value = inner.entropy.each(point) + plain.totals(plain.bias * point)
    if inner.withheld is not None:
        gaps = np.full_like(gaps, np.inf)
    proof = Certificate(
        float(plain.weight @ gaps),
        float(plain.weight @ slack),
        dual.value(point),
        asked.polytope,
        str(entropy.bound),
        inner.withheld,
        inner.unused,
    )
    return Marginals(point.copy(), value, value + gaps, entropy.bound, proof)


def _flat(batch: Batch[Any], scores: ArrayLike) -> Array:
    flat = np.asarray(scores, dtype=float).reshape(-1)
    if flat.shape != (batch.size,):
        raise ValueError(f"{len(flat)} scores for {batch.size} coordinates")
    return flat

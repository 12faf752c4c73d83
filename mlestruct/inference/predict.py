"""Predictions: MAP by one oracle call, marginals by messages or Frank-Wolfe, both proven."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mlestruct.batch import Batch
from mlestruct.dual import Certificate, Dual, Interior, block_gaps, interior
from mlestruct.entropy import Entropy
from mlestruct.features import NoFeatures
from mlestruct.frank_wolfe import FrankWolfe
from mlestruct.inference.graph.sum_product import SumProduct
from mlestruct.inference.hull import degree_gaps, hull_gaps, into_hull, relaxed
from mlestruct.inference.message_proof import LOCAL, message_gaps
from mlestruct.inference.messages import Messages, routine
from mlestruct.inference.scores import as_finite_scores
from mlestruct.oracle import Oracle, Validated, resolve
from mlestruct.regulariser import Regulariser
from mlestruct.reweighting import Rho
from mlestruct.structures.base import Array, Bound

AnyOracle = Oracle[Any] | Callable[..., Any] | str | None
TOL = 1e-4  # relative; Frank-Wolfe stops there
TIGHT = 1e-8  # relative; messages whose own bound is this tight need no oracle


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
    scores = as_finite_scores(batch, scores)
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
    oracle call per example; on matchings of general graphs, node prices and odd sets.
    """
    asked, scores = Validated(resolve(oracle, batch)), as_finite_scores(batch, scores)
    plain = replace(batch, bias=scores, target=None, constant=None)
    entropy = Entropy.of(plain, rho, temperature=temperature)
    dual = Dual(plain, NoFeatures(plain.size, len(plain)), entropy, Regulariser.of(0))
    inner = interior(plain, asked, entropy)
    messages = routine(entropy) if oracle is None and solver is None else None
    if messages is None:
        found = _searched(dual, asked, inner, solver or FrankWolfe(tol=TOL))
    else:
        found = _direct(dual, asked, inner, messages)
    if inner.withheld is not None:
        found = found._replace(gaps=np.full_like(found.gaps, np.inf))
    value = inner.entropy.each(found.tau) + plain.totals(plain.bias * found.tau)
    proof = Certificate(
        float(plain.weight @ found.gaps),
        float(plain.weight @ found.slack),
        dual.value(found.tau),
        found.polytope,
        str(entropy.bound),
        inner.withheld,
        inner.unused,
    )
    return Marginals(found.tau.copy(), value, value + found.gaps, entropy.bound, proof)


class _Found(NamedTuple):
    """A feasible τ with every example's gap, the part due to the oracle, and over what polytope."""

    tau: Array
    gaps: Array
    slack: Array
    polytope: str


def _searched(
    dual: Dual, oracle: Oracle[Any], inner: Interior, solver: FrankWolfe, start: Array | None = None
) -> _Found:
    """By Frank-Wolfe, whose τ is a mixture of answers; certified by its own last tangent."""
    last = solver.solve(dual, oracle, start)
    dual = replace(dual, entropy=inner.entropy)
    gaps = block_gaps(dual, oracle, np.zeros(0), last.tau, last.at, mixture=True)
    return _Found(last.tau, *gaps, oracle.polytope)


def _direct(dual: Dual, oracle: Oracle[Any], inner: Interior, messages: Messages) -> _Found:
    """By messages; where odd sets cut their τ off, by Frank-Wolfe from a mixture near it."""
    _, tau, warm = messages.many(dual.batch, dual.batch.bias)
    known, none = replace(dual, entropy=inner.entropy), np.zeros(0)
    if not relaxed(dual.batch, oracle):
        point = inner.pull(tau)
        if not isinstance(messages, SumProduct):
            proof = degree_gaps(known, oracle, none, point, warm, messages)
            return _Found(point, *proof, oracle.polytope)
        own = message_gaps(known, messages, none, point, warm)
        if float(dual.batch.weight @ own) <= TIGHT * max(1.0, abs(dual.value(point))):
            return _Found(point, own, np.zeros_like(own), LOCAL)
        gaps, slack = block_gaps(known, oracle, none, point)
        gaps, slack = np.minimum(gaps, own), np.where(own < gaps, 0.0, slack)
        return _Found(point, gaps, slack, oracle.polytope)
    point = inner.pull(into_hull(dual.batch, tau, inner.tau))
    enough = TOL * max(1.0, abs(dual.value(point)))
    gaps, slack, polytope = hull_gaps(known, oracle, none, point, warm, 1e-3 * enough)
    if float(dual.batch.weight @ gaps) > enough:
        return _searched(dual, oracle, inner, FrankWolfe(tol=TOL), point)
    return _Found(point, gaps, slack, polytope)


def unproven(tau: Array, examples: int, why: str) -> Marginals:
    """Beliefs that no theorem bounds anything with."""
    proof = Certificate(np.inf, 0.0, np.nan, "none", "none", why)
    open_ = np.full(examples, np.inf)
    return Marginals(tau, -open_, open_, Bound("none", why), proof)

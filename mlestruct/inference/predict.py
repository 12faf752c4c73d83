"""Predictions: MAP by one oracle call, marginals by messages or Frank-Wolfe, both proven."""

from __future__ import annotations

import warnings
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mlestruct import limits
from mlestruct.errors import ConvergenceWarning, Infeasible, counting_from, outside
from mlestruct.features import Dense
from mlestruct.features.base import levelled_scores
from mlestruct.inference.decoding import decode
from mlestruct.inference.proof import DEGREES, Inferred, infer, products, relaxed
from mlestruct.inference.routine import routine
from mlestruct.learning.dual import Certificate, Dual, interior, tangent_gaps
from mlestruct.learning.frank_wolfe import FrankWolfe
from mlestruct.learning.regulariser import Regulariser
from mlestruct.oracle import Oracle, Validated, resolve
from mlestruct.oracle.registry import AnyOracle
from mlestruct.structures.base import Array, Bound, Ints
from mlestruct.structures.batch import Batch, as_finite_scores, spans
from mlestruct.structures.entropy import Entropy, Rho

TOL = 1e-4  # relative; Frank-Wolfe stops there
NAT = 1e-3  # what may be missing of an example's value without a word
SURE = 1e-9  # what may be missing where a limit of time has cut nothing that counts
ROUNDS = 2000  # of looking once more
LARGE = 1e2  # scores from which it matters what they are counted from
TIGHT = 1e-8  # of max(1, |log Z|): a routine's own bound as tight as this needs no oracle


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
    """Most probable outcomes, their own scores and bounds on the best: see :func:`decode`."""
    found = decode(batch, scores, oracle)
    return found.outcomes, found.scores, found.upper


def marginals(
    batch: Batch[Any],
    scores: ArrayLike,
    oracle: AnyOracle = None,
    *,
    rho: Rho = None,
    temperature: float = 1.0,
    solver: FrankWolfe | None = None,
    route: str = "auto",
    max_seconds: float | None = None,
) -> Marginals:
    """Maximise ⟨score, τ⟩ + T·H(τ) per example, and prove how close it came.

    By the routine that serves the entropy (``auto``: unless an oracle or solver is given), else by
    Frank-Wolfe: the dual with no features and the score as bias, one oracle call per example and
    round. Where no routine serves all structures, each goes by the one that serves it.
    :mod:`mlestruct.inference.proof` says what proves it. Without a ``solver``,
    examples not proven to a thousandth of a nat are computed again by Frank-Wolfe, and a
    :class:`ConvergenceWarning` counts those still not proven; a ``solver`` has its own tolerance.

    After ``max_seconds`` the answer is what was found so far, with one warning: lower and upper
    hold the maximum as ever, further apart. Examples that were not reached have the values of a
    start; where only a solver of your own knows a feasible point and was not asked, they have NaN
    for τ, and nothing is known of their log Z.
    """
    with limits.limited(max_seconds, "marginals"):
        asked, scores = Validated(resolve(oracle, batch)), as_finite_scores(batch, scores)
        plain = replace(batch, bias=scores, target=None, constant=None)
        entropy = Entropy.of(plain, rho, temperature=temperature)
        named = oracle is not None or solver is not None
        alone = route == "frank_wolfe" or (route == "auto" and named)
        found = (_searched if alone else _served)(plain, entropy, asked, solver)
        gaps = found.upper - found.lower
        if limits.cut() or (solver is None and not (gaps <= NAT).all()):
            tell(gaps, found.withheld)
        bound = entropy.bound
        if bound.kind == "exact" and not found.summed:
            # The gap is a Kullback-Leibler divergence: half's root bounds the total variation.
            off = min(float(np.sqrt(gaps.max(initial=0.0) / 2.0)), 1.0)
            why = f"{bound.why}; searched for, so probabilities are within ±{off:.2g}"
            bound = Bound("upper", why)
        proof = found.certificate(plain, -float(plain.weight @ found.lower), entropy.bound)
        return Marginals(found.tau.copy(), found.lower, found.upper, bound, proof)


def _served(
    batch: Batch[Any], entropy: Entropy, oracle: Oracle[Any], solver: FrankWolfe | None
) -> Inferred:
    """By a routine, else by Frank-Wolfe, whatever the examples beside one go by.

    Where odd sets cut a routine's τ off, Frank-Wolfe goes on from a mixture near it; of graphs too
    large to search for odd sets the routine's answer is kept.
    """
    if (by := routine(entropy)) is not None:
        odd, by = relaxed(batch, oracle), by.over(oracle.polytope)
        tight = 1e-3 * TOL if odd else TIGHT
        try:
            found = infer(batch, entropy, oracle, by, batch.bias, relative=tight)
        except Infeasible:
            oracle.many(batch, batch.bias)  # a solver's own words name the nodes at fault
            raise
        far = odd and found.polytope != DEGREES and not (found.upper - found.lower <= NAT).all()
        if far and not limits.late():
            return _tightest(batch, found, _searched(batch, entropy, oracle, None, found.tau))
        return found
    groups = [members for _, members in batch.groups()]
    served = [
        members
        for members in groups
        if len(groups) > 1 and routine(entropy.select(batch.select(members[:1]), members[:1]))
    ]
    if not served:
        return _searched(batch, entropy, oracle, solver)
    left = np.setdiff1d(np.arange(len(batch)), np.concatenate(served))
    lower, upper, slack = np.empty((3, len(batch)))
    whole, each = Inferred(np.empty(batch.size), lower, upper, slack, ""), list[Inferred]()
    for members in [*served, left] if len(left) else served:
        part = batch.select(members)
        with counting_from(members.tolist()):
            found = _served(part, entropy.select(part, members), oracle, solver)
        _put(whole, batch, members, found)
        each.append(found)
    return whole._replace(
        polytope=" / ".join(dict.fromkeys(found.polytope for found in each)),
        withheld=next((found.withheld for found in each if found.withheld), None),
        unused=sum(found.unused for found in each),
        summed=all(found.summed for found in each),
    )


def _put(whole: Inferred, batch: Batch[Any], members: Ints, part: Inferred) -> None:
    """Write what was found of some examples to their places."""
    whole.tau[spans(batch.offsets, members)] = part.tau
    for numbers, found in zip(whole[1:4], part[1:4], strict=True):
        numbers[members] = found


def _tightest(batch: Batch[Any], held: Inferred, other: Inferred) -> Inferred:
    """Of two answers every example's larger value with its τ, and its smaller bound."""
    if other.withheld is not None:
        return held
    higher, tighter = other.lower > held.lower, other.upper < held.upper
    lower = np.where(higher, other.lower, held.lower)
    return held._replace(
        tau=np.where(higher[batch.owner], other.tau, held.tau),
        lower=lower,
        upper=np.maximum(np.where(tighter, other.upper, held.upper), lower),
        slack=np.where(tighter, other.slack, held.slack),
    )


def tell(gaps: Array, withheld: str | None) -> None:
    """A warning where answers may be further from the maximum than ``NAT``.

    Where a limit of time was the reason, its own warning says it.
    """
    far = gaps[~(gaps <= NAT)]
    if not len(far):
        if (gaps <= SURE).all():
            limits.forgive()
        return
    why = withheld or f"at most {np.nan_to_num(far, nan=np.inf).max():.2g} nats are missing"
    told = f"{len(far)} of {len(gaps)} examples are not proven to {NAT:g} nats ({why})"
    if not limits.note(told):
        warnings.warn(
            f"marginals: {told}; an exact inference or scores of smaller size would be",
            ConvergenceWarning,
            stacklevel=outside(),
        )


def _searched(
    batch: Batch[Any],
    entropy: Entropy,
    oracle: Oracle[Any],
    solver: FrankWolfe | None,
    start: Array | None = None,
) -> Inferred:
    """By Frank-Wolfe; without a ``solver`` once more where the proof leaves more than ``NAT``."""
    found = _search(batch, entropy, oracle, solver or FrankWolfe(tol=TOL), start)
    gaps = found.upper - found.lower
    far = np.flatnonzero((gaps > NAT) & np.isfinite(gaps))
    if solver is not None or not len(far) or limits.late():
        return found
    part, flat = batch.select(far), spans(batch.offsets, far)
    lower, upper, slack = (numbers[far] for numbers in found[1:4])
    held = Inferred(found.tau[flat], lower, upper, slack, found.polytope)
    size = max(1.0, abs(float(part.weight @ held.lower)))
    tight = FrankWolfe(rounds=ROUNDS, tol=0.5 * NAT * float(part.weight.sum()) / size)
    again = _search(part, entropy.select(part, far), oracle, tight, held.tau)
    nearer = deepcopy(found)
    _put(nearer, batch, far, _tightest(part, held, again))
    return nearer


def _search(
    batch: Batch[Any], entropy: Entropy, oracle: Oracle[Any], by: FrankWolfe, start: Array | None
) -> Inferred:
    """By Frank-Wolfe, whose τ is a mixture of answers; certified by its own last tangent.

    It stops at a share of the value, so scores are asked without what all outcomes add to it. Where
    there was no time for any question a feasible τ is known, and no bound above.
    """
    inner = interior(batch, oracle, entropy, late=limits.late)
    tau, asked = inner.tau if start is None else inner.pull(start), batch
    slack, gaps, withheld = np.zeros(len(batch)), np.full(len(batch), np.inf), inner.withheld
    try:
        limits.check()
        if np.abs(batch.bias).max(initial=0.0) > LARGE:
            asked = replace(batch, bias=levelled_scores(batch, batch.bias))
        dual = Dual(
            asked, Dense(np.zeros((batch.size, 0)), batch.offsets), entropy, Regulariser.of(0)
        )
        last = by.solve(dual, oracle, start, inner=inner)
        tau, total = last.tau, last.certificate.gap  # the gaps of all examples add up to it
        np.divide(total, batch.weight, out=gaps, where=batch.weight > 0)
        gaps, slack = tangent_gaps(
            asked, inner.entropy, oracle, asked.bias, tau, last.at, mixture=True
        )
    except limits.OutOfTime:
        if np.isinf(gaps).all():
            withheld = withheld or "max_seconds ran out before every example was asked about once"
    lower = inner.entropy.each(tau) + batch.totals(products(batch.bias, tau))
    lower = np.where(np.isnan(lower), -np.inf, lower)
    upper = lower + gaps if withheld is None else np.full_like(lower, np.inf)
    return Inferred(tau, lower, upper, slack, oracle.polytope, withheld, inner.unused)


def unproven(tau: Array, examples: int, why: str) -> Marginals:
    """Beliefs that no theorem bounds anything with."""
    proof = Certificate(np.inf, 0.0, np.nan, "none", "none", why)
    open_ = np.full(examples, np.inf)
    return Marginals(tau, -open_, open_, Bound("none", why), proof)

"""What the direct route reached, proven where the examples live: every shard proves its part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from mlestruct.batch import Batch
from mlestruct.dual import Certificate, Dual
from mlestruct.engine import Running
from mlestruct.entropy import Entropy
from mlestruct.features import Features
from mlestruct.inference.proof import infer, products
from mlestruct.inference.routine import Routine
from mlestruct.objectives import Head, Surrogate
from mlestruct.objectives.base import Share
from mlestruct.oracle import Oracle
from mlestruct.regulariser import Regulariser
from mlestruct.structures.base import Array, Ints

TURNS, LESS = 30, 0.95  # of the oracle, each of which leaves at most this of what moments lack


class Prove(NamedTuple):
    """Asks for a shard's part of the certificate at θ, and for its τ.

    ``enough`` is the gap per example at which no costlier proof is looked for. ``excess``, of
    every example's moments beyond those that make θ optimal, is first to be taken from τ, where
    each of them counts 1/``lam``.
    """

    theta: Array
    enough: float
    excess: Array | None
    lam: Array


class Proof(NamedTuple):
    """A shard's part of a certificate. ``missing`` is Σ w_m (φ_m − Φ_mᵀτ_m).

    ``moved``: odd sets kept τ from where inference had it.
    """

    part: Certificate
    missing: Array
    examples: int
    moved: bool
    tau: Array


class Proven(NamedTuple):
    """What a fit's end proves: its certificate, whether odd sets ``moved`` any τ, all shards' τ.

    ``left`` is what is left of the relative gap, where the certificate does not say; ``own`` is
    the learner's.
    """

    certificate: Certificate
    moved: bool
    tau: list[Array]
    left: float | None = None
    own: Any = None


@dataclass(frozen=True)
class Proving:
    """Proves what a routine finds on a shard's examples, the cheapest way first."""

    entropy: Entropy
    oracle: Oracle[Any]
    routine: Routine

    def of(self, batch: Batch[Any], members: Ints) -> Proving:
        """For some of the examples, which ``batch`` holds."""
        return replace(self, entropy=self.entropy.select(batch, members))

    def __call__(
        self, asked: Prove, batch: Batch[Any], heads: Mapping[str, Head], warm: Any
    ) -> Proof:
        """The examples' part of the certificate, by inference that starts from ``warm``."""
        features, entropy = heads["score"].features, self.entropy
        weighed, enough = features.potentials(asked.theta), asked.enough * len(batch)
        scores = weighed + batch.bias
        found = infer(batch, entropy, self.oracle, self.routine, scores, warm, enough)
        if asked.excess is not None and found.withheld is None:
            left = asked.excess * len(batch)
            tau = _balanced(batch, features, self.oracle, found.tau, left, asked.lam)
            value = entropy.each(tau) + batch.totals(scores * tau)
            found = found._replace(tau=tau, lower=np.minimum(value, found.upper))
        energy = found.lower - batch.totals(products(weighed, found.tau))
        if batch.constant is not None:
            energy = energy + batch.constant
        part = found.certificate(batch, -float(batch.weight @ energy), entropy.bound)
        missing = Dual(batch, features, entropy, Regulariser.of(0)).residual(found.tau)
        return Proof(part, missing, len(batch), found.moved, found.tau)


def _balanced(
    batch: Batch[Any], features: Features, oracle: Oracle[Any], tau: Array, left: Array, lam: Array
) -> Array:
    """τ moved along the oracle's answers until its moments lack nothing of what is ``left``.

    A column of 1e9 has them off by what no digit of log Z shows; that little of an answer costs
    τ nothing.
    """
    for _ in range(TURNS):
        vertex, _ = oracle.many(batch, features.potentials(left / lam))
        move = features.moments((vertex - tau) * batch.weights)
        size = float(move @ (move / lam))
        step = min(max(float(left @ (move / lam)) / size, 0.0), 1.0) if size > 0 else 0.0
        rest = left - step * move
        if not float(rest @ (rest / lam)) <= LESS * float(left @ (left / lam)):
            break
        tau, left = tau + step * (vertex - tau), rest
    return tau


def likelihood(dual: Dual, routine: Routine, oracle: Oracle[Any] | None = None) -> Share:
    """The surrogate likelihood of all examples as one; with an ``oracle`` it can be proven."""
    heads = {"score": Head(dual.features, dual.batch.bias)}
    proves = None if oracle is None else Proving(dual.entropy, oracle, routine)
    return Share.whole(Surrogate(routine), dual.batch, heads, proves)


def proven(
    running: Running,
    regulariser: Regulariser,
    theta: Array,
    enough: float,
    *,
    balance: bool = True,
    excess: Array | None = None,
) -> Proven:
    """What is proven at θ, and the τ of all shards.

    Every shard climbs its own ladder of proofs; ``enough`` is the gap per example above which the
    oracle is asked. Where most of the gap is the weights' own and more than that, as columns of
    1e9 have it, τ is balanced: what its moments have in ``excess``, per example, is taken from it,
    by ``TURNS`` questions to the oracle at most. Without ``balance``, as where a
    budget has stopped the weights on their way, it stays as it is.
    """
    asked = Prove(theta, enough, excess, regulariser.lam)
    first, *rest = running.round([asked] * len(running))
    proof, lack, count, moved = first.part, first.missing, first.examples, first.moved
    for one in rest:
        proof, lack, count = proof + one.part, lack + one.missing, count + one.examples
        moved |= one.moved
    kept = [one.tau for one in (first, *rest)]
    own = regulariser.bracket(theta, lack)
    objective = float(regulariser.conj(lack) + proof.objective)
    found = Proven(replace(proof, gap=proof.gap + own, objective=objective), moved, kept)
    worth = own > max(found.certificate.gap / 2, 2 * enough * count)
    if not balance or excess is not None or not (regulariser.plain and worth):
        return found
    excess = (lack - regulariser.grad(theta)) / count
    better = proven(running, regulariser, theta, enough, excess=excess)
    return min(found, better, key=lambda one: one.certificate.gap)

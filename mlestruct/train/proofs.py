"""What the direct route reached, proven where the examples live: every shard proves its part."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from mlestruct.dual import Certificate, Dual
from mlestruct.engine import Running, Shard, Tree
from mlestruct.errors import counted_from
from mlestruct.inference.proof import infer
from mlestruct.inference.routine import Routine
from mlestruct.objectives import Head, Surrogate
from mlestruct.objectives.base import EvaluationPoint, ShardValue, Share, Special
from mlestruct.oracle import Oracle
from mlestruct.regulariser import Regulariser
from mlestruct.structures.base import Array


class Prove(NamedTuple):
    """Asks for a shard's part of the certificate at θ, and for its τ where that is to be kept.

    ``enough`` is the gap per example at which no costlier proof is looked for.
    """

    theta: Array
    enough: float
    keep: bool


class Proof(NamedTuple):
    """A shard's part of a certificate. ``missing`` is Σ w_m (φ_m − Φ_mᵀτ_m).

    ``moved``: odd sets kept τ from where inference had it.
    """

    gap: float
    slack: float
    energy: float
    missing: Array
    polytope: str
    bound: str
    withheld: str | None = None
    unused: int = 0
    moved: bool = False
    tau: Array | None = None


class ProvingPart:
    """A part of the objective that can also prove what its inference finds."""

    def __init__(self, part: Shard, prover: Prover) -> None:
        self.part, self.prover = part, prover

    def __call__(self, question: EvaluationPoint | Prove) -> ShardValue | Proof:
        if isinstance(question, EvaluationPoint):
            return self.part(question)
        try:
            return self.prover.proof(question, getattr(self.part, "warm", None))
        except Exception as error:
            raise counted_from(error, self.prover.first) from error.__cause__

    def memory(self) -> Tree:
        return self.part.memory()

    def remember(self, tree: Tree) -> None:
        self.part.remember(tree)


@dataclass(frozen=True)
class Prover:
    """Makes a shard that evaluates and proves; pickled, it takes along its own examples only."""

    share: Share
    dual: Dual
    routine: Routine
    oracle: Oracle[Any]

    @property
    def first(self) -> int:
        return self.share.first

    def __call__(self) -> ProvingPart:
        return ProvingPart(self.share(), self)

    def halves(self, question: Any) -> list[tuple[Prover, Any]]:
        return [(replace(self, share=half), question) for half, _ in self.share.halves(question)]

    def __reduce__(self) -> tuple[Any, ...]:
        cheaper = self.share.cheaper is not None
        return _prover, (self._own(), self.routine, self.oracle, cheaper, self.first)

    def _own(self) -> Dual:
        members = self.share.members
        return self.dual if len(members) == len(self.dual.batch) else self.dual.select(members)

    def proof(self, asked: Prove, warm: Any) -> Proof:
        """The examples' part of the certificate, by inference that starts from ``warm``."""
        dual, batch = (own := self._own()), own.batch
        weighed, enough = dual.features.potentials(asked.theta), asked.enough * len(batch)
        scores = weighed + batch.bias
        found = infer(batch, dual.entropy, self.oracle, self.routine, scores, warm, enough)
        energy = found.lower - batch.totals(np.where(found.tau != 0, weighed, 0.0) * found.tau)
        if batch.constant is not None:
            energy = energy + batch.constant
        return Proof(
            float(batch.weight @ (found.upper - found.lower)),
            float(batch.weight @ found.slack),
            float(batch.weight @ energy),
            dual.residual(found.tau),
            found.polytope,
            str(dual.entropy.bound),
            found.withheld,
            found.unused,
            found.moved,
            found.tau if asked.keep else None,
        )


def _prover(dual: Dual, routine: Routine, oracle: Oracle[Any], cheaper: bool, first: int) -> Prover:
    heads = {"score": Head(dual.features, dual.batch.bias)}
    offered = _cheaper(routine) if cheaper and routine.exact else None
    share = Share.whole(Surrogate(routine), dual.batch, heads, offered, first)
    return Prover(share, dual, routine, oracle)


def _cheaper(routine: Routine) -> Special | None:
    """The pieces of chains whose transitions are tied; imported where sums are exact."""
    from mlestruct.objectives.tied_chains import special

    return special(routine)


def prover(dual: Dual, oracle: Oracle[Any], routine: Routine) -> Prover:
    """What makes a whole dual problem one shard."""
    return _prover(dual, routine, oracle, True, 0)


def provers(dual: Dual, oracle: Oracle[Any], routine: Routine) -> list[Prover]:
    """What makes the shards of a dual problem."""
    whole = prover(dual, oracle, routine)
    return [replace(whole, share=share) for share in whole.share.split()]


def proven(
    running: Running, regulariser: Regulariser, theta: Array, enough: float, *, keep: bool
) -> tuple[Certificate, bool, list[Array]]:
    """The certificate at θ, whether odd sets moved any τ, and the τ of all shards.

    Every shard climbs its own ladder of proofs; ``enough`` is the gap per example above which the
    oracle is asked.
    """
    gap, slack, energy, missing, polytope, bound, withheld, unused, moved, tau = zip(
        *running.round([Prove(theta, enough, keep)] * len(running)), strict=True
    )
    lack = sum(missing)
    why = next((reason for reason in withheld if reason is not None), None)
    proof = Certificate(
        float("inf") if why is not None else float(sum(gap) + regulariser.bracket(theta, lack)),
        float(sum(slack)),
        float(regulariser.conj(lack) - sum(energy)),
        " / ".join(dict.fromkeys(polytope)),
        " / ".join(dict.fromkeys(bound)),
        why,
        sum(unused),
    )
    return proof, any(moved), list(tau) if keep else []

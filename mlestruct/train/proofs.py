"""What the direct route reached, proven where the examples live: every shard proves its part."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from mlestruct.dual import Certificate, Dual, interior
from mlestruct.engine import Running, Tree
from mlestruct.errors import counted_from
from mlestruct.inference.graph.sum_product import SumProduct
from mlestruct.inference.hull import degree_gaps, hull_gaps, into_hull, relaxed
from mlestruct.inference.message_proof import LOCAL, message_gaps
from mlestruct.inference.messages import Messages
from mlestruct.objectives import Head, Surrogate
from mlestruct.objectives.base import Answer, Piece, Question, Share
from mlestruct.objectives.tied_chains import special
from mlestruct.oracle import Oracle
from mlestruct.regulariser import Regulariser
from mlestruct.structures.base import Array


class Prove(NamedTuple):
    """Asks for a shard's part of the certificate at θ, and for its τ where that is to be kept.

    By prices or messages where they prove something, unless the ``oracle`` is to be asked.
    """

    theta: Array
    oracle: bool
    keep: bool


class Evidence(NamedTuple):
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


class Judged:
    """A piece that can also prove what its inference finds."""

    def __init__(self, piece: Piece, judge: Judge) -> None:
        self.piece, self.judge = piece, judge

    def __call__(self, question: Question | Prove) -> Answer | Evidence:
        if isinstance(question, Question):
            return self.piece(question)
        try:
            return self.judge.evidence(question, getattr(self.piece, "warm", None))
        except Exception as error:
            raise counted_from(error, self.judge.first) from error.__cause__

    def memory(self) -> Tree:
        return self.piece.memory()

    def remember(self, tree: Tree) -> None:
        self.piece.remember(tree)


@dataclass(frozen=True)
class Judge:
    """Makes a shard that evaluates and proves; pickled, it takes along its own examples only.

    ``prices``: inference runs over the degrees, and node prices prove it over the hull.
    """

    share: Share
    dual: Dual
    messages: Messages
    oracle: Oracle[Any]
    prices: bool

    @property
    def first(self) -> int:
        return self.share.first

    def __call__(self) -> Judged:
        return Judged(self.share(), self)

    def halves(self, question: Any) -> list[tuple[Judge, Any]]:
        return [(replace(self, share=half), question) for half, _ in self.share.halves(question)]

    def __reduce__(self) -> tuple[Any, ...]:
        cheaper = self.share.cheaper is not None
        return _judge, (self._own(), self.messages, self.oracle, self.prices, cheaper, self.first)

    def _own(self) -> Dual:
        members = self.share.members
        return self.dual if len(members) == len(self.dual.batch) else self.dual.select(members)

    def evidence(self, asked: Prove, warm: Any) -> Evidence:
        """The examples' part of the certificate, by inference that starts from ``warm``."""
        dual, messages, moved = self._own(), self.messages, False
        by_messages = isinstance(messages, SumProduct) and not asked.oracle
        if by_messages:  # what they prove does not gain from Newton's going on with their τ
            messages = replace(messages, takeover=False)  # type: ignore[type-var]
        _, tau, warm = messages.many(dual.batch, dual.scores(asked.theta), warm)
        inner = None if by_messages else interior(dual.batch, self.oracle, dual.entropy)
        point = tau
        if inner is not None:
            dual = replace(dual, entropy=inner.entropy)
            inside = into_hull(dual.batch, tau, inner.tau) if self.prices else tau
            moved, point = inside is not tau, inner.pull(inside)
        if by_messages:
            gaps = message_gaps(dual, messages, asked.theta, point, warm)  # type: ignore[arg-type]
            slack, polytope = np.zeros(len(gaps)), LOCAL
        elif self.prices:
            enough = -1.0 if asked.oracle else np.inf
            gaps, slack, polytope = hull_gaps(dual, self.oracle, asked.theta, point, warm, enough)
        else:
            gaps, slack = degree_gaps(dual, self.oracle, asked.theta, point, warm, messages)
            polytope = self.oracle.polytope
        weight = dual.batch.weight
        return Evidence(
            float(weight @ gaps),
            float(weight @ slack),
            dual.energy(point),
            dual.residual(point),
            polytope,
            str(dual.entropy.bound),
            None if inner is None else inner.withheld,
            0 if inner is None else inner.unused,
            moved,
            (point if self.prices else tau) if asked.keep else None,
        )


def _judge(
    dual: Dual, messages: Messages, oracle: Oracle[Any], prices: bool, cheaper: bool, first: int
) -> Judge:
    heads = {"score": Head(dual.features, dual.batch.bias)}
    offered = special(messages) if cheaper else None
    share = Share.whole(Surrogate(messages), dual.batch, heads, offered, first)
    return Judge(share, dual, messages, oracle, prices)


def judge(dual: Dual, oracle: Oracle[Any], messages: Messages) -> Judge:
    """What makes a whole dual problem one shard."""
    return _judge(dual, messages, oracle, relaxed(dual.batch, oracle), True, 0)


def judges(dual: Dual, oracle: Oracle[Any], messages: Messages) -> list[Judge]:
    """What makes the shards of a dual problem."""
    whole = judge(dual, oracle, messages)
    return [replace(whole, share=share) for share in whole.share.split()]


def proven(
    running: Running, regulariser: Regulariser, theta: Array, tol: float, *, cheap: bool, keep: bool
) -> tuple[Certificate, list[Evidence]]:
    """The certificate at θ, and what it is made of.

    ``cheap``: prices or messages first; the oracle is asked where they leave more than ``tol``.
    """
    for oracle in (False, True) if cheap else (True,):
        found = running.round([Prove(theta, oracle, keep)] * len(running))
        gap, missing = sum(part.gap for part in found), sum(part.missing for part in found)
        objective = regulariser.conj(missing) - sum(part.energy for part in found)
        if gap <= tol * max(1.0, abs(objective)):
            break
    withheld = next((part.withheld for part in found if part.withheld is not None), None)
    gap = gap + regulariser.bracket(theta, missing) if withheld is None else float("inf")
    proof = Certificate(
        float(gap),
        float(sum(part.slack for part in found)),
        float(objective),
        " / ".join(dict.fromkeys(part.polytope for part in found)),
        " / ".join(dict.fromkeys(part.bound for part in found)),
        withheld,
        sum(part.unused for part in found),
    )
    return proof, found

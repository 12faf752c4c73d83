"""What the direct route reached, proven where the examples live: every shard proves its part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from mlestruct.dual import Certificate, Dual, block_gaps, interior
from mlestruct.engine import Running, Tree
from mlestruct.inference.hull import hull_gaps, into_hull, relaxed
from mlestruct.inference.message_proof import LOCAL, message_gaps
from mlestruct.inference.messages import Messages
from mlestruct.inference.sum_product import SumProduct
from mlestruct.objectives.base import Answer, Part, Piece, Question, Share
from mlestruct.oracle import Oracle
from mlestruct.regulariser import Regulariser
from mlestruct.structures.base import Array


class Prove(NamedTuple):
    """Asks for a shard's part of the certificate at θ: by its ``oracle``, or by what costs less."""

    theta: Array
    oracle: bool
    keep: bool
    """Whether τ is wanted too."""


class Evidence(NamedTuple):
    """A shard's part of the certificate at θ."""

    gap: float
    slack: float
    energy: float
    missing: Array
    """Σ w_m (φ_m − Φ_mᵀτ_m)."""
    polytope: str
    bound: str
    withheld: str | None
    unused: int
    moved: bool
    """Whether odd sets kept τ from where inference had it."""
    tau: Array | None


class Judged:
    """A piece that can also prove what its inference finds."""

    def __init__(self, piece: Piece, judge: Judge) -> None:
        self.piece, self.judge = piece, judge

    def __call__(self, question: Question | Prove) -> Answer | Evidence:
        if isinstance(question, Question):
            return self.piece(question)
        return self.judge.evidence(question, self.piece)

    def memory(self) -> Tree:
        return self.piece.memory()

    def remember(self, tree: Tree) -> None:
        self.piece.remember(tree)


@dataclass(frozen=True)
class Judge:
    """Makes a shard that evaluates and proves; pickled, it takes along its own examples only."""

    share: Share
    dual: Dual
    messages: Messages
    oracle: Oracle[Any]
    cheaply: bool

    def __call__(self) -> Judged:
        return Judged(self.share(), self)

    def __reduce__(self) -> tuple[Any, ...]:
        return Judge, (self.share, self._own(), self.messages, self.oracle, self.cheaply)

    def _own(self) -> Dual:
        members = self.share.members
        return self.dual if len(members) == len(self.dual.batch) else self.dual.select(members)

    def evidence(self, asked: Prove, piece: Piece) -> Evidence:
        dual, warm = self._own(), piece.warm if isinstance(piece, Part) else None
        _, tau, warm = self.messages.many(dual.batch, dual.scores(asked.theta), warm)
        if relaxed(dual.batch, self.oracle):
            ...

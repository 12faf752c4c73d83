"""The surrogate likelihood: Σ w_m [log Z(scores_m) − ⟨scores_m, φ_m⟩], through marginals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from mlestruct.batch import Batch
from mlestruct.inference.messages import Messages
from mlestruct.objectives.base import Values
from mlestruct.structures.base import Array
from mlestruct.trees import Tree


@dataclass(frozen=True)
class Surrogate:
    """Minus the surrogate log-likelihood; its gradient is τ − φ, exact once messages converge.

    Scores hold the bias, so a bias counts in the likelihood as it does in the dual.
    """

    messages: Messages
    exact_gradient: bool = True

    def __call__(
        self, batch: Batch[Any], heads: Mapping[str, Array], warm: Any, tol: float
    ) -> Values:
        scores, target = heads["score"], batch.target
        assert target is not None
        log_z, tau, warm = loosened(self.messages, tol).many(batch, scores, warm)
        each = log_z - batch.observed(scores) + batch.observed(batch.bias)
        if batch.constant is not None:
            each += batch.constant
        gradient = tau - target
        if (batch.weight != 1).any():
            gradient *= batch.weight[batch.owner]
        stalled = self.messages.stalled(warm) if hasattr(self.messages, "stalled") else 0
        return Values(float(batch.weight @ each), {"score": gradient}, tau, warm, stalled)

    def pack(self, warm: Any) -> Tree:
        return self.messages.pack(warm) if hasattr(self.messages, "pack") else None

    def unpack(self, batch: Batch[Any], tree: Tree) -> Any:
        return self.messages.unpack(batch, tree)  # type: ignore[attr-defined]


def loosened(messages: Messages, tol: float) -> Messages:
    """The same routine stopping at a residual of ``tol``, where it has one and that is coarser.

    Nobody takes over from its messages then: Newton's method costs more than a rough value is
    worth.
    """
    named = {f.name for f in fields(messages)} if hasattr(messages, "__dataclass_fields__") else {}  # type: ignore[arg-type]
    if "residual" not in named or tol <= messages.residual:  # type: ignore[attr-defined]
        return messages
    alone = {"takeover": False} if "takeover" in named else {}
    return replace(messages, residual=min(tol, 1e-3), **alone)  # type: ignore[type-var]

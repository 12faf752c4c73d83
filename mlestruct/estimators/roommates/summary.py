"""What was learned, how sure it is, what cannot be known, what proves it and what it cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from mlestruct.dual import Certificate
from mlestruct.estimators.roommates.contrasts import Contrasts
from mlestruct.estimators.stored import Fitted
from mlestruct.metrics import Z
from mlestruct.results import Shown
from mlestruct.structures.base import Array

SHOWN = 20


class Contrast(NamedTuple):
    """A combination of weights that pairs identify, debiased, with its 95 % interval.

    The interval is for the surrogate's limit: what this method would learn from unlimited data.
    """

    column: str
    name: str
    estimate: float
    error: float
    low: float
    high: float


@dataclass(frozen=True)
class Summary(Shown):
    """Contrasts, what these pairs ``unidentified`` leave, notes, certificate, bound and cost."""

    contrasts: list[Contrast]
    unidentified: list[str]
    notes: list[str]
    certificate: Certificate
    bound: str
    alpha: float
    evaluations: int
    seconds: float

    @classmethod
    def of(
        cls, contrasts: Contrasts, estimates: Array, errors: Array, fitted: Fitted, notes: list[str]
    ) -> Self:
        """Contrasts whose error is not finite are those that the pairs do not identify."""
        known, lost = [], []
        rows = zip(contrasts.columns, contrasts.names, estimates, errors, strict=True)
        for column, name, estimate, error in rows:
            if np.isfinite(error):
                ends = estimate - Z * error, estimate + Z * error
                known.append(Contrast(column, name, *map(float, (estimate, error, *ends))))
            else:
                lost.append(name)
        calls, seconds, *_ = fitted.history[-1]
        proof = fitted.certificate
        return cls(known, lost, notes, proof, proof.bound, fitted.alpha, calls, seconds)

    def columns(self) -> dict[str, list[Any]]:
        """A row for each contrast."""
        rows = self.contrasts
        return {name: [row[k] for row in rows] for k, name in enumerate(Contrast._fields)}

    def remarks(self) -> list[str]:
        return [*self.notes, f"alpha {self.alpha:g}; {self.certificate}"]

    def plot(self, ax: Any = None) -> Any:
        """The surest contrasts with their 95 % intervals."""
        from mlestruct.plot import dots

        surest = sorted(self.contrasts, key=lambda c: -abs(c.estimate) / max(c.error, 1e-300))
        first = surest[:SHOWN]
        spans = [(c.low, c.high) for c in first]
        names, values = [c.name for c in first], [c.estimate for c in first]
        return dots(names, values, spans, mark=0.0, label="contrast", ax=ax)

    def __str__(self) -> str:
        surest = sorted(self.contrasts, key=lambda c: -abs(c.estimate) / max(c.error, 1e-300))
        rows = [
            f"{c.estimate:+8.3f}  [{c.low:+.3f}, {c.high:+.3f}]  {c.name}" for c in surest[:SHOWN]
        ]
        if len(surest) > SHOWN:
            rows.append(f"… and {len(surest) - SHOWN} less sure")
        lost = ", ".join(self.unidentified[:SHOWN]) + ", …" * (len(self.unidentified) > SHOWN)
        return "\n".join(
            [
                "debiased contrasts, surest first; 95 % intervals are for the surrogate's limit",
                *rows,
                *([f"these pairs do not tell: {lost}"] if lost else []),
                *self.notes,
                f"alpha {self.alpha:g}; {self.certificate}",
                f"{self.evaluations} evaluations, {self.seconds:.2g} s",
            ]
        )

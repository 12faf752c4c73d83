"""What a fit learned, how sure it is where that is known, what proves it and what it cost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mlestruct.dual import Certificate
from mlestruct.metrics import Z
from mlestruct.structures.base import Array

SHOWN = 20


@dataclass(frozen=True)
class Summary:
    """Weights by name, largest first when printed, with the certificate and the cost.

    ``errors`` are standard errors, None where none were computed; intervals from them are for the
    limit of this surrogate, not for the truth.
    """

    names: list[str]
    weights: Array
    errors: Array | None
    certificate: Certificate
    alpha: float
    route: str
    rounds: int
    calls: int
    seconds: float

    @property
    def intervals(self) -> Array | None:
        """(weights × 2): 95 % intervals from the standard errors."""
        if self.errors is None:
            return None
        return self.weights[:, None] + Z * self.errors[:, None] * np.array([-1.0, 1.0])

    def __str__(self) -> str:
        order = np.argsort(-np.abs(self.weights), kind="stable")
        width = max((len(self.names[j]) for j in order[:SHOWN]), default=0)
        lines = [self._row(int(j), width) for j in order[:SHOWN]]
        if len(order) > SHOWN:
            lines.append(f"… and {len(order) - SHOWN} smaller weights")
        return "\n".join([*lines, *self._proof()])

    def _row(self, j: int, width: int) -> str:
        row = f"{self.names[j]:>{width}} {self.weights[j]:+10.4f}"
        return row if self.errors is None else f"{row} ± {Z * self.errors[j]:.4f}"

    def _proof(self) -> list[str]:
        return [
            "" if self.errors is None else "± is 95 %, for the limit of this surrogate",
            f"alpha {self.alpha:g}; {self.certificate}",
            f"{self.rounds} rounds by the {self.route or 'learner’s own'} route, "
            f"{self.calls} calls, {self.seconds:.2g} s",
        ]

"""What a fit learned, how sure it is where that is known, what proves it and what it cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mlestruct.dual import Certificate
from mlestruct.inference.sandwich import Sandwich
from mlestruct.results import Shown
from mlestruct.structures.base import Array

SHOWN = 20


@dataclass(frozen=True)
class Summary(Shown):
    """Weights by name, largest first when printed, with the certificate and the cost.

    ``errors`` are the standard errors of the weights as fitted. ``intervals`` undo the shrinkage,
    and are infinite where the data say nothing about a weight by itself. Both are for the limit of
    this surrogate, and None without a :class:`Sandwich`.
    """

    names: list[str]
    weights: Array
    sandwich: Sandwich | None
    certificate: Certificate
    alpha: float
    route: str
    rounds: int
    calls: int
    seconds: float

    @property
    def errors(self) -> Array | None:
        return None if self.sandwich is None else self.sandwich.errors

    @property
    def intervals(self) -> Array | None:
        """(weights × 2): debiased 95 % intervals."""
        if self.sandwich is None:
            return None
        found = [self.sandwich.contrast(one) for one in np.eye(len(self.weights))]
        return np.array([(c.lower, c.upper) for c in found])

    def columns(self) -> dict[str, list[Any]]:
        """A row for each weight; errors and intervals where they are known."""
        found: dict[str, list[Any]] = {"name": list(self.names), "weight": self.weights.tolist()}
        if self.errors is not None and (spans := self.intervals) is not None:
            found |= {"error": self.errors.tolist()}
            found |= {"low": spans[:, 0].tolist(), "high": spans[:, 1].tolist()}
        return found

    def remarks(self) -> list[str]:
        return self._proof()

    def plot(self, ax: Any = None) -> Any:
        """The largest weights, as :func:`mlestruct.plot.weights` draws them."""
        from mlestruct.plot import weights

        return weights(self, ax=ax)

    def __str__(self) -> str:
        order = np.argsort(-np.abs(self.weights), kind="stable")
        width = max((len(self.names[j]) for j in order[:SHOWN]), default=0)
        lines = [f"{self.names[j]:>{width}} {self.weights[j]:+10.4f}" for j in order[:SHOWN]]
        if self.sandwich is not None and (intervals := self.intervals) is not None:
            sure = zip(lines, self.sandwich.errors[order], intervals[order], strict=False)
            lines = [f"{line} {error:9.4f} {_span(*span)}" for line, error, span in sure]
            lines.insert(0, f"{'':>{width}} {'weight':>10} {'error':>9}   debiased 95 % interval")
        if len(order) > SHOWN:
            lines.append(f"… and {len(order) - SHOWN} smaller weights")
        return "\n".join([*lines, *self._proof()])

    def _proof(self) -> list[str]:
        told = []
        if self.sandwich is not None:
            rank, count = self.sandwich.rank, len(self.weights)
            told.append(f"intervals are for this surrogate's limit; {rank} of {count} directions")
            told[-1] += " of the weights are identified"
        return [
            *told,
            f"alpha {self.alpha:g}; {self.certificate}",
            f"{self.rounds} rounds by the {self.route or 'learner’s own'} route, "
            f"{self.calls} calls, {self.seconds:.2g} s",
        ]


def _span(low: float, high: float) -> str:
    return f"[{low:+.3f}, {high:+.3f}]" if np.isfinite(high - low) else "not identified alone"

"""What a fit learned, how sure it is where that is known, what proves it and what it cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mlestruct.dual import Certificate
from mlestruct.results import Shown
from mlestruct.structures.base import Array

if TYPE_CHECKING:
    from mlestruct.statistics import Intervals

SHOWN = 20


@dataclass(frozen=True)
class Summary(Shown):
    """One estimate of everything by name, largest first when printed, the proof and the cost.

    Without ``sure`` the estimates are the weights as fitted, shrunken by ``alpha``: those predict.
    With it, they are the combinations of weights that the data identify, bias-reduced and not
    shrunken, each with the error and the interval that belong to it.
    """

    weights_by_name: dict[str, float]
    sure: Intervals | None
    certificate: Certificate
    alpha: float
    alpha_scores: list[tuple[float, float]]
    notes: list[str]
    route: str
    inference: str
    rounds: int
    calls: int
    seconds: float

    @property
    def _rows(self) -> list[Any]:
        """What intervals tell of combinations of weights; none where there are no intervals."""
        return [] if self.sure is None else self.sure.rows

    @property
    def names(self) -> list[str]:
        """Of every estimate."""
        return [row.name for row in self._rows] or list(self.weights_by_name)

    @property
    def weights(self) -> Array:
        """The estimates, in the order of ``names``."""
        return np.array([row.estimate for row in self._rows] or list(self.weights_by_name.values()))

    @property
    def errors(self) -> Array | None:
        """The standard errors of the weights."""
        return np.array([row.error for row in self._rows]) if self._rows else None

    @property
    def intervals(self) -> Array | None:
        """(estimates × 2): their intervals; an end may be infinite."""
        return np.array([(row.low, row.high) for row in self._rows]) if self._rows else None

    @property
    def level(self) -> float:
        """The chance with which each interval holds its estimate's truth."""
        return 0.95 if self.sure is None else self.sure.level

    def columns(self) -> dict[str, list[Any]]:
        """A row for each estimate; errors and intervals where they are known."""
        kind = "estimate" if self._rows else "weight"
        found: dict[str, list[Any]] = {"name": list(self.names), kind: self.weights.tolist()}
        if self.errors is not None and (spans := self.intervals) is not None:
            found |= {"error": self.errors.tolist()}
            found |= {"low": spans[:, 0].tolist(), "high": spans[:, 1].tolist()}
        return found

    def remarks(self) -> list[str]:
        words = [] if self.sure is None else self.sure.words
        return [*words, *self.notes, *self._proof()]

    def plot(self, ax: Any = None) -> Any:
        """The largest estimates, as :func:`mlestruct.plot.weights` draws them."""
        from mlestruct.plot import weights

        return weights(self, ax=ax)

    def __str__(self) -> str:
        weights, names = self.weights, self.names
        order = np.argsort(-np.abs(weights).round(4), kind="stable")  # as printed
        width = max((len(names[j]) for j in order[:SHOWN]), default=0)
        if self.sure is not None and self._rows:
            rows, level = self._rows, f"{100 * self.level:g} % interval"
            head = f"{'':>{width}} {'estimate':>10} {'error':>9}   {level}"
            lines = [head, *(f"{names[j]:>{width}} {rows[j]}" for j in order[:SHOWN])]
        else:
            lines = [f"{names[j]:>{width}} {weights[j]:+10.4f}" for j in order[:SHOWN]]
        if len(order) > SHOWN:
            lines.append(f"… and {len(order) - SHOWN} smaller ones")
        return "\n".join([*lines, *self.remarks()])

    def _proof(self) -> list[str]:
        shrunk = "; predictions use weights shrunken by it" if self._rows else ""
        return [
            f"alpha {self.alpha:g}{self._chosen()}{shrunk}",
            str(self.certificate),
            f"{self.rounds} rounds by the {self.route or 'learner’s own'} route, "
            f"{self.calls} calls, {self.seconds:.2g} s",
            f"probabilities: {self.inference}",
        ]

    def _chosen(self) -> str:
        if not self.alpha_scores:
            return ""
        path = ", ".join(f"{alpha:g}: {score:.4g}" for alpha, score in self.alpha_scores)
        return f", chosen by data (mean scores: {path})"

"""What a fit learned, how sure it is where that is known, what proves it and what it cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mlestruct.estimators.examples import told_apart
from mlestruct.learning.dual import Certificate
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

    @classmethod
    def of(cls, model: Any, intervals: Intervals | None, doubt: str = "") -> Summary:
        """Of a fitted model; ``doubt`` says why its probabilities need to be recalibrated."""
        names = model.names()
        if intervals is not None:
            _refuse_others(intervals, names)
        calls, seconds = model.history_[-1][:2] if model.history_ else (0, 0.0)
        how = "recalibrated(X, y), by other examples, finds how sharp they should be"
        return cls(
            weights_by_name=dict(zip(told_apart(names), model.coef_.tolist(), strict=True)),
            sure=intervals,
            certificate=model.certificate_,
            alpha=model.alpha_,
            alpha_scores=model.alpha_scores_,
            notes=model.notes_,
            route=model.route_,
            inference=f"{model._inference()}" + (f", {doubt}; {how}" if doubt else ""),
            rounds=model.n_iter_,
            calls=calls,
            seconds=seconds,
        )

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


def _refuse_others(given: Any, own: Sequence[str]) -> None:
    """A ValueError for what are no intervals, or those of another model's weights."""
    from mlestruct.statistics import Intervals

    of = given.weights if isinstance(given, Intervals) else given
    if not isinstance(given, Intervals) or of != len(own):
        raise ValueError(f"these are no intervals of {len(own)} weights, but {of!r:.40}")
    for other, here in zip(given.names or own, own, strict=True):
        if other != here:
            raise ValueError(f"these are intervals of another model: of {other!r}, not {here!r}")

"""What a fit learned, how sure it is where that is known, what proves it and what it cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mlestruct.estimators.examples import told_apart
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
    shrunken, each with the error and the interval that belong to it. ``said`` are the notes, the
    proof and the cost, in words.
    """

    weights_by_name: dict[str, float]
    sure: Intervals | None
    said: list[str]

    @classmethod
    def of(cls, model: Any, intervals: Intervals | None, doubt: str = "") -> Summary:
        """Of a fitted model; ``doubt`` says why its probabilities need to be recalibrated."""
        names = model.names()
        if intervals is not None:
            _refuse_others(intervals, names)
        calls, seconds = model.history_[-1][:2] if model.history_ else (0, 0.0)
        path = ", ".join(f"{alpha:g}: {score:.4g}" for alpha, score in model.alpha_scores_)
        chosen = f", chosen by data (mean scores: {path})" if path else ""
        shrunk = "; predictions use weights shrunken by it" if intervals and intervals.rows else ""
        how = "recalibrated(X, y), by other examples, finds how sharp they should be"
        said = [
            *([] if intervals is None else intervals.words),
            *model.notes_,
            f"alpha {model.alpha_:g}{chosen}{shrunk}",
            str(model.certificate_),
            f"{model.n_iter_} rounds by the {model.route_ or 'learner’s own'} route, "
            f"{calls} calls, {seconds:.2g} s",
            f"probabilities: {model._inference()}" + (f", {doubt}; {how}" if doubt else ""),
        ]
        named = dict(zip(told_apart(names), model.coef_.tolist(), strict=True))
        return cls(named, intervals, said)

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
    def intervals(self) -> Array | None:
        """(estimates × 2): their intervals; an end may be infinite."""
        return np.array([(row.low, row.high) for row in self._rows]) if self._rows else None

    @property
    def level(self) -> float:
        """The chance with which each interval holds its estimate's truth."""
        return 0.95 if self.sure is None else self.sure.level

    def columns(self) -> dict[str, list[Any]]:
        """A row for each estimate; errors and intervals where they are known."""
        if self.sure is not None and self._rows:
            return self.sure.columns()
        return {"name": self.names, "weight": self.weights.tolist()}

    def remarks(self) -> list[str]:
        return self.said

    def plot(self, ax: Any = None) -> Any:
        """The largest estimates, as :func:`mlestruct.plot.weights` draws them."""
        from mlestruct.plot import weights

        return weights(self, ax=ax)

    def __str__(self) -> str:
        weights, names = self.weights, self.names
        order = np.argsort(-np.abs(weights).round(4), kind="stable")  # as printed
        width = max((len(names[j]) for j in order[:SHOWN]), default=0)
        head, cells = [], [f"{weight:+10.4f}" for weight in weights]
        if self._rows:
            interval = f"{100 * self.level:g} % interval"
            head = [f"{'':>{width}} {'estimate':>10} {'error':>9}   {interval}"]
            cells = [str(row) for row in self._rows]
        lines = [*head, *(f"{names[j]:>{width}} {cells[j]}" for j in order[:SHOWN])]
        more = [f"… and {len(order) - SHOWN} smaller ones"] if len(order) > SHOWN else []
        return "\n".join([*lines, *more, *self.said])


def _refuse_others(given: Any, own: Sequence[str]) -> None:
    """A ValueError for what are no intervals, or those of another model's weights."""
    from mlestruct.statistics import Intervals

    of = given.weights if isinstance(given, Intervals) else given
    if not isinstance(given, Intervals) or of != len(own):
        raise ValueError(f"these are no intervals of {len(own)} weights, but {of!r:.40}")
    for other, here in zip(given.names or own, own, strict=True):
        if other != here:
            raise ValueError(f"these are intervals of another model: of {other!r}, not {here!r}")

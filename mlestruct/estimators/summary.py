"""What a fit learned, how sure it is where that is known, what proves it and what it cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

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

    names: list[str]
    weights: Array
    sure: Intervals | None
    said: list[str]

    @classmethod
    def of(cls, model: Any, sure: Intervals | None, doubt: str = "") -> Summary:
        """Of a fitted model; ``doubt`` says why its probabilities need to be recalibrated."""
        names, weights = model.names(), model.coef_
        if sure is not None:
            from mlestruct.statistics import Intervals

            of = sure.names or names if isinstance(sure, Intervals) else [repr(sure)]
            if list(of) != names or sure.weights != len(names):
                raise ValueError(
                    f"these are no intervals of this model's weights, {', '.join(names[:3])}, …: "
                    f"but of {', '.join(of[:3])}"
                )
        calls, seconds = model.history_[-1][:2] if model.history_ else (0, 0.0)
        path = ", ".join(f"{alpha:g}: {score:.4g}" for alpha, score in model.alpha_scores_)
        chosen = f", chosen by data (mean scores: {path})" if path else ""
        shrunk = "; predictions use weights shrunken by it" if sure and sure.rows else ""
        how = "recalibrated(X, y), by other examples, finds how sharp they should be"
        said = [
            *([] if sure is None else sure.words),
            *model.notes_,
            f"alpha {model.alpha_:g}{chosen}{shrunk}",
            str(model.certificate_),
            f"{model.n_iter_} rounds by the {model.route_ or 'learner’s own'} route, "
            f"{calls} calls, {seconds:.2g} s",
            f"probabilities: {model._inference()}" + (f", {doubt}; {how}" if doubt else ""),
        ]
        if sure is not None and sure.rows:
            names = [row.name for row in sure.rows]
            weights = np.array([row.estimate for row in sure.rows])
        return cls(names, weights, sure, said)

    @property
    def intervals(self) -> Array | None:
        """(estimates × 2): their intervals; an end may be infinite."""
        rows = [] if self.sure is None else self.sure.rows
        return np.array([(row.low, row.high) for row in rows]) if rows else None

    @property
    def level(self) -> float:
        """The chance with which each interval holds its estimate's truth."""
        return 0.95 if self.sure is None else self.sure.level

    def columns(self) -> dict[str, list[Any]]:
        """A row for each estimate; errors and intervals where they are known."""
        if self.sure is not None and self.sure.rows:
            return self.sure.columns()
        return {"name": self.names, "weight": self.weights.tolist()}

    def remarks(self) -> list[str]:
        return self.said

    def plot(self, ax: Any = None) -> Any:
        """The largest estimates, as :func:`mlestruct.plot.weights` draws them."""
        from mlestruct.plot import weights

        return weights(self, ax=ax)

    def __str__(self) -> str:
        order = np.argsort(-np.abs(self.weights).round(4), kind="stable")  # as printed
        width = max((len(self.names[j]) for j in order[:SHOWN]), default=0)
        lines, cells = list[str](), [f"{weight:+10.4f}" for weight in self.weights]
        if self.sure is not None and self.sure.rows:
            title = f"{100 * self.level:g} % interval"
            lines = [f"{'':>{width}} {'estimate':>10} {'error':>9}   {title}"]
            cells = [str(row) for row in self.sure.rows]
        lines += [f"{self.names[j]:>{width}} {cells[j]}" for j in order[:SHOWN]]
        lines += [f"… and {len(order) - SHOWN} smaller ones"] * (len(order) > SHOWN)
        return "\n".join([*lines, *self.said])

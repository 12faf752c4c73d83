"""Scorers for searches and cross-validation: (estimator, X, y) → a number, larger is better.

Each works on one fitted estimator and lists of examples of any sizes, and takes the place of
scikit-learn's ``scoring=``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol

import numpy as np

from mlestruct.batch import Batch
from mlestruct.inference import best as best_of
from mlestruct.structures.base import Array, as_numbers


class Scorable(Protocol):
    """What scorers ask of an estimator; all of the library's have it."""

    def predict(self, X: Sequence[Any]) -> list[Any]: ...
    def score(self, X: Sequence[Any], y: Sequence[Any]) -> float: ...
    def log_likelihood(self, X: Sequence[Any], y: Sequence[Any]) -> tuple[float, float]: ...
    def evidence(self, X: Sequence[Any], y: Sequence[Any]) -> Any: ...
    def calibration(self, X: Sequence[Any], y: Sequence[Any]) -> Any: ...


class Decides(Protocol):
    """What scorers of decisions ask besides: a StructuredModel has it."""

    def _oracle(self) -> Any: ...
    def structures(self, X: Sequence[Any]) -> list[Any]: ...
    def predict(self, X: Sequence[Any]) -> list[Any]: ...


def parts_right(model: Scorable, X: Sequence[Any], y: Sequence[Any]) -> float:
    """Mean share of parts (rows, variables, coordinates) predicted right: ``score`` itself."""
    return model.score(X, y)


def all_right(model: Scorable, X: Sequence[Any], y: Sequence[Any]) -> float:
    """Share of examples predicted without any mistake."""
    pairs = zip(model.predict(X), y, strict=True)
    return float(np.mean([_same(predicted, observed) for predicted, observed in pairs]))


def log_likelihood(model: Scorable, X: Sequence[Any], y: Sequence[Any]) -> float:
    """What is proven of the mean log-likelihood of an example: the interval's lower end."""
    return model.log_likelihood(X, y)[0] / len(X)


def evidence(model: Scorable, X: Sequence[Any], y: Sequence[Any]) -> float:
    """The mean exact log-likelihood of an example, summed or annealed: no bound, to a nat or so.

    It means the same for every learner and ρ, and so chooses between them, and alpha.
    """
    return float(model.evidence(X, y).value) / len(X)


def brier(model: Scorable, X: Sequence[Any], y: Sequence[Any]) -> float:
    """Minus the mean squared error of the parts' probabilities."""
    return -float(model.calibration(X, y).brier)


def calibrated(model: Scorable, X: Sequence[Any], y: Sequence[Any]) -> float:
    """Minus the expected calibration error. Constant probabilities can be calibrated too."""
    return -float(model.calibration(X, y).error)


Costs = str | Callable[[Any], Any]


def regret(
    costs: Costs, sense: Literal["min", "max"] = "min"
) -> Callable[[Decides, Sequence[Any], Sequence[Any]], float]:
    """A scorer: minus what the model's decisions cost more than the best, as a share of the best.

    ``costs`` are the true costs of an example's parts, to be minimised: the name of its entry, or
    a function of the example; with ``sense="max"`` they are values, to be maximised. The best
    decisions are those of the model's own solver under the true costs. −Σ (cost of the decision −
    least cost) / Σ |least cost| over the examples, which is PyEPO's normalised regret with a minus,
    so that larger is better.
    """

    def scorer(model: Decides, X: Sequence[Any], y: Sequence[Any]) -> float:
        reached, least = _reached(model, X, costs, sense)
        return -float((reached - least).sum() / max(np.abs(least).sum(), 1e-300))

    return scorer


def cost_equal(
    costs: Costs, tol: float = 1e-9, sense: Literal["min", "max"] = "min"
) -> Callable[[Decides, Sequence[Any], Sequence[Any]], float]:
    """A scorer: the share of examples whose decision costs as little as the best one.

    Decisions that differ from the observed ones and cost the same count as right, up to ``tol``
    of the least cost; ``costs`` and ``sense`` as in :func:`regret`.
    """

    def scorer(model: Decides, X: Sequence[Any], y: Sequence[Any]) -> float:
        reached, least = _reached(model, X, costs, sense)
        return float(np.mean(reached - least <= tol * np.maximum(np.abs(least), 1.0)))

    return scorer


def _reached(model: Decides, X: Sequence[Any], costs: Costs, sense: str) -> tuple[Array, Array]:
    """What the model's decisions cost, and the least cost, of every example."""
    if sense not in ("min", "max"):
        raise ValueError(f"sense is 'min' or 'max', not {sense!r}")
    batch, sign = Batch.of(model.structures(X)), 1.0 if sense == "min" else -1.0
    true = [sign * _true(x, costs, batch.structure(m).size, m) for m, x in enumerate(X)]
    best, _, _ = best_of(batch, -np.concatenate(true), model._oracle())
    least, reached = (
        np.array([
            cost @ batch.structure(m).encode(outcome)
            for m, (cost, outcome) in enumerate(zip(true, outcomes, strict=True))
        ])
        for outcomes in (best, model.predict(X))
    )  # fmt: skip
    return reached, least


def _true(x: Any, costs: Costs, size: int, m: int) -> Array:
    given = x[costs] if isinstance(costs, str) else costs(x)
    cost = as_numbers(given, f"example {m}: costs").reshape(-1)
    if cost.shape != (size,):
        raise ValueError(f"example {m}: {len(cost)} costs for {size} parts")
    return cost


def _same(predicted: Any, observed: Any) -> bool:
    flat: Array = np.asarray(observed).ravel()
    return np.array_equal(np.asarray(predicted).ravel(), flat)

"""Scorers for searches and cross-validation: (estimator, X, y) → a number, larger is better.

Each works on one fitted estimator and lists of examples of any sizes, and takes the place of
scikit-learn's ``scoring=``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from mlestruct.structures.base import Array


class Judged(Protocol):
    """What scorers ask of an estimator; all of the library's have it."""

    def predict(self, X: Sequence[Any]) -> list[Any]: ...
    def score(self, X: Sequence[Any], y: Sequence[Any]) -> float: ...
    def log_likelihood(self, X: Sequence[Any], y: Sequence[Any]) -> tuple[float, float]: ...
    def calibration(self, X: Sequence[Any], y: Sequence[Any]) -> Any: ...


def parts_right(model: Judged, X: Sequence[Any], y: Sequence[Any]) -> float:
    """Mean share of parts (rows, variables, coordinates) predicted right: ``score`` itself."""
    return model.score(X, y)


def all_right(model: Judged, X: Sequence[Any], y: Sequence[Any]) -> float:
    """Share of examples predicted without any mistake."""
    pairs = zip(model.predict(X), y, strict=True)
    return float(np.mean([_same(predicted, observed) for predicted, observed in pairs]))


def log_likelihood(model: Judged, X: Sequence[Any], y: Sequence[Any]) -> float:
    """What is proven of the mean log-likelihood of an example: the interval's lower end."""
    return model.log_likelihood(X, y)[0] / len(X)


def brier(model: Judged, X: Sequence[Any], y: Sequence[Any]) -> float:
    """Minus the mean squared error of the parts' probabilities."""
    return -float(model.calibration(X, y).brier)


def calibrated(model: Judged, X: Sequence[Any], y: Sequence[Any]) -> float:
    """Minus the expected calibration error. Constant probabilities can be calibrated too."""
    return -float(model.calibration(X, y).error)


def _same(predicted: Any, observed: Any) -> bool:
    flat: Array = np.asarray(observed).ravel()
    return np.array_equal(np.asarray(predicted).ravel(), flat)

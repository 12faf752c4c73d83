"""Scorers for searches and cross-validation: (estimator, X, y) → a number, larger is better.

Each works on one fitted estimator and lists of examples of any sizes, and takes the place of
scikit-learn's ``scoring=``. The estimator may be the last step of a pipeline, or a search's best.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, Literal

import numpy as np

from mlestruct.inference import best as best_of
from mlestruct.structures.base import Array, as_number, as_numbers
from mlestruct.structures.batch import Batch

Scorer = Callable[[Any, Sequence[Any], Sequence[Any]], float]


def _of_the_last_step(scorer: Scorer) -> Scorer:
    """The scorer, of the last step of a pipeline, and of the best of a fitted search."""

    @wraps(scorer)
    def own(model: Any, X: Sequence[Any], y: Sequence[Any]) -> float:
        model = getattr(model, "best_estimator_", model)
        if not hasattr(model, "steps"):
            return scorer(model, X, y)
        for _, step in model.steps[:-1]:
            X = X if step in (None, "passthrough") else step.transform(X)
        return own(model.steps[-1][1], X, y)

    return own


@_of_the_last_step
def parts_right(model: Any, X: Sequence[Any], y: Sequence[Any]) -> float:
    """Mean share of parts (rows, variables, coordinates) predicted right: ``score`` itself."""
    return model.score(X, y)


@_of_the_last_step
def all_right(model: Any, X: Sequence[Any], y: Sequence[Any]) -> float:
    """Share of examples predicted without any mistake, of those of which a part is known."""
    return float(np.mean(model._rights(X, y)[0] == 1.0))


@_of_the_last_step
def log_likelihood(model: Any, X: Sequence[Any], y: Sequence[Any]) -> float:
    """What is proven of the mean log-likelihood of an example: the interval's lower end."""
    return model.log_likelihood(X, y)[0] / len(X)


@_of_the_last_step
def evidence(model: Any, X: Sequence[Any], y: Sequence[Any]) -> float:
    """The mean exact log-likelihood of an example, summed or annealed: no bound, to a nat or so.

    It means the same for every learner and ρ, and so chooses between them, and alpha.
    """
    return float(model.evidence(X, y).value) / len(X)


@_of_the_last_step
def brier(model: Any, X: Sequence[Any], y: Sequence[Any]) -> float:
    """Minus the mean squared error of the parts' probabilities."""
    return -float(model.calibration(X, y).brier)


@_of_the_last_step
def calibrated(model: Any, X: Sequence[Any], y: Sequence[Any]) -> float:
    """Minus the expected calibration error. Constant probabilities can be calibrated too."""
    return -float(model.calibration(X, y).error)


Costs = str | Callable[[Any], Any]


def regret(costs: Costs, sense: Literal["min", "max"] = "min") -> Scorer:
    """A scorer: minus what the model's decisions cost more than the best, as a share of the best.

    ``costs`` are the true costs of an example's parts, to be minimised: the name of its entry, or
    a function of the example; with ``sense="max"`` they are values, to be maximised. The best
    decisions are those of the model's own solver under the true costs. −Σ (cost of the decision −
    least cost) / Σ |least cost| over the examples, which is PyEPO's normalised regret with a minus,
    so that larger is better.
    """

    def judge(reached: Array, least: Array) -> float:
        return -float((reached - least).sum() / max(np.abs(least).sum(), 1e-300))

    return _by_cost(costs, sense, judge)


def cost_equal(costs: Costs, tol: float = 1e-9, sense: Literal["min", "max"] = "min") -> Scorer:
    """A scorer: the share of examples whose decision costs as little as the best one.

    Decisions that differ from the observed ones and cost the same count as right, up to ``tol``
    of the least cost; ``costs`` and ``sense`` as in :func:`regret`.
    """
    tol = as_number(tol, "tol", 0.0)

    def judge(reached: Array, least: Array) -> float:
        return float(np.mean(reached - least <= tol * np.maximum(np.abs(least), 1.0)))

    return _by_cost(costs, sense, judge)


def _by_cost(costs: Any, sense: str, judge: Callable[[Array, Array], float]) -> Scorer:
    if not (isinstance(costs, str) or callable(costs)):
        raise ValueError(f"costs are the name of an entry or a function, not {costs!r}")
    if sense not in ("min", "max"):
        raise ValueError(f"sense is 'min' or 'max', not {sense!r}")
    return _of_the_last_step(lambda model, X, y: judge(*_reached(model, X, costs, sense)))


def _reached(model: Any, X: Sequence[Any], costs: Costs, sense: str) -> tuple[Array, Array]:
    """What the model's decisions cost, and the least cost, of every example."""
    batch, sign = Batch.of(model.structures(X)), 1.0 if sense == "min" else -1.0
    true = [sign * _true(x, costs, batch.structure(m).size, m) for m, x in enumerate(X)]
    best, _, _ = best_of(batch, -np.concatenate(true), model.oracle)
    values = []
    for outcomes in (best, model.predict(X)):
        rows = [batch.structure(m).encode(outcome) for m, outcome in enumerate(outcomes)]
        values.append(np.array([cost @ row for cost, row in zip(true, rows, strict=True)]))
    least, reached = values
    return reached, least


def _true(x: Any, costs: Costs, size: int, m: int) -> Array:
    given = x[costs] if isinstance(costs, str) else costs(x)
    cost = as_numbers(given, f"example {m}: costs").reshape(-1)
    if cost.shape != (size,):
        raise ValueError(f"example {m}: {len(cost)} costs for {size} parts")
    return cost

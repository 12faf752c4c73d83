"""Choosing alpha by examples that were not learned from: scores, splits, and which one wins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mlestruct.estimators.examples import Given, rng_of
from mlestruct.structures.base import Array, Ints, as_count, as_numbers
from mlestruct.structures.batch import Batch, Partial, pinned

LIKELIHOODS = ("mle_struct", "exact_mle")

Scoring = str | Callable[[Any, Sequence[Any], Sequence[Any]], float] | None
NAMED = {"log_likelihood": "log-likelihood", "parts_right": "share of parts right"}


def scored_by(model: Any) -> tuple[Any, str]:
    """The name or function to score with, and words for it.

    By default the log-likelihood, of which alpha is a part; learners without one: parts right.
    """
    scoring, learner = model.scoring, model._learner(model.alpha_).name
    if scoring is None:
        scoring = "log_likelihood" if learner in LIKELIHOODS else "parts_right"
    if callable(scoring):
        return scoring, getattr(scoring, "__name__", "score of your own")
    if scoring not in NAMED:
        raise ValueError(f"scoring is {', '.join(NAMED)} or a function, not {scoring!r}")
    if scoring == "log_likelihood" and learner not in LIKELIHOODS:
        raise ValueError(f"{learner!r} has no log-likelihood to choose alpha by; scoring=None does")
    return scoring, NAMED[scoring]


def judged(model: Any, given: Given) -> Array:
    """A score for each example, or one for all of them by a function of the user's."""
    (how, _), X, y = scored_by(model), given.X, given.outcomes
    if callable(how):
        score = as_numbers(how(model, [model.as_given(x) for x in X], y), "what scoring returns")
        if score.size != 1 or np.isnan(score).any():
            raise ValueError(
                f"scoring returns {score.tolist()}; expected one number, the larger the better"
            )
        return score.reshape(1)
    if how == "parts_right":
        return np.array([model.score([one], [other]) for one, other in zip(X, y, strict=True)])
    batch, scores = model._scored(model._given(X, y), y)
    if not batch.partly:
        return _likelihoods(model, batch, scores, X)
    both = [replace(one, target=np.zeros(batch.size)) for one in (batch, pinned(batch))]
    full, known = (_likelihoods(model, one, scores, X) for one in both)
    return full - known


def _likelihoods(model: Any, batch: Batch[Any], scores: Array, X: Sequence[Any]) -> Array:
    """Every example's log-likelihood, as learned: a surrogate's, or exact."""
    from mlestruct.statistics.interval import likelihood_of

    summed, oracle = model._learner(model.alpha_).name == "exact_mle", model._oracle()
    features = model.features(batch, X)
    found = likelihood_of(batch, features, model.rho, summed=summed, oracle=oracle)
    if found is None:
        return np.asarray(batch.observed(scores) - model._marginals(batch, scores).upper)
    return found.values(model.coef_)[0]


def how_chosen(model: Any, alphas: Array) -> str:
    """In words, how a fitted model's alpha was chosen among these."""
    how = f"alpha was chosen by the mean {scored_by(model)[1]} of examples not learned from"
    how += f", in {model.folds} folds" if model.folds is not None else ""
    rule = ", the largest within one standard error of the best"
    ends = {alphas.max(): "largest", alphas.min(): "smallest"}
    edge = f"; it is the {ends[model.alpha_]} tried" if model.alpha_ in ends else ""
    return how + rule * model.one_standard_error + edge


def held_out(model: Any, given: Given) -> list[tuple[Given, Given]]:
    """Examples to learn from, and those held out, in turn; first those with all their labels."""
    encoded = model.encode(given.X, given.outcomes)
    whole = [m for m, outcome in enumerate(encoded) if not isinstance(outcome, Partial)]
    known = [m for m, o in enumerate(encoded) if not isinstance(o, Partial) or o.tells]
    share, rng = float(as_numbers(model.held_out, "held_out")), rng_of(model.random_state)
    every = np.arange(len(encoded))
    chosen = splits(whole, known, len(encoded), share, model.folds, rng)
    return [(given.part(np.setdiff1d(every, some)), given.part(some)) for some in chosen]


def splits(
    whole: Sequence[int],
    known: Sequence[int],
    count: int,
    share: float,
    folds: int | None,
    rng: np.random.Generator,
) -> list[Ints]:
    """Which of ``count`` examples to hold out in turn: ``whole`` ones, with all their labels.

    One split of a ``share`` of all, or ``folds`` that share the whole ones; where there are too
    few, those of which something is ``known``, which is then what is judged.
    """
    if folds is not None:
        as_count(folds, "folds", least=2)
        pool = whole if len(whole) >= folds else known
        if len(pool) < folds or len(pool) + folds <= 2:
            raise ValueError(f"{folds} folds of {len(pool)} examples that have a label")
        parts = np.array_split(rng.permutation(pool), folds)
        return [np.sort(part) for part in parts]
    held = round(share * count) if 0 <= share <= 1 else 0
    pool = whole if len(whole) >= held else known
    if not 0 < held < count or held > len(pool):
        raise ValueError(
            f"several alphas need validation=(X, y), or examples to hold out: held_out="
            f"{share:g} of {count} is {held}, and {len(pool)} have a label"
        )
    return [np.sort(rng.permutation(pool)[:held])]


def winner(alphas: Array, table: Array, careful: bool) -> int:
    """The position of the best mean score in a table (alphas × examples); of equals the first.

    ``careful``: of the largest alpha that is within one standard error of the best one's score,
    the error being that of the difference on the same examples.
    """
    mean = table.mean(axis=1)
    best = int(np.argmax(mean))
    if not careful or table.shape[1] < 2:
        return best
    behind = table[best] - table
    error = behind.std(axis=1, ddof=1) / np.sqrt(table.shape[1])
    close = np.flatnonzero(behind.mean(axis=1) <= error)
    return int(close[np.argmax(alphas[close])])

"""Choosing alpha by examples that were not learned from: scores, splits, and which one wins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mlestruct.estimators.examples import Given, rng_of
from mlestruct.structures.base import Array, as_count, as_numbers
from mlestruct.structures.batch import Batch, Partial, pinned

LIKELIHOODS = ("mle_struct", "exact_mle")


def judged(model: Any, given: Given) -> Array:
    """A score for each example: the log-likelihood, of which alpha is a part, or parts right."""
    X, y = given.X, given.outcomes
    if model._learner(model.alpha_).name not in LIKELIHOODS:
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

    summed = model._learner(model.alpha_).name == "exact_mle"
    features = model.features(batch, X)
    found = likelihood_of(batch, features, model.rho, summed=summed, oracle=model.oracle)
    if found is None:
        return np.asarray(batch.observed(scores) - model._marginals(batch, scores).upper)
    return found.values(model.coef_)[0]


def how_chosen(model: Any, alphas: Array) -> str:
    """In words, how a fitted model's alpha was chosen among these."""
    likely = model._learner(model.alpha_).name in LIKELIHOODS
    what = "log-likelihood" if likely else "share of parts right"
    how = f"alpha was chosen by the mean {what} of examples not learned from"
    how += f", in {model.folds} folds" if model.folds is not None else ""
    ends = {alphas.max(): "largest", alphas.min(): "smallest"}
    return how + (f"; it is the {ends[model.alpha_]} tried" if model.alpha_ in ends else "")


def held_out(model: Any, given: Given) -> list[tuple[Given, Given]]:
    """Examples to learn from, and those held out, in turn: one share of all, or folds.

    First those with all their labels are held out; where there are too few, those of which
    something is known, which is then what is judged.
    """
    encoded, rng = model.encode(given.X, given.outcomes), rng_of(model.random_state)
    whole = [m for m, outcome in enumerate(encoded) if not isinstance(outcome, Partial)]
    known = [m for m, o in enumerate(encoded) if not isinstance(o, Partial) or o.tells]
    count, folds = len(encoded), model.folds
    if folds is not None:
        wanted = as_count(folds, "folds", least=2)
    else:
        share = float(as_numbers(model.held_out, "held_out"))
        wanted = round(share * count) if 0 <= share <= 1 else 0
    pool = whole if len(whole) >= wanted else known
    if wanted > len(pool) or (folds is None and not 0 < wanted < count):
        asked = f"{folds} folds" if folds else f"held_out={share:g} of {count} is {wanted}"
        raise ValueError(
            f"several alphas need validation=(X, y), or examples to hold out: {asked}, and "
            f"{len(pool)} have a label"
        )
    drawn = rng.permutation(pool)
    held = [drawn[:wanted]] if folds is None else np.array_split(drawn, wanted)
    every = np.arange(count)
    return [(given.part(np.setdiff1d(every, one)), given.part(np.sort(one))) for one in held]

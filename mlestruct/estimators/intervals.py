"""From a fitted estimator and its data to intervals, or to the reason why there are none."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from mlestruct.estimators.choosing import LIKELIHOODS
from mlestruct.estimators.examples import Given, listed
from mlestruct.estimators.trainable import ALIKE
from mlestruct.features import Features
from mlestruct.inference import marginals
from mlestruct.inference.sandwich import PAIRS, Sandwich
from mlestruct.learners import mle_struct
from mlestruct.learning.regulariser import Regulariser
from mlestruct.limits import OutOfTime, check
from mlestruct.statistics import Interval, Intervals, Named, UnitLikelihood, problem
from mlestruct.statistics import intervals as found_intervals
from mlestruct.statistics.affordability import MOST
from mlestruct.statistics.identified import Identified
from mlestruct.statistics.interval import FEWEST, LATE, LEAST, QUESTIONS, refusal, refuse_level
from mlestruct.structures import BipartiteMatching, Matching
from mlestruct.structures.base import Array, Ints, absent
from mlestruct.structures.batch import Batch
from mlestruct.structures.entropy import Rho


class Learned(NamedTuple):
    """What a fit says of itself: the learner's name, its ρ, weights and regulariser, the oracle."""

    learner: str
    rho: Rho
    coef: Array
    ridge: Regulariser
    oracle: Any
    calls: int = QUESTIONS
    """That the fit made of the oracle."""


def intervals(
    model: Any, given: Given, cohort: Sequence[Any] | None, against: int, level: float
) -> Intervals:
    """What these examples tell of the weights of a fitted estimator: see its ``intervals``."""
    if model.l1:
        raise ValueError(
            "weights that l1= chose from these examples have no honest interval: fit with "
            "l1=0, or choose features by l1= on other examples and fit those alone here"
        )
    if ALIKE in model.notes_:
        raise ValueError("intervals are for labels that count alike: fit without their weights")
    known = model.known(given)
    encoded = model.encode(known.X, known.outcomes)
    batch, features = model._problem(known.X, encoded, known.weight)
    if batch.partly:
        raise ValueError(
            f"intervals need every label, and some outcomes are partial: {model.instead}"
        )
    learner = model._learner(model.alpha_)
    calls = model.history_[-1][0] if model.history_ else 0
    fitted = Learned(learner.name, model.rho, model.coef_, learner.regulariser, model.oracle, calls)
    names, told = model.names(), [] if features.d > MOST else model.contrasts(against)
    cohorts = None if cohort is None else listed(cohort, "cohort is a list")
    unit = units_of(cohorts, len(given.every), known.places)
    found = intervals_of(fitted, batch, features, names, told, unit=unit, level=level)
    sums = np.append(features.moments(batch.target * batch.weights), len(batch))
    return replace(found, names=tuple(names)).by(model._told, sums)


def intervals_of(
    fitted: Learned,
    batch: Batch[Any],
    features: Features,
    names: Sequence[str],
    known: Sequence[Named],
    *,
    unit: tuple[Ints, str] | None = None,
    level: float = 0.95,
) -> Intervals:
    """By the number of every example's ``unit``, and what units are called (default: examples).

    Pairs are units where few large matchings leave no other way.
    """
    if fitted.learner not in LIKELIHOODS:
        raise ValueError(
            f"intervals are for learners of a likelihood ({', '.join(LIKELIHOODS)}), not for "
            f"{fitted.learner!r}"
        )
    refuse_level(level)
    numbers, unit_name = (np.arange(len(batch)), "examples") if unit is None else unit
    settings: Any = {"summed": fitted.learner == "exact_mle", "oracle": fitted.oracle}
    settings["questions"] = max(FEWEST, min(QUESTIONS, fitted.calls))
    found: Intervals | None = None
    try:
        asked = problem(batch, features, fitted.rho, unit=numbers, unit_name=unit_name, **settings)
        if not isinstance(asked, str):
            found = _paired(fitted, asked, names, known, level)
    except OutOfTime:
        asked = LATE
    if isinstance(asked, str):
        units = int(numbers.max()) + 1
        return Intervals([], units, unit_name, None, len(names), "", "", level, refused=asked)
    if found is not None:
        return found
    bounds = fitted.ridge.lower, fitted.ridge.upper
    free = bounds[0] < bounds[1]
    start = np.where(free, 0.0, bounds[0])
    return found_intervals(asked, names, known, start=start, free=free, bounds=bounds, level=level)


def units_of(cohort: Sequence[Any] | None, count: int, places: Sequence[int]) -> tuple[Ints, str]:
    """The number of the unit of what stands at these places among the examples, and what units are.

    A place stands there twice where an example fell apart, as nodes were left out of it.
    """
    if cohort is not None and len(cohort) != count:
        raise ValueError(f"cohort has {len(cohort)} entries for {count} examples")
    for m, one in enumerate([] if cohort is None else cohort):
        if absent(one) or not isinstance(one, Hashable):
            raise ValueError(f"example {m} is of no cohort ({one!r:.40}); name one")
    number: dict[Any, int] = {}
    own = [m if cohort is None else cohort[m] for m in places]
    numbers = np.array([number.setdefault(one, len(number)) for one in own])
    return numbers, "examples" if cohort is None else "cohorts"


def _paired(
    fitted: Learned,
    asked: UnitLikelihood,
    names: Sequence[str],
    known: Sequence[Named],
    level: float,
) -> Intervals | None:
    """Pairs as units: for few matchings too large to sum, of which none is a unit enough."""
    batch, d = asked.model.batch, len(fitted.coef)
    large = asked.exact is None and asked.unit_name == "examples" and fitted.ridge.plain
    own = fitted.oracle is not None and not isinstance(fitted.oracle, str)
    pairs = all(isinstance(s, (BipartiteMatching, Matching)) for s in batch.structures)
    if own or not (large and pairs) or len(batch) >= max(LEAST, d + 1):
        return None
    dual = mle_struct(fitted.rho, regulariser=fitted.ridge).dual(batch, asked.model.features)
    tau = marginals(batch, dual.scores(fitted.coef), rho=fitted.rho).tau
    check()
    found = Sandwich.of(dual, fitted.coef, tau)
    if refusal(asked, found.rank) is None:
        return None
    count = d - found.rank
    blank = Intervals([], found.units, "pairs and singles", found.rank, d, asked.about, "", level)
    if not found.enough:
        why = (
            f"pairs and singles are too few for so many weights: {PAIRS:g} each are needed that "
            f"the model is not sure of, and here are {found.undecided:.3g} in all"
        )
        return replace(blank, refused=why)
    told = Identified(np.linalg.qr(found.null, mode="complete")[0][:, count:], found.null)
    rows = [
        Interval(one.name, *found.contrast(one.combination, level)[:4])
        for one in told.contrasts(names, known)
    ]
    assumes = "the structure is so large that pairs are nearly independent of each other"
    return replace(blank, rows=rows, assumes=assumes)

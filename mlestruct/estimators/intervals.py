"""From a fitted estimator and its data to intervals, or to the reason why there are none."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mlestruct.estimators.choosing import LIKELIHOODS
from mlestruct.estimators.examples import Given, listed
from mlestruct.estimators.trainable import ALIKE
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
from mlestruct.structures.base import Ints, absent


def intervals(
    model: Any, given: Given, cohort: Sequence[Any] | None, against: int, level: float
) -> Intervals:
    """What these examples tell of the weights of a fitted estimator: see its ``intervals``.

    Pairs are units where few large matchings leave no other way.
    """
    if model.l1:
        raise ValueError(
            "weights that l1= chose from these examples have no honest interval: fit with "
            "l1=0, or choose features by l1= on other examples and fit those alone here"
        )
    if ALIKE in model.notes_:
        raise ValueError("intervals are for labels that count alike: fit without their weights")
    learner, known = model._learner(model.alpha_), model.known(given)
    encoded = model.encode(known.X, known.outcomes)
    batch, features = model._problem(known.X, encoded, known.weight)
    if batch.partly:
        way = ", or by a fit with unseen='left_out'" if hasattr(model, "unseen") else ""
        why = "intervals need every label, and some outcomes are partial"
        raise ValueError(f"{why}: learn from those of which every label is known{way}")
    if learner.name not in LIKELIHOODS:
        raise ValueError(
            f"intervals are for learners of a likelihood ({', '.join(LIKELIHOODS)}), not for "
            f"{learner.name!r}"
        )
    refuse_level(level)
    names, told = model.names(), [] if features.d > MOST else model.contrasts(against)
    cohorts = None if cohort is None else listed(cohort, "cohort is a list")
    numbers, unit_name = units_of(cohorts, len(given.every), known.places)
    calls = model.history_[-1][0] if model.history_ else 0
    settings: Any = {"summed": learner.name == "exact_mle", "oracle": model.oracle}
    settings |= {"questions": max(FEWEST, min(QUESTIONS, calls))}
    found: Intervals | None = None
    try:
        asked = problem(batch, features, model.rho, unit=numbers, unit_name=unit_name, **settings)
        if not isinstance(asked, str):
            found = _paired(model, learner.regulariser, asked, told, level)
    except OutOfTime:
        asked = LATE
    if isinstance(asked, str):
        units = int(numbers.max()) + 1
        found = Intervals([], units, unit_name, None, len(names), "", "", level, refused=asked)
    elif found is None:
        bounds = learner.regulariser.lower, learner.regulariser.upper
        free = bounds[0] < bounds[1]
        how: Any = {"start": np.where(free, 0.0, bounds[0]), "free": free, "bounds": bounds}
        found = found_intervals(asked, names, told, level=level, **how)
    sums = np.append(features.moments(batch.target * batch.weights), len(batch))
    return replace(found, names=tuple(names)).by(model._told, sums)


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
    model: Any, ridge: Regulariser, asked: UnitLikelihood, known: Sequence[Named], level: float
) -> Intervals | None:
    """Pairs as units: for few matchings too large to sum, of which none is a unit enough."""
    batch, d = asked.model.batch, len(model.coef_)
    large = asked.exact is None and asked.unit_name == "examples" and ridge.plain
    own = model.oracle is not None and not isinstance(model.oracle, str)
    pairs = all(isinstance(s, (BipartiteMatching, Matching)) for s in batch.structures)
    if own or not (large and pairs) or len(batch) >= max(LEAST, d + 1):
        return None
    dual = mle_struct(model.rho, regulariser=ridge).dual(batch, asked.model.features)
    tau = marginals(batch, dual.scores(model.coef_), rho=model.rho).tau
    check()
    found = Sandwich.of(dual, model.coef_, tau)
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
        for one in told.contrasts(model.names(), known)
    ]
    assumes = "the structure is so large that pairs are nearly independent of each other"
    return replace(blank, rows=rows, assumes=assumes)

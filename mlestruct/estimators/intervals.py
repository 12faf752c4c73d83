"""From a fitted estimator and its data to intervals, or to the reason why there are none."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from mlestruct.estimators.choosing import LIKELIHOODS
from mlestruct.features import Features
from mlestruct.inference import marginals
from mlestruct.inference.sandwich import PAIRS, Sandwich
from mlestruct.learners import mle_struct
from mlestruct.limits import OutOfTime, check
from mlestruct.regulariser import Regulariser
from mlestruct.statistics import Interval, Intervals, Named, Problem, intervals, problem
from mlestruct.statistics.identified import Identified
from mlestruct.statistics.interval import LATE, LEAST, refusal, refuse_level
from mlestruct.structures import BipartiteMatching, Matching
from mlestruct.structures.base import Array, Ints, absent
from mlestruct.structures.batch import Batch
from mlestruct.structures.entropy import Rho

TASTES = "tastes=True is for few large partial bipartite matchings and rho=0.5"


class Learned(NamedTuple):
    """What a fit says of itself: the learner's name, its ρ, weights and regulariser, the oracle."""

    learner: str
    rho: Rho
    coef: Array
    ridge: Regulariser
    oracle: Any


def intervals_of(
    fitted: Learned,
    batch: Batch[Any],
    features: Features,
    names: Sequence[str],
    known: Sequence[Named],
    *,
    unit: tuple[Ints, str] | None = None,
    tastes: bool = False,
    level: float = 0.95,
) -> Intervals:
    """By the number of every example's ``unit``, and what units are called (default: examples).

    Pairs are units where few large matchings leave no other way. ``tastes``: everybody's are
    independent, in one market of Choo and Siow's, and all of its people are here.
    """
    if fitted.learner not in LIKELIHOODS:
        raise ValueError(
            f"intervals are for learners of a likelihood ({', '.join(LIKELIHOODS)}), not for "
            f"{fitted.learner!r}"
        )
    refuse_level(level)
    kinds = {isinstance(s, BipartiteMatching) and s.kind == "partial" for s in batch.structures}
    if tastes and not (kinds == {True} and fitted.rho in (None, 0.5)):
        raise ValueError(TASTES)
    numbers, unit_name = (np.arange(len(batch)), "examples") if unit is None else unit
    summed = fitted.learner == "exact_mle"
    settings: Any = {"summed": summed, "unit": numbers, "unit_name": unit_name}
    try:
        asked = problem(batch, features, fitted.rho, oracle=fitted.oracle, **settings)
        if isinstance(asked, str):
            return _refused(asked, numbers, unit_name, len(names), level)
        found = _paired(fitted, asked, names, known, level, tastes)
    except OutOfTime:
        return _refused(LATE, numbers, unit_name, len(names), level)
    if tastes and found is None:
        raise ValueError(TASTES)
    if found is not None:
        return found
    bounds = fitted.ridge.lower, fitted.ridge.upper
    free = bounds[0] < bounds[1]
    start = np.where(free, 0.0, bounds[0])
    return intervals(asked, names, known, start=start, free=free, bounds=bounds, level=level)


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
    name = "examples" if cohort is None else "cohorts"
    return np.array([number.setdefault(one, len(number)) for one in own]), name


def _paired(
    fitted: Learned,
    asked: Problem,
    names: Sequence[str],
    known: Sequence[Named],
    level: float,
    tastes: bool,
) -> Intervals | None:
    """Pairs as units: for few matchings too large to sum, of which none is a unit enough.

    Where independent ``tastes`` cleared a market, moments vary by half the surrogate's Hessian. The
    choices of either side vary by that side's own Hessian, and couples, on whom both sides agree,
    by the parallel sum of the two: that is ∂τ/∂Φ, Φ being twice the score.
    """
    batch = asked.model.batch
    large = asked.exact is None and asked.unit_name == "examples" and fitted.ridge.plain
    own = fitted.oracle is not None and not isinstance(fitted.oracle, str)
    pairs = all(isinstance(s, (BipartiteMatching, Matching)) for s in batch.structures)
    if own or not (large and pairs):
        return None
    d = len(fitted.coef)
    if len(batch) >= max(LEAST, d + 1):
        return None
    dual = mle_struct(fitted.rho, regulariser=fitted.ridge).dual(batch, asked.model.features)
    tau = marginals(batch, dual.scores(fitted.coef), rho=fitted.rho).tau
    check()
    found = Sandwich.of(dual, fitted.coef, tau, "parts")
    if refusal(asked, found.rank) is None:
        return None
    if tastes:
        half = Sandwich.of(dual, fitted.coef, tau, "model").spread / 2.0
        found = replace(found, spread=half, undecided=float(found.units))
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
    if tastes:
        assumes = (
            "everybody's tastes are independent, prices cleared the market, and these are all of "
            "its people, not a sample of households"
        )
    return replace(blank, rows=rows, assumes=assumes)


def _refused(why: str, unit: Ints, unit_name: str, weights: int, level: float) -> Intervals:
    units = int(unit.max()) + 1
    return Intervals([], units, unit_name, None, weights, "", "", level, refused=why)

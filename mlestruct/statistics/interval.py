"""Confidence intervals for learned weights, by the rule that covers: see docs/statistics.md.

Examples (or cohorts of them) are the independent units. Never the variance between units alone
where they are few, never a normal quantile: with few units the likelihood's own fall decides, with
more a t distribution whose degrees of freedom are counted; and no interval where none is honest.

Below the rule: how a batch becomes a problem that it is asked of, and how far estimates spread
between units.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit

from mlestruct import limits
from mlestruct.features import Features
from mlestruct.inference.exact import exact, outcomes
from mlestruct.inference.routine import routine
from mlestruct.results import Shown
from mlestruct.statistics.affordability import MOST, ROOM, total
from mlestruct.statistics.firth import HELD, Firth, Point, Unsettled, end, open_sides, without_end
from mlestruct.statistics.identified import Identified, Named
from mlestruct.statistics.likelihood import Infer, Likelihood
from mlestruct.statistics.mixtures import Listed, Mixtures
from mlestruct.structures.base import Array, Ints, as_number
from mlestruct.structures.batch import Batch
from mlestruct.structures.entropy import Entropy, Rho

ALL = "examples"  # what units are called where no cohorts are named
MANY = 8  # units from which the variance between them counts
SAME = 1e-9  # of sums over examples: what rounding may make of the same ones
EVALUATIONS = 8  # of the likelihood's slopes, about, that an end takes
SEARCH = 12  # the same of a search for the estimates
SUMS = 6  # the same of a search by exact sums, from a surrogate's estimates
SHOWN = 5  # weights that one unit alone tells, by name
LONG = 1e5  # squared weights times examples: minutes of looking for ends, where these are few
SURE, FEW = 1 / 4, 10.0  # of all nats those left, and nats a weight: below, t intervals are short
LEAST = 4  # units from which it counts alone, where the model's own variance cannot be had
PATIENCE = 60.0  # seconds that the exact variance of all scores may take, the search included
QUESTIONS, FEWEST = 10_000, 1_000  # that finding all answers of a solver of one's own may take
LARGEST = 2_000  # parts of a structure whose marginals are mixtures of an oracle's answers
NODES, MATCHINGS = 8, 105  # nodes and matchings of general graphs that are mixed, as all are listed


@dataclass(frozen=True)
class Interval:
    """A named combination of weights: bias-reduced estimate, standard error, and both ends.

    An end may be infinite: then no data of this kind could have ruled larger values out. Where
    both are, and the error too, time ran out before the row was ``reached``.
    """

    name: str
    estimate: float
    error: float
    low: float
    high: float

    @property
    def reached(self) -> bool:
        """Whether there was time to find the interval; the estimate is known either way."""
        return bool(np.isfinite(self.error))

    def __str__(self) -> str:
        if not self.reached:
            return f"{self.estimate:+10.4f}   not reached"
        ends = [
            "no lower end" if np.isneginf(self.low) else f"{self.low:+.3f}",
            "no upper end" if np.isposinf(self.high) else f"{self.high:+.3f}",
        ]
        return f"{self.estimate:+10.4f} {self.error:9.4f}   [{', '.join(ends)}]"


@dataclass(frozen=True)
class Intervals(Shown):
    """What data tell of the weights, and in words what that rests on.

    ``refused`` says why there is no honest interval (then ``rows`` is empty). ``units`` are the
    independent ``unit``: examples, cohorts, pairs. ``rank`` combinations of ``weights`` weights
    are identified.
    """

    rows: list[Interval]
    units: int
    unit: str
    rank: int | None
    weights: int
    about: str
    assumes: str
    level: float = 0.95
    refused: str | None = None
    others: str | None = None
    """Where these are not the examples that the model learned from: what the estimates are of."""
    names: tuple[str, ...] | None = None
    """Of all the weights of the model that was asked."""

    def by(self, learned: Array | None, given: Array | None) -> Intervals:
        """Told apart from the examples learned from by sums over either; None: not known."""
        if learned is None or given is None:
            said = "the estimates are of these examples, whether the model learned from them or not"
        elif learned.shape == given.shape and np.allclose(learned, given, rtol=SAME, atol=SAME):
            said = None
        else:
            said = "the estimates are of these examples, from which the model did not learn"
        return replace(self, others=said)

    def __getitem__(self, name: str) -> Interval:
        """The interval of that name."""
        for row in self.rows:
            if row.name == name:
                return row
        raise KeyError(name)

    def columns(self) -> dict[str, list[Any]]:
        """A row for each: its name, the estimate, its error, and both ends."""
        names = ("name", "estimate", "error", "low", "high")
        return {name: [getattr(row, name) for row in self.rows] for name in names}

    def remarks(self) -> list[str]:
        return self.words

    def plot(self, ax: Any = None) -> Any:
        """Every estimate, with its interval where it has both ends."""
        from mlestruct.plot import dots

        found = self.columns()
        ends = [(row.low, row.high) for row in self.rows]
        label = f"{100 * self.level:g} % interval"
        return dots(found["name"], found["estimate"], ends, label=label, ax=ax)

    def __str__(self) -> str:
        width = max((len(row.name) for row in self.rows), default=0)
        head = f"{'':>{width}} {'estimate':>10} {'error':>9}   {100 * self.level:g} % interval"
        lines = [head, *(f"{row.name:>{width}} {row}" for row in self.rows)]
        return "\n".join([*(lines if self.rows else []), *self.words])

    @property
    def unreached(self) -> list[str]:
        """The names of the rows for which time ran out."""
        return [row.name for row in self.rows if not row.reached]

    @property
    def words(self) -> list[str]:
        """The number of units, what the intervals are for and what they assume; or the refusal."""
        count = f"{self.units} {self.unit if self.units != 1 else self.unit.removesuffix('s')}"
        known = "" if self.rank is None else f", {self.rank} of them told apart by the data"
        told = [f"{count}; {self.weights} weights{known}"]
        told += [] if self.others is None else [self.others]
        if self.refused is not None:
            return [*told, f"no intervals: {self.refused}"]
        if self.unreached:
            told.append(f"not reached in time: {', '.join(self.unreached)}")
        return [*told, f"the intervals are for {self.about}", f"they assume that {self.assumes}"]


LATE = "max_seconds ran out before the estimates that intervals are around were found: raise it"
UNSETTLED = (
    "the search for the estimates did not come to rest, as these data hardly bound some of them: "
    "learn from more examples, or from fewer columns"
)


ALONE = (
    "one of the {} alone tells a weight from the others, so that nothing shows how far it varies: "
    "learn from more of them, or from fewer columns"
)
ALIKE = "how alike examples of one of them are, the model does not say"


class Alone(ArithmeticError):
    """A weight of which one unit alone tells."""


@dataclass(frozen=True)
class UnitLikelihood:
    """A likelihood, its exact counterpart where sums are affordable, and who is one unit.

    ``exact`` is None where sums are out of reach, and ``model`` itself where that is exact. Example
    m belongs to unit ``unit[m]``; ``about`` says what the model's weights mean.
    """

    model: Likelihood
    exact: Likelihood | None
    unit: Ints
    unit_name: str = ALL
    about: str = "the weights"

    @property
    def units(self) -> int:
        return int(self.unit.max()) + 1

    @property
    def vary(self) -> bool:
        """Whether the model says how units vary: not where examples of a cohort are alike."""
        return self.exact is not None and not self.clustered

    @property
    def clustered(self) -> bool:
        """Whether units are cohorts of several examples."""
        return self.unit_name != ALL and self.units != len(self.model)


def intervals(
    problem: UnitLikelihood,
    names: Sequence[str],
    known: Sequence[Named] = (),
    *,
    start: Array | None = None,
    free: NDArray[np.bool_] | None = None,
    bounds: tuple[Array, Array] | None = None,
    level: float = 0.95,
    max_seconds: float | None = None,
) -> Intervals:
    """The intervals of all identified contrasts; ``known`` ones come first, by their own names.

    ``start`` is where to begin; it holds the values of weights that are not ``free``. ``bounds``
    cut the intervals of single weights: whoever knows them loses nothing by using them. After
    ``max_seconds`` the rows that are left say "not reached", see :attr:`Interval.reached`.
    """
    refuse_level(level)
    with limits.limited(max_seconds, "intervals"):
        d, about = problem.model.d, problem.about
        blank = Intervals([], problem.units, problem.unit_name, None, d, about, "", level)
        if (why := refusal(problem)) is not None:
            return replace(blank, refused=why)
        try:
            told = Identified.of(problem.model, free)
            blank = replace(blank, rank=told.rank, refused=refusal(problem, told.rank))
            if blank.refused is not None:
                return blank
            asked = told.contrasts(names, known)
            ends = 0 if _speak(problem.units, told.rank, problem.vary) else 2 * len(asked)
            calls = (SEARCH + EVALUATIONS * ends) * (2 * told.rank + 1)
            problem.model.watch.total = calls + problem.model.watch.done
            with problem.model.watch:
                fitted = Fitted.of(problem, np.zeros(d) if start is None else start, told.basis)
                rows = [_reached(fitted, one, level) for one in asked]
        except limits.OutOfTime:
            return replace(blank, refused=LATE)
        except np.linalg.LinAlgError:
            return replace(blank, refused="information vanishes where the search went: rescale X")
        except Unsettled:
            return replace(blank, refused=UNSETTLED)
        except Alone:
            return replace(blank, refused=ALONE.format(problem.unit_name))
        late = sum(not row.reached for row in rows)
        if late:
            limits.note(f"{late} of {len(rows)} intervals were not reached")
        if bounds is not None:
            rows = [_cut(row, names, *bounds) for row in rows]
        return replace(blank, rows=rows, assumes=fitted.assumes(asked))


def _reached(fitted: Fitted, asked: Named, level: float) -> Interval:
    """A row, or one that says that time ran out before it was known."""
    try:
        return fitted.interval(asked, level)
    except limits.OutOfTime:
        estimate = float(asked.combination @ fitted.top.theta)
        return Interval(asked.name, estimate, np.inf, -np.inf, np.inf)


def refuse_level(level: float) -> None:
    """A ValueError for what is no level of confidence."""
    if not 0 < as_number(level, "level") < 1:
        raise ValueError(f"level is {level}; it must be between 0 and 1")


def refusal(problem: UnitLikelihood, rank: int | None = None) -> str | None:
    """Why nothing honest can be said, and what would help; None where it can.

    Without ``rank``, which takes inference to find: only what holds whatever it is.
    """
    units, unit = problem.units, problem.unit_name
    if rank == 0:
        return "these data tell nothing of any weight: no outcome's probability depends on them"
    if units == 1 and problem.exact is not problem.model:
        return (
            f"one of the {unit} cannot show how far a surrogate's weights vary; learn from more of "
            "them, or with learner='exact_mle' where that is affordable"
        )
    if not problem.vary and (units <= (rank or 0) or units < LEAST):
        why = ALIKE if problem.clustered else "exact sums are out of reach"
        of = "" if rank is None else f" for {rank} combinations of weights"
        return (
            f"{units} {unit}{of}: their variance between {unit} cannot be told (more {unit} than "
            f"weights are needed, {LEAST} at least), and {why}"
        )
    if rank is None:
        return None
    if not _speak(units, rank, problem.vary) and rank**2 * len(problem.model) > LONG:
        return (
            f"{units} {unit} for {rank} combinations of weights: the ends of so many intervals "
            f"take too long to look for where so few {unit} bound them; more {unit} than weights "
            f"are quick ({MANY} at least), and so are fewer columns"
        )
    return None


def _speak(units: int, rank: int, exact: bool) -> bool:
    """Whether the variance between so many units decides; else the likelihood's fall does."""
    return units > rank and (units >= MANY or not exact)


@dataclass(frozen=True)
class Fitted:
    """The bias-reduced estimate, its units, and the direction in which it has no end, if any."""

    firth: Firth
    top: Point
    units: Units
    drift: Array | None
    sure: bool
    """Whether the outcomes are nearly certain, so that few of them bend a likelihood askew."""

    @classmethod
    def of(cls, problem: UnitLikelihood, start: Array, basis: Array) -> Fitted:
        """Firth's estimate; a surrogate's penalty is weighed by the exact variance of its scores.

        That variance is the data's own, so it is taken at the exact likelihood's weights, not at
        the surrogate's, which are larger.
        """
        first = Firth(problem.model, 0.5)
        top = first.maximise(first.begin(start, basis))
        if problem.exact is problem.model:
            weight = problem.model.batch.weight[:, None, None]
            return cls._around(problem, first, top, weight * top.slopes.hessian)
        if problem.exact is None:
            return cls._around(problem, first, top, None)
        sums = Firth(problem.exact, 0.5)
        truth = sums.climb(sums.begin(top.theta, top.basis, HELD), HELD, None)[0]
        weight = problem.exact.batch.weight[:, None, None]
        turn = np.linalg.lstsq(truth.basis, top.basis, rcond=None)[0]
        variance = turn.T @ (weight * truth.slopes.hessian) @ turn
        firth = Firth(problem.model, 0.5 * float(np.trace(variance.sum(axis=0))) / basis.shape[1])
        top = firth.maximise(top)
        turn = np.linalg.lstsq(truth.basis, top.basis, rcond=None)[0]
        variance = turn.T @ (weight * truth.slopes.hessian) @ turn
        return cls._around(problem, firth, top, variance)

    @classmethod
    def _around(
        cls, problem: UnitLikelihood, firth: Firth, top: Point, exact: Array | None
    ) -> Fitted:
        known = exact if problem.vary else None
        units = Units.of(top.slopes.score, top.slopes.hessian, known, problem.unit)
        left, all_ = -top.slopes.value.sum(), -problem.model.values(0.0 * top.theta)[0].sum()
        sure = bool(left < SURE * all_ and left < FEW * top.basis.shape[1])
        return cls(firth, top, units, without_end(firth, top), sure)

    @property
    def many(self) -> bool:
        """Whether there are enough units for their variance to speak."""
        units = self.units
        exact, rank = units.exact is not None, units.score.shape[1]
        return _speak(len(units), rank, exact) and not (exact and self.sure)

    def assumes(self, asked: Sequence[Named]) -> str:
        """In words, what the intervals of these contrasts rest on."""
        if len(self.units) == 1:
            return "the model is right; one example cannot show otherwise"
        if self.many:
            alone = [one.name for one in asked if not self.units.told(self._turned(one))]
            shown = ", ".join(alone[:SHOWN]) + ", ..." * (len(alone) > SHOWN)
            but = f", but for what one unit alone tells ({shown})" if alone else ""
            return f"the units are independent of each other; not that the model is right{but}"
        return "the units are independent, and vary as the model says or evenly more"

    def interval(self, asked: Named, level: float) -> Interval:
        """A t interval; where units are few or one side has no end, by the likelihood's fall."""
        contrast, top, c = asked.combination, self.top, self._turned(asked)
        estimate = float(contrast @ top.theta)
        sides = open_sides(self.drift, top, contrast)
        told = self.units.told(c)
        if not told and self.units.exact is None:
            raise Alone
        if self.many and told and not any(sides):
            has = self.units.exact is not None
            spread = self.units.moderated(c) if has else self.units.robust(c)
            error = float(np.sqrt(spread.variance))
            reach = float(stdtrit(spread.freedom, 0.5 + level / 2)) * error
            return Interval(asked.name, estimate, error, estimate - reach, estimate + reach)
        error = float(np.sqrt(self._variance(c)))
        fall = float(ndtri(0.5 + level / 2)) ** 2 * error**2 / float(c @ c)
        low, high = (
            side * np.inf if endless else end(self.firth, top, contrast, fall, side)
            for side, endless in zip((-1, 1), sides, strict=True)
        )
        return Interval(asked.name, estimate, error, low, high)

    def _turned(self, asked: Named) -> Array:
        """A contrast in the basis of the units."""
        return np.asarray(self.top.basis.T @ asked.combination)

    def _variance(self, c: Array) -> float:
        """The model's variance, times how much more the units vary than it says."""
        if self.units.exact is None:
            return self.units.robust(c).variance
        more = max(1.0, self.units.dispersion.variance) if len(self.units) > 1 else 1.0
        return more * self.units.modelled(c)


def _cut(row: Interval, names: Sequence[str], lower: Array, upper: Array) -> Interval:
    """A single weight's interval within its bounds, if they leave any of it."""
    if row.name not in names:
        return row
    j = names.index(row.name)
    low, high = max(row.low, float(lower[j])), min(row.high, float(upper[j]))
    if low >= high:
        return row
    return replace(row, estimate=float(np.clip(row.estimate, low, high)), low=low, high=high)


def problem(
    batch: Batch[Any],
    features: Features,
    rho: Rho = None,
    *,
    summed: bool = False,
    oracle: Any = None,
    unit: Ints | None = None,
    unit_name: str = "examples",
    questions: int = QUESTIONS,
) -> UnitLikelihood | str:
    """The likelihood of ``rho``'s surrogate, or (``summed``) the exact one; or why there is none.

    An ``oracle`` of your own may rule outcomes out that the structure allows, so the surrogate is
    that over its answers' hull then. ``unit`` numbers the independent unit of every example, from 0
    (default: each is one). An ``oracle`` of your own may be asked so many ``questions`` for all of
    its answers.
    """
    d, unit = features.d, np.arange(len(batch)) if unit is None else unit
    if d > MOST or d * d * len(batch) > ROOM:
        room = int(min(MOST, (ROOM / len(batch)) ** 0.5))
        return f"{d} weights are too many to tell apart one by one: {room} at most, of so many data"
    own = likelihood_of(batch, features, rho, summed=summed, oracle=oracle)
    itself = "the weights of the model itself"
    exactly = summed or Entropy.of(batch, rho).bound.kind == "exact"
    if own is not None and exactly:
        return UnitLikelihood(own, own, unit, unit_name, itself)
    about = "this surrogate's limit: what it would learn from unlimited data, not the true weights"
    if own is not None:
        cost = SUMS * 2.0 * d * total(batch)
        both = cost <= PATIENCE
        sums = Likelihood(batch, features, _sums, watch=own.watch) if both else None
        return UnitLikelihood(own, sums, unit, unit_name, about)
    if max(structure.size for structure in batch.structures) > LARGEST:
        return f"more than {LARGEST} parts are too many to take slopes of by asking a solver alone"
    mixtures = Mixtures(oracle, rho)
    model = Likelihood(batch, features, mixtures, mixtures.near)
    if exactly and (oracle is None or isinstance(oracle, str)):
        return UnitLikelihood(model, model, unit, unit_name, itself)
    asked = UnitLikelihood(model, None, unit, unit_name, about)
    if (asked.units == 1 or asked.clustered) and (why := refusal(asked)) is not None:
        return why  # whether all answers can be listed or not: the solver is not asked for them
    answers = Listed.of(batch, oracle, questions)
    if answers is None:
        return asked
    model = Likelihood(batch, features, Mixtures(oracle, rho, answers))
    exact_one = Likelihood(batch, features, answers, watch=model.watch)
    return replace(asked, model=model, exact=exact_one)


def likelihood_of(
    batch: Batch[Any],
    features: Features,
    rho: Rho = None,
    *,
    summed: bool = False,
    oracle: Any = None,
) -> Likelihood | None:
    """By exact sums, or by the routine of ``rho``'s entropy; None where Frank-Wolfe alone serves.

    So it does where an ``oracle`` of your own may have another polytope.
    """
    if summed:
        return Likelihood(batch, features, _sums)
    if oracle is not None and not isinstance(oracle, str):
        return None
    entropy = Entropy.of(batch, rho)
    infer = _mixed(batch, rho) or inference(entropy)
    if infer is None and entropy.bound.kind == "exact" and np.isfinite(total(batch)):
        infer = _sums
    return None if infer is None else Likelihood(batch, features, infer)


def _mixed(batch: Batch[Any], rho: Rho) -> Infer | None:
    """Mixtures of all matchings of small general graphs: quicker than prices of odd sets."""
    answers = {}
    for structure in batch.structures:
        general = structure.odd
        if not general or structure.n_nodes > NODES or (structure.fixed >= 0).any():
            return None
        answers[structure] = outcomes(structure).astype(float)
        if not 0 < len(answers[structure]) <= MATCHINGS:
            return None
    return Mixtures(None, rho, Listed(answers))


def inference(entropy: Entropy) -> Infer | None:
    """The routine of this entropy on any batch of the same structures; None: Frank-Wolfe alone."""
    found = routine(entropy)
    return None if found is None else lambda batch, scores: found.many(batch, scores)[:2]


def _sums(batch: Batch[Any], scores: Array) -> tuple[Array, Array]:
    return exact(batch, scores)[:2]


CLOSED = 1e-3  # share of a unit's own residual below which it determines a direction alone


class Spread(NamedTuple):
    """A variance, and the degrees of freedom of the t distribution it goes with."""

    variance: float
    freedom: float


@dataclass(frozen=True)
class Units:
    """Independent units: ``score`` (units × r) at the estimate, ``hessian`` (units × r × r).

    ``exact`` is the variance that the model gives to every unit's score, where it can be had. All
    matrices are in a basis that makes the whole Hessian the identity, so that H⁻¹ drops out. CR2
    and its degrees of freedom: Bell & McCaffrey (2002, Survey Methodology 28). The moderated
    variance is the idea of Smyth (2004, Stat. Appl. Genet. Mol. Biol. 3): a model's variance counts
    as so many degrees of freedom.
    """

    score: Array
    hessian: Array
    exact: Array | None

    @classmethod
    def of(cls, score: Array, hessian: Array, exact: Array | None, unit: Ints) -> Units:
        """Sums over the examples of each unit."""
        return cls(*(None if a is None else _by_unit(a, unit) for a in (score, hessian, exact)))  # type: ignore[arg-type]

    def __len__(self) -> int:
        return len(self.score)

    @cached_property
    def dispersion(self) -> Spread:
        """How much more the scores vary than the model says, over all directions alike; about 1.

        The sum of squared scores over what the model expects of it, and the degrees of freedom of
        such a sum. No unit is measured by its own variance: where it has few outcomes that is
        nearly 0 in some direction, the outcomes that would show it are too rare to be seen, and a
        mean of such ratios is too small (.7 for 1 on short paths).
        """
        assert self.exact is not None
        H, J = self.hessian, self.exact
        inverse = np.linalg.inv(J.sum(axis=0))
        reached = np.einsum("mi,ij,mj->", self.score, inverse, self.score)
        # the fit takes H_m Σ s away from the score of unit m
        left = J - H @ J - J @ H + H @ J.sum(axis=0) @ H
        expected = float(np.einsum("ij,mij->", inverse, left))
        if expected <= CLOSED * len(inverse):
            return Spread(1.0, 0.0)
        own, across = (H - H @ H) @ inverse, H @ inverse @ H
        square = (
            np.einsum("mij,mji->", own, own) - (across**2).sum() + (across.sum(axis=0) ** 2).sum()
        )
        freedom = float(np.trace(own.sum(axis=0))) ** 2 / float(square)
        return Spread(float(reached) / expected, freedom)

    @cached_property
    def _own(self) -> tuple[Array, Array]:
        """Of I − H_m, a unit's own share of its residual: eigenvalues and vectors, as rows."""
        value, vector = np.linalg.eigh(np.eye(self.score.shape[1]) - self.hessian)
        return value, vector.transpose(0, 2, 1)

    @cached_property
    def _roots(self) -> Array:
        """(I − H_m)^−½, with 0 where the unit alone determines a direction."""
        value, vector = self._own
        size = np.where(value > CLOSED, 1.0 / np.sqrt(np.maximum(value, CLOSED)), 0.0)
        return np.asarray(vector.transpose(0, 2, 1) @ (size[:, :, None] * vector))

    def told(self, contrast: Array) -> bool:
        """Whether units can differ about a contrast: not where one of them alone determines it.

        Nor where that is so of nearly all else, and no residual is left to measure any by.
        """
        if self.exact is not None and self.dispersion.freedom == 0.0:
            return False
        value, vector = self._own
        alone = ((vector[value <= CLOSED] @ contrast) ** 2).sum()
        return bool(alone <= CLOSED * (contrast @ contrast))

    def robust(self, contrast: Array) -> Spread:
        """CR2: from the units' scores alone."""
        H, pull = self.hessian, self._roots @ contrast
        reached = np.einsum("mi,mi->m", pull, self.score)
        # covariance of these under the working model: units' scores less what the fit takes away
        swing = np.einsum("mij,mj->mi", H, pull)
        P = -swing @ swing.T
        P[np.diag_indices(len(P))] += np.einsum("mi,mi->m", pull, swing)
        return Spread(float(reached @ reached), float(np.trace(P) ** 2 / (P**2).sum()))

    def modelled(self, contrast: Array) -> float:
        """c′Jc: the variance if the model is right."""
        assert self.exact is not None
        return float(contrast @ self.exact.sum(axis=0) @ contrast)

    def moderated(self, contrast: Array) -> Spread:
        """CR2 and the model's variance times the dispersion, weighed by degrees of freedom.

        In this mean the model counts as many degrees as there are weights. The t distribution has
        the dispersion's: those of CR2 are among them.
        """
        own, r = self.robust(contrast), self.score.shape[1]
        prior = self.dispersion.variance * self.modelled(contrast)
        variance = (own.freedom * own.variance + r * prior) / (own.freedom + r)
        return Spread(variance, self.dispersion.freedom)


def _by_unit(values: Array, unit: Ints) -> Array:
    out = np.zeros((int(unit.max()) + 1, *values.shape[1:]))
    np.add.at(out, unit, values)
    return out

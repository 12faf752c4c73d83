"""What every estimator does: learn from examples, choose alpha, save and load."""

from __future__ import annotations

import copy
import os
import reprlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike

from mlestruct.engine import Engine
from mlestruct.errors import refuse_removed
from mlestruct.estimators import door
from mlestruct.estimators.choosing import Scoring, how_chosen, judged, splits, winner
from mlestruct.estimators.convergence import Ending
from mlestruct.estimators.door import Given
from mlestruct.estimators.predictor import Predictor
from mlestruct.features import Dense, Features
from mlestruct.features.base import squares
from mlestruct.features.dense import alike, levelled
from mlestruct.inference.choose import Inference, Route
from mlestruct.learners import LEARNERS, Found, Interrupted, Learns
from mlestruct.learning.checkpoints import Unwritten
from mlestruct.learning.loop import BROKEN, AnyCheckpoint, Loop
from mlestruct.learning.regulariser import Regulariser
from mlestruct.oracle.registry import AnyOracle
from mlestruct.progress import watcher
from mlestruct.statistics.affordability import MOST, advice
from mlestruct.storage.digest import shown
from mlestruct.structures.base import Array, as_numbers
from mlestruct.structures.batch import Batch, Partial
from mlestruct.structures.entropy import Rho

if TYPE_CHECKING:
    from mlestruct.estimators.summary import Summary
    from mlestruct.statistics import Intervals

Examples = tuple[Sequence[Any], Sequence[Any]]
Penalty = Literal["raw", "standardised"]
KINDS = "biufU"  # of arrays that model files hold: see files.py
UNEVEN = 1e5  # columns of whose sizes the largest is so many of the smallest are no accident
QUIET = 1e-3  # of the largest weight: a column of less may be one that all outcomes share
DEEP = 1e8  # times λ: what all outcomes share in so large a column shows in the certificate
RECALIBRATED = "to calibrate probabilities"
FREE = ("workers", "engine", "progress")  # settings that change no bit


@dataclass(kw_only=True, eq=False, repr=False)
class Estimator(Predictor):
    """Learn weights of a structured output from outcomes, with nothing but a MAP solver.

    ``learner`` is a name in ``mlestruct.learners.LEARNERS``, or what makes one: for settings of its
    own, ``partial(camel, start="empirical")``. ``rho`` reweights its entropy.
    ``alpha`` is λ of (λ/2)‖θ‖² against the SUM over examples. Of several, the best mean score
    chooses: on ``validation``, or on a share ``held_out`` of the examples, drawn by
    ``random_state``, or on ``folds`` in turn, and then all examples are learned from. ``scoring``
    is ``log_likelihood`` (the default where the learner has one), ``parts_right``, or a function
    (model, X, y); ``one_standard_error`` takes the largest alpha that is as good as the best.
    ``penalty`` says what that λ is on: ``raw``, the weights of the columns as they are given, or
    ``standardised``, of columns divided by their root mean squares, whatever their units are (of
    perfect matchings without what their rows and columns add to every outcome alike, such as the
    mean); the optimiser is indifferent, and ``coef_`` is for the columns as given either way.
    ``l1`` adds l1·|θ| (elastic net), which makes weights 0. ``bounds`` = (lower, upper) keep
    weights in a box, numbers or one per weight.
    ``oracle`` is a name, a callable maximising a score, or an Oracle (default: the structure's).
    ``solver``: ``direct`` (marginals, L-BFGS), ``frank_wolfe`` (the oracle alone) or ``auto``.
    Outcomes may be :class:`Partial`, with labels missing: then no optimum is claimed.
    ``tol`` is the relative gap to certify; ``max_rounds`` and ``max_seconds`` bound the work;
    ``infer`` is what probabilities are computed by: the learner's own inference (None; what it is,
    ``summary()`` says), ``surrogate``, ``exact``, ``propagation``, ``frank_wolfe``, or an
    :class:`Inference`; it is read when predictions are asked for.
    ``workers`` ask the oracle: threads, or Dask's with ``engine="dask"``, with the same bits.
    ``progress`` shows a bar (default: on terminals).

    After ``fit``: ``coef_``, ``certificate_``, ``history_`` (calls, seconds, objective, gap of
    every round), ``n_iter_``, ``alpha_``, ``alpha_scores_`` (of every alpha that was compared),
    ``route_`` (which solver it was), ``converged_`` (it reached ``tol``; where it did not, a
    :class:`ConvergenceWarning` says why), ``scale_`` (what the penalty takes every weight times:
    1, or its column's root mean square). A ``fit`` that fails leaves the estimator as it was.
    """

    learner: str | Callable[..., Learns] = "mle_struct"
    rho: Rho = None
    alpha: float | Sequence[float] = 1.0
    penalty: Penalty = "raw"
    l1: float = 0.0
    bounds: tuple[ArrayLike, ArrayLike] | None = None
    oracle: AnyOracle = None
    solver: Route = "auto"
    infer: str | Inference | None = None
    tol: float = 1e-3
    max_rounds: int = 1000
    max_seconds: float | None = None
    workers: int = 1
    engine: Engine | str | None = None
    held_out: float = 0.25
    scoring: Scoring = None
    folds: int | None = None
    one_standard_error: bool = False
    random_state: int | np.random.Generator | None = 0
    progress: bool | None = None
    learns: ClassVar[tuple[str, ...]] = ()
    """The attributes that :meth:`prepare` makes."""
    instead: ClassVar[str] = "learn from the examples of which every label is known, and give those"
    """What to do for intervals where labels are missing."""

    def prepare(self, X: Sequence[Any], y: Sequence[Any]) -> None:
        """Take from all of the training data what encoding needs, such as the labels."""

    def known(self, given: Given) -> Given:
        """The examples to learn from: by default all, as they are given."""
        return given

    def counted(self, batch: Batch[Any], y: Sequence[Any]) -> Batch[Any]:
        """The batch to learn from, its parts weighed where the outcomes or settings say so."""
        return batch

    def fit(
        self,
        X: Sequence[Any],
        y: Sequence[Any],
        sample_weight: ArrayLike | None = None,
        *,
        validation: Examples | None = None,
        checkpoint: AnyCheckpoint = None,
    ) -> Self:
        """Learn from a list of examples' features and the list of their observed outcomes.

        With a ``checkpoint`` (a path, or :class:`Checkpoint`) a fit that was ended goes on, bit for
        bit, and one that was not begins. Ctrl-C leaves the model of the last round, as a full disk
        does.
        """
        return self._fit(X, y, sample_weight, None, validation, checkpoint)

    def _fit(
        self,
        X: Sequence[Any],
        y: Sequence[Any],
        sample_weight: ArrayLike | None,
        node_weight: Sequence[ArrayLike] | None,
        validation: Examples | None,
        checkpoint: AnyCheckpoint,
    ) -> Self:
        self.check_switches()
        learnt, alphas = copy.copy(self), door.alphas_of(self.alpha)
        if (
            checkpoint is not None
            and len(alphas) > 1
            and validation is None
            and self.random_state is None
        ):
            raise ValueError(
                "several alphas hold out other examples every time with random_state=None, so a "
                "checkpoint could never be gone on from: give a number"
            )
        given = self.taken(X, y)
        learnt._columns, learnt._label_columns = given.columns, given.labels
        if validation is not None:
            if not isinstance(validation, Sequence) or len(validation) != 2:
                raise ValueError(f"validation is (X, y), not {validation!r}")
            held_out = learnt._agreed(self.taken(*validation))
            validation = held_out.X, held_out.told
        given = learnt._agreed(given, sample_weight)
        if node_weight is not None:
            given = replace(given, y=door.with_weights(given, node_weight))
        given = learnt.known(given)
        X, y, weight = given.X, given.told, given.weight
        loop = Loop.begin(checkpoint, type(self).__name__, self._named)
        learnt.prepare(X, y)
        table, missed, work = None, list[float](), copy.copy(learnt)
        tried, judge = alphas, validation if len(alphas) > 1 else None
        try:
            if len(alphas) > 1 and validation is None:
                table, missed = work._held_out_scores(X, y, weight, alphas, loop)
                alphas = alphas[[winner(alphas, table, self.one_standard_error)]]
            work = learnt
            found = learnt._learn(X, y, weight, alphas, loop, judge)
        except (Interrupted, Unwritten) as ended:
            if ended.model is not None:
                vars(self).update(vars(work))
            raise
        except BROKEN as error:
            loop.blame(error)
            raise
        if judge is not None:
            table, missed = found[0], [alpha for alpha in found[1] if alpha != learnt.alpha_]
        if table is not None:
            means = zip(tried.tolist(), table.mean(axis=1).tolist(), strict=True)
            learnt.alpha_scores_ = sorted(means)
            learnt.notes_ = [*learnt.notes_, how_chosen(learnt, tried)]
        vars(self).update(vars(learnt))
        loop.keep()
        if self._short:
            how = self._short, self.certificate_, self.tol, missed, len(tried), self.get_params()
            Ending(*how, self._hint, bool(self.coef_.any())).warn(type(self).__name__)
        return self

    def _named(self) -> dict[str, Any]:
        """The settings that a fit which goes on must share."""
        settings = self.get_params().items()
        return {name: shown(value) for name, value in settings if name not in FREE}

    def _held_out_scores(
        self, X: Sequence[Any], y: Sequence[Any], weight: Array | None, alphas: Array, loop: Loop
    ) -> tuple[Array, list[float]]:
        """Scores (alphas × examples) of examples held out, and the alphas that did not converge.

        Examples with all their labels are held out first.
        """
        encoded = self.encode(X, y)
        whole = [m for m, outcome in enumerate(encoded) if not isinstance(outcome, Partial)]
        known = [m for m, o in enumerate(encoded) if not isinstance(o, Partial) or o.tells]
        share, rng = float(as_numbers(self.held_out, "held_out")), door.rng_of(self.random_state)
        missed, tables = list[float](), []
        for chosen in splits(whole, known, len(X), share, self.folds, rng):
            kept = np.setdiff1d(np.arange(len(X)), chosen)
            part = None if weight is None else weight[kept]
            held_out = door.part_of(X, [door.labels_of(one) for one in y], chosen)
            found = self._learn(*door.part_of(X, y, kept), part, alphas, loop, held_out)
            tables.append(found[0])
            missed += found[1]
        return np.concatenate(tables, axis=1), missed

    def _learn(
        self,
        X: Sequence[Any],
        y: Sequence[Any],
        weight: Array | None,
        alphas: Array,
        loop: Loop,
        judge: Examples | None,
    ) -> tuple[Array, list[float]]:
        """Keep the model of the only alpha, or of the one that scores best on ``judge``.

        Returns the scores, and the alphas whose fits have not converged.
        """
        batch, features = self._problem(X, self.encode(X, y), weight)
        counted, self._told = self.counted(batch, y), moments_of(batch, features)
        batch, self.notes_ = counted, [door.ALIKE] if counted is not batch else []
        if self.penalty == "standardised":
            self.notes_.append("alpha is on weights of columns divided by their root mean squares")
        levels, ridges = self._penalised(batch, features, alphas)
        tried, missed, model = dict[int, tuple[Array, Found]](), list[float](), None
        order = np.argsort(-alphas, kind="stable").tolist()  # each starts from a stronger one
        learner: Any = self._learner(ridges[order[0]])
        if batch.partly:
            learner = learner.of_seen(self.tol)
        told, inside = watcher(learner.name, self.progress), loop.inside("path")
        self.alpha_scores_: list[tuple[float, float]] = []
        for k in order:
            try:
                one = learner.under(ridges[k])
                model = one.fit(batch, levels, start=model, told=told, loop=inside)
            except (Interrupted, Unwritten) as ended:
                if ended.model is not None:
                    self._keep(ended.model, float(alphas[k]), features.d)
                raise
            inside.thin()
            self._keep(model, float(alphas[k]), features.d)
            missed += [] if model.converged else [self.alpha_]
            if judge is not None:
                tried[k] = judged(self, *judge), model
        table = np.zeros((len(alphas), 0))
        if tried:
            table = np.array([tried[k][0] for k in range(len(alphas))])
            best = winner(alphas, table, self.one_standard_error)
            self._keep(tried[best][1], float(alphas[best]), features.d)
        self._hint = self._uneven(features, batch.size) if self._short else ""
        self.notes_ = [*self.notes_, *self._notes(batch, features)]
        return table, missed

    def _notes(self, batch: Batch[Any], features: Features) -> list[str]:
        """What these examples say of the weights learned from them, in words."""
        surrogate = self.learner == "mle_struct" and self.oracle is None
        surrogate &= door.ALIKE not in self.notes_  # exact_mle takes no weights
        notes = advice(batch, self.inference_) if surrogate else []
        size = np.abs(self.coef_) * self.scale_
        quiet = np.flatnonzero(size <= QUIET * size.max(initial=0.0))
        if len(quiet) and features.d <= MOST and (same := alike(batch, features, quiet)):
            listed = ", ".join(self.names()[j] for j in same)
            notes.append(
                f"the same for every outcome, so that nothing can be learned of it: {listed}"
            )
        return notes

    def _penalised(
        self, batch: Batch[Any], features: Features, alphas: Array
    ) -> tuple[Features, list[Regulariser]]:
        """Features, without what all outcomes share where that drowns the rest; the penalties."""
        if self.penalty == "standardised":
            features = levelled(batch, features, np.arange(features.d))
        self.scale_ = self._scale(features, batch.size)
        ridges = [self._ridge(features.d, alpha) for alpha in alphas.tolist()]
        if self.penalty == "raw" and isinstance(features, Dense):
            large = features.squares(batch.weights) / len(batch) > DEEP * alphas.min()
            if large.any():
                features = levelled(batch, features, np.flatnonzero(large))
        return features, ridges

    def _ridge(self, d: int, alpha: float) -> Regulariser:
        bounds = (-np.inf, np.inf) if self.bounds is None else self.bounds
        if not isinstance(bounds, Sequence) or len(bounds) != 2:
            raise ValueError(f"bounds are (lower, upper), not {reprlib.repr(self.bounds)}")
        lower, upper = bounds
        with np.errstate(over="ignore", under="ignore"):
            lam = alpha * self.scale_**2
        return Regulariser.of(d, lam, l1=self.l1 * self.scale_, lower=lower, upper=upper)

    def _scale(self, features: Features, rows: int) -> Array:
        """What the penalty takes every weight times; a column of zeros has no size."""
        if self.penalty not in get_args(Penalty):
            raise ValueError(f"penalty is 'raw' or 'standardised', not {self.penalty!r}")
        if self.penalty == "raw":
            return np.ones(features.d)
        size = np.sqrt(squares(features, np.ones(rows)) / rows)
        for j in np.flatnonzero(size == 0):
            if features.potentials(np.eye(1, features.d, int(j))[0]).any():
                raise ValueError(f"squares of column {j} are too small to be told from 0")
        return np.where(size > 0, size, 1.0)

    def _uneven(self, features: Features, rows: int) -> str:
        """What to do about columns of very different sizes, where a fit has not converged."""
        size = np.sqrt(squares(features, np.ones(rows)) / rows)
        size = size[size > 0]
        if self.penalty != "raw" or len(size) == 0 or size.max() < UNEVEN * size.min():
            return ""
        return (
            f"sizes of columns differ by up to {size.max() / size.min():.0e}: divide the large "
            "ones, or take penalty='standardised'"
        )

    def _learner(self, regulariser: Regulariser) -> Learns:
        make = LEARNERS.get(self.learner) if isinstance(self.learner, str) else self.learner
        if make is None:
            raise ValueError(f"no learner {self.learner!r}; there are {', '.join(LEARNERS)}")
        return make(
            rho=self.rho,
            regulariser=regulariser,
            oracle=self._oracle(),
            route=self.solver,
            solver=self._solver(self.tol),
        )

    def _keep(self, model: Found, alpha: float, d: int) -> None:
        """The weights of scores; those of other heads are the inference's, which has them."""
        w = model.theta
        if w.ndim != 1 or w.dtype != float or len(w) < d or not np.isfinite(w).all():
            raise ValueError(f"a fit came to weights of shape {w.shape} and {w.dtype} for {d}")
        self.coef_, self.certificate_, self.route_ = w[:d], model.certificate, model.route
        self.history_, self.n_iter_, self.alpha_ = model.history, len(model.history), alpha
        self.converged_, self._short = not model.short, model.short
        self.solver_seconds_ = model.asking
        self.inference_, self._learned = model.inference, model.learned

    def intervals(
        self,
        X: Sequence[Any],
        y: Sequence[Any],
        sample_weight: ArrayLike | None = None,
        *,
        cohort: Sequence[Any] | None = None,
        reference: Any = None,
        level: float = 0.95,
        max_seconds: float | None = None,
        **removed: object,
    ) -> Intervals:
        """What these examples tell of the weights: estimates, errors, intervals.

        They are estimated anew. Of other examples than those learned from the result says so: they
        are not the model's own weights then.

        Examples are independent units, or ``cohort`` names the one that each belongs to. With
        labels, weights are told against a ``reference`` label (default: the first). For learners
        of a likelihood; docs/statistics.md says which interval is printed when, and why.

        After ``max_seconds`` (default: the estimator's own) the rows that are left say "not
        reached", or all intervals are refused where time was too short for the estimates that they
        are around; a :class:`ConvergenceWarning` says so once.
        """
        for name in removed:
            refuse_removed(f"intervals({name}=)")
            raise TypeError(f"intervals() has no argument {name!r}")
        with self._limited(max_seconds):
            from mlestruct.estimators.intervals import intervals

            given = self._given(X, y, sample_weight)
            return intervals(self, given, cohort, self.against(reference), level)

    def recalibrated(
        self, X: Sequence[Any], y: Sequence[Any], *, max_seconds: float | None = None
    ) -> Self:
        """A copy whose probabilities are as sharp as examples not learned from say they are.

        All weights are multiplied by one number, that of the best mean log score of the parts'
        probabilities. Predictions by ``map`` stay as they are. The certificate is withheld, and
        says why: these weights are not the ones that the fit proved optimal. A TimeoutError where
        ``max_seconds`` (default: the estimator's own) are too few.
        """
        from mlestruct.estimators.calibration import sharpness

        given, found = self._given(X, y), copy.copy(self)
        with self._limited(max_seconds):
            factor = sharpness(found, given)
        found.coef_ = factor * self.coef_
        why = f"all weights were multiplied by {factor:.3g} after the fit, {RECALIBRATED}"
        found.certificate_ = replace(self.certificate_, gap=np.inf, withheld=why)
        return found

    def summary(self, intervals: Intervals | None = None) -> Summary:
        """Weights by name, or what ``intervals`` tell of them, the proof and the cost."""
        from mlestruct.estimators.summary import Summary

        self._check_fitted()
        trust = self._doubt()
        if trust and RECALIBRATED in (self.certificate_.withheld or ""):
            trust = ""
        return Summary.of(self, intervals, trust)

    def _doubt(self) -> str:
        if self.learner in ("ssvm", "perceptron"):
            return "of weights that were learned to decide, whose scale means nothing"
        return ""

    def stored(self) -> dict[str, Any]:
        """What :meth:`prepare` learned, for a model file: trees of arrays by name."""
        learned = {name: getattr(self, name) for name in self.learns}
        for name, value in learned.items():
            if isinstance(value, np.ndarray) and value.dtype.kind not in KINDS:
                raise ValueError(
                    f"{name} are of {value.dtype}, such as {value.flat[0]!r}; model files hold "
                    "numbers and text: learn from labels of these"
                )
        return learned

    def restore(self, learned: dict[str, Any]) -> None:
        """The inverse of :meth:`stored`."""
        self.__dict__.update({name: learned[name] for name in self.learns if name in learned})

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model: settings, weights, certificate, history; no data, no code."""
        from mlestruct.estimators.stored import StoredFit, write

        self._check_fitted()
        known = {"history": self.history_, "route": self.route_, "learned": self._learned}
        model = Found(self.coef_, self.certificate_, short=self._short, **known)
        how = self.alpha_, self.alpha_scores_, self.notes_, self.scale_, self._columns
        fitted = StoredFit(model, *how)
        write(path, type(self).__name__, self.get_params(), fitted, self.stored())

    @classmethod
    def load(cls, path: str | os.PathLike[str], **again: Any) -> Self:
        """A saved model with the same predictions, bit for bit.

        Settings that are code (an oracle, a structure or a learner of your own) are not in the
        file: pass them ``again``.
        """
        from mlestruct.estimators.stored import loading, read

        settings, fitted, learned = read(path, cls.__name__, again)
        with loading(path, cls.__name__):
            cls.check_names(settings)
            model = cls(**settings)
            found = fitted.model
            inference = model._learner(Regulariser.of(0)).inference.recall(found.learned)
            model._keep(replace(found, inference=inference), fitted.alpha, len(found.theta))
            model.alpha_scores_, model.notes_ = fitted.alpha_scores, fitted.notes
            model.scale_ = np.ones(len(found.theta)) if fitted.scale is None else fitted.scale
            model._columns = fitted.columns
            model.restore(learned)
        return model


def moments_of(batch: Batch[Any], features: Features) -> Array | None:
    """What tells examples from others: how many there are, and what their outcomes sum to."""
    if batch.partly:
        return None
    weighed = batch.target * batch.weights  # type: ignore[operator]
    return np.append(features.moments(weighed), len(batch))

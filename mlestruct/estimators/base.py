"""What every estimator answers: predictions, probabilities, samples, judgements."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from mlestruct import limits
from mlestruct.errors import ConvergenceWarning, Unserved, refuse_removed
from mlestruct.estimators.examples import Given, rng_of
from mlestruct.estimators.trainable import Trainable
from mlestruct.features.base import levelled
from mlestruct.inference.choose import Inference, named_inference
from mlestruct.learning.frank_wolfe import FrankWolfe
from mlestruct.structures.base import Array, Ints, as_count, refuse_made
from mlestruct.structures.batch import Batch, pinned

if TYPE_CHECKING:
    from mlestruct.estimators.calibration import Calibration
    from mlestruct.estimators.summary import Summary
    from mlestruct.inference.bounds import ProvenInterval
    from mlestruct.inference.decoding import Decoded
    from mlestruct.inference.predict import Marginals
    from mlestruct.statistics import Intervals
    from mlestruct.statistics.evidence import Evidence

Decision = Literal["map", "expected"]
NOTHING: Ints = np.zeros(0, dtype=np.int64)  # the outcome of an example without a part
DROWNED = 1e6  # scores of which that much may be what all outcomes share: the rest loses digits
PRECISION = 1e-4  # relative gap of marginals by Frank-Wolfe, where the fit's own is coarser
RECALIBRATED = "to calibrate probabilities"


@dataclass(frozen=True)
class Draws:
    """``outcomes[m]`` are the samples of example m; ``how`` says in words what they are.

    ``exact``: independent draws of the model's distribution.
    """

    outcomes: list[list[Any]]
    exact: bool
    how: str


class Estimator(Trainable):
    """Learn weights of a structured output from outcomes, with nothing but a MAP solver.

    ``learner`` is a name in ``mlestruct.learners.LEARNERS``, or what makes one: for settings of its
    own, ``partial(camel, start="empirical")``. ``rho`` reweights its entropy.
    ``alpha`` is λ of (λ/2)‖θ‖² against the SUM over examples. Of several, the best mean score
    chooses: on ``validation``, or on a share ``held_out`` of the examples, drawn by
    ``random_state``, or on ``folds`` in turn, and then all examples are learned from. The score is
    the log-likelihood, or the share of parts right where the learner has none; a search of
    scikit-learn takes any other.
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

    def predict(self, X: Sequence[Any], decision: Decision = "map") -> list[Any]:
        """The most probable outcome, or (``expected``) the one with most parts expected right.

        A :class:`ConvergenceWarning` counts the answers that are not proven to be the best.
        """
        found = self.decode(X, decision)
        open_ = found.upper[~found.proven] - found.scores[~found.proven]
        if len(open_):
            warnings.warn(
                f"{type(self).__name__}: {len(open_)} of {len(found.scores)} answers are not "
                f"proven best and may score up to {open_.max():.2g} less than the best; decode(X) "
                "tells which, an exact oracle may prove more",
                ConvergenceWarning,
                stacklevel=2,
            )
        return found.outcomes

    def decode(self, X: Sequence[Any], decision: Decision = "map") -> Decoded:
        """What ``predict`` answers, with every answer's own score and a bound on the best score."""
        from mlestruct.inference.decoding import Decoded

        if decision not in ("map", "expected"):
            raise ValueError(f"decision is 'map' or 'expected', not {decision!r}")
        given = X if isinstance(X, Given) else self._given(X)
        found = Decoded([], np.zeros(0), np.zeros(0))
        if len(given.X):
            found = self._decide(*self._scored(given, level=False), decision)
        values, each = np.zeros((2, len(given.every))), map(self.present, given.X, found.outcomes)
        values[:, list(given.places)] = found.scores, found.upper
        outcomes = given.answers(each, lambda x: self.present(x, NOTHING))
        return replace(found, outcomes=outcomes, scores=values[0], upper=values[1])

    def _decide(self, batch: Batch[Any], scores: Array, decision: Decision) -> Decoded:
        from mlestruct.inference.decoding import decode

        if decision == "expected":
            tau = self._marginals(batch, scores).tau
            gains = [batch.structure(m).gain(tau[batch.coordinates(m)]) for m in range(len(batch))]
            scores = np.concatenate(gains)
        return decode(batch, scores, self.oracle)

    def predict_marginals(
        self, X: Sequence[Any], *, max_seconds: float | None = None
    ) -> list[Array]:
        """The (pseudo-)probability of every part, in the shape of the outcomes.

        By the inference that ``summary()`` names, which also says where they need calibration.
        ``max_seconds`` (default: the estimator's own) is for all examples together. Those that were
        not reached by then have the probabilities that inference starts from, or NaN where it needs
        the answers of a solver of your own; a :class:`ConvergenceWarning` counts what is not
        proven.
        """
        with limits.limited(max_seconds, type(self).__name__, self.max_seconds):
            given, tau = X if isinstance(X, Given) else self._given(X), list[Array]()
            if len(given.X):
                batch, scores = self._scored(given)
                flat = self._marginals(batch, scores).tau
                for m, x in enumerate(given.X):
                    tau.append(self.shape(x, batch.structure(m), flat[batch.coordinates(m)]))
        return given.answers(tau, lambda x: self.shape(x, None, np.zeros(0)))

    def potentials(self, X: Sequence[Any]) -> list[Array]:
        """Scores of every coordinate as a flat array, Φθ and what was known beforehand.

        What a solver of your own maximises: minus what it would call costs.
        """
        given, found = self._given(X), list[Array]()
        if len(given.X):
            batch, scores = self._scored(given, level=False)
            found = [scores[batch.coordinates(m)] for m in range(len(batch))]
        return given.answers(found, lambda x: np.zeros(0))

    def sample(
        self,
        X: Sequence[Any],
        count: int = 1,
        random_state: int | np.random.Generator | None = None,
        *,
        max_seconds: float | None = None,
    ) -> Draws:
        """``count`` outcomes of every example, and what they are samples of.

        Drawn by scores alone, from exp⟨score, v⟩ / Z; where ``predict_marginals`` has another
        inference, whose probabilities are not this distribution's, ``how`` says so.
        ``random_state`` defaults to the estimator's own. Examples for which ``max_seconds`` left no
        time have no draws, and a :class:`ConvergenceWarning` counts them.
        """
        with limits.limited(max_seconds, type(self).__name__, self.max_seconds):
            from mlestruct.inference.sampling import Samples, as_draws, sampler

            given, count = self._given(X), as_count(count, "count", least=1)
            refuse_made(count * len(given.every), f"count={count}")
            if len(given.X) == 0:
                nothing = given.answers([], lambda x: [self.present(x, NOTHING)] * count)
                return Draws(nothing, True, "nothing to draw")
            batch, scores = self._scored(given)
            as_draws(count, batch)
            rng = rng_of(self.random_state if random_state is None else random_state)
            drawn: list[Samples] = []
            try:
                for m in range(len(batch)):
                    limits.check()
                    score = scores[batch.coordinates(m)]
                    drawn.append(sampler(batch.structure(m), score, count, rng, self.oracle))
            except limits.OutOfTime:
                limits.note(f"{len(batch) - len(drawn)} of {len(batch)} examples have no draws")
            each = (
                [] if found is None else [self.present(x, one) for one in found.outcomes()]
                for x, found in zip_longest(given.X, drawn)
            )
            outcomes = given.answers(each, lambda x: [self.present(x, NOTHING)] * count)
            how = "; ".join(dict.fromkeys(found.how for found in drawn)) or "no draws"
            if not self._inference().sums(batch):
                how += f"; other than predict_marginals, which has {self._inference()}"
            return Draws(outcomes, all(found.exact for found in drawn), how)

    def score(
        self, X: Sequence[Any], y: Sequence[Any], sample_weight: ArrayLike | None = None
    ) -> float:
        """Mean share of parts (rows, variables, coordinates) predicted right."""
        right, weight = self._rights(X, y, sample_weight)
        return float(np.average(right, weights=weight))

    def _rights(
        self, X: Sequence[Any], y: Sequence[Any], sample_weight: ArrayLike | None = None
    ) -> tuple[Array, Array]:
        """The share of known parts that are right and the weight, of examples that have any."""
        given = self._given(X, y, sample_weight)
        batch, scores = self._scored(given, given.outcomes)
        assert batch.target is not None
        unseen = replace(batch, target=None)  # in which a solver without an answer finds none
        found = self._decide(unseen, scores, "map").outcomes
        targets = [batch.target[batch.coordinates(m)] for m in range(len(batch))]
        both = enumerate(zip(targets, found, strict=True))
        right = np.array([batch.structure(m).right(*known) for m, known in both])
        judged = ~np.isnan(right)
        if not judged.any():
            raise ValueError("no label in y is known: there is nothing to score")
        return right[judged], batch.weight[judged]

    def log_likelihood(
        self, X: Sequence[Any], y: Sequence[Any], *, max_seconds: float | None = None
    ) -> tuple[float, float]:
        """An interval for the exact log-likelihood, summed over the examples.

        Each end is a theorem's, or infinite: an upper surrogate of log Z bounds it below, the best
        outcome's score and lower surrogates bound it above. Exact inference leaves no room;
        :meth:`evidence` sums where a surrogate was learned, or estimates what is too much to sum.
        After ``max_seconds`` (default: the estimator's own) the interval is the one proven so far.
        """
        with limits.limited(max_seconds, type(self).__name__, self.max_seconds):
            given = self._given(X, y)
            if len(given.X) == 0:
                return 0.0, 0.0
            batch, scores = self._scored(given, given.outcomes)
            inside = self.log_z(batch, scores)
            low = high = batch.observed(scores)
            if batch.partly:
                low, high, _ = astuple(self.log_z(pinned(batch), scores))
            above = min(float((high - inside.lower).sum()), 0.0)
            return min(float((low - inside.upper).sum()), above), above

    def evidence(
        self,
        X: Sequence[Any],
        y: Sequence[Any],
        random_state: int | np.random.Generator | None = None,
        *,
        max_seconds: float | None = None,
    ) -> Evidence:
        """The exact log-likelihood, to compare models by: whatever ρ or learner they are of.

        Summed where that is affordable, else annealed, with a tested interval of a fraction of a
        nat; no proof. ``one.evidence(X, y).beside(other.evidence(X, y))`` is a difference and its
        error. After ``max_seconds`` (default: the estimator's own) annealing ends with a wider
        interval, and that of examples not reached is infinite; a :class:`ConvergenceWarning` says
        so.
        """
        from mlestruct.statistics.evidence import Evidence

        with limits.limited(max_seconds, type(self).__name__, self.max_seconds):
            given = self._given(X, y)
            batch, scores = self._scored(given, given.outcomes)
            rng = rng_of(self.random_state if random_state is None else random_state)
            return Evidence.of(batch, scores, rng)

    def log_z(self, batch: Batch[Any], scores: Array) -> ProvenInterval:
        """What is proven of every example's exact log Z."""
        from mlestruct.inference.bounds import log_z_interval, outcome_interval

        found = log_z_interval(self._marginals(batch, scores))
        try:
            return found & outcome_interval(batch, scores, self.oracle)
        except limits.OutOfTime:
            return found

    def calibration(
        self,
        X: Sequence[Any],
        y: Sequence[Any],
        bins: int = 10,
        *,
        max_seconds: float | None = None,
    ) -> Calibration:
        """How often parts given probability p came true; examples are the independent units.

        ``max_seconds`` is that of :meth:`predict_marginals`; parts without a probability by then
        are left out.
        """
        from mlestruct.estimators.calibration import calibration

        with limits.limited(max_seconds, type(self).__name__, self.max_seconds):
            return calibration(self, self._given(X, y), bins)

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
        with limits.limited(max_seconds, type(self).__name__, self.max_seconds):
            factor = sharpness(found, given)
        found.coef_ = factor * self.coef_
        why = f"all weights were multiplied by {factor:.3g} after the fit, {RECALIBRATED}"
        found.certificate_ = replace(self.certificate_, gap=np.inf, withheld=why)
        return found

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
        with limits.limited(max_seconds, type(self).__name__, self.max_seconds):
            from mlestruct.estimators.intervals import intervals

            given = self._given(X, y, sample_weight)
            return intervals(self, given, cohort, self.against(reference), level)

    def summary(self, intervals: Intervals | None = None) -> Summary:
        """Weights by name, or what ``intervals`` tell of them, the proof and the cost."""
        from mlestruct.estimators.summary import Summary

        self._check_fitted()
        calibrated = RECALIBRATED in (self.certificate_.withheld or "")
        return Summary.of(self, intervals, "" if calibrated else self._doubt())

    def _doubt(self) -> str:
        """Why probabilities need to be recalibrated, if they do."""
        if self.learner in ("ssvm", "perceptron"):
            return "of weights that were learned to decide, whose scale means nothing"
        return ""

    def _scored(
        self, given: Given, y: Sequence[Any] | None = None, *, level: bool = True
    ) -> tuple[Batch[Any], Array]:
        """The batch and its scores; ``level``: large ones without what all outcomes share."""
        outcomes = None if y is None else self.encode(given.X, y)
        batch, features = self._problem(given.X, outcomes, given.weight)
        if features.d != len(self.coef_):
            raise ValueError(f"X has {features.d} features; the model has {len(self.coef_)}")
        scores = features.potentials(self.coef_)
        if level and np.abs(scores).max(initial=0.0) > DROWNED:
            scores = levelled(batch, features, np.arange(features.d)).potentials(self.coef_)
        return batch, scores + batch.bias

    def _inference(self) -> Inference:
        """What the model was learned with, or chose; ``infer`` puts another in its place."""
        return self.inference_ if self.infer is None else named_inference(self.infer, self.rho)

    def _marginals(self, batch: Batch[Any], scores: Array) -> Marginals:
        """By the model's inference; by Frank-Wolfe to a quarter of what may go missing unsaid."""
        inference, asked = self._inference(), list[Any]()
        if self.oracle is not None or self.solver == "frank_wolfe":
            from mlestruct.inference.predict import NAT, tell

            size = max(1.0, float(np.abs(scores).sum()) + np.log(2.0) * batch.size)
            limit = None if np.isfinite(limits.left()) else self.max_seconds  # of all of the call
            how: Any = {"workers": self.workers, "engine": self.engine, "seconds": limit}
            tol = min(self.tol, PRECISION, NAT / 4.0 * len(batch) / size)
            asked = [self.oracle, FrankWolfe(tol=tol, rounds=self.max_rounds, **how)]
        try:
            found = inference.marginals(batch, scores, *asked)
        except Unserved as error:
            others = "'surrogate' or 'exact'" if self.rho is None else "'exact' or 'propagation'"
            raise ValueError(
                f"{error}. The model predicts by {inference}; infer={others} may serve instead"
            ) from error
        if asked and found.bound.kind != "none":
            gaps = np.nan_to_num(found.upper - found.lower, nan=np.inf)
            tell(gaps, found.certificate.withheld)
        return found

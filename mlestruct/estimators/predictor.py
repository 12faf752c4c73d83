"""What every fitted estimator answers: predictions, probabilities, samples, judgements."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mlestruct import limits
from mlestruct.engine import Engine
from mlestruct.errors import ConvergenceWarning, Unserved, not_fitted
from mlestruct.estimators import door
from mlestruct.estimators.door import Columns, Given
from mlestruct.estimators.params import Parameters
from mlestruct.features import Features, as_features
from mlestruct.features.dense import levelled
from mlestruct.inference.choose import Inference, Route, named_inference
from mlestruct.learning.dual import Certificate
from mlestruct.learning.frank_wolfe import FrankWolfe
from mlestruct.oracle.registry import AnyOracle
from mlestruct.structures.base import Array, Ints, as_count, as_numbers, lasting, refuse_made
from mlestruct.structures.batch import Batch, pinned, spans
from mlestruct.structures.entropy import Rho

if TYPE_CHECKING:
    from mlestruct.estimators.calibration import Calibration
    from mlestruct.inference.bounds import ProvenInterval
    from mlestruct.inference.decoding import Decoded
    from mlestruct.inference.predict import Marginals
    from mlestruct.inference.sampling import Samples
    from mlestruct.statistics.evidence import Evidence
    from mlestruct.statistics.identified import Named

Decision = Literal["map", "expected"]
NOTHING: Ints = np.zeros(0, dtype=np.int64)  # the outcome of an example without a part
DROWNED = 1e6  # scores of which that much may be what all outcomes share: the rest loses digits
PRECISION = 1e-4  # relative gap of marginals by Frank-Wolfe, where the fit's own is coarser


@dataclass(frozen=True)
class Draws:
    """``outcomes[m]`` are the samples of example m; ``how`` says in words what they are.

    ``exact``: independent draws of the model's distribution.
    """

    outcomes: list[list[Any]]
    exact: bool
    how: str


class Predictor(Parameters):
    """Predictions from ``coef_``; what kinds of examples there are is left to a few methods.

    Interface: ``structures`` of every example; ``features`` aligned with their batch; ``encode``
    and ``present`` turn outcomes into the structures' and back; ``shape`` gives probabilities the
    form users see; ``names`` the weights. Where X and y are no lists of examples and outcomes, or
    some examples have no part, ``taken`` makes lists of those that have. An array of ``axes`` axes
    is one example, not a list of them.
    """

    axes: ClassVar[int] = 0

    oracle: AnyOracle
    rho: Rho
    solver: Route
    infer: str | Inference | None
    tol: float
    max_rounds: int
    max_seconds: float | None
    workers: int
    engine: Engine | str | None
    random_state: int | np.random.Generator | None
    feature_names: Sequence[str] | None = None
    coef_: Array
    inference_: Inference
    certificate_: Certificate
    history_: list[tuple[int, float, float, float]]
    alpha_: float
    route_: str
    converged_: bool
    _columns: Columns = None
    _label_columns: Columns = None
    _told: Array | None = None

    def taken(self, X: Any, y: Any) -> Given:
        """A user's X, and y where there is one, as lists of examples and outcomes."""
        return door.given_of(X, y, self.axes)

    def structures(self, X: Sequence[Any]) -> list[Any]:
        """The structure of every example."""
        raise NotImplementedError

    def features(self, batch: Batch[Any], X: Sequence[Any]) -> Features:
        """The features of every example, aligned with the batch's coordinates."""
        return as_features(batch, list(X))

    def offset(self, X: Sequence[Any]) -> list[Array] | None:
        """Scores known beforehand, a number per coordinate of every example, or none."""
        return None

    def as_given(self, x: Any) -> Any:
        """An example that ``taken`` listed, as the user gave it."""
        return x

    def encode(self, X: Sequence[Any], y: Sequence[Any]) -> list[Any]:
        """A user's outcomes as the structures' outcomes."""
        return list(y)

    def present(self, x: Any, outcome: Any) -> Any:
        """A structure's outcome as the user's."""
        return outcome

    def shape(self, x: Any, structure: Any, flat: Array) -> Array:
        """Coordinates of one example in the shape users see."""
        return flat.reshape(structure.shape)

    def names(self) -> list[str]:
        """A name per weight: ``feature_names``, or the columns', where there are as many."""
        self._check_fitted()
        if self.feature_names is not None:
            if isinstance(self.feature_names, str):
                raise ValueError(f"feature_names is a list of names, not {self.feature_names!r}")
            if len(self.feature_names) != len(self.coef_):
                raise ValueError(f"{len(self.feature_names)} names for {len(self.coef_)} features")
            return [str(name) for name in self.feature_names]
        if self._columns is not None and len(self._columns) == len(self.coef_):
            return list(self._columns)
        return [f"feature {j}" for j in range(len(self.coef_))]

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """The names of the weights as an array, in the order of ``coef_``."""
        self._check_fitted()
        return np.array(self.names(), dtype=object)

    @property
    def feature_names_in_(self) -> NDArray[np.object_]:
        """The names of the columns, where the examples learned from were frames."""
        if self._columns is None or not hasattr(self, "coef_"):
            raise AttributeError(
                "feature_names_in_: no frames with named columns were learned from"
            )
        return np.array(self._columns, dtype=object)

    def against(self, reference: Any) -> int:
        """The place of the label that others are told against; None: the first."""
        if reference is not None:
            kind = type(self).__name__
            raise ValueError(f"reference is {reference!r}: a {kind} tells no label against another")
        return 0

    def contrasts(self, against: int = 0) -> list[Named]:
        """Combinations of weights worth an interval; with labels, ``against`` one by its place."""
        return []

    def predict(self, X: Sequence[Any], decision: Decision = "map") -> list[Any]:
        """The most probable outcome, or (``expected``) the one with most parts expected right.

        A :class:`ConvergenceWarning` counts the answers that are not proven to be the best.
        """
        given = self._given(X)
        found = self._decided(given, decision)
        open_ = found.upper[~found.proven] - found.scores[~found.proven]
        if len(open_):
            warnings.warn(
                f"{type(self).__name__}: {len(open_)} of {len(X)} answers are not proven best and "
                f"may score up to {open_.max():.2g} less than the best; decode(X) tells which, an "
                "exact oracle may prove more",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self._presented(given, found.outcomes)

    def decode(self, X: Sequence[Any], decision: Decision = "map") -> Decoded:
        """What ``predict`` answers, with every answer's own score and a bound on the best score."""
        given = self._given(X)
        found = self._decided(given, decision)
        values = np.zeros((2, len(given.every)))
        values[:, given.places] = found.scores, found.upper
        outcomes = self._presented(given, found.outcomes)
        return replace(found, outcomes=outcomes, scores=values[0], upper=values[1])

    def _presented(self, given: Given, outcomes: Sequence[Any]) -> list[Any]:
        found = map(self.present, given.X, outcomes)
        return given.answers(found, lambda x: self.present(x, NOTHING))

    def _decided(self, given: Given, decision: Decision) -> Decoded:
        if decision not in ("map", "expected"):
            raise ValueError(f"decision is 'map' or 'expected', not {decision!r}")
        if len(given.X) == 0:
            from mlestruct.inference.decoding import Decoded

            return Decoded([], np.zeros(0), np.zeros(0))
        return self._decide(*self._scored(given, level=False), decision)

    def _oracle(self) -> AnyOracle:
        """The oracle as it is asked."""
        return self.oracle

    def _decide(self, batch: Batch[Any], scores: Array, decision: Decision) -> Decoded:
        from mlestruct.inference.decoding import decode

        if decision == "expected":
            tau = self._marginals(batch, scores).tau
            gains = [batch.structure(m).gain(tau[batch.coordinates(m)]) for m in range(len(batch))]
            scores = np.concatenate(gains)
        return decode(batch, scores, self._oracle())

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
        with self._limited(max_seconds):
            given, tau = self._given(X), list[Array]()
            if len(given.X):
                batch, scores = self._scored(given)
                tau = self._shaped(given.X, batch, self._marginals(batch, scores).tau)
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
        with self._limited(max_seconds):
            from mlestruct.inference.sampling import as_draws, sampler

            given, count = self._given(X), as_count(count, "count", least=1)
            refuse_made(count * len(given.every), f"count={count}")
            if len(given.X) == 0:
                nothing = given.answers([], lambda x: [self.present(x, NOTHING)] * count)
                return Draws(nothing, True, "nothing to draw")
            batch, scores = self._scored(given)
            as_draws(count, batch)
            rng = door.rng_of(self.random_state if random_state is None else random_state)
            drawn: list[Samples] = []
            try:
                for m in range(len(batch)):
                    limits.check()
                    score = scores[batch.coordinates(m)]
                    drawn.append(sampler(batch.structure(m), score, count, rng, self._oracle()))
            except limits.OutOfTime:
                limits.note(f"{len(batch) - len(drawn)} of {len(batch)} examples have no draws")
            outcomes = given.answers(
                (
                    [] if found is None else [self.present(x, one) for one in found.outcomes()]
                    for x, found in zip_longest(given.X, drawn)
                ),
                lambda x: [self.present(x, NOTHING)] * count,
            )
            how = "; ".join(dict.fromkeys(found.how for found in drawn)) or "no draws"
            if not self._inference().sums(batch):
                how += f"; other than predict_marginals, which has {self._inference()}"
            return Draws(outcomes, all(found.exact for found in drawn), how)

    def _shaped(self, X: Sequence[Any], batch: Batch[Any], flat: Array) -> list[Array]:
        parts = range(len(batch))
        return [self.shape(X[m], batch.structure(m), flat[batch.coordinates(m)]) for m in parts]

    def score(
        self, X: Sequence[Any], y: Sequence[Any], sample_weight: ArrayLike | None = None
    ) -> float:
        """Mean share of parts (rows, variables, coordinates) predicted right."""
        right, weight = self._rights(self._given(X, y, sample_weight))
        return float(np.average(right, weights=weight))

    def _rights(self, given: Given) -> tuple[Array, Array]:
        """The share of known parts that are right and the weight, of examples that have any."""
        batch, scores = self._scored(given, given.told)
        assert batch.target is not None
        unseen = replace(batch, target=None)  # in which a solver without an answer finds none
        found = self._decide(unseen, scores, "map").outcomes
        right = np.array([
            batch.structure(m).right(batch.target[batch.coordinates(m)], outcome)
            for m, outcome in enumerate(found)
        ])  # fmt: skip
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
        with self._limited(max_seconds):
            given = self._given(X, y)
            if len(given.X) == 0:
                return 0.0, 0.0
            batch, scores = self._scored(given, given.told)
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

        with self._limited(max_seconds):
            given = self._given(X, y)
            batch, scores = self._scored(given, given.told)
            rng = door.rng_of(self.random_state if random_state is None else random_state)
            return Evidence.of(batch, scores, rng)

    def log_z(self, batch: Batch[Any], scores: Array) -> ProvenInterval:
        """What is proven of every example's exact log Z."""
        from mlestruct.inference.bounds import log_z_interval, outcome_interval

        found = log_z_interval(self._marginals(batch, scores))
        try:
            return found & outcome_interval(batch, scores, self._oracle())
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
        from mlestruct.estimators.calibration import Calibration, seen_in_targets

        refuse_made(as_count(bins, "bins", least=1), f"bins={bins}")
        with self._limited(max_seconds):
            given = self._given(X, y)
            batch, scores = self._scored(given, given.told)
            assert batch.target is not None
            seen_in_targets(batch.target)  # refuses before any inference
            found = self._marginals(batch, scores).tau
            if np.isnan(found).all():
                limits.check()
        parts, true = (
            [part.ravel() for part in self._shaped(given.X, batch, flat)]
            for flat in (found, np.where(np.isnan(found), np.nan, batch.target))
        )
        tau, truth = np.concatenate(parts), np.concatenate(true)
        unit = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
        known = seen_in_targets(truth)
        return Calibration.of(tau[known], truth[known], bins, unit[known])

    def _limited(self, max_seconds: float | None) -> limits.limited:
        """The limit of one call: as asked for, or the estimator's own."""
        seconds = self.max_seconds if max_seconds is None else max_seconds
        return limits.limited(seconds, type(self).__name__)

    def _check_fitted(self) -> None:
        if not hasattr(self, "coef_"):
            raise not_fitted(self)

    def _given(
        self, X: Sequence[Any], y: Sequence[Any] | None = None, weight: ArrayLike | None = None
    ) -> Given:
        """A user's examples for a fitted model."""
        self._check_fitted()
        return self._agreed(self.taken(X, y), weight)

    def _agreed(self, given: Given, weight: ArrayLike | None = None) -> Given:
        """Examples in the columns learned from, with their weights."""
        for known, own, name in (
            (self._columns, given.columns, "X"),
            (self._label_columns, given.labels, "y"),
        ):
            if known is not None and own is not None and own != known:  # taken by position
                why = f"the model learned from {known}, in that order"
                raise ValueError(f"{name} has columns {own}; {why}")
        if weight is None:
            return given
        weights = as_numbers(weight, "sample_weight")
        if weights.shape != (len(given.every),):
            raise ValueError(
                f"sample_weight has shape {weights.shape} for {len(given.every)} examples"
            )
        return replace(given, weight=weights[list(given.places)])

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

    def _problem(
        self,
        X: Sequence[Any],
        outcomes: Sequence[Any] | None,
        weight: Array | None,
    ) -> tuple[Batch[Any], Features]:
        """The way from a user's examples, encoded outcomes and weights to a batch with features.

        Scores known beforehand are the batch's bias.
        """
        batch = Batch.of(list(map(lasting, self.structures(X))), outcomes, weight=weight)
        known = self.offset(X)
        for m, part in enumerate(known or ()):
            size = batch.structure(m).size
            if part.shape != (size,):
                raise ValueError(f"example {m}: bias has {part.size} entries for {size} parts")
            if not np.isfinite(part).all():
                k = int((~np.isfinite(part)).argmax())
                raise ValueError(f"example {m}: bias of part {k} is {part[k]}")
        batch = batch if known is None else replace(batch, bias=np.concatenate(known))
        return batch, self.features(batch, X)

    def _solver(self, tol: float) -> FrankWolfe:
        return FrankWolfe(
            tol=tol,
            rounds=self.max_rounds,
            seconds=self.max_seconds,
            workers=self.workers,
            engine=self.engine,
        )

    def _inference(self) -> Inference:
        """What the model was learned with, or chose; ``infer`` puts another in its place."""
        return self.inference_ if self.infer is None else named_inference(self.infer, self.rho)

    def _marginals(self, batch: Batch[Any], scores: Array) -> Marginals:
        inference = self._inference()
        try:
            if self.oracle is None and self.solver != "frank_wolfe":
                return inference.marginals(batch, scores)
            from mlestruct.inference.predict import NAT, tell

            found = self._searched(batch, scores)
            gaps = np.nan_to_num(found.upper - found.lower, nan=np.inf)
            open_ = np.flatnonzero((gaps > NAT) & np.isfinite(gaps))
            if found.bound.kind == "none" or not (gaps > NAT).any():
                return found
            if len(open_) == np.sum(gaps > NAT) and not limits.cut():
                flat = spans(batch.offsets, open_)
                again = self._searched(batch.select(open_), scores[flat])
                found.tau[flat], found.lower[open_] = again.tau, again.lower
                found.upper[open_], gaps[open_] = again.upper, again.upper - again.lower
        except Unserved as error:
            others = "'surrogate' or 'exact'" if self.rho is None else "'exact' or 'propagation'"
            raise ValueError(
                f"{error}. The model predicts by {inference}; infer={others} may serve instead"
            ) from error
        tell(gaps, found.certificate.withheld)
        return found

    def _searched(self, batch: Batch[Any], scores: Array) -> Marginals:
        """By Frank-Wolfe, to a quarter of what may be missing of an example without a word."""
        from mlestruct.inference.predict import NAT

        size = max(1.0, float(np.abs(scores).sum()) + np.log(2.0) * batch.size)
        solver = self._solver(min(self.tol, PRECISION, NAT / 4.0 * len(batch) / size))
        if np.isfinite(limits.left()):  # then it ends all of the call, not each search
            solver = replace(solver, seconds=None)
        return self._inference().marginals(batch, scores, self._oracle(), solver)

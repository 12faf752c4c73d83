"""What all estimators share, and StructuredModel: any structure, any oracle."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mlestruct.batch import Batch
from mlestruct.features import Features, as_features
from mlestruct.frank_wolfe import FrankWolfe, State
from mlestruct.inference import Marginals, best, marginals
from mlestruct.learners import LEARNERS, Learns, Model
from mlestruct.learners.convex import AnyOracle, Route
from mlestruct.progress import track
from mlestruct.regulariser import Regulariser
from mlestruct.reweighting import Rho
from mlestruct.structures.base import Array, Structure

Decision = Literal["map", "expected"]


@dataclass(frozen=True)
class Calibration:
    """Predicted probabilities of parts against how often they came true, in equal-width bins."""

    predicted: Array
    observed: Array
    count: NDArray[np.int64]
    brier: float

    @property
    def error(self) -> float:
        """Expected calibration error: |predicted − observed| averaged over parts."""
        return float(self.count @ np.abs(self.predicted - self.observed) / self.count.sum())


class Settings(TypedDict, total=False):
    """What every estimator can be told; see :class:`Estimator`."""

    learner: str | Callable[..., Learns]
    rho: Rho
    alpha: float | Sequence[float]
    bounds: tuple[ArrayLike, ArrayLike] | None
    oracle: AnyOracle
    solver: Route
    tol: float
    max_rounds: int
    max_seconds: float | None
    workers: int
    progress: bool | None


class Estimator:
    """Learn weights of a structured output from outcomes, with nothing but a MAP solver.

    ``learner`` is a name in ``mlestruct.learners.LEARNERS``, or what makes one: for settings of its
    own, ``partial(camel, start="empirical")``. ``rho`` reweights its entropy.
    ``alpha`` is λ of (λ/2)‖θ‖² against the SUM over examples; of several, ``validation`` chooses.
    ``bounds`` = (lower, upper) keep weights in a box, numbers or one per weight.
    ``oracle`` is a name, a callable maximising a score, or an Oracle (default: the structure's).
    ``solver``: ``direct`` (marginals, L-BFGS), ``frank_wolfe`` (the oracle alone) or ``auto``.
    ``tol`` is the relative gap to certify; ``max_rounds`` and ``max_seconds`` bound the work;
    ``workers`` threads ask the oracle; ``progress`` shows a bar (default: on terminals).

    After ``fit``: ``coef_``, ``certificate_``, ``history_`` (calls, seconds, objective, gap of
    every round), ``n_iter_``, ``alpha_``, ``route_`` (which solver it was).
    """

    def __init__(
        self,
        *,
        learner: str | Callable[..., Learns] = "mle_struct",
        rho: Rho = None,
        alpha: float | Sequence[float] = 1.0,
        bounds: tuple[ArrayLike, ArrayLike] | None = None,
        oracle: AnyOracle = None,
        solver: Route = "auto",
        tol: float = 1e-3,
        max_rounds: int = 1000,
        max_seconds: float | None = None,
        workers: int = 1,
        progress: bool | None = None,
    ) -> None:
        self.learner = learner
        self.rho = rho
        self.alpha = alpha
        self.bounds = bounds
        self.oracle = oracle
        self.solver = solver
        self.tol = tol
        self.max_rounds = max_rounds
        self.max_seconds = max_seconds
        self.workers = workers
        self.progress = progress

    def structures(self, X: Sequence[Any]) -> list[Any]:
        """The structure of every example."""
        raise NotImplementedError

    def features(self, batch: Batch[Any], X: Sequence[Any]) -> Features:
        """The features of every example, aligned with the batch's coordinates."""
        return as_features(batch, list(X))

    def encode(self, y: Sequence[Any]) -> list[Any]:
        """A user's outcomes as the structures' outcomes."""
        return list(y)

    def present(self, outcome: Any) -> Any:
        """A structure's outcome as the user's."""
        return outcome

    def shape(self, structure: Any, flat: Array) -> Array:
        """Coordinates of one example in the shape users see."""
        return flat.reshape(structure.shape)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's settings."""
        return {name: getattr(self, name) for name in self._defaults()}

    def set_params(self, **params: Any) -> Self:
        """Change settings by name."""
        for name, value in params.items():
            if name not in self._defaults():
                raise ValueError(
                    f"{type(self).__name__} has no setting {name!r}; it has "
                    f"{', '.join(self._defaults())}"
                )
            setattr(self, name, value)
        return self

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        """Settings of the class and of the classes it extends."""
        found: dict[str, Any] = {}
        for kind in cls.__mro__[:-1]:
            own = inspect.signature(vars(kind).get("__init__", object))
            for name, parameter in own.parameters.items():
                if name != "self" and parameter.kind not in (
                    parameter.VAR_KEYWORD,
                    parameter.VAR_POSITIONAL,
                ):
                    found.setdefault(name, parameter.default)
        return found

    def __repr__(self) -> str:
        defaults = self._defaults()
        shown = [
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if value is not defaults[name]
        ]
        return f"{type(self).__name__}({', '.join(shown)})"

    def fit(
        self,
        X: Sequence[Any],
        y: Sequence[Any],
        sample_weight: Any = None,
        *,
        validation: tuple[Sequence[Any], Sequence[Any]] | None = None,
    ) -> Self:
        """Learn from a list of examples' features and the list of their observed outcomes."""
        self._check_lengths(X, y)
        batch = Batch.of(self.structures(X), self.encode(y), weight=sample_weight)
        features = self.features(batch, X)
        alphas = np.atleast_1d(np.asarray(self.alpha, dtype=float))
        if len(alphas) > 1 and validation is None:
            raise ValueError("several alphas need validation=(X, y) to choose between")
        tried: list[tuple[float, int, dict[str, Any]]] = []
        for number, model in self._path(batch, features, alphas):
            self._keep(model, float(alphas[number]))
            if validation is None:
                return self
            tried.append((self.score(*validation), -number, self.__dict__.copy()))
        self.__dict__.update(max(tried, key=lambda row: row[:2])[2])
        return self

    def _path(
        self, batch: Batch[Any], features: Features, alphas: Array
    ) -> Iterator[tuple[int, Model]]:
        """(position of alpha, model), from the strongest on, each starting from the one before."""
        lower, upper = (-np.inf, np.inf) if self.bounds is None else self.bounds
        order = np.argsort(-alphas, kind="stable")
        ridges = [Regulariser.of(features.d, alphas[k], lower=lower, upper=upper) for k in order]
        learner = self._learner(ridges[0])

        def watched(states: Iterator[State]) -> Iterator[State]:
            return track(states, learner.name, self.progress)

        yield from zip(order, learner.path(batch, features, ridges, watched), strict=True)

    def _learner(self, regulariser: Regulariser) -> Learns:
        make = LEARNERS.get(self.learner) if isinstance(self.learner, str) else self.learner
        if make is None:
            raise ValueError(f"no learner {self.learner!r}; there are {', '.join(LEARNERS)}")
        return make(
            rho=self.rho,
            regulariser=regulariser,
            oracle=self.oracle,
            route=self.solver,
            solver=self._solver(),
        )

    def _solver(self) -> FrankWolfe:
        return FrankWolfe(
            tol=self.tol, rounds=self.max_rounds, seconds=self.max_seconds, workers=self.workers
        )

    def _keep(self, model: Model, alpha: float) -> None:
        self.coef_, self.certificate_, self.route_ = model.theta, model.certificate, model.route
        self.history_, self.n_iter_, self.alpha_ = model.history, len(model.history), alpha

    def predict(self, X: Sequence[Any], decision: Decision = "map") -> list[Any]:
        """The most probable outcome, or (``expected``) the one with most parts expected right."""
        return [self.present(outcome) for outcome in self._decide(*self._scored(X), decision)]

    def _decide(self, batch: Batch[Any], scores: Array, decision: Decision) -> list[Any]:
        if decision not in ("map", "expected"):
            raise ValueError(f"decision is 'map' or 'expected', not {decision!r}")
        if decision == "expected":
            tau = self._marginals(batch, scores).tau
            gains = [batch.structure(m).gain(tau[batch.coordinates(m)]) for m in range(len(batch))]
            scores = np.concatenate(gains)
        return best(batch, scores, self.oracle)[0]

    def predict_marginals(self, X: Sequence[Any]) -> list[Array]:
        """The (pseudo-)probability of every coordinate, in each structure's shape."""
        batch, scores = self._scored(X)
        return self._shaped(batch, self._marginals(batch, scores).tau)

    def potentials(self, X: Sequence[Any]) -> list[Array]:
        """Scores Φθ of every coordinate as a flat array, for a solver of your own."""
        batch, scores = self._scored(X)
        return [scores[batch.coordinates(m)] for m in range(len(batch))]

    def _shaped(self, batch: Batch[Any], flat: Array) -> list[Array]:
        return [
            self.shape(batch.structure(m), flat[batch.coordinates(m)]) for m in range(len(batch))
        ]

    def score(self, X: Sequence[Any], y: Sequence[Any]) -> float:
        """Mean share of parts (rows, variables, coordinates) predicted right."""
        batch, scores = self._scored(X, y)
        assert batch.target is not None
        right = []
        for m, outcome in enumerate(self._decide(batch, scores, "map")):
            structure = batch.structure(m)
            loss, constant = structure.loss(batch.target[batch.coordinates(m)])
            wrong = loss @ structure.encode(outcome) + constant
            right.append(1.0 - wrong / structure.parts)
        return float(np.mean(right))

    def log_likelihood(self, X: Sequence[Any], y: Sequence[Any]) -> tuple[float, float]:
        """An interval for the surrogate log-likelihood, summed over the examples.

        It holds the exact log-likelihood only as far as ``marginals(...).bound`` says.
        """
        batch, scores = self._scored(X, y)
        assert batch.target is not None
        reached = float(scores @ batch.target)
        found = self._marginals(batch, scores)
        return reached - float(found.upper.sum()), reached - float(found.lower.sum())

    def calibration(self, X: Sequence[Any], y: Sequence[Any], bins: int = 10) -> Calibration:
        """How often parts given probability p came true."""
        batch, scores = self._scored(X, y)
        tau, truth = self._marginals(batch, scores).tau, batch.target
        assert truth is not None
        place = np.minimum((tau * bins).astype(np.int64), bins - 1)
        count = np.bincount(place, minlength=bins)
        used = count > 0
        predicted = np.bincount(place, weights=tau, minlength=bins)[used] / count[used]
        observed = np.bincount(place, weights=truth, minlength=bins)[used] / count[used]
        return Calibration(predicted, observed, count[used], float(np.mean((tau - truth) ** 2)))

    def _scored(self, X: Sequence[Any], y: Sequence[Any] | None = None) -> tuple[Batch[Any], Array]:
        if not hasattr(self, "coef_"):
            raise ValueError(f"this {type(self).__name__} is not fitted yet: call fit first")
        if len(X) == 0:
            raise ValueError("no examples: X is empty")
        if y is not None:
            self._check_lengths(X, y)
        batch = Batch.of(self.structures(X), None if y is None else self.encode(y))
        features = self.features(batch, X)
        if features.d != len(self.coef_):
            raise ValueError(f"X has {features.d} features; the model has {len(self.coef_)}")
        return batch, features.potentials(self.coef_)

    def _marginals(self, batch: Batch[Any], scores: Array) -> Marginals:
        direct = self.oracle is None
        solver = None if direct else replace(self._solver(), tol=min(self.tol, 1e-4))
        return marginals(batch, scores, self.oracle, rho=self.rho, solver=solver)

    @staticmethod
    def _check_lengths(X: Sequence[Any], y: Sequence[Any]) -> None:
        if len(X) != len(y):
            raise ValueError(f"X has {len(X)} examples but y has {len(y)}")
        if len(X) == 0:
            raise ValueError("no examples: X is empty")


class StructuredModel(Estimator):
    """Any structure: X is a list of (coordinates, d) feature arrays, y of outcomes.

    ``structure`` is one :class:`Structure` for all examples, or a function of an example's
    features. Other settings and fitted attributes as :class:`Estimator`.
    """

    def __init__(
        self,
        structure: Structure | Callable[[Any], Structure] | None = None,
        **settings: Unpack[Settings],
    ) -> None:
        super().__init__(**settings)
        self.structure = structure

    def structures(self, X: Sequence[Any]) -> list[Any]:
        given = self.structure
        if given is None:
            raise ValueError("StructuredModel needs structure=")
        return [given if isinstance(given, Structure) else given(x) for x in X]

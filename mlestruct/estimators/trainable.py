"""How estimators learn: settings as scikit-learn keeps them, what each kind says of itself, fit."""

from __future__ import annotations

import copy
import inspect
import os
import reprlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike

from mlestruct.engine import Engine
from mlestruct.errors import not_fitted, refuse_removed
from mlestruct.estimators.choosing import held_out, how_chosen, judged
from mlestruct.estimators.convergence import warn_short
from mlestruct.estimators.examples import Columns, Given, given_of
from mlestruct.features import Dense, Features, as_features
from mlestruct.features.base import levelled, squares
from mlestruct.inference.choose import Inference, Route
from mlestruct.learners import LEARNERS, Found, Interrupted, Learns
from mlestruct.learning.checkpoints import Unwritten
from mlestruct.learning.frank_wolfe import FrankWolfe
from mlestruct.learning.loop import BROKEN, AnyCheckpoint, Loop
from mlestruct.learning.regulariser import LEAST, Regulariser
from mlestruct.oracle.registry import AnyOracle
from mlestruct.progress import watcher
from mlestruct.statistics.affordability import EACH, seconds
from mlestruct.storage.digest import shown
from mlestruct.structures.base import Array, as_numbers
from mlestruct.structures.batch import DECADES, Batch
from mlestruct.structures.entropy import Rho

if TYPE_CHECKING:
    from mlestruct.statistics.identified import Named

Examples = tuple[Sequence[Any], Sequence[Any]]
Penalty = Literal["raw", "standardised"]
KINDS = "biufU"  # of arrays that model files hold: see files.py
DEEP = 1e8  # times λ: what all outcomes share in so large a column shows in the certificate
FREE = ("workers", "engine", "progress")  # settings that change no bit
ALIKE = (
    "labels count with weights in learning: what was maximised is no likelihood, and probabilities "
    "are as if heavy labels were seen that much more often"
)
AFFORDABLE = (
    "exact sums are affordable here, and this surrogate's weights are known to be off: "
    "learner='exact_mle' learns the true ones"
)


class Parameters:
    """``get_params`` returns what the constructor was given; ``clone`` and searches need no more.

    A class that takes ``**settings`` has those of the classes it extends.
    """

    def __new__(cls, *args: Any, **settings: Any) -> Self:
        for name in settings:
            cls._refuse_removed(name)
        return super().__new__(cls)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's settings."""
        return {name: getattr(self, name) for name in self._defaults()}

    def set_params(self, **params: Any) -> Self:
        """Change settings by name, all or none."""
        self.check_names(params)
        for name, value in params.items():
            setattr(self, name, value)
        return self

    @classmethod
    def _refuse_removed(cls, name: str) -> None:
        for kind in cls.__mro__:
            refuse_removed(f"{kind.__name__}({name}=)")

    @classmethod
    def check_names(cls, names: Iterable[str]) -> None:
        """A ValueError for the first name that is no setting."""
        for name in names:
            if name not in cls._defaults():
                cls._refuse_removed(name)
                known = ", ".join(cls._defaults())
                raise ValueError(f"{cls.__name__} has no setting {name!r}; it has {known}")

    @classmethod
    @cache
    def _defaults(cls) -> dict[str, Any]:
        """Settings of the class and of the classes it extends."""
        found: dict[str, Any] = {}
        for kind in cls.__mro__[:-1]:
            own = inspect.signature(vars(kind).get("__init__", object))
            for name, parameter in own.parameters.items():
                any_number = parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL
                if name != "self" and parameter.kind not in any_number:
                    found.setdefault(name, parameter.default)
        return found

    def __repr__(self) -> str:
        given = self.get_params()
        changed = (n for n, value in self._defaults().items() if repr(value) != repr(given[n]))
        return f"{type(self).__name__}({', '.join(f'{name}={given[name]!r}' for name in changed)})"

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn asks: a supervised estimator over lists, not matrices, of examples."""
        from sklearn.utils import InputTags, Tags, TargetTags

        lists = InputTags(two_d_array=False)
        return Tags(None, TargetTags(required=True), input_tags=lists)


@dataclass(kw_only=True, eq=False, repr=False)
class Trainable(Parameters):
    """What estimators learn by; :class:`mlestruct.estimators.base.Estimator` lists the settings.

    A kind of example overrides some of the first methods: ``structures`` of every example;
    ``features`` aligned with their batch; ``encode`` and ``present`` turn outcomes into the
    structures' and back; ``shape`` gives probabilities the form users see; ``names`` the weights.
    Where X and y are no lists of examples and outcomes, or some examples have no part, ``taken``
    makes lists of those that have. What ``prepare`` learns are attributes that ``learns`` lists.
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
    folds: int | None = None
    random_state: int | np.random.Generator | None = 0
    progress: bool | None = None
    _columns: Columns = field(default=None, init=False)
    _label_columns: Columns = field(default=None, init=False)
    _told: Array | None = field(default=None, init=False)
    axes: ClassVar[int] = 0
    """An array of so many axes is one example, not a list of them."""
    learns: ClassVar[tuple[str, ...]] = ()
    """The attributes that :meth:`prepare` makes."""
    private: ClassVar[bool] = False
    """Whether nobody but its owner may read a model's file."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "offset" in vars(cls):  # would be ignored in silence
            refuse_removed("Estimator.offset")

    taken = given_of
    """A user's X, and y where there is one, as lists of examples and outcomes."""

    def prepare(self, given: Given) -> Given:
        """Take from the training data what encoding needs, such as the labels.

        Returns the examples to learn from: by default all, as they are given.
        """
        return given

    def known(self, given: Given) -> Given:
        """The examples that a fit with these labels would learn from: by default all."""
        return given

    def counted(self, batch: Batch[Any], given: Given) -> Batch[Any]:
        """The batch with a weight per node of every example; itself where all are 1."""
        weights, place, which = given.nodes or (), dict[Any, int](), []
        for m, weight in enumerate(weights):
            try:
                structure = batch.structure(m)
                if not hasattr(structure, "weighed"):
                    raise ValueError("node_weight is for labels, and this outcome has none")
                structure = structure.weighed(weight)
                if np.abs(np.log10(weight)).max() > DECADES:
                    span = f"{weight.min():g} to {weight.max():g}"
                    limits = f"1e-{DECADES} and 1e{DECADES}"
                    raise ValueError(f"labels count {span}; weights lie between {limits}")
            except ValueError as error:
                raise ValueError(f"example {m}: {error}") from error
            which.append(place.setdefault(structure, len(place)))
        if all((weight == 1).all() for weight in weights):
            return batch
        return replace(batch, structures=tuple(place), which=np.array(which, dtype=np.int64))

    def divided(self, given: Given) -> Iterable[tuple[Given, Given]]:
        """Examples to learn from, and those held out to choose alpha by, in turn."""
        return held_out(self, given)

    def structures(self, X: Sequence[Any]) -> list[Any]:
        """The structure of every example."""
        raise NotImplementedError

    def features(self, batch: Batch[Any], X: Sequence[Any]) -> Features:
        """The features of every example, aligned with the batch's coordinates."""
        return as_features(batch, list(X))

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
        names: Any = getattr(self, "feature_names", None)
        if isinstance(names, str):
            raise ValueError(f"feature_names is a list of names, not {names!r}")
        if names is not None and len(names) != len(self.coef_):
            raise ValueError(f"{len(names)} names for {len(self.coef_)} features")
        if names is None and len(self._columns or ()) == len(self.coef_):
            names = self._columns
        return (
            [f"feature {j}" for j in range(len(self.coef_))]
            if names is None
            else [*map(str, names)]
        )

    def against(self, reference: Any) -> int:
        """The place of the label that others are told against; None: the first."""
        if reference is not None:
            kind = type(self).__name__
            raise ValueError(f"reference is {reference!r}: a {kind} tells no label against another")
        return 0

    def contrasts(self, against: int = 0) -> list[Named]:
        """Combinations of weights worth an interval; with labels, ``against`` one by its place."""
        return []

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
        for name in self.learns:
            if name in learned:
                setattr(self, name, learned[name])

    def fit(
        self,
        X: Sequence[Any],
        y: Sequence[Any],
        sample_weight: ArrayLike | None = None,
        *,
        node_weight: Sequence[ArrayLike] | None = None,
        validation: Examples | None = None,
        checkpoint: AnyCheckpoint = None,
    ) -> Self:
        """Learn from a list of examples' features and the list of their observed outcomes.

        ``sample_weight`` has a weight per example; of labelled nodes ``node_weight`` has an array
        of weights per example.

        Of several alphas the best on ``validation`` is kept; without it, all examples are learned
        from once more, with the one that was best on those held out in turn. With a ``checkpoint``
        (a path, or :class:`Checkpoint`) a fit that was ended goes on, bit for bit, and one that was
        not begins. Ctrl-C leaves the model of the last round, as a full disk does.
        """
        given, alphas = X if isinstance(X, Given) else self.taken(X, y), self._alphas()
        given = given if node_weight is None else given.with_nodes(node_weight)
        several, judge = len(alphas) > 1, None
        if checkpoint is not None and several and validation is None and self.random_state is None:
            raise ValueError(
                "several alphas hold out other examples every time with random_state=None, so a "
                "checkpoint could never be gone on from: give a number"
            )
        model = object.__new__(type(self))  # a fit that fails leaves the estimator as it was
        vars(model).update(vars(self), _columns=given.columns, _label_columns=given.labels)
        if validation is not None:
            if not isinstance(validation, Sequence) or len(validation) != 2:
                raise ValueError(f"validation is (X, y), not {validation!r}")
            checked = model._given(*validation, fitted=False)
            judge = checked if len(checked.outcomes) and several else None
        given.outcomes  # noqa: B018  (refuses no outcomes)
        loop = Loop(checkpoint, type(self).__name__, self._named)
        given = model.prepare(given if sample_weight is None else given.weighed(sample_weight))
        table, missed, work, tried = np.zeros((1, 0)), list[float](), model, alphas
        try:
            if several and judge is None:
                work = copy.copy(model)
                parts = [work._learn(*part, alphas, loop) for part in work.divided(given)]
                table = np.concatenate([scores for scores, _ in parts], axis=1)
                missed = [alpha for _, more in parts for alpha in more]
                alphas, work = alphas[[int(np.argmax(table.mean(axis=1)))]], model
            scores, more = model._learn(given, judge, alphas, loop)
        except (Interrupted, Unwritten) as ended:
            if ended.model is not None:
                vars(self).update(vars(work))
            raise
        except BROKEN as error:
            loop.blame(error)
            raise
        if judge is not None:
            table, missed = scores, [alpha for alpha in more if alpha != model.alpha_]
        if several:
            means = zip(tried.tolist(), table.mean(axis=1).tolist(), strict=True)
            model.alpha_scores_ = sorted(means)
            model.notes_ = [*model.notes_, how_chosen(model, tried)]
        vars(self).update(vars(model))
        loop.end()
        if self._short:
            warn_short(self, missed, len(tried))
        return self

    def _alphas(self) -> Array:
        """One λ or several to choose from; a ValueError for settings that are none.

        Any text would be a yes, where a setting is yes or no.
        """
        for name, default in self._defaults().items():
            value = getattr(self, name)
            if isinstance(default, bool) and not (np.isscalar(value) and value in (0, 1)):
                raise ValueError(f"{name} is {value!r}; it must be True or False")
        alphas = np.atleast_1d(as_numbers(self.alpha, "alpha"))
        if alphas.ndim > 1 or len(alphas) == 0:
            raise ValueError(f"alpha has shape {alphas.shape}; give one number, or several")
        wrong = alphas[~((alphas >= LEAST) & np.isfinite(alphas))]
        if len(wrong):
            raise ValueError(f"alpha is {wrong[0]:g}; it must be positive, {LEAST:g} or more")
        return alphas

    def _named(self) -> dict[str, Any]:
        """The settings that a fit which goes on must share."""
        settings = self.get_params().items()
        return {name: shown(value) for name, value in settings if name not in FREE}

    def _learn(
        self, given: Given, judge: Given | None, alphas: Array, loop: Loop
    ) -> tuple[Array, list[float]]:
        """Keep the model of the only alpha, or of the one that scores best on ``judge``.

        Returns the scores, and the alphas whose fits have not converged.
        """
        encoded = self.encode(given.X, given.outcomes)
        batch, features = self._problem(given.X, encoded, given.weight)
        self._told = None  # what these examples sum to, by which intervals tell others apart
        if not batch.partly and batch.target is not None:
            self._told = np.append(features.moments(batch.target * batch.weights), len(batch))
        self.notes_, whole = list[str](), batch
        if given.nodes is not None:
            batch = self.counted(batch, given)
            self.notes_ = [] if batch is whole else [ALIKE]
        levels = self._levelled(batch, features, alphas)
        order = np.argsort(-alphas, kind="stable")  # each starts from a stronger one
        self.alpha_scores_: list[tuple[float, float]] = []
        scores, fits, missed = list[Array](), list[Found](), list[float]()
        model, watch = None, None
        for alpha in alphas[order].tolist():
            learner: Any = self._learner(alpha)
            watch = watch or watcher(learner.name, self.progress)
            learner = learner.of_seen(self.tol) if batch.partly else learner
            try:
                model = learner.fit(batch, levels, start=model, told=watch, loop=loop)
            except (Interrupted, Unwritten) as ended:
                if ended.model is not None:
                    self._keep(ended.model, alpha, features.d)
                raise
            self._keep(model, alpha, features.d)
            missed += [alpha] if model.short else []
            if judge is not None:
                scores.append(judged(self, judge))
                fits.append(model)
        table = np.zeros((len(alphas), 0))
        if judge is not None:
            table = np.array(scores)[np.argsort(order)]
            best = int(np.argmax(table.mean(axis=1)))
            self._keep(fits[int(np.argsort(order)[best])], float(alphas[best]), features.d)
        self.notes_ = [*self.notes_, *self._notes(batch, features)]
        return table, missed

    def _problem(
        self, X: Sequence[Any], outcomes: Sequence[Any] | None, weight: Array | None
    ) -> tuple[Batch[Any], Features]:
        """The way from a user's examples, encoded outcomes and weights to a batch with features."""
        batch = Batch.of(self.structures(X), outcomes, weight=weight)
        return batch, self.features(batch, X)

    def _levelled(self, batch: Batch[Any], features: Features, alphas: Array) -> Features:
        """Features, without what all outcomes share where that drowns the rest; and their scale.

        A column of zeros has no size.
        """
        if self.penalty not in get_args(Penalty):
            raise ValueError(f"penalty is 'raw' or 'standardised', not {self.penalty!r}")
        self.scale_ = np.ones(features.d)
        if self.penalty == "standardised":
            self.notes_.append("alpha is on weights of columns divided by their root mean squares")
            features = levelled(batch, features, np.arange(features.d))
            size = np.sqrt(squares(features, np.ones(batch.size)) / batch.size)
            for j in np.flatnonzero(size == 0):
                if features.potentials(np.eye(1, features.d, int(j))[0]).any():
                    raise ValueError(f"squares of column {j} are too small to be told from 0")
            self.scale_ = np.where(size > 0, size, 1.0)
        elif isinstance(features, Dense):
            large = features.squares(batch.weights) / len(batch) > DEEP * alphas.min()
            if large.any():
                features = levelled(batch, features, np.flatnonzero(large))
        return features

    def _learner(self, alpha: float) -> Learns:
        """The learner, with the penalty of the columns as they are given."""
        make = LEARNERS.get(self.learner) if isinstance(self.learner, str) else self.learner
        if make is None:
            raise ValueError(f"no learner {self.learner!r}; there are {', '.join(LEARNERS)}")
        bounds = (-np.inf, np.inf) if self.bounds is None else self.bounds
        if not isinstance(bounds, Sequence) or len(bounds) != 2:
            raise ValueError(f"bounds are (lower, upper), not {reprlib.repr(self.bounds)}")
        with np.errstate(over="ignore", under="ignore"):
            lam = alpha * self.scale_**2
        box: Any = {"l1": self.l1 * self.scale_, "lower": bounds[0], "upper": bounds[1]}
        limits: Any = {"rounds": self.max_rounds, "seconds": self.max_seconds}
        return make(
            rho=self.rho,
            regulariser=Regulariser.of(len(self.scale_), lam, **box),
            oracle=self.oracle,
            route=self.solver,
            solver=FrankWolfe(tol=self.tol, workers=self.workers, engine=self.engine, **limits),
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
        if "n_features_in_" not in self.learns:
            self.n_features_in_ = d

    def _notes(self, batch: Batch[Any], features: Features) -> list[str]:
        """What these examples say of the weights learned from them, in words."""
        surrogate = self.learner == "mle_struct" and self.oracle is None
        surrogate &= ALIKE not in self.notes_  # exact_mle takes no weights
        quick = surrogate and all(seconds(one) <= EACH for one in batch.structures)
        return [AFFORDABLE] if quick and not self.inference_.sums(batch) else []

    def _check_fitted(self) -> None:
        if not hasattr(self, "coef_"):
            raise not_fitted(self)

    def _given(
        self, X: Any, y: Any = None, weight: ArrayLike | None = None, *, fitted: bool = True
    ) -> Given:
        """A user's examples for a ``fitted`` model, in the columns learned from."""
        if fitted and not hasattr(self, "coef_"):
            raise not_fitted(self)
        given = self.taken(X, y)
        for known, own, name in (
            (self._columns, given.columns, "X"),
            (self._label_columns, given.labels, "y"),
        ):
            if known is not None and own is not None and own != known:  # taken by position
                why = f"the model learned from {known}, in that order"
                raise ValueError(f"{name} has columns {own}; {why}")
        return given if weight is None else given.weighed(weight)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model: settings, weights, certificate, history; no data, no code."""
        from mlestruct.estimators.stored import save

        self._check_fitted()
        save(path, self)

    @classmethod
    def load(cls, path: str | os.PathLike[str], **again: Any) -> Self:
        """A saved model with the same predictions, bit for bit.

        Settings that are code (an oracle, a structure or a learner of your own) are not in the
        file: pass them ``again``.
        """
        from mlestruct.estimators.stored import load

        found: Self = load(path, cls, again)
        return found

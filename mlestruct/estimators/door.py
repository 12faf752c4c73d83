"""Errors at the door: what is wrong with a list of examples, and where.

Weights of nodes and of classes are checked here too: what every label counts in learning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mlestruct.learning.regulariser import LEAST
from mlestruct.structures.base import Array, as_numbers, refuse_masked, shape_of
from mlestruct.structures.batch import DECADES, Batch

if TYPE_CHECKING:
    from mlestruct.estimators.labels import Labels

Columns = list[str] | None
"""The names of columns, where there are names."""


class Ragged(list[Any]):
    """A list that ``np.concatenate`` joins example by example, as cross-validation does.

    Everything else treats it as the list it is.

    >>> folds = [Ragged([np.zeros(2)]), Ragged([np.ones(3), np.ones(1)])]
    >>> [entry.tolist() for entry in np.concatenate(folds)]
    [[0.0, 0.0], [1.0, 1.0, 1.0], [1.0]]
    """

    def __array_function__(
        self, function: Callable[..., Any], kinds: Any, args: Any, kwargs: Any
    ) -> Any:
        if function is np.concatenate and all(isinstance(part, Ragged) for part in args[0]):
            return _entries([entry for part in args[0] for entry in part])
        return function(*_plain(args), **{name: _plain(value) for name, value in kwargs.items()})


def _entries(entries: list[Any]) -> NDArray[np.object_]:
    """An array of objects, one per entry, whatever their shapes."""
    found = np.empty(len(entries), dtype=object)
    for m, entry in enumerate(entries):
        found[m] = entry
    return found


def _plain(value: Any) -> Any:
    """The same arguments with plain lists for ours, so that NumPy does not ask again."""
    if isinstance(value, Ragged):
        return list(value)
    if isinstance(value, (list, tuple)) and any(isinstance(v, (list, tuple)) for v in value):
        return type(value)(_plain(v) for v in value)
    return value


@dataclass(frozen=True)
class Given:
    """A user's examples, listed and checked, those with a part: ``places`` among ``every``.

    ``columns`` and ``labels`` are the names that frames give to features and to labels.
    """

    X: Sequence[Any]
    y: Sequence[Any] | None
    places: Sequence[int]
    every: Sequence[Any]
    columns: Columns = None
    labels: Columns = None
    weight: Array | None = None

    @property
    def told(self) -> Sequence[Any]:
        """The outcomes, where there have to be some."""
        if self.y is None:
            raise ValueError("learning requires y to be passed, but the target y is None")
        if len(self.y) == 0:
            raise ValueError("no examples: X is empty")
        return self.y

    def at(self, places: Sequence[int]) -> Given:
        """The examples at these places alone."""
        X = [self.every[m] for m in places]
        y = None if self.y is None else [self.y[m] for m in places]
        return Given(X, y, places, self.every, columns_of(X), self.labels)

    def answers(self, found: Iterable[Any], nothing: Callable[[Any], Any]) -> Ragged:
        """An answer for every example; ``nothing`` makes that of an example without a part."""
        if len(self.places) == len(self.every):
            return Ragged(found)
        at = dict(zip(self.places, found, strict=True))
        return Ragged(at[m] if m in at else nothing(x) for m, x in enumerate(self.every))


def one_alone(X: Any) -> ValueError:
    """For one example in the place of a list of them."""
    return ValueError(f"X is a list of examples, not one {type(X).__name__}: pass [X]")


def given_of(X: Any, y: Any, axes: int = 0) -> Given:
    """A user's examples, and outcomes where there are some, as lists: here strange forms enter.

    An array of ``axes`` axes is one example.
    """
    listable = X is None or hasattr(X, "__iter__") or hasattr(X, "__getitem__")
    if isinstance(X, Mapping) or not listable or (isinstance(X, np.ndarray) and X.ndim == axes > 0):
        raise one_alone(X)
    examples, outcomes = listed(X, "X is a list of examples"), None
    if y is not None:
        outcomes = listed(y, "y is a list of outcomes")
        if len(examples) != len(outcomes):
            raise ValueError(f"X has {len(examples)} examples but y has {len(outcomes)}")
        if len(examples) == 0:
            raise ValueError("no examples: X is empty")
    odd = [m for m, x in enumerate(examples) if type(x) is not np.ndarray]
    for m in odd:
        refuse_masked(examples[m], f"example {m}: X")
    columns = columns_of(examples) if odd else None
    return Given(examples, outcomes, range(len(examples)), examples, columns)


def listed(values: Any, what: str) -> Sequence[Any]:
    """A list as it is; a pandas Series by position, whatever its index says."""
    if not hasattr(values, "__len__") or hasattr(values, "tocsr"):  # of scipy.sparse: rows
        raise ValueError(f"{what}, not a {type(values).__name__}")
    at = getattr(values, "iloc", None)
    if at is None and not hasattr(values, "columns"):
        return values
    if at is None or getattr(values, "ndim", 1) != 1:
        raise ValueError(
            "a frame is one example's features, not a list of examples: pass [frame], or for "
            "outcomes frame.to_numpy()"
        )
    return [at[k] for k in range(len(values))]


def columns_of(X: Sequence[Any]) -> Columns:
    """The names of the columns where every example is a frame, the same ones in the same order."""
    named = [names for m, x in enumerate(X) if (names := _names_in(x, m)) is not None]
    if not named or len(named) < len(X):
        return None
    first = [str(name) for name in named[0]]
    if len(set(first)) < len(set(named[0])):
        raise ValueError(f"two columns have one name, as text, among {list(named[0])}")
    for m, names in enumerate(named):
        if [str(name) for name in names] != first:
            raise ValueError(f"example {m} has columns {list(names)}; example 0 has {first}")
    return first


def _names_in(x: Any, m: int) -> Any:
    """The names that an example gives its columns: a frame, or rows that are Series and agree."""
    rows = x if isinstance(x, (list, tuple)) else ()
    if not (rows and hasattr(rows[0], "iloc") and getattr(rows[0], "ndim", 0) == 1):
        return getattr(x, "columns", None)
    first = list(rows[0].index)
    for k, row in enumerate(rows):
        if list(getattr(row, "index", first)) != first:
            raise ValueError(
                f"example {m}, row {k} has entries {list(row.index)}; row 0 has {first}"
            )
    return first


def told_apart(names: Iterable[str]) -> list[str]:
    """Every name once: of equal ones the second is followed by (2).

    >>> told_apart(["a", "b", "a"])
    ['a', 'b', 'a (2)']
    """
    found: dict[str, None] = {}
    for name in names:
        own, count = name, 1
        while own in found:
            own, count = f"{name} ({count + 1})", count + 1
        found[own] = None
    return list(found)


def rng_of(random_state: Any) -> np.random.Generator:
    """A generator from a seed, a generator or None."""
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise ValueError(f"random_state is {random_state!r}; it seeds nothing: {error}") from error


def alphas_of(alpha: float | Sequence[float]) -> Array:
    """One λ or several to choose from."""
    alphas = np.atleast_1d(as_numbers(alpha, "alpha"))
    if alphas.ndim > 1:
        raise ValueError(f"alpha has shape {alphas.shape}; give one number or a list of them")
    if len(alphas) == 0:
        raise ValueError("alpha is empty: give one number or several to choose from")
    wrong = alphas[~((alphas >= LEAST) & np.isfinite(alphas))]
    if len(wrong):
        raise ValueError(f"alpha is {wrong[0]:g}; it must be positive, {LEAST:g} or more")
    return alphas


def width_of(X: Sequence[Any], axes: int, expected: str, width: int | None = None) -> int:
    """The number of features, last of ``axes`` axes, once it is the same in every example."""
    for m, x in enumerate(X):
        shape = shape_at(x, m)
        if len(shape) != axes or 0 in shape:
            raise ValueError(
                f"example {m}: X has shape {shape}; expected {expected}, none empty{_hint(x)}"
            )
        if width is not None and shape[-1] != width:
            raise ValueError(f"example {m} has {shape[-1]} features; expected {width}")
        width = int(shape[-1])
    assert width is not None
    return width


def shape_at(x: Any, m: int) -> tuple[int, ...]:
    """The shape of example m's features."""
    try:
        return shape_of(x)
    except ValueError as error:
        raise ValueError(f"example {m}: X is no array: {error}{_hint(x)}") from error


def _hint(x: Any) -> str:
    """What to do about things that often stand in the place of an example."""
    parts = [x] if isinstance(x, str) else list(x) if isinstance(x, (list, tuple)) else []
    if any(hasattr(part, "columns") for part in parts):
        return "; of a group (name, frame) pass the frame"
    if any(isinstance(part, str) for part in parts):
        return "; words are no features: make a dict of features for each position"
    return ""


def part_of(
    X: Sequence[Any], y: Sequence[Any], members: Iterable[int]
) -> tuple[list[Any], list[Any]]:
    """Some of the examples."""
    chosen = list(members)
    return [X[m] for m in chosen], [y[m] for m in chosen]


ClassWeight = Mapping[Any, float] | Literal["balanced"] | None
ALIKE = (
    "labels count with weights in learning: what was maximised is no likelihood, and probabilities "
    "are as if heavy labels were seen that much more often"
)


@dataclass(frozen=True)
class Weighted:
    """One example's labels, and a weight for each."""

    labels: Any
    weight: Array

    def __len__(self) -> int:
        return len(self.labels)


def with_weights(given: Given, node_weight: Sequence[ArrayLike]) -> Sequence[Any]:
    """Outcomes that carry the weights of their nodes."""
    if not hasattr(node_weight, "__len__") or len(node_weight) != len(given.every):
        raise ValueError(f"node_weight holds an array for each of {len(given.every)} examples")
    weights = listed(node_weight, "node_weight is a list of arrays")
    return [
        Weighted(labels, as_numbers(weights[m], f"example {m}: node_weight").reshape(-1))
        for m, labels in zip(given.places, given.told, strict=True)
    ]


def labels_of(given: Any) -> Any:
    """An outcome as the user gave it."""
    return given.labels if isinstance(given, Weighted) else given


def node_weights(y: Sequence[Any], counts: Sequence[int]) -> list[Array]:
    """A weight per node of every example, 1 where none was given."""
    found = []
    for m, (given, count) in enumerate(zip(y, counts, strict=True)):
        weight = given.weight if isinstance(given, Weighted) else np.ones(count)
        if weight.shape != (count,):
            raise ValueError(f"example {m}: {len(weight)} node weights for {count} nodes")
        found.append(weight)
    return found


def class_weights(setting: ClassWeight, classes: Labels, counts: Array) -> Array:
    """A weight per class; ``balanced``: all labels / (classes · labels of this class).

    >>> class_weights("balanced", np.array(["no", "yes"]), np.array([9.0, 1.0])).round(3).tolist()
    [0.556, 5.0]
    """
    weight = np.ones(len(classes))
    if setting is None:
        return weight
    if isinstance(setting, str) and setting == "balanced":
        seen = counts > 0
        weight[seen] = counts.sum() / (seen.sum() * counts[seen])
        return weight
    if not isinstance(setting, Mapping):
        raise ValueError(f"class_weight is a mapping, 'balanced' or None, not {setting!r}")
    place = {label: k for k, label in enumerate(classes.tolist())}
    for label, given in setting.items():
        if label not in place:
            raise ValueError(f"class_weight names {label!r}; classes are {classes.tolist()}")
        value = float(as_numbers(given, f"class_weight of {label!r}"))
        if not (np.isfinite(value) and value > 0):
            raise ValueError(f"class_weight of {label!r} is {value:g}; it must be positive")
        weight[place[label]] = value
    return weight


def counting(batch: Batch[Any], each: Iterable[Array]) -> Batch[Any]:
    """The batch with a weight per node of every example; itself where all are 1."""
    weights = list(each)
    if all((weight == 1).all() for weight in weights):
        return batch
    place: dict[Any, int] = {}
    which = []
    for m, weight in enumerate(weights):
        try:
            structure = batch.structure(m).weighed(weight)
            if np.abs(np.log10(weight)).max() > DECADES:
                raise ValueError(f"labels count {weight.min():g} to {weight.max():g}; weights lie "
                                 f"between 1e-{DECADES} and 1e{DECADES}")  # fmt: skip
        except ValueError as error:
            raise ValueError(f"example {m}: {error}") from error
        which.append(place.setdefault(structure, len(place)))
    return replace(batch, structures=tuple(place), which=np.array(which, dtype=np.int64))

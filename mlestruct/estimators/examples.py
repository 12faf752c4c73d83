"""A user's examples as lists: what stands in their place is refused, with the example's number."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mlestruct.structures.base import Array, as_numbers, refuse_masked, shape_of

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
        if function is not np.concatenate or not all(isinstance(p, Ragged) for p in args[0]):
            return function._implementation(*args, **kwargs)  # type: ignore[attr-defined]
        entries = [entry for part in args[0] for entry in part]
        found = np.empty(len(entries), dtype=object)  # an entry each, whatever their shapes
        for m, entry in enumerate(entries):
            found[m] = entry
        return found


@dataclass(frozen=True)
class Given:
    """A user's examples, listed and checked, those with a part: ``places`` among ``every``.

    ``columns`` and ``labels`` are the names that frames give to features and to labels; ``weight``
    is that of each example in ``X``, ``nodes`` has those of its nodes.
    """

    X: Sequence[Any]
    y: Sequence[Any] | None
    places: Sequence[int]
    every: Sequence[Any]
    columns: Columns = None
    labels: Columns = None
    weight: Array | None = None
    nodes: Sequence[Array] | None = None

    @property
    def outcomes(self) -> Sequence[Any]:
        """The outcomes, where there have to be some."""
        if self.y is None:
            raise ValueError("learning requires y to be passed, but the target y is None")
        if len(self.y) == 0:
            raise ValueError("no examples: X is empty")
        return self.y

    def part(self, members: ArrayLike) -> Given:
        """Some of the examples in ``X``, by their positions there."""
        chosen = np.asarray(members, dtype=np.int64).tolist()
        X, places = ([values[m] for m in chosen] for values in (self.X, self.places))
        y, nodes = (v if v is None else [v[m] for m in chosen] for v in (self.y, self.nodes))
        weight = None if self.weight is None else self.weight[chosen]
        return replace(self, X=X, y=y, places=places, weight=weight, nodes=nodes)

    def weighed(self, weight: ArrayLike) -> Given:
        """The same examples, each counting with its ``weight``, which has one for ``every``."""
        weights = as_numbers(weight, "sample_weight")
        if weights.shape != (len(self.every),):
            raise ValueError(
                f"sample_weight has shape {weights.shape} for {len(self.every)} examples"
            )
        return replace(self, weight=weights[list(self.places)])

    def with_nodes(self, weight: Any) -> Given:
        """The same examples, the labels of each counting with an array of ``weight``."""
        each = listed(weight, "node_weight is a list of arrays")
        if len(each) != len(self.every):
            raise ValueError(f"node_weight holds an array for each of {len(self.every)} examples")
        nodes = [as_numbers(each[m], f"example {m}: node_weight") for m in self.places]
        return replace(self, nodes=[one.reshape(-1) for one in nodes])

    def answers(self, found: Iterable[Any], nothing: Callable[[Any], Any]) -> Ragged:
        """An answer for every example; ``nothing`` makes that of an example without a part."""
        if len(self.places) == len(self.every):
            return Ragged(found)
        at = dict(zip(self.places, found, strict=True))
        return Ragged(at[m] if m in at else nothing(x) for m, x in enumerate(self.every))


def one_alone(X: Any) -> ValueError:
    """For one example in the place of a list of them."""
    return ValueError(f"X is a list of examples, not one {type(X).__name__}: pass [X]")


def given_of(model: Any, X: Any, y: Any) -> Given:
    """A user's examples, and outcomes where there are some, as lists: here strange forms enter.

    An array of as many axes as the model's examples have is one of them.
    """
    axes = getattr(model, "axes", 0)
    listable = X is None or hasattr(X, "__iter__") or hasattr(X, "__getitem__")
    if isinstance(X, Mapping) or not listable or (isinstance(X, np.ndarray) and X.ndim == axes > 0):
        raise one_alone(X)
    plain = (list, np.ndarray)
    examples: Any = X if isinstance(X, plain) else listed(X, "X is a list of examples")
    if y is not None:
        y = y if isinstance(y, plain) else listed(y, "y is a list of outcomes")
        if len(examples) != len(y):
            raise ValueError(f"X has {len(examples)} examples but y has {len(y)}")
        if len(examples) == 0:
            raise ValueError("no examples: X is empty")
    columns = None
    if any(type(x) is not np.ndarray for x in examples):
        for m, x in enumerate(examples):
            if type(x) is not np.ndarray:
                refuse_masked(x, f"example {m}: X")
        columns = columns_of(examples)
    return Given(examples, y, range(len(examples)), examples, columns)


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
    named = []
    for m, x in enumerate(X):
        names: Any = getattr(x, "columns", None)
        if isinstance(x, (list, tuple)) and x and hasattr(x[0], "iloc") and x[0].ndim == 1:
            raise ValueError(f"example {m} is a list of Series: pass a frame, DataFrame(rows)")
        if names is not None:
            named.append(list(names))
    if not named or len(named) < len(X):
        return None
    first = [str(name) for name in named[0]]
    if len(set(first)) < len(set(named[0])):
        raise ValueError(f"two columns have one name, as text, among {named[0]}")
    for m, names in enumerate(named):
        if [str(name) for name in names] != first:
            raise ValueError(f"example {m} has columns {names}; example 0 has {first}")
    return first


def rng_of(random_state: Any) -> np.random.Generator:
    """A generator from a seed, a generator or None."""
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise ValueError(f"random_state is {random_state!r}; it seeds nothing: {error}") from error


def width_of(X: Sequence[Any], width: int | None = None) -> int:
    """The number of features of (length, features), once it is the same in every example."""
    for m, x in enumerate(X):
        shape = shape_at(x, m)
        if len(shape) != 2 or 0 in shape:
            raise ValueError(
                f"example {m}: X has shape {shape}; expected (length, features), none empty"
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
        raise ValueError(f"example {m}: X is no array: {error}") from error

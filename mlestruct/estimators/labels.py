"""Labels of any sortable kind, as states 0, 1, … and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlestruct.structures.base import Ints

Labels = NDArray[Any]


def as_labels(labels: Any) -> Labels:
    """An array of labels; objects become numbers or text where they all are."""
    if labels is None:
        raise ValueError("labels are None")
    array = np.asarray(labels)
    return np.array(array.tolist()) if array.dtype.kind == "O" else array


def classes_of(y: Sequence[Any]) -> Labels:
    """Every label of every example, sorted.

    >>> classes_of([["b", "a"], ["b"]]).tolist()
    ['a', 'b']
    """
    given = [as_labels(labels).ravel() for labels in y]
    kinds = {_kind(labels): m for m, labels in enumerate(given) if labels.size}
    if not kinds:
        raise ValueError("y holds no label in any example")
    if len(kinds) > 1:
        raise ValueError(f"labels are text in some examples and not in others: {kinds}")
    for m, labels in enumerate(given):
        if labels.dtype.kind == "f" and not np.isfinite(labels).all():
            i = int((~np.isfinite(labels)).argmax())
            raise ValueError(f"example {m}: label {i} is {labels[i]}")
    try:
        return np.unique(np.concatenate([labels for labels in given if labels.size]))
    except TypeError as error:
        raise ValueError(f"labels cannot be sorted: {error}") from error


def states_of(classes: Labels, labels: Any, m: int) -> Ints:
    """Positions in ``classes`` of example m's labels, in their shape."""
    given = as_labels(labels)
    known = np.zeros(given.shape, dtype=bool)
    if _kind(given) == _kind(classes):
        known = np.isin(given, classes)
    if not known.all():
        unknown = given[~known].tolist()[0]
        raise ValueError(f"example {m}: label {unknown!r} was not seen in training")
    return np.asarray(np.searchsorted(classes, given))


def _kind(labels: Labels) -> str:
    return "text" if labels.dtype.kind in "US" else "other"


def numbered(count: int) -> list[str]:
    """Names for features that have none."""
    return [f"feature {j}" for j in range(count)]


def tied_names(features: Sequence[str], classes: Labels, edges: Sequence[str] = ("",)) -> list[str]:
    """Names of tied weights: ``feature: label``, then ``label → label`` for every edge feature."""
    labels = [str(label) for label in classes.tolist()]
    emissions = [f"{feature}: {label}" for feature in features for label in labels]
    return emissions + [f"{edge}{a} → {b}" for edge in edges for a in labels for b in labels]

"""Weights of nodes and of classes: what every label counts in learning."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from mlestruct.batch import DECADES, Batch
from mlestruct.estimators.door import Given, listed
from mlestruct.structures.base import Array, as_numbers

if TYPE_CHECKING:
    from mlestruct.estimators.labels import Labels

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
    weights = listed(node_weight)
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

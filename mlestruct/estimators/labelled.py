"""What estimators of a label per node share: classes, void labels, scores of what is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from mlestruct.estimators import door
from mlestruct.estimators.base import Estimator, Examples
from mlestruct.estimators.door import ClassWeight, Given, Weighted
from mlestruct.estimators.labels import (
    AUTO,
    Seen,
    classes_of,
    codes_of,
    observed,
    seen_in,
    states_of,
)
from mlestruct.learning.loop import AnyCheckpoint
from mlestruct.structures.base import Array
from mlestruct.structures.batch import Batch

SHOWN = 5  # labels that a refusal lists


@dataclass(kw_only=True, eq=False, repr=False)
class Weighable(Estimator):
    """What estimators share whose labels may count with weights, by class or one by one."""

    class_weight: ClassWeight = None

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
        return self._fit(X, y, sample_weight, node_weight, validation, checkpoint)

    def weights_of_labels(self, batch: Batch[Any], y: Sequence[Any]) -> list[Array]:
        """A weight for every label of every example."""
        raise NotImplementedError

    def counted(self, batch: Batch[Any], y: Sequence[Any]) -> Batch[Any]:
        if self.class_weight is None and not any(isinstance(one, Weighted) for one in y):
            return batch
        return door.counting(batch, self.weights_of_labels(batch, y))


@dataclass(kw_only=True, eq=False, repr=False)
class Labelled(Weighable):
    """A label for every node of a graph, with labels that may be void.

    Void are None, NaN, masked entries, what a :class:`Partial` leaves out and the labels named by
    ``void``: one or several; None for no other; by default −1, where the others are two integers
    from 0 on or more. ``unseen`` says what is learned of nodes with void labels: as ``hidden``
    variables they are summed over (:class:`Missing`; learners that do otherwise say so, and some
    refuse them); ``left_out`` learns from the other nodes and the edges between them, with any
    learner.
    A set of labels says that the node has one of them. Scores are of the known labels.

    ``class_weight``, a mapping from labels or ``balanced``, and ``fit``'s ``node_weight``, an array
    per example, say what every label counts in learning; an edge counts as its heavier node. Both
    multiply scores and entropies: nodes without edges are weighed examples, as scikit-learn has
    them; equal weights are those of the example; elsewhere it is a weighted composite likelihood
    or margin. Learners that take an example's labels as one refuse them. Held-out scores are not
    weighted.
    """

    void: Any = AUTO
    unseen: Literal["hidden", "left_out"] = "hidden"
    learns: ClassVar[tuple[str, ...]] = ("classes_", "void_", "n_features_in_")
    instead = "where labels are missing, a fit with unseen='left_out' leaves nodes out"

    def against(self, reference: Any) -> int:
        if reference is None:
            return 0
        try:
            return int(states_of(self.classes_, [reference], 0).item())
        except (TypeError, ValueError):
            shown = ", ".join(map(repr, self.classes_[:SHOWN].tolist()))
            more = ", ..." if len(self.classes_) > SHOWN else ""
            raise ValueError(
                f"reference is {reference!r:.40}, which is none of the labels: {shown}{more}"
            ) from None

    def nodes_of(self, x: Any) -> int:
        """How many labels an example has."""
        raise NotImplementedError

    def ids_of(self, x: Any) -> Sequence[Any] | None:
        """What its nodes are called, if not by their numbers."""
        return None

    def shape_of(self, x: Any) -> tuple[int, ...]:
        """The shape of its labels."""
        return (self.nodes_of(x),)

    def parts(self, x: Any, known: NDArray[np.bool_]) -> list[tuple[Any, NDArray[np.bool_]]]:
        """What is left of an example without some nodes, and whose labels each part takes."""
        raise NotImplementedError

    def known(self, given: Given) -> Given:
        """Of nodes that have no label nothing, where they are to be left out."""
        if self.unseen not in ("hidden", "left_out"):
            raise ValueError(f"unseen is 'hidden' or 'left_out', not {self.unseen!r}")
        y, own = given.told, given.weight
        if any(isinstance(labels, Weighted) for labels in y):
            door.node_weights(y, [self.nodes_of(x) for x in given.X])
        if self.unseen == "hidden":
            return given
        self.void_ = codes_of(self.void, self._seen(given.X, y, ()))
        kept, labels, weight, places = list[Any](), list[Any](), list[float](), list[int]()
        for m, (x, one) in enumerate(zip(given.X, self._seen(given.X, y, self.void_), strict=True)):
            whole = np.empty(one.known.size, dtype=one.labels.dtype)
            whole[one.known.ravel()] = one.labels
            counts = y[m].weight if isinstance(y[m], Weighted) else None
            for part, nodes in self.parts(x, one.known.ravel()) if one.known.any() else []:
                kept.append(part)
                places.append(given.places[m])
                known = whole[nodes]
                labels.append(known if counts is None else Weighted(known, counts[nodes]))
                weight.append(1.0 if own is None else own[m])
        return replace(given, X=kept, y=labels, weight=np.array(weight), places=places)

    def learn_labels(self, X: Sequence[Any], y: Sequence[Any]) -> None:
        """``classes_``, and ``void_``: the codes that mean no label."""
        hidden = self.unseen == "hidden"  # where void labels are left out, none is among these
        seen = self._seen(X, y, () if hidden else self.void_)
        if hidden:
            self.void_ = codes_of(self.void, seen)
            seen = self._seen(X, y, self.void_) if self.void_ else seen
        named = [labels for one in seen for labels in one.among.values() if labels]
        self.classes_ = classes_of([*(one.labels for one in seen), *named])

    def _seen(self, X: Sequence[Any], y: Sequence[Any], void: Sequence[Any]) -> list[Seen]:
        """What is known of every example's labels; their shape is checked."""
        found = []
        for m, (x, given) in enumerate(zip(X, y, strict=True)):
            try:
                found.append(self._seen_in(x, given, void))
            except ValueError as error:
                raise ValueError(f"example {m}: {error}") from error
        return found

    def _seen_in(self, x: Any, given: Any, void: Sequence[Any]) -> Seen:
        ids, given = self.ids_of(x), door.labels_of(given)
        if ids is not None and isinstance(given, Mapping):
            strange = next((name for name in given if name not in set(ids)), None)
            if strange is not None:
                raise ValueError(f"y names {strange!r}, which is no node")
            given = np.array([given.get(name) for name in ids], dtype=object)
        seen, shape = seen_in(given, void, self.nodes_of(x)), self.shape_of(x)
        if seen.known.shape not in (shape, (int(np.prod(shape)),)):
            raise ValueError(f"y has shape {seen.known.shape}; expected {shape}, as its X")
        return seen

    def weights_of_labels(self, batch: Batch[Any], y: Sequence[Any]) -> list[Array]:
        """The weights of nodes times those of their observed classes."""
        weights = door.node_weights(y, [batch.structure(m).n_nodes for m in range(len(batch))])
        if self.class_weight is not None:
            seen = [_one_hot(batch, m, len(self.classes_)) for m in range(len(batch))]
            pairs = zip(weights, seen, batch.weight, strict=True)
            counts = np.sum([own * (weight @ labels) for weight, labels, own in pairs], axis=0)
            each = door.class_weights(self.class_weight, self.classes_, counts)
            weights = [
                weight * np.where(labels.any(axis=1), labels @ each, 1.0)
                for weight, labels in zip(weights, seen, strict=True)
            ]
        return weights

    def encode(self, X: Sequence[Any], y: Sequence[Any]) -> list[Any]:
        return [observed(self.classes_, s, m) for m, s in enumerate(self._seen(X, y, self.void_))]

    def present(self, x: Any, outcome: Any) -> NDArray[Any]:
        return np.asarray(self.classes_[outcome].reshape(self.shape_of(x)))


def beside(rows: Any, *more: Array) -> Any:
    """Rows with further columns, sparse where they are."""
    if not sp.issparse(rows):
        return np.hstack([rows, *more])
    parts: list[Any] = [rows, *map(sp.csr_array, more)]
    return sp.csr_array(sp.hstack(parts))


def _one_hot(batch: Batch[Any], m: int, states: int) -> NDArray[np.float64]:
    """(nodes × states): 1 at the observed state of every node that has one."""
    assert batch.target is not None
    graph = batch.structure(m)
    nodes = batch.target[batch.coordinates(m)][: graph.node_start[-1]].reshape(-1, states)
    seen = ~np.isnan(nodes).any(axis=1, keepdims=True)
    return np.where(seen, nodes, 0.0)

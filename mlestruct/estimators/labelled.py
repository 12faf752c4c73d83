"""What estimators of a label per node share: classes, void labels, weights of labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mlestruct.estimators.base import Estimator
from mlestruct.estimators.examples import Given
from mlestruct.estimators.labels import (
    AUTO,
    Seen,
    classes_of,
    observed,
    seen_in,
    void_among,
)
from mlestruct.structures.base import Array

SHOWN = 5  # labels that a refusal lists


@dataclass(kw_only=True, eq=False, repr=False)
class Labelled(Estimator):
    """A label for every node of a graph, with labels that may be void.

    Void are None, NaN, masked entries, what a :class:`Partial` leaves out and the labels named by
    ``void``: one or several; None for no other; by default −1, where the others are two integers
    from 0 on or more. ``unseen`` says what is learned of nodes with void labels: as ``hidden``
    variables they are summed over (:class:`Missing`; learners that do otherwise say so, and some
    refuse them); ``left_out`` learns from the other nodes and the edges between them, with any
    learner.
    A set of labels says that the node has one of them. Scores are of the known labels.

    ``fit``'s ``node_weight``, an array per example, says what every label counts in learning (by
    classes: ``compute_sample_weight`` of scikit-learn); an edge counts as its heavier node. Weights
    multiply scores and entropies: nodes without edges are weighed examples, as scikit-learn has
    them; equal weights are those of the example; elsewhere it is a weighted composite likelihood
    or margin. Learners that take an example's labels as one refuse them. Held-out scores are not
    weighted.
    """

    void: Any = AUTO
    unseen: Literal["hidden", "left_out"] = "hidden"
    learns: ClassVar[tuple[str, ...]] = ("classes_", "void_", "n_features_in_")

    def against(self, reference: Any) -> int:
        labels = self.classes_.tolist()
        try:
            return 0 if reference is None else labels.index(reference)
        except ValueError:
            shown = ", ".join(map(repr, labels[:SHOWN])) + ", ..." * (len(labels) > SHOWN)
            why = f"reference is {reference!r:.40}, which is none of the labels"
            raise ValueError(f"{why}: {shown}") from None

    def shape_of(self, x: Any) -> tuple[int, ...]:
        """The shape of an example's labels."""
        raise NotImplementedError

    def parts(self, x: Any, known: NDArray[np.bool_]) -> list[tuple[Any, NDArray[np.bool_]]]:
        """What is left of an example without some nodes, and whose labels each part takes."""
        raise NotImplementedError

    def prepare(self, given: Given) -> Given:
        """``classes_``, and ``void_``: the codes that mean no label."""
        if self.unseen not in ("hidden", "left_out"):
            raise ValueError(f"unseen is 'hidden' or 'left_out', not {self.unseen!r}")
        auto = isinstance(self.void, str) and self.void == AUTO
        several = np.iterable(self.void) and not isinstance(self.void, str)
        codes = () if self.void is None else tuple(self.void) if several else (self.void,)
        self.void_: tuple[Any, ...] = () if auto else codes
        if auto:
            self.void_ = void_among(self._seen(given.X, given.outcomes))
        given = self.known(given)
        seen = self._seen(given.X, given.outcomes)
        named = [labels for one in seen for labels in one.among.values() if labels]
        self.classes_ = classes_of([*(one.labels for one in seen), *named])
        return given

    def known(self, given: Given) -> Given:
        """Of nodes that have no label nothing, where they are to be left out."""
        if self.unseen == "hidden":
            return given
        X, y, places, weight, nodes = (list[Any]() for _ in range(5))
        for m, one in enumerate(self._seen(given.X, given.outcomes)):
            known = one.known.ravel()
            if given.nodes is not None and len(given.nodes[m]) != known.size:
                here = f"example {m}: {len(given.nodes[m])} node weights"
                raise ValueError(f"{here} for {known.size} nodes")
            whole = np.empty(known.size, dtype=one.labels.dtype)
            whole[known] = one.labels
            for part, inside in self.parts(given.X[m], known) if known.any() else []:
                X.append(part)
                y.append(whole[inside])
                places.append(given.places[m])
                weight.append(1.0 if given.weight is None else given.weight[m])
                nodes += [] if given.nodes is None else [given.nodes[m][inside]]
        found = replace(given, X=X, y=y, places=places, weight=np.array(weight))
        return replace(found, nodes=nodes if given.nodes is not None else None)

    def _seen(self, X: Sequence[Any], y: Sequence[Any]) -> list[Seen]:
        """What is known of every example's labels; their shape is checked."""
        found = []
        for m, (x, labels) in enumerate(zip(X, y, strict=True)):
            try:
                ids, shape = getattr(x, "ids", None), self.shape_of(x)
                if ids is not None and isinstance(labels, Mapping):
                    strange = next((name for name in labels if name not in set(ids)), None)
                    if strange is not None:
                        raise ValueError(f"y names {strange!r}, which is no node")
                    labels = np.array([labels.get(name) for name in ids], dtype=object)
                count = int(np.prod(shape))
                found.append(seen_in(labels, self.void_, count))
                if found[-1].known.shape not in (shape, (count,)):
                    here = found[-1].known.shape
                    raise ValueError(f"y has shape {here}; expected {shape}, as its X")
            except ValueError as error:
                raise ValueError(f"example {m}: {error}") from error
        return found

    def encode(self, X: Sequence[Any], y: Sequence[Any]) -> list[Any]:
        return [observed(self.classes_, s, m) for m, s in enumerate(self._seen(X, y))]

    def present(self, x: Any, outcome: Any) -> NDArray[Any]:
        return np.asarray(self.classes_[outcome].reshape(self.shape_of(x)))


def beside(rows: Any, *more: Array) -> Any:
    """Rows with further columns, sparse where they are."""
    if not sp.issparse(rows):
        return np.hstack([rows, *more])
    parts: list[Any] = [rows, *map(sp.csr_array, more)]
    return sp.csr_array(sp.hstack(parts))

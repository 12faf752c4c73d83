"""SequenceModel: a label per position, from features per position and learned transitions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, Self, Unpack

import numpy as np

from mlestruct.batch import Batch
from mlestruct.estimators.structured import Estimator, Settings
from mlestruct.features import Masked, Tied
from mlestruct.readers import Attributes, bio_chain
from mlestruct.structures.base import Array, Ints
from mlestruct.structures.graph import FactorGraph, chain


class SequenceModel(Estimator):
    """Chains: X is a list of (length, p) arrays or sparse matrices, y of labels per position.

    X may also hold CRFsuite-style lists of feature dicts (``attributes_`` is their dictionary).
    Labels may be anything hashable and sortable; ``classes_`` lists them. θ holds a weight per
    (feature, label), then one per (label, next label); on chains the likelihood is exact.
    ``constraints="bio"`` forbids what is no BIO sequence. ``weights="seen"`` keeps only weights
    that training outcomes use, as CRFsuite does; an unseen transition then weighs 0.
    Other settings and fitted attributes as :class:`Estimator`.

    >>> X = [[{"word": w} for w in s.split()] for s in ("in Rome", "Rome is old")]
    >>> model = SequenceModel(alpha=0.1).fit(X, [["O", "B-LOC"], ["B-LOC", "O", "O"]])
    >>> model.predict([[{"word": "Rome"}, {"word": "is"}]])[0].tolist()
    ['B-LOC', 'O']
    """

    def __init__(
        self,
        *,
        constraints: Literal["bio"] | None = None,
        weights: Literal["all", "seen"] = "all",
        **settings: Unpack[Settings],
    ) -> None:
        super().__init__(**settings)
        self.constraints = constraints
        self.weights = weights

    def fit(
        self,
        X: Sequence[Any],
        y: Sequence[Any],
        sample_weight: Any = None,
        *,
        validation: tuple[Sequence[Any], Sequence[Any]] | None = None,
    ) -> Self:
        """Learn from sequences of features and the label at every position."""
        self._check_lengths(X, y)
        if self.constraints not in (None, "bio"):
            raise ValueError(f"constraints is None or 'bio', not {self.constraints!r}")
        if self.weights not in ("all", "seen"):
            raise ValueError(f"weights is 'all' or 'seen', not {self.weights!r}")
        self.classes_ = np.unique(np.concatenate([np.asarray(labels) for labels in y]))
        self.attributes_ = Attributes.of(X) if _named(X) else None
        self._allowed: Ints | None = None
        return super().fit(X, y, sample_weight, validation=validation)

    def encode(self, y: Sequence[Any]) -> list[Any]:
        codes = []
        for m, labels in enumerate(y):
            given = np.asarray(labels)
            code = np.searchsorted(self.classes_, given)
            known = self.classes_[np.minimum(code, len(self.classes_) - 1)] == given
            if not known.all():
                unknown = given[~known].tolist()[0]
                raise ValueError(f"example {m}: label {unknown!r} was not seen in training")
            codes.append(code)
        return codes

    def structures(self, X: Sequence[Any]) -> list[FactorGraph]:
        lengths = [x.shape[0] if hasattr(x, "shape") else len(x) for x in X]
        make: Callable[[int], FactorGraph] = partial(chain, states=len(self.classes_))
        if self.constraints == "bio":
            make = bio_chain(self.classes_.tolist())
        made = {length: make(length) for length in set(lengths)}
        return [made[length] for length in lengths]

    def features(self, batch: Batch[Any], X: Sequence[Any]) -> Tied | Masked:
        if _named(X) and self.attributes_ is None:
            raise ValueError("X holds feature dicts, but the model was fitted to arrays")
        tied = Tied.of(batch, self.attributes_.stack(X) if self.attributes_ else list(X))
        if self.weights == "all":
            return tied
        if self._allowed is None:
            self._allowed = Masked.seen(tied, batch).index
        return Masked(tied, self._allowed)

    def present(self, outcome: Any) -> Any:
        return self.classes_[outcome]

    def shape(self, structure: FactorGraph, flat: Array) -> Array:
        """The labels' probabilities at every position, (length, classes)."""
        return flat[: structure.node_start[-1]].reshape(structure.n_nodes, -1)


def _named(X: Sequence[Any]) -> bool:
    """Whether positions are dicts, lists or sets of named attributes, not rows of numbers."""
    first = next((x[0] for x in X if isinstance(x, (list, tuple)) and len(x)), None)
    if isinstance(first, (list, tuple, set, frozenset)):
        return all(isinstance(name, str) for name in first)
    return isinstance(first, Mapping)

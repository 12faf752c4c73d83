"""SequenceModel: a label per position, from features per position and learned transitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from mlestruct.batch import Batch
from mlestruct.estimators.structured import Estimator
from mlestruct.features import Tied
from mlestruct.structures.base import Array
from mlestruct.structures.graph import FactorGraph, chain


class SequenceModel(Estimator):
    """Chains: X is a list of (length, p) arrays or sparse matrices, y of labels per position.

    Labels may be anything hashable and sortable; ``classes_`` lists them. θ holds a weight per
    (feature, label), then one per (label, next label); on chains the likelihood is exact.
    Other settings and fitted attributes as :class:`Estimator`.
    """

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
        self.classes_ = np.unique(np.concatenate([np.asarray(labels) for labels in y]))
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
        lengths = [x.shape[0] for x in X]
        made = {length: chain(length, len(self.classes_)) for length in lengths}
        return [made[length] for length in lengths]

    def features(self, batch: Batch[Any], X: Sequence[Any]) -> Tied:
        return Tied.of(batch, list(X))

    def present(self, outcome: Any) -> Any:
        return self.classes_[outcome]

    def shape(self, structure: FactorGraph, flat: Array) -> Array:
        """The labels' probabilities at every position, (length, classes)."""
        return flat[: structure.node_start[-1]].reshape(structure.n_nodes, -1)

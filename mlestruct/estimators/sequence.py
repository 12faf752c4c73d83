"""SequenceModel: a label per position, from features per position and learned transitions."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mlestruct.batch import Batch
from mlestruct.estimators.door import width_of
from mlestruct.estimators.labelled import Labelled
from mlestruct.estimators.labels import Labels, numbered, tied_contrasts, tied_names
from mlestruct.features import Masked, Tied
from mlestruct.readers import Attributes, bio_chain
from mlestruct.statistics.identified import Named
from mlestruct.structures.base import Array, Ints
from mlestruct.structures.graph import FactorGraph
from mlestruct.structures.shapes import chain


@dataclass(kw_only=True, eq=False, repr=False)
class SequenceModel(Labelled):
    """Chains: X is a list of (length, p) arrays or sparse matrices, y of labels per position.

    X may also hold CRFsuite-style lists of feature dicts (``attributes_`` is their dictionary).
    Labels may be anything hashable and sortable; ``classes_`` lists them. θ holds a weight per
    (feature, label), then one per (label, next label); on chains the likelihood is exact.
    ``constraints="bio"`` forbids what is no BIO sequence. ``weights="seen"`` keeps only weights
    that training outcomes use, as CRFsuite does; an unseen transition then weighs 0.
    Labels may be void, None among them (see :class:`Labelled`).
    Other settings and fitted attributes as :class:`Estimator`.

    >>> X = [[{"word": w} for w in s.split()] for s in ("in Rome", "Rome is old")]
    >>> model = SequenceModel(alpha=0.1).fit(X, [["O", "B-LOC"], ["B-LOC", "O", "O"]])
    >>> model.predict([[{"word": "Rome"}, {"word": "is"}]])[0].tolist()
    ['B-LOC', 'O']
    """

    constraints: Literal["bio"] | None = None
    weights: Literal["all", "seen"] = "all"

    def prepare(self, X: Sequence[Any], y: Sequence[Any]) -> None:
        """The labels, the dictionary of attributes, and no weights chosen yet."""
        if self.constraints not in (None, "bio"):
            raise ValueError(f"constraints is None or 'bio', not {self.constraints!r}")
        if self.weights not in ("all", "seen"):
            raise ValueError(f"weights is 'all' or 'seen', not {self.weights!r}")
        self.attributes_ = Attributes.of(X) if _named(X) else None
        if self.attributes_ is not None and len(self.attributes_) == 0:
            raise ValueError("there are no features: no position has an attribute")
        self.n_features_in_ = (
            width_of(X, 2, "(length, features)")
            if self.attributes_ is None
            else len(self.attributes_)
        )
        self.learn_labels(X, y)
        self._allowed: Ints | None = None

    def nodes_of(self, x: Any) -> int:
        return int(x.shape[0]) if hasattr(x, "shape") else len(x)

    def parts(self, x: Any, known: NDArray[np.bool_]) -> list[tuple[Any, NDArray[np.bool_]]]:
        """The stretches between positions that are not known."""
        edges = np.flatnonzero(np.diff(np.concatenate([[False], known, [False]]).astype(int)))
        places = [slice(a, b) for a, b in edges.reshape(-1, 2).tolist()]
        number = np.arange(len(known))
        return [(x[place], np.isin(number, number[place])) for place in places]

    def structures(self, X: Sequence[Any]) -> list[FactorGraph]:
        lengths = [self.nodes_of(x) for x in X]
        make: Callable[[int], FactorGraph] = partial(chain, states=len(self.classes_))
        if self.constraints == "bio":
            make = bio_chain(self.classes_.tolist())
        made = {length: make(length) for length in set(lengths)}
        return [made[length] for length in lengths]

    def features(self, batch: Batch[Any], X: Sequence[Any]) -> Tied | Masked:
        if _named(X) != (self.attributes_ is not None):
            kinds = ("arrays", "feature dicts")
            here, then = kinds if self.attributes_ is not None else kinds[::-1]
            raise ValueError(f"X holds {here}, but the model was fitted to {then}")
        if self.attributes_ is None:
            width_of(X, 2, "(length, features)", self.n_features_in_)
        nodes = self.attributes_.stack(X) if self.attributes_ else list(X)
        tied = Tied.of(batch, nodes, self.ties(X))
        tied = replace(tied, table=len(self.classes_) ** 2)  # where no sequence has a transition
        if self.weights == "all":
            return tied
        if self._allowed is None and batch.target is not None and np.isnan(batch.target).any():
            raise ValueError("weights='seen' needs every label; use weights='all'")
        if self._allowed is None:
            self._allowed = Masked.seen(tied, batch).index
        return Masked(tied, self._allowed)

    def ties(self, X: Sequence[Any]) -> Any:
        """Features of all ties between positions, stacked; None is a constant."""
        return None

    def shape(self, x: Any, structure: FactorGraph, flat: Array) -> Array:
        """The labels' probabilities at every position, (length, classes)."""
        return flat[: structure.node_start[-1]].reshape(structure.n_nodes, -1)

    def names(self) -> list[str]:
        """``feature: label`` and ``label → next label``."""
        names = tied_names(*self._tied())
        return names if self._allowed is None else [names[j] for j in self._allowed]

    def contrasts(self, reference: Any = None) -> list[Named]:
        found = tied_contrasts(*self._tied(), reference)
        if self._allowed is None:
            return found
        kept = [(one, one.combination[self._allowed]) for one in found]
        whole = [
            (one.name, c) for one, c in kept if np.abs(c).sum() == np.abs(one.combination).sum()
        ]
        return [Named(name, combination) for name, combination in whole]

    def _tied(self) -> tuple[list[str], Labels, list[str]]:
        """Features of positions, labels, and what stands before those of ties."""
        features = self.attributes_.names if self.attributes_ else numbered(self.n_features_in_)
        return features, self.classes_, self.tie_names()

    def tie_names(self) -> list[str]:
        """What stands before ``label → next label`` for each feature of a tie."""
        return [""]

    def stored(self) -> dict[str, Any]:
        found = {"width": np.array(self.n_features_in_), **self.stored_labels()}
        if self.attributes_ is not None:
            text = json.dumps(self.attributes_.names)
            found["attributes"] = np.frombuffer(text.encode(), dtype=np.uint8)
        return found if self._allowed is None else {**found, "allowed": self._allowed}

    def restore(self, arrays: dict[str, Any]) -> None:
        self.restore_labels(arrays)
        self.n_features_in_ = int(arrays["width"])
        self._allowed, self.attributes_ = arrays.get("allowed"), None
        if "attributes" in arrays:
            names = json.loads(arrays["attributes"].tobytes())
            self.attributes_ = Attributes({name: j for j, name in enumerate(names)})


def _named(X: Sequence[Any]) -> bool:
    """Whether positions are dicts, lists or sets of named attributes, not rows of numbers."""
    first = next((x[0] for x in X if isinstance(x, (list, tuple)) and len(x)), None)
    if isinstance(first, (list, tuple, set, frozenset)):
        return all(isinstance(name, str) for name in first)
    return isinstance(first, Mapping)

"""GridModel: a label per pixel, from features per pixel and learned ties between neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlestruct.batch import Batch
from mlestruct.estimators.base import Estimator
from mlestruct.estimators.door import width_of
from mlestruct.estimators.labels import classes_of, numbered, states_of, tied_names
from mlestruct.features import Tied
from mlestruct.structures.base import Array, as_numbers
from mlestruct.structures.graph import FactorGraph
from mlestruct.structures.shapes import grid


@dataclass(kw_only=True, eq=False, repr=False)
class GridModel(Estimator):
    """Images: X is a list of (rows, columns, p) arrays, y of (rows, columns) labels.

    Every pixel is tied to its four neighbours. Labels may be anything sortable; ``classes_`` lists
    them. θ holds a weight per (feature, label), then one per (label, neighbour's label), right and
    down. ``intercept`` adds a constant feature. ``contrast`` adds ties that fade where neighbours
    differ, by exp(−‖x − x'‖² / their mean in training). One feature may come as (rows, columns).

    The default entropy counts edges by their share of spanning trees and bounds log Z above; the
    default solver's answers are optimal for two labels, and bounded for more. Other settings and
    fitted attributes as :class:`Estimator`.

    >>> rng = np.random.default_rng(0)
    >>> y = [np.arange(6) // 3 + np.zeros((6, 1), dtype=int) for _ in range(4)]
    >>> X = [labels + 0.5 * rng.standard_normal((6, 6)) for labels in y]
    >>> GridModel(tol=0.01).fit(X, y).predict(X)[0][0].tolist()
    [0, 0, 0, 1, 1, 1]
    """

    intercept: bool = True
    contrast: bool = False

    def prepare(self, X: Sequence[Any], y: Sequence[Any]) -> None:
        """The labels, and how much neighbours differ on average."""
        self.classes_, images = classes_of(y), _images(X)
        self.n_features_in_ = images[0].shape[2]
        differences = np.concatenate([_differences(x) for x in images])
        self.contrast_ = float(differences.mean()) if differences.any() else 1.0

    def encode(self, X: Sequence[Any], y: Sequence[Any]) -> list[Any]:
        found = []
        for m, (x, labels) in enumerate(zip(X, y, strict=True)):
            shape, given = np.shape(x)[:2], np.shape(labels)
            if given not in (shape, (int(np.prod(shape)),)):
                raise ValueError(f"example {m}: y has shape {given}; expected {shape}, as its X")
            found.append(states_of(self.classes_, labels, m).ravel())
        return found

    def structures(self, X: Sequence[Any]) -> list[FactorGraph]:
        shapes = [x.shape[:2] for x in _images(X)]
        made = {s: grid(s[0], s[1], len(self.classes_)) for s in set(shapes)}
        return [made[shape] for shape in shapes]

    def features(self, batch: Batch[Any], X: Sequence[Any]) -> Tied:
        images = _images(X, self.n_features_in_)
        nodes = [x.reshape(-1, x.shape[2]) for x in images]
        if self.intercept:
            nodes = [np.hstack([rows, np.ones((len(rows), 1))]) for rows in nodes]
        edges = [np.ones((len(_differences(x)), 1)) for x in images]
        if self.contrast:
            fades = [np.exp(-_differences(x)[:, None] / self.contrast_) for x in images]
            edges = [np.hstack(pair) for pair in zip(edges, fades, strict=True)]
        tied = Tied.of(batch, nodes, edges)
        return replace(tied, table=len(self.classes_) ** 2)  # where no image has neighbours

    def present(self, x: Any, outcome: Any) -> NDArray[Any]:
        return self.classes_[outcome].reshape(np.shape(x)[:2])

    def shape(self, x: Any, structure: FactorGraph, flat: Array) -> Array:
        """The labels' probabilities at every pixel, (rows, columns, classes)."""
        nodes = flat[: structure.node_start[-1]]
        return nodes.reshape(*np.shape(x)[:2], len(self.classes_))

    def names(self) -> list[str]:
        """``feature: label`` and ``label → neighbour's label``."""
        features = numbered(self.n_features_in_) + ["constant"] * self.intercept
        edges = ["", "alike: "] if self.contrast else [""]
        return tied_names(features, self.classes_, edges)

    def stored(self) -> dict[str, Any]:
        numbers = {"width": self.n_features_in_, "contrast": self.contrast_}
        return {"classes": self.classes_, **{n: np.array(v) for n, v in numbers.items()}}

    def restore(self, arrays: dict[str, Any]) -> None:
        self.classes_, self.n_features_in_ = arrays["classes"], int(arrays["width"])
        self.contrast_ = float(arrays["contrast"])


def _images(X: Sequence[Any], width: int | None = None) -> list[Array]:
    """(rows, columns, features) of finite numbers; a single feature may lack its axis."""
    images = [as_numbers(x, f"example {m}: features") for m, x in enumerate(X)]
    images = [x[:, :, None] if x.ndim == 2 else x for x in images]
    width_of(images, 3, "(rows, columns, features)", width)
    for m, x in enumerate(images):
        wrong = np.argwhere(~np.isfinite(x))
        if len(wrong):
            row, column, j = wrong[0].tolist()
            raise ValueError(
                f"example {m}: feature {j} of pixel ({row}, {column}) is {x[row, column, j]}"
            )
    return images


def _differences(x: Array) -> Array:
    """‖x − x'‖² of every edge, in the order of :func:`grid`."""
    across, down = np.diff(x, axis=1), np.diff(x, axis=0)
    return np.concatenate([(d**2).sum(axis=2).ravel() for d in (across, down)])

"""GridModel: a label per pixel, from features per pixel and learned ties between neighbours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from mlestruct.estimators.door import Given, one_alone, width_of
from mlestruct.estimators.graph import GraphModel, Left, whole_of
from mlestruct.estimators.tables import Table
from mlestruct.features.base import HUGE
from mlestruct.readers import Graph
from mlestruct.structures.base import Array, Ints, as_numbers


@dataclass(kw_only=True, eq=False, repr=False)
class GridModel(GraphModel):
    """Images: X is a list of (rows, columns, channels) arrays, y of (rows, columns) labels.

    Every pixel is tied to its four or eight ``neighbours``: a :class:`GraphModel` whose edges are
    known. One channel may come as (rows, columns). Pixels of dtype uint8 are divided by 255, and
    then those that are predicted must be uint8 as well. Labels may be anything sortable, some of
    them void (see :class:`Labelled`). ``tables`` and ``intercept`` as in :class:`GraphModel`; a
    full table has the left or upper pixel first. ``contrast`` adds ties that fade where neighbours
    differ, by exp(−‖x − x'‖² / their mean in training); its name among ``tables`` is ``alike``.
    ``feature_names`` are those of the channels.

    The default entropy counts edges by their share of spanning trees and bounds log Z above. Other
    settings and fitted attributes as :class:`Estimator`.

    >>> rng = np.random.default_rng(0)
    >>> y = [np.arange(6) // 3 + np.zeros((6, 1), dtype=int) for _ in range(4)]
    >>> X = [labels + 0.5 * rng.standard_normal((6, 6)) for labels in y]
    >>> GridModel(tol=0.01).fit(X, y).predict(X)[0][0].tolist()
    [0, 0, 0, 1, 1, 1]
    """

    tables: Table | Mapping[Any, Table] = "full"
    axes = 2
    contrast: bool = False
    neighbours: Literal[4, 8] = 4
    feature_names: Sequence[str] | None = None
    learns = (*GraphModel.learns, "contrast_", "bytes_")

    def taken(self, X: Any, y: Any) -> Given:
        """As :meth:`Predictor.taken`; what has the known features last is one picture alone."""
        known = (getattr(self, "n_features_in_", 0),) if y is None else ()
        if isinstance(X, np.ndarray) and known and X.shape[2:] == known:
            raise one_alone(X)
        return super().taken(X, y)

    def prepare(self, X: Sequence[Any], y: Sequence[Any]) -> None:
        """The labels, how pixels are scaled, and how much neighbours differ on average."""
        if self.neighbours not in (4, 8):
            raise ValueError(f"neighbours is 4 or 8, not {self.neighbours!r}")
        wholes = [whole_of(x) for x in X]
        self.bytes_ = all(_is_bytes(x) for x in wholes)
        images = [self._image(x, m) for m, x in enumerate(wholes)]
        width_of(images, 3, "(rows, columns, features)")
        differences = np.concatenate([_apart(x, self._edges(x)) for x in images])
        self.contrast_ = float(differences.mean()) if differences.any() else 1.0
        super().prepare(X, y)

    @property
    def meets(self) -> int:
        return self.neighbours // 2

    def graphs(self, X: Sequence[Any]) -> list[Graph]:
        """Every image as a graph of its pixels, row by row."""
        wholes = [whole_of(x) for x in X]
        images = [self._image(x, m) for m, x in enumerate(wholes)]
        width_of(images, 3, "(rows, columns, features)")
        graphs = [self._graph(image) for image in images]
        return [
            graph.part(x.known) if isinstance(x, Left) else graph
            for graph, x in zip(graphs, X, strict=True)
        ]

    def _image(self, x: Any, m: int) -> Array:
        """(rows, columns, features) of finite numbers."""
        if _is_bytes(x) != self.bytes_:
            kinds = ("numbers", "bytes (uint8)")
            raise ValueError(
                f"example {m}: pixels are {kinds[not self.bytes_]}, but the model's are "
                f"{kinds[self.bytes_]}; divide uint8 pixels by 255 yourself, all of them"
            )
        image = as_numbers(x, f"example {m}: features")
        image = image[:, :, None] if image.ndim == 2 else image
        wrong = np.argwhere(~(np.abs(image) <= HUGE))
        if len(wrong) and image.ndim == 3:
            row, column, j = wrong[0].tolist()
            value = image[row, column, j]
            why = f"; beyond {HUGE:g} nothing can be learned: divide it" * bool(np.isfinite(value))
            raise ValueError(f"example {m}: feature {j} of pixel ({row}, {column}) is {value}{why}")
        return image / 255.0 if self.bytes_ else image

    def _edges(self, image: Array) -> Ints:
        return neighbours(image.shape[0], image.shape[1], self.neighbours == 8).copy()

    def _graph(self, image: Array) -> Graph:
        edges, ties = self._edges(image), None
        if self.contrast:
            ties = np.exp(-_apart(image, edges)[:, None] / self.contrast_)
        names = ("alike",) if self.contrast else None
        own = None if self.feature_names is None else tuple(self.feature_names)
        if own is not None and len(own) != image.shape[2]:
            raise ValueError(f"{len(own)} feature_names for {image.shape[2]} features")
        return Graph(image.reshape(-1, image.shape[2]), edges, ties, own, names)

    def nodes_of(self, x: Any) -> int:
        return int(np.prod(self.shape_of(x)))

    def sizes_of(self, x: Any) -> set[int]:
        return set()

    def ids_of(self, x: Any) -> None:
        return None

    def shape_of(self, x: Any) -> tuple[int, ...]:
        return (int(x.known.sum()),) if isinstance(x, Left) else np.shape(x)[:2]


@lru_cache(maxsize=16)  # a pass over pictures asks three times for each of them
def neighbours(rows: int, columns: int, diagonal: bool) -> Ints:
    """Pairs of pixels that touch: to the right row by row, downwards, then both diagonals."""
    node = np.arange(rows * columns).reshape(rows, columns)
    sides = [(node[:, :-1], node[:, 1:]), (node[:-1], node[1:])]
    if diagonal:
        sides += [(node[:-1, :-1], node[1:, 1:]), (node[:-1, 1:], node[1:, :-1])]
    pairs = [np.stack([first.ravel(), second.ravel()], axis=1) for first, second in sides]
    return np.concatenate(pairs)


def _is_bytes(x: Any) -> bool:
    return getattr(x, "dtype", None) == np.uint8


def _apart(image: Array, edges: Ints) -> Array:
    """‖x − x'‖² of every edge."""
    pixels = image.reshape(-1, image.shape[-1])
    return np.asarray(((pixels[edges[:, 0]] - pixels[edges[:, 1]]) ** 2).sum(axis=1))

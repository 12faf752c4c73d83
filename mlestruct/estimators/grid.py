"""GridModel: a label per pixel, from features per pixel and learned ties between neighbours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from mlestruct.estimators.door import Given, one_alone
from mlestruct.estimators.graph import Example, GraphModel
from mlestruct.estimators.tables import Table
from mlestruct.features.base import HUGE
from mlestruct.readers import Graph
from mlestruct.structures.base import Array, Ints, as_numbers, shape_of
from mlestruct.structures.shapes import grid_edges


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
        """As :meth:`GraphModel.taken`; one picture in the place of a list of them is refused."""
        if self.neighbours not in (4, 8):
            raise ValueError(f"neighbours is 4 or 8, not {self.neighbours!r}")
        known = (getattr(self, "n_features_in_", 0),) if y is None else ()
        if isinstance(X, np.ndarray) and known and X.shape[2:] == known:
            raise one_alone(X)
        return super().taken(X, y)

    def prepare(self, X: Sequence[Any], y: Sequence[Any]) -> None:
        """The labels, how pixels are scaled, and how much neighbours differ on average."""
        examples = self.examples(X)
        self.bytes_, self.contrast_ = all(_is_bytes(x.given) for x in examples), 1.0
        if self.contrast:
            differences = np.concatenate([x.whole.ties for x in examples])
            self.contrast_ = float(differences.mean()) if differences.any() else 1.0
        super().prepare(examples, y)

    @property
    def meets(self) -> int:
        return self.neighbours // 2

    def graph(self, x: Any) -> Graph:
        """The pixels, row by row; ties are how far apart they are."""
        image = _image(x)
        rows, columns, channels = image.shape
        own = None if self.feature_names is None else tuple(self.feature_names)
        if own is not None and len(own) != channels:
            raise ValueError(f"{len(own)} feature_names for {channels} features")
        pixels, edges = image.reshape(-1, channels), neighbours(rows, columns, self.neighbours == 8)
        if not self.contrast:
            return Graph(pixels, edges, names=own)
        apart = ((pixels[edges[:, 0]] - pixels[edges[:, 1]]) ** 2).sum(axis=1)
        return Graph(pixels, edges, apart[:, None], own, ("alike",))

    def _ties(self, graph: Graph) -> Array:
        near = None if graph.ties is None else np.exp(-graph.ties / self.contrast_)
        return super()._ties(replace(graph, ties=near))

    def _check_widths(self, examples: Sequence[Example]) -> None:
        for m, x in enumerate(examples):
            if _is_bytes(x.given) != self.bytes_:
                kinds = ("numbers", "bytes (uint8)")
                raise ValueError(
                    f"example {m}: pixels are {kinds[not self.bytes_]}, but the model's are "
                    f"{kinds[self.bytes_]}; divide uint8 pixels by 255 yourself, all of them"
                )
        super()._check_widths(examples)

    def ids_of(self, x: Example) -> None:
        return None

    def shape_of(self, x: Example) -> tuple[int, ...]:
        return (len(x),) if x.kept is not None else shape_of(x.given)[:2]


def _image(x: Any) -> Array:
    """(rows, columns, features) of finite numbers; bytes as shares of 255."""
    image = as_numbers(x, "features")
    image = image[:, :, None] if image.ndim == 2 else image
    if image.ndim != 3 or 0 in image.shape:
        raise ValueError(
            f"X has shape {image.shape}; expected (rows, columns, features), none empty"
        )
    wrong = np.argwhere(~(np.abs(image) <= HUGE))
    if len(wrong):
        row, column, j = wrong[0].tolist()
        value = image[row, column, j]
        why = f"; beyond {HUGE:g} nothing can be learned: divide it" * bool(np.isfinite(value))
        raise ValueError(f"feature {j} of pixel ({row}, {column}) is {value}{why}")
    return image / 255.0 if _is_bytes(x) else image


def neighbours(rows: int, columns: int, diagonal: bool) -> Ints:
    """Pairs of pixels that touch: to the right row by row, downwards, then both diagonals."""
    node, *pairs = grid_edges(rows, columns)
    corners = [(node[:-1, :-1], node[1:, 1:]), (node[:-1, 1:], node[1:, :-1])] if diagonal else []
    pairs += [np.stack([first.ravel(), second.ravel()], axis=1) for first, second in corners]
    return np.concatenate(pairs)


def _is_bytes(x: Any) -> bool:
    return getattr(x, "dtype", None) == np.uint8

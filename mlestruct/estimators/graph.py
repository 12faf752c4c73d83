"""GraphModel and GridModel: a label per node of any graph, or per pixel of an image."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mlestruct.estimators.examples import Given, one_alone
from mlestruct.estimators.labelled import Labelled, beside
from mlestruct.estimators.labels import Table, numbered, table_spread, tied_contrasts, tied_names
from mlestruct.features import Features, Shared, Tied
from mlestruct.readers import Graph, graph_of
from mlestruct.statistics.identified import Named
from mlestruct.structures.base import Array, Ints, as_numbers, lasting, shape_of
from mlestruct.structures.batch import Batch
from mlestruct.structures.graph import FactorGraph, grid_edges


@dataclass(frozen=True, eq=False)
class Example:
    """An example as it was given, and as a ``graph`` of its nodes, or of those that are ``kept``.

    ``whole`` is the graph of all nodes, ``ids`` what these are called, if not by their numbers.
    """

    given: Any
    whole: Graph
    graph: Graph
    kept: NDArray[np.bool_] | None = None
    ids: Sequence[Any] | None = None


@dataclass(kw_only=True, eq=False, repr=False)
class GraphModel(Labelled):
    """Graphs: X is a list of graphs, one per example, y of a label for each of its nodes.

    A graph is (nodes, edges) or (nodes, edges, edge features), :class:`Graph`, or of networkx:
    ``nodes`` are rows of features, ``edges`` pairs of node numbers or an adjacency matrix, dense or
    sparse. ``Graph.from_regions`` makes one of superpixels. Labels may be anything sortable, some
    of them void (see :class:`Labelled`); ``classes_`` lists them.

    θ holds a weight per (node feature, label), then for every edge feature those of its table:
    ``full``, a weight per (label, label), the first node of the edge first; ``symmetric``, one per
    unordered pair; ``potts``, one for equal labels: ``tables`` says which. ``intercept`` adds a
    constant feature to nodes and edges. Other settings and fitted attributes as :class:`Estimator`.

    >>> rng = np.random.default_rng(0)
    >>> ring = [(i, (i + 1) % 8) for i in range(8)]
    >>> y = [np.arange(8) // 4 for _ in range(6)]
    >>> X = [(labels + 0.5 * rng.standard_normal(8), ring) for labels in y]
    >>> GraphModel(tables="potts").fit(X, y).predict(X)[0].tolist()
    [0, 0, 0, 0, 1, 1, 1, 1]
    """

    tables: Table = "symmetric"
    intercept: bool = True
    learns = (*Labelled.learns, "_names", "_tie_names", "_lost")

    @property
    def meets(self) -> int | None:
        """Of how many edges a node is the first end, if all nodes but those at borders agree."""
        return None

    def taken(self, X: Any, y: Any) -> Given:
        """As of any estimator; here every example is made a graph, once."""
        given, found = super().taken(X, y), []
        for m, x in enumerate(given.X):
            try:
                if not isinstance(x, Example):
                    graph = self.graph(x)
                    if graph.nodes.shape[0] == 0:
                        raise ValueError("a graph without nodes")
                    x = Example(x, graph, graph, ids=graph.ids)
            except ValueError as error:
                raise ValueError(f"example {m}: {error}") from error
            found.append(x)
        return replace(given, X=found)

    def graph(self, x: Any) -> Graph:
        """One example as a graph."""
        return graph_of(x)

    def prepare(self, given: Given) -> Given:
        """The labels, and the names of the features."""
        if self.tables not in get_args(Table):
            raise ValueError(f"tables is 'full', 'symmetric' or 'potts', not {self.tables!r}")
        given = super().prepare(given)
        first: Graph = given.X[0].whole
        self.n_features_in_ = int(first.nodes.shape[1])
        ties = 0 if first.ties is None else first.ties.shape[1]
        self._names = list(first.names or numbered(self.n_features_in_))
        self._tie_names = list(first.tie_names or numbered(ties, "edge feature"))
        self._columns = None if first.names is None else self._names
        sides = (" after", " before") if self.tables == "full" else ("",)
        lost = [f"{before}void neighbours{side}" for before in self._befores() for side in sides]
        self._lost = lost * any(x.kept is not None for x in given.X)  # ties to nodes left out
        return given

    def _befores(self) -> list[str]:
        """What stands before the names of edge features' weights; of the constant's nothing."""
        return [*[""] * self.intercept, *(f"{name}: " for name in self._tie_names)]

    def shape_of(self, x: Example) -> tuple[int, ...]:
        return (int(x.graph.nodes.shape[0]),)

    def parts(
        self, x: Example, known: NDArray[np.bool_]
    ) -> list[tuple[Example, NDArray[np.bool_]]]:
        return [
            (x if known.all() else Example(x.given, x.whole, x.whole.part(known), known), known)
        ]

    def structures(self, X: Sequence[Any]) -> list[FactorGraph]:
        made: dict[Any, FactorGraph] = {}
        found = []
        for x in self.taken(X, None).X:
            nodes, edges = x.whole.nodes.shape[0], x.whole.edges
            key = nodes, edges.tobytes()
            if key not in made:
                made[key] = lasting(FactorGraph(np.full(nodes, len(self.classes_)), edges))
            found.append(made[key] if x.kept is None else made[key].part(x.kept))
        return found

    def features(self, batch: Batch[Any], X: Sequence[Any]) -> Features:
        nodes, edges, states = list[Any](), list[Array](), len(self.classes_)
        for m, x in enumerate(self.taken(X, None).X):
            self._check_widths(x, m)
            constant = np.ones((x.graph.nodes.shape[0], int(self.intercept)))
            nodes.append(beside(x.graph.nodes, constant, self._lost_ties(x)))
            edges.append(self._ties(x.graph))
        tied = replace(Tied.of(batch, nodes, edges), table=states**2)  # where nobody has edges
        ties = edges[0].shape[1]
        if self.tables == "full" or ties == 0:
            return tied
        spread = [sp.eye_array(tied.split), *[table_spread(self.tables, states)] * ties]
        return Shared.of(tied, sp.block_diag(spread, format="csr"))

    def _check_widths(self, x: Example, m: int) -> None:
        """A ValueError for features other than those learned from."""
        graph = x.whole
        for what, table, names, known in (
            ("node", graph.nodes, graph.names, self._names),
            ("edge", graph.ties, graph.tie_names, self._tie_names),
        ):
            if names is not None and list(names) != known:
                raise ValueError(f"example {m} has {what} features {list(names)}; expected {known}")
            if (given := 0 if table is None else table.shape[1]) != len(known):
                raise ValueError(f"example {m} has {given} {what} features; expected {len(known)}")

    def _ties(self, graph: Graph) -> Array:
        """(edges × edge features), the constant first."""
        own = np.zeros((len(graph.edges), 0)) if graph.ties is None else graph.ties
        return np.hstack([np.ones((len(own), int(self.intercept))), own])

    def _lost_ties(self, x: Example) -> Array:
        """(kept nodes × lost): sums of each one's ties to those left out; zeros in a whole graph.

        A tie to a node of unknown label says something of the other: what it says on average is
        learned here, else the node's own weights took it up, and were wrong in whole graphs.
        """
        whole, kept = x.whole, x.kept
        if kept is None:
            return np.zeros((whole.nodes.shape[0], len(self._lost)))
        columns, ends = list[NDArray[Any]](), whole.edges.T
        for tie in self._ties(whole).T:
            sides = [
                np.bincount(own, np.where(kept[other], 0.0, tie), minlength=len(kept))
                for own, other in (ends, ends[::-1])
            ]
            columns += sides if self.tables == "full" else [sides[0] + sides[1]]
        return np.stack(columns, axis=1)[kept].astype(float)

    def shape(self, x: Any, structure: FactorGraph, flat: Array) -> Array:
        """The labels' probabilities at every node, (nodes, classes)."""
        nodes = flat[: structure.node_start[-1]]
        return nodes.reshape(*self.shape_of(x), len(self.classes_))

    @property
    def _node_features(self) -> list[str]:
        """The features of nodes by name, then the constant, then what was left out."""
        return [*self._names, *["constant"] * self.intercept, *self._lost]

    def names(self) -> list[str]:
        """``feature: label``, then the tables of every edge feature."""
        self._check_fitted()
        return tied_names(self._node_features, self.classes_, self._befores(), self.tables)

    def contrasts(self, against: int = 0) -> list[Named]:
        features, edges = self._node_features, self._befores()
        inside = (len(self._names), self.meets) if self.intercept and self.meets else None
        return tied_contrasts(features, self.classes_, edges, self.tables, against, "rim", inside)


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

    tables: Table = "full"
    axes = 2
    contrast: bool = False
    neighbours: Literal[4, 8] = 4
    feature_names: Sequence[str] | None = None
    learns = (*GraphModel.learns, "contrast_", "bytes_")

    def taken(self, X: Any, y: Any) -> Given:
        """As of graphs; one picture in the place of a list of them is refused."""
        if self.neighbours not in (4, 8):
            raise ValueError(f"neighbours is 4 or 8, not {self.neighbours!r}")
        known = (getattr(self, "n_features_in_", 0),) if y is None else ()
        if isinstance(X, np.ndarray) and known and X.shape[2:] == known:
            raise one_alone(X)
        return super().taken(X, y)

    def prepare(self, given: Given) -> Given:
        """The labels, how pixels are scaled, and how much neighbours differ on average."""
        self.bytes_, self.contrast_ = all(_is_bytes(x.given) for x in given.X), 1.0
        given = super().prepare(given)
        if self.contrast:
            differences = np.concatenate([x.whole.ties for x in given.X])
            self.contrast_ = float(differences.mean()) if differences.any() else 1.0
        return given

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

    def _check_widths(self, x: Example, m: int) -> None:
        if _is_bytes(x.given) != self.bytes_:
            kinds = ("numbers", "bytes (uint8)")
            raise ValueError(
                f"example {m}: pixels are {kinds[not self.bytes_]}, but the model's are "
                f"{kinds[self.bytes_]}; divide uint8 pixels by 255 yourself, all of them"
            )
        super()._check_widths(x, m)

    def shape_of(self, x: Example) -> tuple[int, ...]:
        return super().shape_of(x) if x.kept is not None else shape_of(x.given)[:2]


def _image(x: Any) -> Array:
    """(rows, columns, features) of finite numbers; bytes as shares of 255."""
    image = as_numbers(x, "features")
    image = image[:, :, None] if image.ndim == 2 else image
    if image.ndim != 3 or 0 in image.shape:
        raise ValueError(
            f"X has shape {image.shape}; expected (rows, columns, features), none empty"
        )
    return image / 255.0 if _is_bytes(x) else image


def neighbours(rows: int, columns: int, diagonal: bool) -> Ints:
    """Pairs of pixels that touch: to the right row by row, downwards, then both diagonals."""
    node, *pairs = grid_edges(rows, columns)
    corners = [(node[:-1, :-1], node[1:, 1:]), (node[:-1, 1:], node[1:, :-1])] if diagonal else []
    pairs += [np.stack([first.ravel(), second.ravel()], axis=1) for first, second in corners]
    return np.concatenate(pairs)


def _is_bytes(x: Any) -> bool:
    return getattr(x, "dtype", None) == np.uint8

"""GraphModel: a label per node of any graph, from features of nodes and of edges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mlestruct.batch import Batch
from mlestruct.estimators.door import Given
from mlestruct.estimators.labelled import Labelled
from mlestruct.estimators.labels import distinct, numbered, tied_contrasts
from mlestruct.estimators.tables import (
    CliqueTable,
    Table,
    check_kind,
    clique_contrasts,
    clique_names,
    rows_of,
    scopes,
    table_names,
    table_spread,
)
from mlestruct.features import Features, Shared, Sparse, Tied
from mlestruct.readers import Graph, graph_of
from mlestruct.statistics.identified import Named
from mlestruct.structures.base import Array
from mlestruct.structures.graph import FactorGraph


@dataclass(frozen=True, eq=False)
class Example:
    """An example as it was given, as a graph, and the nodes that are kept where some are left out.

    All that is asked of a graph's nodes is asked of those that are kept.
    """

    given: Any
    whole: Graph
    kept: NDArray[np.bool_] | None = None

    @property
    def graph(self) -> Graph:
        """The graph of the nodes that are kept."""
        return self.whole if self.kept is None else self.whole.part(self.kept)

    def __len__(self) -> int:
        return len(self.whole) if self.kept is None else int(self.kept.sum())


@dataclass(kw_only=True, eq=False, repr=False)
class GraphModel(Labelled):
    """Graphs: X is a list of graphs, one per example, y of a label for each of its nodes.

    A graph is (nodes, edges) or (nodes, edges, edge features), :class:`Graph`, or of networkx:
    ``nodes`` are rows of features, ``edges`` pairs of node numbers or an adjacency matrix, dense or
    sparse. ``Graph.from_regions`` makes one of superpixels. Labels may be anything sortable, some
    of them void (see :class:`Labelled`); ``classes_`` lists them.

    θ holds a weight per (node feature, label), then for every edge feature those of its table:
    ``full``, a weight per (label, label), the first node of the edge first; ``symmetric``, one per
    unordered pair; ``potts``, one for equal labels. ``tables`` is one of these for all edge
    features, or a mapping from their names (or numbers). Groups of three nodes or more, a graph's
    ``cliques``, have tables too, for each size: ``potts``, one weight where all are alike;
    ``counts``, one for how often each label is in it; ``full``. ``intercept`` adds a constant
    feature to nodes, edges and cliques. Other settings and fitted attributes as :class:`Estimator`.

    >>> rng = np.random.default_rng(0)
    >>> ring = [(i, (i + 1) % 8) for i in range(8)]
    >>> y = [np.arange(8) // 4 for _ in range(6)]
    >>> X = [(labels + 0.5 * rng.standard_normal(8), ring) for labels in y]
    >>> GraphModel(tables="potts").fit(X, y).predict(X)[0].tolist()
    [0, 0, 0, 0, 1, 1, 1, 1]
    """

    tables: Table | Mapping[Any, Table] = "symmetric"
    intercept: bool = True
    clique_table: CliqueTable = "potts"
    learns = (*Labelled.learns, "_names", "_tie_names", "_clique_names", "_orders", "_lost")
    _lost: Sequence[str] = ()
    """Names of what is learned of ties to nodes that were left out, where there were any."""

    @property
    def meets(self) -> int | None:
        """Of how many edges a node is the first end, if all nodes but those at borders agree."""
        return None

    def taken(self, X: Any, y: Any) -> Given:
        """As :meth:`Predictor.taken`; here every example is made a graph, once."""
        given = super().taken(X, y)
        return replace(given, X=self.examples(given.X))

    def examples(self, X: Sequence[Any]) -> list[Example]:
        """Every example with its graph, whose features are checked."""
        found = []
        for m, x in enumerate(X):
            try:
                found.append(x if isinstance(x, Example) else Example(x, self.graph(x)))
                if len(found[-1].whole) == 0:
                    raise ValueError("a graph without nodes")
            except ValueError as error:
                raise ValueError(f"example {m}: {error}") from error
        return found

    def graph(self, x: Any) -> Graph:
        """One example as a graph."""
        return graph_of(x)

    def as_given(self, x: Any) -> Any:
        return x.given if isinstance(x, Example) and x.kept is None else x

    def prepare(self, X: Sequence[Any], y: Sequence[Any]) -> None:
        """The labels, and the names of the features."""
        examples = self.examples(X)
        wholes = [x.whole for x in examples]
        self.learn_labels(examples, y)
        self.n_features_in_ = int(wholes[0].nodes.shape[1])
        self._names = list(wholes[0].names or numbered(self.n_features_in_))
        width = 0 if wholes[0].ties is None else wholes[0].ties.shape[1]
        self._tie_names = list(wholes[0].tie_names or [f"edge feature {j}" for j in range(width)])
        self._columns = None if wholes[0].names is None else self._names
        self._clique_names = _clique_features(wholes)
        self._orders = sorted({len(clique) for graph in wholes for clique in graph.cliques})
        lost = self._lost_by_table()  # refuses names of no feature
        self._check_widths(examples)
        self._lost = lost if any(x.kept is not None for x in examples) else []

    def _check_widths(self, examples: Sequence[Example]) -> None:
        for m, graph in enumerate(x.whole for x in examples):
            strange = next((c for c in graph.cliques if len(c) not in self._orders), None)
            if strange is not None:
                raise ValueError(
                    f"example {m} has a clique of {len(strange)} nodes; the model learned from "
                    f"cliques of {self._orders}"
                )
            ties = 0 if graph.ties is None else graph.ties.shape[1]
            for what, given, names, known in (
                ("node", graph.nodes.shape[1], graph.names, self._names),
                ("edge", ties, graph.tie_names, self._tie_names),
                *_of_cliques(graph, self._clique_names),
            ):
                if names is not None and list(names) != known:
                    raise ValueError(
                        f"example {m} has {what} features {list(names)}; expected {known}"
                    )
                if given != len(known):
                    raise ValueError(
                        f"example {m} has {given} {what} features; expected {len(known)}"
                    )

    @property
    def _node_features(self) -> list[str]:
        """The features of nodes by name, then the constant, then what was left out."""
        return [*self._names, *["constant"] * self.intercept, *self._lost]

    @property
    def _tie_features(self) -> list[str]:
        """The edge features by name, the constant first."""
        return ["constant"] * self.intercept + self._tie_names

    def _before(self, features: Sequence[str]) -> list[str]:
        """What stands before the names of their weights; before those of the constant, nothing."""
        return [*[""] * self.intercept, *(f"{name}: " for name in features)]

    def _kinds(self) -> list[Table]:
        """The table of every edge feature."""
        check_kind(self.clique_table, CliqueTable, "clique_table")
        names = self._tie_features
        if not isinstance(self.tables, Mapping):
            return [check_kind(self.tables, Table, "a table")] * len(names)
        given = {names[k] if isinstance(k, int) and 0 <= k < len(names) else k: v
                 for k, v in self.tables.items()}  # fmt: skip
        strange = next((name for name in given if name not in names), None)
        if strange is not None:
            raise ValueError(f"tables names {strange!r}; edge features are {names}")
        return [check_kind(given.get(n, "symmetric"), Table, "a table") for n in names]

    def nodes_of(self, x: Example) -> int:
        return len(x)

    def ids_of(self, x: Example) -> Sequence[Any] | None:
        return x.whole.ids if x.kept is None else None

    def parts(
        self, x: Example, known: NDArray[np.bool_]
    ) -> list[tuple[Example, NDArray[np.bool_]]]:
        return [(x if known.all() else replace(x, kept=known), known)]

    def structures(self, X: Sequence[Any]) -> list[FactorGraph]:
        made: dict[Any, FactorGraph] = {}
        found = []
        for x in self.examples(X):
            graph = x.whole
            key = len(graph), graph.edges.tobytes(), graph.cliques
            if key not in made:
                tables = scopes(graph) if graph.cliques else graph.edges
                made[key] = FactorGraph(np.full(len(graph), len(self.classes_)), tables)
            found.append(made[key] if x.kept is None else made[key].part(x.kept))
        return found

    def features(self, batch: Batch[Any], X: Sequence[Any]) -> Features:
        examples = self.examples(X)
        self._check_widths(examples)
        graphs = [x.graph for x in examples]
        edges = [self._ties(graph) for graph in graphs]
        nodes = [
            _beside(graph.nodes, np.ones((len(x), int(self.intercept))), self._lost_ties(x))
            for x, graph in zip(examples, graphs, strict=True)
        ]
        states, kinds = len(self.classes_), self._kinds()
        if self._orders:
            cliques = self.clique_table, self._orders, self.intercept
            parts = zip(graphs, nodes, edges, strict=True)
            rows = [rows_of(g, n, e, kinds, cliques, states) for g, n, e in parts]
            return Sparse.of(batch, rows)
        tied = replace(Tied.of(batch, nodes, edges), table=states**2)  # where nobody has edges
        if all(kind == "full" for kind in kinds):
            return tied
        spread = [sp.eye_array(tied.split), *(table_spread(kind, states) for kind in kinds)]
        return Shared(tied, sp.csr_array(sp.block_diag(spread, format="csr")))

    def _ties(self, graph: Graph) -> Array:
        """(edges × edge features), the constant first."""
        own = np.zeros((len(graph.edges), 0)) if graph.ties is None else graph.ties
        return np.hstack([np.ones((len(own), int(self.intercept))), own])

    def _lost_by_table(self) -> list[str]:
        """Of every edge feature the ties to nodes left out; of full tables by direction."""
        found = []
        for before, kind in zip(self._before(self._tie_names), self._kinds(), strict=True):
            sides = (" after", " before") if kind == "full" else ("",)
            found += [f"{before}void neighbours{side}" for side in sides]
        return found

    def _lost_ties(self, x: Example) -> Array:
        """(kept nodes × lost): sums of each one's ties to those left out; zeros in a whole graph.

        A tie to a node of unknown label says something of the other: what it says on average is
        learned here, else the node's own weights took it up, and were wrong in whole graphs.
        """
        whole, kept = x.whole, x.kept
        if kept is None or not self._lost:
            return np.zeros((len(x), len(self._lost)))
        columns, ties, ends = list[NDArray[Any]](), self._ties(whole), whole.edges.T
        for k, kind in enumerate(self._kinds()):
            after, before = (
                np.bincount(own, np.where(kept[other], 0.0, ties[:, k]), minlength=len(whole))
                for own, other in (ends, ends[::-1])
            )
            columns += [after, before] if kind == "full" else [after + before]
        return np.stack(columns, axis=1)[kept].astype(float)

    def shape(self, x: Any, structure: FactorGraph, flat: Array) -> Array:
        """The labels' probabilities at every node, (nodes, classes)."""
        nodes = flat[: structure.node_start[-1]]
        return nodes.reshape(*self.shape_of(x), len(self.classes_))

    def names(self) -> list[str]:
        """``feature: label``, then the tables of every edge feature."""
        self._check_fitted()
        labels = [str(label) for label in self.classes_.tolist()]
        features = self._node_features
        found = [f"{feature}: {label}" for feature in features for label in labels]
        for before, kind in zip(self._before(self._tie_names), self._kinds(), strict=True):
            found += [before + entry for entry in table_names(kind, labels)]
        for order in self._orders:
            entries = clique_names(self.clique_table, labels, order)
            found += [before + e for before in self._before(self._clique_names) for e in entries]
        return found

    def contrasts(self, against: int = 0) -> list[Named]:
        labels, before = self.classes_, self._before(self._tie_names)
        features = self._node_features
        inside = (len(self._names), self.meets) if self.intercept and self.meets else None
        found = tied_contrasts(features, labels, before, against, "rim", inside)
        tables = [table_spread(kind, len(labels)) for kind in self._kinds()]
        split = len(features) * len(labels)
        spread = sp.block_diag([sp.eye_array(split), *tables], format="csr")
        total, first = len(self.names()), spread.shape[1]

        def placed(name: str, first: int, own: Array) -> Named:
            return Named(name, np.r_[np.zeros(first), own, np.zeros(total - first - len(own))])

        told = [placed(one.name, 0, spread.T @ one.combination) for one in found]
        shown = [str(label) for label in labels.tolist()]
        for order in self._orders:
            asked = clique_contrasts(self.clique_table, shown, order, against)
            for start in self._before(self._clique_names):
                told += [placed(start + words, first, own) for words, own in asked]
                first += len(asked[0][1])
        return distinct(told)


def _clique_features(graphs: Sequence[Graph]) -> list[str]:
    """What the features of cliques are called, by the first graph that has cliques."""
    first = next((graph for graph in graphs if graph.cliques), None)
    if first is None or first.clique_ties is None:
        return []
    return list(first.clique_names or numbered(first.clique_ties.shape[1], "clique feature"))


def _of_cliques(graph: Graph, known: list[str]) -> list[tuple[str, int, Any, list[str]]]:
    """What :meth:`GraphModel._check_widths` compares, where there are cliques."""
    if not graph.cliques:
        return []
    width = 0 if graph.clique_ties is None else graph.clique_ties.shape[1]
    return [("clique", width, graph.clique_names, known)]


def _beside(rows: Any, *more: Array) -> Any:
    """Rows with further columns, sparse where they are."""
    if not sp.issparse(rows):
        return np.hstack([rows, *more])
    parts: list[Any] = [rows, *map(sp.csr_array, more)]
    return sp.csr_array(sp.hstack(parts))

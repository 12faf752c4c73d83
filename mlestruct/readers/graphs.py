"""Labelled graphs as examples: nodes with features, edges with features, from many forms."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from mlestruct.errors import refuse_removed
from mlestruct.structures.base import Array, Ints, as_integers, as_numbers, as_sparse, refuse_masked
from mlestruct.structures.matching import BipartiteMatching, Matching


@dataclass(frozen=True, eq=False)
class Graph:
    """One example of a GraphModel: ``nodes`` (n × p) features, ``edges`` (m × 2) node numbers.

    ``ties`` (m × q) are features of the edges, None for none beside the constant. ``names`` and
    ``tie_names`` name the columns of both. An edge is undirected; in a full table its first node
    gives the row. ``ids``: what the nodes are called; ``regions``: of superpixels, the picture of
    node numbers.

    >>> graph = Graph.of([[0.5], [1.0], [2.0]], [(0, 1), (1, 2)])
    >>> len(graph), graph.edges.tolist()
    (3, [[0, 1], [1, 2]])
    """

    nodes: Any
    edges: Ints
    ties: Array | None = None
    names: tuple[str, ...] | None = None
    tie_names: tuple[str, ...] | None = None
    ids: tuple[Any, ...] | None = field(default=None, repr=False)
    regions: Ints | None = field(default=None, repr=False)

    @classmethod
    def of(cls, nodes: Any, edges: Any, ties: Any = None) -> Graph:
        """Checked; ``edges`` is a list of pairs, or an adjacency matrix, dense or sparse.

        Frames give their columns' names. In an adjacency matrix every entry is 0 or 1.
        """
        names, rows = _named(nodes, "node features")
        tie_names, values = (None, None) if ties is None else _named(ties, "edge features")
        pairs = _pairs(edges, rows.shape[0])
        _check_edges(pairs, rows.shape[0])
        if values is not None and (sp.issparse(values) or values.shape[0] != len(pairs)):
            raise ValueError(f"edge features have shape {values.shape} for {len(pairs)} edges")
        return cls(rows, pairs, values, names, tie_names)

    @classmethod
    def from_adjacency(cls, *given: Any) -> None:
        """Removed."""
        refuse_removed("Graph.from_adjacency")

    @classmethod
    def from_networkx(
        cls, graph: Any, names: Sequence[str] | None = None, tie_names: Sequence[str] | None = None
    ) -> Graph:
        """Node v is the v-th of ``graph.nodes``; attributes are features (default: all of them)."""
        order = list(graph.nodes)
        place = {node: v for v, node in enumerate(order)}
        ends = list(graph.edges)
        pairs = [(place[u], place[v]) for u, v, *_ in ends]
        tables = [graph.nodes[node] for node in order], [graph.edges[edge] for edge in ends]
        names, tie_names = (
            tuple(dict.fromkeys(name for row in table for name in row) if given is None else given)
            for table, given in zip(tables, (names, tie_names), strict=True)
        )
        rows = _attributes(tables[0], names, [f"node {node!r}" for node in order])
        values = _attributes(tables[1], tie_names, [f"edge {edge!r}" for edge in ends])
        found = cls.of(rows, np.array(pairs).reshape(-1, 2), values if tie_names else None)
        return cls(found.nodes, found.edges, found.ties, names, tie_names or None, tuple(order))

    @classmethod
    def from_regions(cls, regions: ArrayLike, image: ArrayLike) -> Graph:
        """Superpixels: a node for each region, an edge where two touch.

        ``regions`` (rows × columns) numbers the region of each pixel from 0 on, ``image`` has the
        pixels' channels (rows × columns × channels), uint8 ones divided by 255. Nodes have each
        channel's mean and standard deviation, and the mean row and column as shares of the picture.
        Edges have the ``border`` (the share of the smaller region's outline that the two have in
        common) and ``alike``, exp(−‖difference of the means‖² / its mean over the picture's edges).
        """
        areas, pixels = _regions(regions), as_numbers(image, "an image")
        pixels = pixels / 255.0 if getattr(image, "dtype", None) == np.uint8 else pixels
        pixels = pixels[:, :, None] if pixels.ndim == 2 else pixels
        if pixels.ndim != 3 or pixels.shape[:2] != areas.shape:
            raise ValueError(f"an image of shape {pixels.shape} for regions {areas.shape}")
        count = int(areas.max()) + 1
        means, spreads = _moments(pixels.reshape(-1, pixels.shape[2]), areas.ravel(), count)
        places = np.moveaxis(np.indices(areas.shape), 0, 2).reshape(-1, 2) / np.array(areas.shape)
        middle, _ = _moments(places, areas.ravel(), count)
        pairs, shared = _borders(areas)
        outline = np.bincount(pairs.ravel(), weights=np.repeat(shared, 2), minlength=count)
        apart = ((means[pairs[:, 0]] - means[pairs[:, 1]]) ** 2).sum(axis=1)
        scale = apart.mean() if apart.any() else 1.0
        border = shared / np.minimum(*outline[pairs.T]) if len(pairs) else shared
        ties = np.stack([border, np.exp(-apart / scale)], axis=1)
        channels = range(pixels.shape[2])
        names = [f"{what} of channel {k}" for what in ("mean", "spread") for k in channels]
        rows, named = np.hstack([means, spreads, middle]), (*names, "row", "column")
        return cls(rows, pairs, ties, named, ("border", "alike"), regions=areas)

    def __len__(self) -> int:
        return int(self.nodes.shape[0])

    def paint(self, values: ArrayLike) -> NDArray[Any]:
        """A value per node as a picture: every pixel has its region's."""
        if self.regions is None:
            raise ValueError("this graph was not made from regions")
        return np.asarray(values)[self.regions]

    def part(self, kept: NDArray[np.bool_]) -> Graph:
        """The nodes that are kept, and the edges between them."""
        place = np.cumsum(kept) - 1
        inside = kept[self.edges].all(axis=1)
        ties = None if self.ties is None else self.ties[inside]
        rows = self.nodes[np.flatnonzero(kept)]
        return Graph(rows, place[self.edges[inside]], ties, self.names, self.tie_names)


def graph_of(given: Any) -> Graph:
    """A :class:`Graph` from one, from (nodes, edges) or (nodes, edges, edge features), or networkx.

    A mapping has these as ``nodes``, ``edges`` and ``ties``.
    """
    if isinstance(given, Graph):
        return given
    if isinstance(given, Mapping):
        if set(given) not in ({"nodes", "edges"}, {"nodes", "edges", "ties"}):
            if "cliques" in given:
                refuse_removed("a graph's cliques")
            raise ValueError(f"a graph is nodes, edges and perhaps ties, not {sorted(given)}")
        return Graph.of(**given)
    if hasattr(given, "adj") and hasattr(given, "nodes") and hasattr(given, "edges"):
        return Graph.from_networkx(given)
    if isinstance(given, (tuple, list)) and len(given) in (2, 3):
        return Graph.of(*given)
    raise ValueError(
        f"X holds a {type(given).__name__}; a graph is (nodes, edges), (nodes, edges, edge "
        "features), ms.Graph or of networkx"
    )


def region_labels(regions: ArrayLike, labels: ArrayLike, void: Any = None) -> NDArray[Any]:
    """Of every region the label that most of its pixels have; ``void`` where all are void.

    >>> region_labels([[0, 0, 1], [0, 1, 1]], [[5, 5, 255], [7, 255, 255]], void=255).tolist()
    [5, 255]
    """
    refuse_masked(labels, "labels")
    areas, given = _regions(regions), np.asarray(labels)
    if given.shape != areas.shape:
        raise ValueError(f"labels of shape {given.shape} for regions {areas.shape}")
    distinct, state = np.unique(given, return_inverse=True)
    shape = (int(areas.max()) + 1, len(distinct))
    votes = np.zeros(shape)
    np.add.at(votes, (areas.ravel(), state.ravel()), 1.0)
    if void is not None:
        votes[:, distinct == void] *= 1e-9  # a single other pixel outvotes them
    return np.asarray(distinct[votes.argmax(axis=1)])


def _named(given: Any, what: str) -> tuple[tuple[str, ...] | None, Any]:
    """Column names of a frame, and a matrix; one feature may lack its axis."""
    names = getattr(given, "columns", None)
    matrix: Any
    if hasattr(given, "tocsr"):
        matrix = as_sparse(given, what)
    else:
        matrix = as_numbers(given, what)
        matrix = matrix[:, None] if matrix.ndim == 1 else matrix
    if matrix.ndim != 2:
        raise ValueError(f"{what} have shape {matrix.shape}; expected (rows, features)")
    table: Any = matrix
    if not np.isfinite(table.data if sp.issparse(matrix) else table).all():
        dense = table.toarray() if sp.issparse(matrix) else table
        row, column = np.argwhere(~np.isfinite(dense))[0]
        name = column if names is None else repr(str(names[column]))
        raise ValueError(f"{what} hold {dense[row, column]} in row {row}, column {name}")
    return None if names is None else tuple(map(str, names)), matrix


def _pairs(edges: Any, nodes: int) -> Ints:
    """Pairs of nodes from a list of them or from an adjacency matrix.

    Of two nodes both are 2 × 2: [[0, 1], [1, 0]] as a list would name one edge twice.
    """
    if sp.issparse(edges):
        return _adjacent(edges, nodes)
    array = np.asarray(edges)
    array = np.zeros((0, 2), dtype=np.int64) if array.size == 0 else array
    square = array.shape == (nodes, nodes)
    if square and (nodes != 2 or ((np.diag(array) == 0).all() and (array == array.T).all())):
        return _adjacent(array, nodes)
    if array.ndim != 2 or array.shape[1] != 2:
        raise ValueError(
            f"edges have shape {array.shape}; expected (edges, 2), or an adjacency matrix "
            f"({nodes}, {nodes})"
        )
    return as_integers(array, "nodes of edges")


def _adjacent(matrix: Any, nodes: int) -> Ints:
    """Where a square matrix is not 0, each edge once; given both ways, the lower node first."""
    entries = sp.coo_array(matrix)
    if entries.shape != (nodes, nodes):
        raise ValueError(f"an adjacency matrix of shape {entries.shape} for {nodes} nodes")
    wrong = entries.data[(entries.data != 0) & (entries.data != 1)]
    if len(wrong):
        raise ValueError(
            f"the adjacency matrix holds {wrong[0]}; entries are 0 or 1. To learn from weights of "
            "edges: ms.Graph.of(nodes, pairs, weights)"
        )
    pairs = np.stack([entries.row, entries.col], axis=1)[entries.data != 0].astype(np.int64)
    present = set(map(tuple, pairs.tolist()))
    once = [(i, j) for i, j in pairs.tolist() if i <= j or (j, i) not in present]
    return np.array(sorted(once), dtype=np.int64).reshape(-1, 2)


def _check_edges(pairs: Ints, nodes: int) -> None:
    wrong = np.flatnonzero(((pairs < 0) | (pairs >= nodes)).any(axis=1))
    if len(wrong):
        raise ValueError(f"edge {wrong[0]} is {pairs[wrong[0]].tolist()}; there are {nodes} nodes")
    loops = np.flatnonzero(pairs[:, 0] == pairs[:, 1])
    if len(loops):
        raise ValueError(f"edge {loops[0]} joins node {pairs[loops[0], 0]} with itself")
    ordered = np.sort(pairs, axis=1)
    _, first, count = np.unique(ordered, axis=0, return_index=True, return_counts=True)
    if (count > 1).any():
        pair = ordered[first[count > 1][0]].tolist()
        raise ValueError(f"the edge between nodes {pair[0]} and {pair[1]} is given twice")


def _attributes(rows: Sequence[Any], names: Sequence[str], where: Sequence[str]) -> Array:
    """(rows × names) of numbers; a missing attribute is refused by the name of its place."""
    found = np.empty((len(rows), len(names)))
    for i, row in enumerate(rows):
        for j, name in enumerate(names):
            if name not in row:
                raise ValueError(f"{where[i]} has no attribute {name!r}")
            value = row[name]
            if not isinstance(value, (int, float, np.number, np.bool_)):
                raise ValueError(f"{where[i]} has {name!r} = {value!r}; features are numbers")
            found[i, j] = value
    return found


def _regions(given: ArrayLike) -> Ints:
    areas = as_integers(given, "numbers of regions")
    if areas.ndim != 2 or areas.size == 0 or areas.min() < 0:
        raise ValueError("regions are a (rows, columns) picture of numbers from 0 on, none empty")
    empty = np.flatnonzero(np.bincount(areas.ravel()) == 0)
    if len(empty):
        raise ValueError(
            f"no pixel is of region {empty[0]}: number them from 0 on, as np.unique(regions, "
            "return_inverse=True) does"
        )
    return areas


def _moments(values: Array, owner: Ints, count: int) -> tuple[Array, Array]:
    """Mean and standard deviation of every column within every region."""
    size = np.bincount(owner, minlength=count)[:, None]

    def mean(columns: Array) -> Array:
        sums = [np.bincount(owner, weights=column, minlength=count) for column in columns.T]
        return np.stack(sums, axis=1) / size

    centre = mean(values)
    return centre, np.sqrt(mean((values - centre[owner]) ** 2))


def _borders(areas: Ints) -> tuple[Ints, Array]:
    """Pairs of regions that touch, lower first, and how many pixels' sides they share."""
    sides = [
        np.stack([a.ravel(), b.ravel()], axis=1)
        for a, b in ((areas[:, :-1], areas[:, 1:]), (areas[:-1], areas[1:]))
    ]
    touching = np.sort(np.concatenate(sides), axis=1)
    touching = touching[touching[:, 0] != touching[:, 1]]
    pairs, length = np.unique(touching, axis=0, return_counts=True)
    return pairs.reshape(-1, 2), length.astype(float)


def from_networkx(
    graph: Any,
    kind: Literal["perfect", "partial"] = "perfect",
    nodes: Sequence[Hashable] | None = None,
) -> tuple[Matching, list[Hashable]]:
    """The matchings of an undirected graph, and its nodes in the structure's order.

    Node v of the structure is ``nodes[v]`` (default: the graph's own order), and coordinate k its
    k-th edge in the graph's order. Multiple edges and loops are refused.

    >>> import networkx as nx
    >>> matching, nodes = from_networkx(nx.path_graph(["a", "b", "c", "d"]))
    >>> [nodes[v] for v in matching.decode([1, 0, 1])]
    ['b', 'a', 'd', 'c']
    """
    if graph.is_directed() or graph.is_multigraph():
        raise ValueError(
            f"matchings live in simple undirected graphs, not a {type(graph).__name__}"
        )
    order = list(graph.nodes) if nodes is None else list(nodes)
    place = {node: v for v, node in enumerate(order)}
    strange = [node for node in graph.nodes if node not in place]
    if strange or len(place) != graph.number_of_nodes():
        raise ValueError(
            f"nodes lists {len(order)} names for {graph.number_of_nodes()} nodes"
            + (f"; {strange[0]!r} is not among them" if strange else "")
        )
    ends = np.array([(place[u], place[v]) for u, v in graph.edges], dtype=np.int64).reshape(-1, 2)
    return Matching(len(order), ends, kind), order


def to_networkx(
    structure: Matching | BipartiteMatching,
    probability: ArrayLike,
    outcome: ArrayLike | None = None,
    nodes: Sequence[Hashable] | None = None,
    *,
    least: float = 0.0,
) -> Any:
    """The pairs as edges with ``probability`` and, given an outcome, whether they are ``matched``.

    ``nodes`` names the structure's nodes, of bipartite ones rows then columns (with their side as
    ``bipartite``). Pairs below ``least`` that are not matched are left out.
    """
    import networkx as nx

    rows = structure.rows if isinstance(structure, BipartiteMatching) else None
    count = structure.n_nodes
    names = list(range(count)) if nodes is None else list(nodes)
    if len(names) != count or len(set(names)) < count:
        raise ValueError(f"nodes lists {len(set(names))} different names for {count} nodes")
    tau = as_numbers(probability, "probabilities").reshape(-1)
    if tau.shape != (structure.size,):
        raise ValueError(f"{len(tau)} probabilities for {structure.size} pairs")
    if not np.isfinite(tau).all():
        raise ValueError(f"the probability of pair {(~np.isfinite(tau)).argmax()} is not finite")
    matched = np.zeros(structure.size) if outcome is None else structure.encode(outcome)
    graph = nx.Graph()
    for v, name in enumerate(names):
        graph.add_node(name, **({} if rows is None else {"bipartite": int(v >= rows)}))
    for k in np.flatnonzero((tau >= least) | (matched > 0)):
        u, v = map(int, structure.nodes_of(k))
        given = {} if outcome is None else {"matched": bool(matched[k])}
        graph.add_edge(names[u], names[v], probability=float(tau[k]), **given)
    return graph

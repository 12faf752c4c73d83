"""Labelled graphs seen through clusters that agree on sepsets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import coo_array

from mlestruct.structures.base import Array, Ints
from mlestruct.structures.regions import Link, RegionGraph


class ClusterGraph(RegionGraph):
    """Clusters that agree on sepsets of any size: ``sepsets`` lists (cluster, cluster, variables).

    Coordinates are [cluster tables | sepset tables]. For every variable the sepsets that hold it
    must join its clusters as a tree (running intersection). ρ weighs the sepsets: ρ = 1 is the
    Bethe entropy Σ H(clusters) − Σ H(sepsets), exact where the clusters form a forest; ρ = 0 is
    CAMEL(0)'s.

    >>> graph = ClusterGraph([2] * 4, [(0, 1, 2), (1, 2, 3)], [(0, 1, (1, 2))])
    >>> graph.size, graph.counting().tolist(), str(graph.bound(graph.counting()))
    (20, [1.0, 1.0, -1.0], 'exact (the largest regions form a junction forest)')
    """

    def __init__(
        self,
        cards: Sequence[int] | Ints,
        clusters: Iterable[Sequence[int]],
        sepsets: Iterable[tuple[int, int, Sequence[int]]],
        *,
        fixed: ArrayLike | None = None,
    ) -> None:
        scopes, between = [tuple(c) for c in clusters], [(i, j, tuple(s)) for i, j, s in sepsets]
        self.n_clusters = len(scopes)
        _check_sepsets(len(cards), scopes, between)
        sides = [(side, len(scopes) + k) for k, (*ends, _) in enumerate(between) for side in ends]
        super().__init__(cards, [*scopes, *(s for *_, s in between)], sides, fixed=fixed)
        self._forest = _is_forest(len(scopes), [(i, j) for i, j, _ in between])

    @cached_property
    def corrections(self) -> Array:
        """1 on clusters, −1 on sepsets."""
        return np.where(np.arange(len(self.regions)) < self.n_clusters, 1.0, -1.0)

    @cached_property
    def _junction(self) -> Array | None:
        return self.corrections if self._forest else None


def _check_sepsets(
    n: int, clusters: list[tuple[int, ...]], sepsets: list[tuple[int, int, tuple[int, ...]]]
) -> None:
    joins: list[list[Link]] = [[] for _ in range(n)]
    for k, (i, j, variables) in enumerate(sepsets):
        if not (0 <= i < len(clusters) and 0 <= j < len(clusters) and i != j):
            raise ValueError(f"sepset {k} joins clusters {i} and {j} of {len(clusters)}")
        outside = set(variables) - (set(clusters[i]) & set(clusters[j]))
        if outside:
            raise ValueError(f"sepset {k} holds {min(outside)}; clusters {i} and {j} do not both")
        for variable in variables:
            joins[variable].append((i, j))
    for variable, edges in enumerate(joins):
        holding = [c for c, cluster in enumerate(clusters) if variable in cluster]
        if len(edges) != len(holding) - 1 or not _is_forest(len(clusters), edges):
            raise ValueError(
                f"the sepsets that hold variable {variable} must join its clusters {holding} as a "
                f"tree; they join {edges}"
            )


def _is_forest(n: int, edges: list[Link]) -> bool:
    from scipy.sparse.csgraph import connected_components

    ends = np.array(edges, dtype=np.int64).reshape(-1, 2).T
    joined = coo_array((np.ones(ends.shape[1]), (ends[0], ends[1])), shape=(n, n))
    components, _ = connected_components(joined, directed=False)
    return bool(components == n - len(edges))

"""In which order truncated messages visit factors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from mlestruct.structures.base import Ints
from mlestruct.structures.graph import FactorGraph


class Sweep(NamedTuple):
    """One iteration: factors of one group read the same state, then all send at once."""

    group: Ints
    """Visits group[g]:group[g + 1] form group g."""
    factor: Ints


Order = Callable[[FactorGraph], Sweep]


def one_by_one(factors: Sequence[int] | Ints) -> Sweep:
    """Each visit a group of its own."""
    return Sweep(np.arange(len(factors) + 1), np.asarray(factors, dtype=np.int64))


def there_and_back(graph: FactorGraph) -> Sweep:
    """On a grid: vertical factors in raster order, horizontal ones, then exactly the reverse.

    On other graphs factors whose variables lie farthest apart come first.
    """
    first = np.minimum.reduceat(graph.scope, graph.scope_start[:-1])
    last = np.maximum.reduceat(graph.scope, graph.scope_start[:-1])
    order = np.lexsort((first, first - last))
    return one_by_one(np.concatenate([order, order[::-1]]))


def flooding(graph: FactorGraph) -> Sweep:
    """All factors at once."""
    return Sweep(np.array([0, graph.n_factors]), np.arange(graph.n_factors))

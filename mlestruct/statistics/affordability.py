"""Where exact sums over all outcomes are quick: what they would cost, before any is done."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlestruct.structures.base import Structure
from mlestruct.structures.batch import Batch

MOST = 300  # weights with intervals: each costs two inferences of all examples a step
ROOM = 2e8  # numbers of all examples' information matrices
SIDE, NODES = 12, 16  # of bipartite and of general matchings: .5 to 2.3 ms at the worst scores
WIDE = 50_000  # coordinates of a graph above which no order of elimination is looked for
EACH = 0.1  # seconds for one example that are still affordable
# Seconds of one example among twenty; where logarithms are summed instead of products, for scores
# that are hundreds apart, four to twelve times as many.
CALL = 3e-6  # for any example
ENTRY = {"perfect": 8e-10, "partial": 2.5e-9, "one_sided": 3.7e-9}  # per row and set of columns
SET = 3.2e-9  # of nodes
COORDINATE = 4e-9  # of a forest
ARC = 4e-8


def affordable(structures: Sequence[Structure]) -> bool:
    """Whether exact sums of every one of these structures are a matter of a moment."""
    return all(seconds(structure) <= EACH for structure in structures)


def total(batch: Batch[Structure]) -> float:
    """Seconds that exact sums of all examples would take, about."""
    cost = [seconds(structure) for structure in batch.structures]
    return float(sum(cost[k] for k in batch.which.tolist()))


def seconds(structure: Any) -> float:
    """About what one example takes; infinite where nothing sums this kind of structure.

    By the name of the structure's class, so that none is imported for its line.
    """
    kinds = {kind.__name__ for kind in type(structure).__mro__}
    if "Paths" in kinds:
        return ARC * float(structure.size)
    if "BipartiteMatching" in kinds:
        small = min(structure.shape)  # asked first: 2.0**1024 is an OverflowError
        cost = ENTRY[structure.kind] * small * 2.0**small if small <= SIDE else float("inf")
        return CALL + cost
    if "Matching" in kinds:
        n = structure.n_nodes
        return CALL + SET * 2.0**n if n <= NODES else float("inf")
    if "Ising" in kinds:
        from mlestruct.structures.graph import FactorGraph

        return seconds(FactorGraph([2] * structure.n, structure.edges))
    if "FactorGraph" not in kinds or (structure.size > WIDE and not structure.is_forest):
        return float("inf")
    if structure.is_forest:
        return CALL + COORDINATE * structure.size
    from mlestruct.inference.elimination import estimate

    found = estimate(structure)
    return found.seconds if found.complete else float("inf")

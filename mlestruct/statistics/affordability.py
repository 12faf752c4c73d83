"""Where exact sums over all outcomes are quick: what they would cost, before any is done."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mlestruct.inference.choose import Inference
from mlestruct.structures.base import Structure
from mlestruct.structures.batch import Batch

if TYPE_CHECKING:
    from mlestruct.structures import BipartiteMatching, FactorGraph, Ising, Matching

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


def affordable(structures: tuple[Structure, ...]) -> bool:
    """Whether exact sums of every one of these structures are a matter of a moment."""
    return all(seconds(structure) <= EACH for structure in structures)


def total(batch: Batch[Structure]) -> float:
    """Seconds that exact sums of all examples would take, about."""
    cost = [seconds(structure) for structure in batch.structures]
    return float(sum(cost[k] for k in batch.which.tolist()))


def advice(batch: Batch[Structure], learned: Inference) -> list[str]:
    """A line for whoever ``learned`` by a surrogate where the true weights could be had."""
    if not affordable(batch.structures) or learned.sums(batch):
        return []
    return [
        "exact sums are affordable here, and this surrogate's weights are known to be off: "
        "learner='exact_mle' learns the true ones"
    ]


def seconds(structure: Structure) -> float:
    """About what one example takes; infinite where nothing sums this kind of structure."""
    for kind in type(structure).__mro__:
        if kind.__name__ in SECONDS:
            return SECONDS[kind.__name__](structure)
    return float("inf")


def _graph(graph: FactorGraph) -> float:
    if graph.is_forest:
        return CALL + COORDINATE * graph.size
    if graph.size > WIDE:
        return float("inf")
    from mlestruct.inference.elimination import estimate

    found = estimate(graph)
    return found.seconds if found.complete else float("inf")


def _ising(structure: Ising) -> float:
    from mlestruct.structures.graph import FactorGraph

    return _graph(FactorGraph([2] * structure.n, structure.edges))


def _sides(matching: BipartiteMatching) -> float:
    small = min(matching.shape)
    if small > SIDE:  # asked first: 2.0**1024 is an OverflowError
        return float("inf")
    return CALL + ENTRY[matching.kind] * small * 2.0**small


def _pairs(matching: Matching) -> float:
    n = matching.n_nodes
    return CALL + SET * 2.0**n if n <= NODES else float("inf")


SECONDS: dict[str, Callable[[Any], float]] = {
    "Paths": lambda paths: ARC * float(paths.size),
    "FactorGraph": _graph,
    "Ising": _ising,
    "BipartiteMatching": _sides,
    "Matching": _pairs,
}
"""By the name of a structure's class, so that none is imported for its line."""

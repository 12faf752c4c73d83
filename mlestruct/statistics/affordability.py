"""Where exact sums over all outcomes are quick: what they would cost, before any is done."""

from __future__ import annotations

from functools import singledispatch

from mlestruct.batch import Batch
from mlestruct.inference.exact import estimate
from mlestruct.structures import BipartiteMatching, FactorGraph, Ising, Matching, Paths
from mlestruct.structures.base import Structure

SIDE, NODES = 12, 16  # of bipartite and of general matchings: some 5 ms each
WIDE = 50_000  # coordinates of a graph above which no order of elimination is looked for
EACH = 0.1  # seconds for one example that are still affordable
ENTRY = 1.5e-7  # seconds per entry of a table over sets of nodes, measured


def affordable(structures: tuple[Structure, ...]) -> bool:
    """Whether exact sums of every one of these structures are a matter of a moment."""
    return all(seconds(structure) <= EACH for structure in structures)


def total(batch: Batch[Structure]) -> float:
    """Seconds that exact sums of all examples would take, about."""
    cost = [seconds(structure) for structure in batch.structures]
    return float(sum(cost[k] for k in batch.which.tolist()))


@singledispatch
def seconds(structure: Structure) -> float:
    """About what one example takes; infinite where nothing sums this kind of structure."""
    return float("inf")


@seconds.register
def _(structure: Paths) -> float:
    return 1e-8 * structure.size


@seconds.register
def _(structure: FactorGraph) -> float:
    if structure.is_forest:
        return 1e-7 * structure.size
    if structure.size > WIDE:
        return float("inf")
    found = estimate(structure)
    return found.seconds if found.complete else float("inf")


@seconds.register
def _(structure: Ising) -> float:
    return seconds(FactorGraph([2] * structure.n, structure.edges))


@seconds.register
def _(structure: BipartiteMatching) -> float:
    small = min(structure.shape)
    return ENTRY * small * 2.0**small if small <= SIDE else float("inf")


@seconds.register
def _(structure: Matching) -> float:
    n = structure.n_nodes
    return ENTRY * 2.0**n if n <= NODES else float("inf")

"""How ρ may be said: a number, a list, a name, a function of the structure, or counting numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from mlestruct.errors import Unserved
from mlestruct.structures.base import Array, Structure, as_numbers

if TYPE_CHECKING:
    from mlestruct.structures.bipartite import BipartiteMatching
    from mlestruct.structures.graph import FactorGraph


@dataclass(frozen=True)
class Counting:
    """Counting numbers that no ρ gives: one per distribution of the structure's views."""

    numbers: Callable[[Any], Array]
    words: str = "counting numbers of your own"

    def __str__(self) -> str:
        return self.words


Rho = float | ArrayLike | str | Callable[[Any], Any] | Counting | None


def uniform_trees(graph: FactorGraph) -> Array:
    """Each edge's chance to be in a uniform spanning tree: tree-reweighted, an upper bound."""
    if not graph.is_pairwise:
        raise Unserved("spanning trees need factors of two variables each")
    return graph.own_rho


def hypertree(matching: BipartiteMatching) -> float | Array:
    """½(1 + 1/n) for square perfect matchings, a theorem; by sides for one-sided ones, none."""
    rows, columns = matching.shape
    if matching.kind == "perfect":
        return 0.5 * (1 + 1 / rows)
    return np.repeat([0.5 * (1 + 1 / rows), 0.5 * (1 + 1 / columns)], [rows, columns])


def _cliques(graph: FactorGraph) -> Array:
    return np.repeat([0.0, 1.0], [graph.n_nodes, graph.n_factors])


cliques_only = Counting(_cliques, "the counting numbers of CAMEL(0)")
"""1 on factors, 0 on their separators: the entropy of CAMEL(0), concave on any graph."""

NAMES: dict[str, Rho] = {
    "bethe": 1.0,
    "independent": 0.0,
    "half": 0.5,
    "trees": uniform_trees,
    "hypertree": hypertree,
    "cliques": cliques_only,
}


def in_words(rho: Rho) -> str:
    """What a summary or a refusal calls it."""
    if rho is None:
        return "the structure's own counting numbers"
    if isinstance(rho, Counting):
        return rho.words
    if callable(rho):
        return f"ρ by {getattr(rho, '__name__', 'a function')}"
    return f"ρ = {rho}" if isinstance(rho, str) or np.ndim(rho) == 0 else "a ρ of your own"


def counting_numbers(structure: Structure, rho: Rho) -> Array:
    """The counting numbers of a structure under any way to say ρ; None is its own default."""
    given = rho
    if isinstance(rho, str):
        if rho not in NAMES:
            raise ValueError(f"no reweighting named {rho!r}; there are {', '.join(NAMES)}")
        rho = NAMES[rho]
    try:
        if isinstance(rho, Counting):
            return rho.numbers(structure)
        value = rho(structure) if callable(rho) else rho
    except AttributeError as error:
        raise Unserved(f"{in_words(given)} is not for a {type(structure).__name__}") from error
    if value is not None and not np.isfinite(as_numbers(value, "rho")).all():
        raise ValueError(f"rho={rho!r} is not finite")
    try:
        return structure.counting(value)
    except ValueError as error:
        many = f"{np.size(np.asarray(value))} numbers do not fit; give one, or one per factor of a "
        many += "graph, node of a matching or group of a structure of your own"
        why = many if "broadcast" in str(error) else str(error)
        raise Unserved(f"rho={rho!r} on a {type(structure).__name__}: {why}") from error

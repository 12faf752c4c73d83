"""Structured outputs as 0/1 coordinate vectors: labelled graphs, matchings, paths, your own."""

from mlestruct.structures.base import Bound, Constraints, Structure, Views
from mlestruct.structures.custom import Custom
from mlestruct.structures.graph import FactorGraph, chain, grid, tree
from mlestruct.structures.matching import BipartiteMatching
from mlestruct.structures.paths import Paths

__all__ = [
    "BipartiteMatching",
    "Bound",
    "Constraints",
    "Custom",
    "FactorGraph",
    "Paths",
    "Structure",
    "Views",
    "chain",
    "grid",
    "tree",
]

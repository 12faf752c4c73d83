"""Structured outputs as 0/1 coordinate vectors: labelled graphs, matchings, paths, your own."""

from mlestruct.structures.base import Bound, Constraints, Structure, Views
from mlestruct.structures.custom import Custom
from mlestruct.structures.graph import FactorGraph, chain, grid, skip_chain, tree
from mlestruct.structures.matching import BipartiteMatching, Matching
from mlestruct.structures.paths import Paths

__all__ = [
    "BipartiteMatching",
    "Bound",
    "Constraints",
    "Custom",
    "FactorGraph",
    "Matching",
    "Paths",
    "Structure",
    "Views",
    "chain",
    "grid",
    "skip_chain",
    "tree",
]

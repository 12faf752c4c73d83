"""Structured outputs as 0/1 coordinate vectors: labelled graphs, matchings, paths, your own."""

from mlestruct.structures.b_matching import BMatching
from mlestruct.structures.base import Bound, Constraints, Structure, Views
from mlestruct.structures.custom import Custom
from mlestruct.structures.flow import Flow
from mlestruct.structures.graph import FactorGraph, chain, grid, skip_chain, tree
from mlestruct.structures.ising import Ising
from mlestruct.structures.matching import BipartiteMatching, Matching
from mlestruct.structures.paths import Paths
from mlestruct.structures.regions import ClusterGraph, RegionGraph, plaquettes

__all__ = [
    "BMatching",
    "BipartiteMatching",
    "Bound",
    "ClusterGraph",
    "Constraints",
    "Custom",
    "FactorGraph",
    "Flow",
    "Ising",
    "Matching",
    "Paths",
    "RegionGraph",
    "Structure",
    "Views",
    "chain",
    "grid",
    "plaquettes",
    "skip_chain",
    "tree",
]

"""Structured outputs as 0/1 coordinate vectors: labelled graphs, matchings, paths, your own."""

from mlestruct.structures.b_matching import BMatching
from mlestruct.structures.base import Bound, Constraints, Structure, Views
from mlestruct.structures.clusters import ClusterGraph
from mlestruct.structures.custom import Custom
from mlestruct.structures.flow import Flow
from mlestruct.structures.graph import FactorGraph
from mlestruct.structures.ising import Ising
from mlestruct.structures.matching import BipartiteMatching, Matching
from mlestruct.structures.paths import Paths
from mlestruct.structures.regions import RegionGraph, plaquettes
from mlestruct.structures.shapes import chain, grid, skip_chain, tree

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

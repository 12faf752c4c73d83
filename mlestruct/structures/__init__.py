"""Structured outputs as 0/1 coordinate vectors: labelled graphs, matchings, paths, your own."""

from typing import TYPE_CHECKING

from mlestruct.lazy import lazily

if TYPE_CHECKING:
    from mlestruct.structures.base import Bound as Bound
    from mlestruct.structures.base import Constraints as Constraints
    from mlestruct.structures.base import Structure as Structure
    from mlestruct.structures.base import Views as Views
    from mlestruct.structures.custom import Custom as Custom
    from mlestruct.structures.graph import FactorGraph as FactorGraph
    from mlestruct.structures.graph import chain as chain
    from mlestruct.structures.graph import grid as grid
    from mlestruct.structures.graph import skip_chain as skip_chain
    from mlestruct.structures.graph import tree as tree
    from mlestruct.structures.ising import Ising as Ising
    from mlestruct.structures.matching import BipartiteMatching as BipartiteMatching
    from mlestruct.structures.matching import Matching as Matching
    from mlestruct.structures.networks import BMatching as BMatching
    from mlestruct.structures.networks import Flow as Flow
    from mlestruct.structures.networks import Paths as Paths
    from mlestruct.structures.regions import ClusterGraph as ClusterGraph
    from mlestruct.structures.regions import RegionGraph as RegionGraph
    from mlestruct.structures.regions import plaquettes as plaquettes

__getattr__, __all__ = lazily(__name__)

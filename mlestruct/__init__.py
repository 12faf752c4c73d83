"""Learn probabilistic models over combinatorial structures with nothing but a MAP solver."""

from typing import TYPE_CHECKING

from mlestruct.lazy import lazily

if TYPE_CHECKING:
    from mlestruct import data as data
    from mlestruct import estimators as estimators
    from mlestruct import features as features
    from mlestruct import inference as inference
    from mlestruct import learners as learners
    from mlestruct import metrics as metrics
    from mlestruct import oracle as oracle
    from mlestruct import plot as plot
    from mlestruct import readers as readers
    from mlestruct import scorers as scorers
    from mlestruct import structures as structures
    from mlestruct import tables as tables
    from mlestruct import testing as testing
    from mlestruct.errors import ConvergenceWarning as ConvergenceWarning
    from mlestruct.errors import Infeasible as Infeasible
    from mlestruct.estimators import GraphModel as GraphModel
    from mlestruct.estimators import GridModel as GridModel
    from mlestruct.estimators import JointModel as JointModel
    from mlestruct.estimators import MatchingModel as MatchingModel
    from mlestruct.estimators import MultiLabelModel as MultiLabelModel
    from mlestruct.estimators import RoommateModel as RoommateModel
    from mlestruct.estimators import SequenceModel as SequenceModel
    from mlestruct.estimators import SkipChainModel as SkipChainModel
    from mlestruct.estimators import StructuredModel as StructuredModel
    from mlestruct.features import Dense as Dense
    from mlestruct.features import Pairs as Pairs
    from mlestruct.features import Question as Question
    from mlestruct.features import Sparse as Sparse
    from mlestruct.features import Tied as Tied
    from mlestruct.inference import marginals as marginals
    from mlestruct.inference.exact import exact as exact
    from mlestruct.inference.sampling import sample as sample
    from mlestruct.learners import mle_struct as mle_struct
    from mlestruct.learners import ssvm as ssvm
    from mlestruct.learning.bcfw import BCFW as BCFW
    from mlestruct.learning.checkpoints import Checkpoint as Checkpoint
    from mlestruct.learning.dual import Certificate as Certificate
    from mlestruct.learning.dual import certificate as certificate
    from mlestruct.learning.frank_wolfe import FrankWolfe as FrankWolfe
    from mlestruct.learning.regulariser import Regulariser as Regulariser
    from mlestruct.oracle import Answer as Answer
    from mlestruct.readers import Graph as Graph
    from mlestruct.readers import graphs as graphs
    from mlestruct.readers import images as images
    from mlestruct.structures import BipartiteMatching as BipartiteMatching
    from mlestruct.structures import BMatching as BMatching
    from mlestruct.structures import ClusterGraph as ClusterGraph
    from mlestruct.structures import Custom as Custom
    from mlestruct.structures import FactorGraph as FactorGraph
    from mlestruct.structures import Flow as Flow
    from mlestruct.structures import Ising as Ising
    from mlestruct.structures import Matching as Matching
    from mlestruct.structures import Paths as Paths
    from mlestruct.structures import RegionGraph as RegionGraph
    from mlestruct.structures import chain as chain
    from mlestruct.structures import grid as grid
    from mlestruct.structures import plaquettes as plaquettes
    from mlestruct.structures import skip_chain as skip_chain
    from mlestruct.structures import tree as tree
    from mlestruct.structures.batch import Batch as Batch
    from mlestruct.structures.batch import Partial as Partial
    from mlestruct.structures.entropy import Entropy as Entropy

__version__ = "0.1.0"

__getattr__, _names = lazily(__name__)
__all__ = ["__version__", *_names]


def __dir__() -> list[str]:
    return __all__

"""The front door: estimators with scikit-learn manners over lists of examples."""

from typing import TYPE_CHECKING

from mlestruct.estimators.base import Estimator
from mlestruct.estimators.calibration import Calibration
from mlestruct.estimators.graph import GraphModel
from mlestruct.estimators.grid import GridModel
from mlestruct.estimators.matching import MatchingModel
from mlestruct.estimators.predictor import Draws
from mlestruct.estimators.roommates import RoommateModel
from mlestruct.estimators.sequence import SequenceModel
from mlestruct.estimators.skip_chain import SkipChainModel, capitalised_pairs
from mlestruct.estimators.structured import StructuredModel
from mlestruct.estimators.summary import Summary
from mlestruct.lazy import lazily

if TYPE_CHECKING:
    from mlestruct.families.joint.model import JointModel as JointModel

__all__ = [
    "Calibration",
    "Draws",
    "Estimator",
    "GraphModel",
    "GridModel",
    "JointModel",
    "MatchingModel",
    "RoommateModel",
    "SequenceModel",
    "SkipChainModel",
    "StructuredModel",
    "Summary",
    "capitalised_pairs",
]

__getattr__ = lazily(__name__, {"JointModel": "families.joint.model"})

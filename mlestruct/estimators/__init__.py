"""The front door: estimators with scikit-learn manners over lists of examples."""

from typing import TYPE_CHECKING

from mlestruct.lazy import lazily

if TYPE_CHECKING:
    from mlestruct.estimators.base import Draws as Draws
    from mlestruct.estimators.base import Estimator as Estimator
    from mlestruct.estimators.calibration import Calibration as Calibration
    from mlestruct.estimators.graph import GraphModel as GraphModel
    from mlestruct.estimators.graph import GridModel as GridModel
    from mlestruct.estimators.matching import MatchingModel as MatchingModel
    from mlestruct.estimators.multi_label import MultiLabelModel as MultiLabelModel
    from mlestruct.estimators.sequence import SequenceModel as SequenceModel
    from mlestruct.estimators.sequence import SkipChainModel as SkipChainModel
    from mlestruct.estimators.sequence import capitalised_pairs as capitalised_pairs
    from mlestruct.estimators.structured import StructuredModel as StructuredModel
    from mlestruct.estimators.summary import Summary as Summary
    from mlestruct.families.joint.model import JointModel as JointModel
    from mlestruct.roommates.model import RoommateModel as RoommateModel

__getattr__, __all__ = lazily(__name__)

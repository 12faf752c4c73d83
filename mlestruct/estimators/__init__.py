"""The front door: estimators with scikit-learn manners over lists of examples."""

from mlestruct.estimators.matching import MatchingModel
from mlestruct.estimators.sequence import SequenceModel
from mlestruct.estimators.structured import StructuredModel

__all__ = ["MatchingModel", "SequenceModel", "StructuredModel"]

"""Room-mates: tables of people and pairs in; pairs, probabilities and explanations out."""

from typing import TYPE_CHECKING

from mlestruct.lazy import lazily

if TYPE_CHECKING:
    from mlestruct.estimators.roommates.evaluation import Evaluation as Evaluation
    from mlestruct.estimators.roommates.explanation import Contribution as Contribution
    from mlestruct.estimators.roommates.explanation import Explanation as Explanation
    from mlestruct.estimators.roommates.model import RoommateModel as RoommateModel
    from mlestruct.estimators.roommates.plan import Alternative as Alternative
    from mlestruct.estimators.roommates.plan import Pair as Pair
    from mlestruct.estimators.roommates.plan import Plan as Plan
    from mlestruct.estimators.roommates.plan import Single as Single
    from mlestruct.estimators.roommates.plan import WhatIf as WhatIf
    from mlestruct.estimators.roommates.summary import PairContrast as PairContrast
    from mlestruct.estimators.roommates.summary import RoommateSummary as RoommateSummary

__getattr__, __all__ = lazily(__name__)

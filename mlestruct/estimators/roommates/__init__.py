"""Room-mates: tables of people and pairs in; pairs, probabilities and explanations out."""

from mlestruct.estimators.roommates.evaluation import Evaluation
from mlestruct.estimators.roommates.explanation import Contribution, Explanation
from mlestruct.estimators.roommates.model import RoommateModel
from mlestruct.estimators.roommates.plan import Alternative, Pair, Plan, Single, WhatIf
from mlestruct.estimators.roommates.summary import PairContrast, RoommateSummary

__all__ = [
    "Alternative",
    "Contribution",
    "Evaluation",
    "Explanation",
    "Pair",
    "PairContrast",
    "Plan",
    "RoommateModel",
    "RoommateSummary",
    "Single",
    "WhatIf",
]

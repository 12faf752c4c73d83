"""Room-mates: tables of people and pairs in; pairs, probabilities and explanations out."""

from mlestruct.estimators.roommates.model import RoommateModel
from mlestruct.estimators.roommates.plan import Alternative, Pair, Plan, WhatIf
from mlestruct.estimators.roommates.reports import Contrast, Evaluation, Explanation, Summary

__all__ = [
    "Alternative",
    "Contrast",
    "Evaluation",
    "Explanation",
    "Pair",
    "Plan",
    "RoommateModel",
    "Summary",
    "WhatIf",
]

"""Inference cut short after T iterations, with exact gradients of what it then believes."""

from mlestruct.families.fitting.truncated.compiled import flooding, one_by_one, there_and_back
from mlestruct.families.fitting.truncated.methods import Iteration, MeanField, Messages, beliefs

__all__ = [
    "Iteration",
    "MeanField",
    "Messages",
    "beliefs",
    "flooding",
    "one_by_one",
    "there_and_back",
]

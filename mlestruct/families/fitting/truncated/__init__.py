"""Inference cut short after T iterations, with exact gradients of what it then believes."""

from mlestruct.families.fitting.truncated.batches import beliefs
from mlestruct.families.fitting.truncated.methods import Iteration, MeanField, Messages
from mlestruct.families.fitting.truncated.schedule import flooding, one_by_one, there_and_back

__all__ = [
    "Iteration",
    "MeanField",
    "Messages",
    "beliefs",
    "flooding",
    "one_by_one",
    "there_and_back",
]

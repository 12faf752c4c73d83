"""Inference cut short after T iterations, with exact gradients of what it then believes."""

from mlestruct.inference.truncated.batches import beliefs
from mlestruct.inference.truncated.methods import MeanField, Messages, Method
from mlestruct.inference.truncated.schedule import flooding, one_by_one, there_and_back

__all__ = [
    "MeanField",
    "Messages",
    "Method",
    "beliefs",
    "flooding",
    "one_by_one",
    "there_and_back",
]

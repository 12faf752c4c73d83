"""Predictions of a model: the best outcome, and the probability of every part of one."""

from mlestruct.inference.decode import Decoded, decode
from mlestruct.inference.predict import Marginals, best, marginals

__all__ = ["Decoded", "Marginals", "best", "decode", "marginals"]

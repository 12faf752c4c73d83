"""Predictions of a model: the best outcome, and the probability of every part of one."""

from mlestruct.inference.by_oracle import Marginals, best, marginals

__all__ = ["Marginals", "best", "marginals"]

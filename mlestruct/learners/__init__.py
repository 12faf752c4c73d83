"""Learners: each is an oracle, counting numbers, a bias and a temperature, in a few lines."""

from mlestruct.learners.convex import Learner, Model
from mlestruct.learners.mle_struct import mle_struct
from mlestruct.learners.ssvm import ssvm

LEARNERS = {"mle_struct": mle_struct, "ssvm": ssvm}

__all__ = ["LEARNERS", "Learner", "Model", "mle_struct", "ssvm"]

"""Learners: each is an oracle, counting numbers, a bias and a temperature, in a few lines."""

from __future__ import annotations

from collections.abc import Callable

from mlestruct.learners.convex import Learner, Model
from mlestruct.learners.missing import Missing
from mlestruct.learners.mle_struct import mle_struct
from mlestruct.learners.ssvm import ssvm

LEARNERS: dict[str, Callable[..., Learner]] = {"mle_struct": mle_struct, "ssvm": ssvm}

__all__ = ["LEARNERS", "Learner", "Missing", "Model", "mle_struct", "ssvm"]

"""Messages prove themselves: their own upper bound in the place of an oracle call."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlestruct.dual import Dual
from mlestruct.inference.graph.sum_product import SumProduct
from mlestruct.structures.base import Array

LOCAL = "local polytope"


def message_gaps(dual: Dual, messages: SumProduct, theta: Array, tau: Array, warm: Any) -> Array:
    """Every example's bound on max ⟨score, ·⟩ + H over the local polytope, less its value at τ.

    ``warm`` are the messages found at the scores of θ, converged or not.
    """
    scores = dual.scores(theta)
    value = dual.entropy.each(tau) + dual.batch.totals(scores * tau)
    return np.maximum(messages.above(dual.batch, scores, warm) - value, 0.0)

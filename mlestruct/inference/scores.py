"""Scores at the door of every kind of inference: numbers, as many as coordinates."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mlestruct.structures.base import Array, Structure, as_vector
from mlestruct.structures.batch import Batch


def as_scores(problem: Batch[Any] | Structure, scores: ArrayLike) -> Array:
    """Flat scores of a structure or a batch; −inf forbids a coordinate, NaN and +inf are wrong."""
    flat = as_vector(scores, "scores", problem.size)
    if np.isfinite(flat).all():
        return flat
    wrong = np.flatnonzero(np.isnan(flat) | np.isposinf(flat))
    if len(wrong):
        raise ValueError(f"{_place(problem, int(wrong[0]))} is {flat[wrong[0]]}")
    return flat


def as_finite_scores(batch: Batch[Any], scores: ArrayLike) -> Array:
    """The same where −inf must be a part that the structure forbids; such parts score 0."""
    flat = as_scores(batch, scores)
    barred = np.flatnonzero(~np.isfinite(flat))
    open_ = barred[batch.fixed[barred] != 0]
    if len(open_):
        raise ValueError(
            f"{_place(batch, int(open_[0]))} is -inf; to forbid a part, let the structure fix it "
            "at 0"
        )
    return np.where(np.isneginf(flat), 0.0, flat) if len(barred) else flat


def _place(problem: Batch[Any] | Structure, k: int) -> str:
    if isinstance(problem, Structure):
        return f"score of coordinate {k}"
    m = int(problem.owner[k])
    return f"example {m}: score of coordinate {k - problem.offsets[m]}"

"""What every learner asks for: outcomes, a feature row per coordinate, a λ per weight."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlestruct.batch import Batch
from mlestruct.features import Features
from mlestruct.features.weighed import coordinate_weights
from mlestruct.regulariser import Regulariser

WEIGHED = ("mle_struct", "trw", "lbp", "piecewise", "pseudo_likelihood", "ssvm", "perceptron")
"""The learners whose objective is a sum over nodes and factors, or over their scores."""


def check_problem(name: str, batch: Batch[Any], features: Features) -> None:
    """There are outcomes to learn from, and the features score just the batch's coordinates."""
    if batch.target is None:
        raise ValueError(f"{name} learns from outcomes, and this batch has none")
    rows = _rows(features)
    if rows != batch.size:
        raise ValueError(f"features have {rows} rows for {batch.size} coordinates")
    if name not in WEIGHED and coordinate_weights(batch) is not None:
        raise ValueError(
            f"node and class weights mean nothing to {name!r}, which takes an example's labels as "
            f"one: use {', '.join(WEIGHED)}, or weigh whole examples by sample_weight"
        )


def ridge_of(given: float | Regulariser, d: int) -> Regulariser:
    """A regulariser of d weights, from λ or as it is."""
    regulariser = given if isinstance(given, Regulariser) else Regulariser.of(d, given)
    if len(regulariser) != d:
        raise ValueError(f"regulariser of {len(regulariser)} weights for {d} features")
    return regulariser


def _rows(features: Features) -> int:
    """Coordinates the features score; a user's own are asked with all weights 0."""
    if hasattr(features, "offsets"):
        return int(features.offsets[-1])
    return len(features.potentials(np.zeros(features.d)))

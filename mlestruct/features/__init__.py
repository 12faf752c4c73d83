"""Linear maps from weights to scores: potentials Φθ, moments Φᵀτ, and moments per example."""

from __future__ import annotations

from typing import Any

import scipy.sparse as sp

from mlestruct.batch import Batch
from mlestruct.features.base import Columns, Features, NoFeatures
from mlestruct.features.crossed import crossed
from mlestruct.features.dense import Dense
from mlestruct.features.functions import Functions
from mlestruct.features.masked import Masked
from mlestruct.features.pairs import Pairs
from mlestruct.features.questions import Question
from mlestruct.features.scaling import Scaling, with_intercept
from mlestruct.features.shared import Shared
from mlestruct.features.sparse import Sparse
from mlestruct.features.tied import Tied

__all__ = [
    "Columns",
    "Dense",
    "Features",
    "Functions",
    "Masked",
    "NoFeatures",
    "Pairs",
    "Question",
    "Scaling",
    "Shared",
    "Sparse",
    "Tied",
    "as_features",
    "crossed",
    "with_intercept",
]


def as_features(batch: Batch[Any], X: Any) -> Features:
    """Features as they are, scipy.sparse (one or a list), or dense arrays (one or a list)."""
    if hasattr(X, "potentials"):
        return X
    first = X[0] if isinstance(X, (list, tuple)) and len(X) else X
    return Sparse.of(batch, X) if sp.issparse(first) else Dense.of(batch, X)

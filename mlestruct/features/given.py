"""Features as users give them."""

from __future__ import annotations

from typing import Any

import scipy.sparse as sp

from mlestruct.batch import Batch
from mlestruct.features.base import Features
from mlestruct.features.dense import Dense
from mlestruct.features.sparse import Sparse


def as_features(batch: Batch[Any], X: Any) -> Features:
    """Features as they are, scipy.sparse (one or a list), or dense arrays (one or a list)."""
    if hasattr(X, "potentials"):
        return X
    first = X[0] if isinstance(X, (list, tuple)) and len(X) else X
    return Sparse.of(batch, X) if sp.issparse(first) else Dense.of(batch, X)

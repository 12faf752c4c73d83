"""Features as users give them."""

from __future__ import annotations

from typing import Any

import scipy.sparse as sp

from mlestruct.batch import Batch
from mlestruct.features.base import Features
from mlestruct.features.dense import Dense


def as_features(batch: Batch[Any], X: Any) -> Features:
    """Features as they are, scipy.sparse (one or a list), or dense arrays (one or a list)."""
    if hasattr(X, "potentials"):
        return X
    first = X[0] if isinstance(X, (list, tuple)) and len(X) else X
    if not sp.issparse(first):
        return Dense.of(batch, X)
    from mlestruct.features.sparse import Sparse

    return Sparse.of(batch, X)

"""What may be done to features before learning. Never done for you."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlestruct.structures.base import Array


def with_intercept(array: NDArray[Any]) -> NDArray[Any]:
    """The same features with a constant 1 appended. Never done for you."""
    return np.concatenate([array, np.ones((*array.shape[:-1], 1), dtype=array.dtype)], axis=-1)


@dataclass(frozen=True)
class Standardising:
    """(x − mean) / scale, learned on training features, applied to others. Never done for you."""

    mean: Array
    scale: Array

    @classmethod
    def of(cls, arrays: Sequence[NDArray[Any]]) -> Standardising:
        """Mean and standard deviation over all rows; a constant feature keeps scale 1."""
        rows = np.concatenate([a.reshape(-1, a.shape[-1]) for a in arrays]).astype(float)
        spread = rows.std(axis=0)
        return cls(rows.mean(axis=0), np.where(spread > 0, spread, 1.0))

    def __call__(self, array: NDArray[Any]) -> Array:
        return np.asarray((array - self.mean) / self.scale)

"""Many outcomes of one structure as a single example."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlestruct import Batch


def together(structure: Any, vertices: Sequence[NDArray[Any]] | NDArray[Any]) -> Batch[Any]:
    """One example that weighs as many as there are outcomes, its target their mean."""
    batch = Batch.of(structure, count=1, weight=[float(len(vertices))])
    return replace(batch, target=np.mean(vertices, axis=0))

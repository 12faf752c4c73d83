"""Truncated inference on batches: equal graphs together, a few at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mlestruct.batch import Batch
from mlestruct.families.fitting.truncated.methods import Iteration
from mlestruct.structures.base import Array, Ints

TOGETHER = 8  # examples whose tapes are alive at once


def groups(batch: Batch[Any]) -> Iterator[tuple[Any, Ints]]:
    """Structures with at most ``TOGETHER`` of their examples."""
    for structure, members in batch.groups():
        for first in range(0, len(members), TOGETHER):
            yield structure, members[first : first + TOGETHER]


def rows(batch: Batch[Any], sets: Sequence[Array], members: Ints) -> Array:
    """(sets × examples × coordinates) of flat scores."""
    return np.stack([batch.rows(scores, members) for scores in sets])


def beliefs(
    batch: Batch[Any], sets: Sequence[Array], method: Iteration, iterations: int, whole: bool = True
) -> Array:
    """What the iterations believe; a set of scores per iteration, the last for all that follow."""
    tau = np.empty(batch.size)
    for structure, members in groups(batch):
        run = method.run(structure, rows(batch, sets, members), iterations, whole)
        tau[batch.index(members)] = run.tau.ravel()
    return tau

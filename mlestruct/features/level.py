"""What columns add to every outcome alike: it says nothing, and a large one drowns what does.

A column without it is the same column for all that is learned (the mean of a Unix time, an
attribute of one side alone). Structures say what it is: :meth:`Structure.levelled`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mlestruct.batch import Batch
from mlestruct.features.base import Features
from mlestruct.features.dense import Dense
from mlestruct.structures.base import Array, Ints, Structure

NONE = 1e-12  # of a column: what rounding leaves of a part that is not there
ULPS = 4e-15  # of an example's largest entry: what rounding leaves of each of its entries


def levelled(batch: Batch[Any], features: Features, wanted: Ints) -> Features:
    """The same model, the ``wanted`` columns of movable structures without such parts.

    Columns stay as they are where features are not a dense row per coordinate. What rounding
    leaves becomes 0: of a constant column it would be divided by its own size, and learned from.
    """
    if not isinstance(features, Dense) or not (groups := _movable(batch)):
        return features
    matrix = np.array(features.matrix, dtype=float)
    for structure, members in groups:
        table = matrix[batch.index(members)].reshape(len(members), structure.size, -1)
        given = table[:, :, wanted]
        given = given - given[:, [structure.fixed.argmin()]]  # exact, as all have as many pairs
        rest, size = structure.levelled(given), np.abs(given).max(axis=1, keepdims=True)
        table[:, :, wanted] = np.where(np.abs(rest) > ULPS * size, rest, 0.0)
        matrix[batch.index(members)] = table.reshape(-1, matrix.shape[1])
    return replace(features, matrix=matrix)


def levelled_scores(batch: Batch[Any], scores: Array) -> Array:
    """The same differences between outcomes; of movable structures without what all share."""
    out = scores.copy()
    for structure, members in _movable(batch):
        table = batch.rows(scores, members)[:, :, None]
        out[batch.index(members)] = structure.levelled(table).ravel()
    return out


def alike(batch: Batch[Any], features: Features, asked: Ints) -> list[int]:
    """Which of the columns are the same for every outcome of every example.

    Found where they are 0, and where features are dense and structures say what outcomes share.
    """
    left = [int(j) for j in asked]
    if not isinstance(features, Dense):
        return [j for j in left if not features.potentials(np.eye(features.d)[j]).any()]
    for structure, members in batch.groups():
        table = np.asarray(features.matrix[batch.index(members)][:, left], dtype=float)
        table = table.reshape(len(members), structure.size, -1)
        rest = np.abs(structure.levelled(table)).max(axis=(0, 1), initial=0.0)
        same = rest <= NONE * np.abs(table).max(axis=(0, 1), initial=0.0)
        left = [j for j, flat in zip(left, same, strict=True) if flat]
    return left


def _movable(batch: Batch[Any]) -> list[tuple[Structure, Ints]]:
    return [group for group in batch.groups() if group[0].movable]

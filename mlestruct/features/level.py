"""What columns add to every outcome alike: it says nothing, and a large one drowns what does.

Outcomes that all satisfy A v = b score Aᵀu the same, whatever u is: in a perfect matching one
number for every row and one for every column. A column without its part in Aᵀ's range is the same
column for all that is learned (the mean of a Unix time, an attribute of one side alone). Not on
graphs, whose pieces are learned from by themselves, with no regard to each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

import numpy as np

from mlestruct.batch import Batch
from mlestruct.features.base import Features
from mlestruct.features.dense import Dense
from mlestruct.structures.base import Array, Ints, Structure, one_of

WORK = 1 << 25  # rows of A times coordinates: more are not factorised
NONE = 1e-12  # of a column: what rounding leaves of a part that is not there


def levelled(batch: Batch[Any], features: Features, wanted: Ints) -> Features:
    """The same model for matchings, the ``wanted`` columns without such parts.

    Columns stay as they are where features are not a dense row per coordinate, or A is too large,
    and for other structures, whose solvers may be a user's and know what scores they are asked.
    """
    groups = list(_matchings(batch))
    if not isinstance(features, Dense) or not groups or len(wanted) == 0:
        return features
    matrix = np.array(features.matrix, dtype=float)
    for structure, members in groups:
        table = matrix[batch.index(members)].reshape(len(members), structure.size, -1)
        table[:, :, wanted] = _levelled(structure, table[:, :, wanted])
        matrix[batch.index(members)] = table.reshape(-1, matrix.shape[1])
    return replace(features, matrix=matrix)


def levelled_scores(batch: Batch[Any], scores: Array) -> Array:
    """Scores with the same differences between outcomes, of matchings without what they share."""
    out = scores.copy()
    for structure, members in _matchings(batch):
        table = batch.rows(scores, members)[:, :, None]
        out[batch.index(members)] = _levelled(structure, table).ravel()
    return out


def alike(batch: Batch[Any], features: Features, asked: Ints) -> list[int]:
    """Which of the columns are the same for every outcome of every example.

    Found where they are 0, and where features are dense and A is not too large.
    """
    left = [int(j) for j in asked]
    if not isinstance(features, Dense):
        return [j for j in left if not features.potentials(np.eye(features.d)[j]).any()]
    for structure, members in batch.groups():
        table = np.asarray(features.matrix[batch.index(members)][:, left], dtype=float)
        table = table.reshape(len(members), structure.size, -1)
        rest = np.abs(_levelled(structure, table)).max(axis=(0, 1), initial=0.0)
        same = rest <= NONE * np.abs(table).max(axis=(0, 1), initial=0.0)
        left = [j for j, flat in zip(left, same, strict=True) if flat]
    return left


def _matchings(batch: Batch[Any]) -> Iterator[tuple[Structure, Ints]]:
    for structure, members in batch.groups():
        known: Any = structure
        if one_of(structure, "BipartiteMatching", "Matching") and known.kind != "partial":
            yield structure, members


def _levelled(structure: Structure, table: Array) -> Array:
    """Rows (examples × coordinates × columns) without what all outcomes score alike."""
    free, known = structure.fixed < 0, cast(Any, structure)
    if one_of(structure, "BipartiteMatching") and known.kind == "perfect" and free.all():
        square = table.reshape(len(table), known.rows, known.columns, -1)
        for _ in range(2):  # what is left of a large mean is a mean
            square = square - square.mean(axis=1, keepdims=True)
            square = square - square.mean(axis=2, keepdims=True)
        return np.asarray(square.reshape(table.shape))
    stated = None if one_of(structure, "FactorGraph") else structure._constraints
    if stated is None or stated.A.shape[0] * structure.size > WORK:
        return table
    rows = stated.A[np.flatnonzero(stated.lo == stated.hi)].toarray()[:, free]
    found = np.where(free[:, None], table, 0.0)
    if not rows.any():
        return found
    _, sizes, range_ = np.linalg.svd(rows, full_matrices=False)
    basis = range_[sizes > 1e-9 * sizes[0]]
    inner = found[:, free]
    for _ in range(2):
        inner = inner - basis.T @ (basis @ inner)
    found[:, free] = inner
    return np.asarray(found)

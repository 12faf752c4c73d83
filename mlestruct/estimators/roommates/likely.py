"""Every pair's pseudo-probability as columns, most probable first."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mlestruct.estimators.roommates.pairing import Pairing
from mlestruct.structures.base import Array, as_count
from mlestruct.tables import Column, Columns


def likely(ids: Column, pairings: Sequence[Pairing], count: int | None = None) -> Columns:
    """The ``count`` most probable pairs of all groups, or all pairs; empty beds are left out."""
    count = None if count is None else as_count(count, "count", least=1)
    parts = [_pairs(pairing, count) for pairing in pairings]
    ends, tau, scores = (
        part[0] if len(part) == 1 else np.concatenate(part) for part in zip(*parts, strict=True)
    )
    group = np.repeat(np.arange(len(parts), dtype=np.int32), [len(part[1]) for part in parts])
    order = np.argsort(-tau)[:count]  # stable sorting takes three times as long
    labels = np.array([pairing.group.label for pairing in pairings], dtype=object)
    return {
        "a": ids[ends[order, 0]],
        "b": ids[ends[order, 1]],
        "probability": tau[order],
        "score": scores[order],
        "group": labels[group[order]],
    }


def _pairs(pairing: Pairing, count: int | None) -> tuple[NDArray[np.int32], Array, Array]:
    """(rows of people, probability, score) of one group's most probable pairs."""
    ends, tau, scores = pairing.structure.ends, pairing.tau, pairing.scores
    if pairing.singles:
        real = (ends < len(pairing.ids)).all(axis=1)
        ends, tau, scores = ends[real], tau[real], scores[real]
    if count is not None and count < len(tau):
        best = np.argpartition(-tau, count - 1)[:count]
        ends, tau, scores = ends[best], tau[best], scores[best]
    return pairing.group.members.astype(np.int32)[ends], tau, scores

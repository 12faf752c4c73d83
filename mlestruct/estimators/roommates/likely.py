"""Every pair's pseudo-probability as columns, most probable first."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mlestruct.estimators.roommates.pairing import Pairing
from mlestruct.structures.base import Array, Ints, as_count
from mlestruct.tables import Column, Columns

BLOCK = 256  # people whose probabilities are held at once


def likely(
    ids: Column, pairings: Sequence[Pairing], count: int | None = None, each: int | None = None
) -> Columns:
    """The ``count`` most probable pairs of all groups, or all pairs; empty beds are left out.

    With ``each``, only pairs that are among either person's so many most probable ones.
    """
    count = None if count is None else as_count(count, "count", least=1)
    if each is not None:
        k = as_count(each, "each", least=1)
        parts = [_of_each(pairing, k) for pairing in pairings]
    else:
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


def _of_each(pairing: Pairing, count: int) -> tuple[NDArray[np.int32], Array, Array]:
    """(rows of people, probability, score) of everybody's most probable pairs, each pair once."""
    n, (near, _) = len(pairing.ids), nearest(pairing, count)
    pairs = np.stack([np.repeat(np.arange(n), near.shape[1]), near.ravel()], axis=1)
    low, high = np.divmod(np.unique(np.sort(pairs, axis=1) @ np.array([n, 1])), n)
    scores, tau = pairing.at(low, high)
    rows = pairing.group.members.astype(np.int32)
    return rows[np.stack([low, high], axis=1)], tau, scores


def nearest(pairing: Pairing, count: int) -> tuple[Ints, Array]:
    """(people × count) everybody's most probable partners, most probable first; how probable.

    A report asks for more of them for its file than for its page: the most are kept.
    """
    wanted = min(count, len(pairing.ids) - 1)
    known = pairing.__dict__.get("nearest")
    if known is None or known[0].shape[1] < wanted:
        known = pairing.__dict__["nearest"] = _nearest(pairing, wanted)
    return known[0][:, :wanted], known[1][:, :wanted]


def _nearest(pairing: Pairing, k: int) -> tuple[Ints, Array]:
    """The same, from blocks of people with all others."""
    n = len(pairing.ids)
    who, how = np.empty((n, k), dtype=np.int64), np.empty((n, k))
    for rows in np.array_split(np.arange(n), -(-n // BLOCK)) if k else []:
        tau = pairing.chances(rows)
        tau[np.arange(len(rows)), rows] = -1.0  # nobody is a partner of themself
        best = np.argpartition(-tau, k - 1, axis=1)[:, :k]
        order = np.argsort(-np.take_along_axis(tau, best, axis=1), axis=1, kind="stable")
        who[rows] = np.take_along_axis(best, order, axis=1)
        how[rows] = np.take_along_axis(tau, who[rows], axis=1)
    return who, how

"""How good predictions are: F1 of labels or entities, and intervals of shares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mlestruct.lazy import getter
from mlestruct.structures.base import as_numbers

__getattr__ = getter(__name__, {})

Z = 1.959963984540054  # the normal distribution's 97.5 % point


class Score(NamedTuple):
    """Precision, recall and their harmonic mean."""

    precision: float
    recall: float
    f1: float


def entities(tags: Sequence[str]) -> set[tuple[int, int, str]]:
    """(first, one after the last, kind) of every entity in BIO or IOBES tags.

    An I or E that continues nothing of its kind begins an entity, as in CoNLL's evaluation.

    >>> sorted(entities(["B-person", "I-person", "O", "I-place", "B-place"]))
    [(0, 2, 'person'), (3, 4, 'place'), (4, 5, 'place')]
    """
    found, first, inside = set(), 0, ""
    for i, tag in enumerate([*tags, "O"]):
        mark, _, kind = str(tag).partition("-")
        if mark not in ("B", "I", "O", "E", "S") or (kind == "") != (tag == "O"):
            raise ValueError(
                f"tag {i} is {tag!r}; BIO tags are O, B-kind and I-kind, those of IOBES E-kind and "
                "S-kind as well"
            )
        if not (mark in ("I", "E") and kind == inside):
            if inside:
                found.add((first, i, inside))
            first, inside = i, kind
        if mark in ("E", "S"):
            found.add((first, i + 1, inside))
            inside = ""
    return found


def entity_f1(
    truth: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]], kind: str | None = None
) -> Score:
    """F1 of exact spans and kinds over sentences of BIO tags, of all kinds (micro) or of one.

    >>> entity_f1([["B-a", "I-a", "B-b"]], [["B-a", "O", "B-b"]])
    Score(precision=0.5, recall=0.5, f1=0.5)
    """
    true, found = (
        {one for one in spans if kind in (None, one[-1])} for spans in _spans(truth, predicted)
    )
    return _score(len(true & found), len(found), len(true))


Spans = set[tuple[int, int, int, str]]


def _spans(
    truth: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]
) -> tuple[Spans, Spans]:
    """The entities of all sentences, true and predicted, with the sentence's number first."""
    if len(truth) != len(predicted) or len(truth) == 0:
        raise ValueError(f"{len(truth)} true sentences but {len(predicted)} predicted")
    for m, pair in enumerate(zip(truth, predicted, strict=True)):
        if len(pair[0]) != len(pair[1]):
            raise ValueError(f"sentence {m}: {len(pair[0])} true tags but {len(pair[1])} predicted")
    first, second = (
        {(m, *one) for m, tags in enumerate(sentences) for one in entities(tags)}
        for sentences in (truth, predicted)
    )
    return first, second


def wilson(share: ArrayLike, count: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
    """Wilson's 95 % interval for a probability of which ``share`` of ``count`` trials came true.

    >>> [side.round(3).item() for side in wilson(0.5, 10)]
    [0.237, 0.763]
    """
    p, n = as_numbers(share, "share"), as_numbers(count, "count")
    if not (((p >= 0) & (p <= 1)).all() and (n > 0).all()):
        raise ValueError(f"a share is in 0..1 of a count above 0, not {share!r} of {count!r}")
    middle = (p + Z**2 / (2 * n)) / (1 + Z**2 / n)
    half = Z * np.sqrt(p * (1 - p) / n + Z**2 / (4 * n**2)) / (1 + Z**2 / n)
    return np.maximum(middle - half, 0.0), np.minimum(middle + half, 1.0)


def _score(right: int, found: int, true: int) -> Score:
    precision, recall = right / max(found, 1), right / max(true, 1)
    return Score(precision, recall, 2 * right / max(found + true, 1))

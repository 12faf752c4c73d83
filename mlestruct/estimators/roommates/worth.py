"""What pairs are worth: learned tables, centred so that 0 is an average partner for both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from mlestruct.batch import Batch
from mlestruct.features import Pairs, Question
from mlestruct.structures import Matching
from mlestruct.structures.base import Array, Ints


@dataclass(frozen=True)
class Worth:
    """A group's scores in parts: a table for each question, a matrix for each feature of one's own.

    Every person's mean over the others is 0 in every part. A perfect matching's total changes by
    a constant only, so nothing else could have been learned from pairs.
    """

    questions: tuple[Question, ...]
    codes: Ints = field(repr=False)
    extra: Mapping[str, Array] = field(repr=False)

    @classmethod
    def of(
        cls, questions: Sequence[Question], codes: Ints, theta: Array, extra: Mapping[str, Array]
    ) -> Self:
        """From the weights of :class:`Pairs` and the matrices of one's own, not yet weighted."""
        ends = np.cumsum([len(q.weights) for q in questions], dtype=np.int64)
        *parts, own = np.split(theta, ends)
        centres = []
        for question, codes_of, weights in zip(questions, codes.T, parts, strict=True):
            table = np.tensordot(weights, question.tables, 1)
            counts = np.bincount(codes_of, minlength=len(table)).astype(float)
            worth = centred(table, counts)[None]
            centres.append(Question(question.name, question.levels, (question.name,), worth))
        ones = np.ones(len(codes))
        planes = {
            name: weight * centred(plane, ones)
            for (name, plane), weight in zip(extra.items(), own, strict=True)
        }
        return cls(tuple(centres), codes, planes)

    def scores(self, beds: int) -> Array:
        """Of all pairs u < v of the people and some empty beds, which are worth 0 to everybody."""
        codes = np.pad(self.codes, ((0, beds), (0, 0)), constant_values=-1)
        planes = [np.pad(plane, (0, beds)) for plane in self.extra.values()]
        batch = Batch.of(Matching(len(codes)), count=1)
        whole = np.stack(planes) if planes else np.empty((0, len(codes), len(codes)))
        pairs = Pairs.of(batch, [codes], self.questions, planes=[whole], extra=tuple(self.extra))
        return pairs.potentials(np.ones(pairs.d))

    def parts(self, a: int, b: int) -> dict[str, float]:
        """What each question adds to the score of two people."""
        first, second = self.codes[[a, b]]
        asked = {
            question.name: float(question.tables[0, i, j])
            for question, i, j in zip(self.questions, first, second, strict=True)
        }
        return asked | {name: float(plane[a, b]) for name, plane in self.extra.items()}


def centred(table: Array, counts: Array) -> Array:
    """table[a, b] − r_a − r_b, such that every person's mean over all others is 0.

    ``counts`` says how many people gave each answer.
    """
    n, alone = counts.sum(), np.diagonal(table)
    if n <= 2:
        return np.zeros_like(table)
    sums = table @ counts - alone
    shift = (sums - (counts @ sums) / (2.0 * (n - 1))) / (n - 2)
    return np.asarray(table - (shift[:, None] + shift))

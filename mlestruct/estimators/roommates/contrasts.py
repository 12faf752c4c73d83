"""What pairs can show of a question: the centred worth of each two answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations_with_replacement
from typing import Self

import numpy as np
from scipy.linalg import block_diag

from mlestruct.estimators.roommates.questionnaire import Answers
from mlestruct.features import Question
from mlestruct.structures.base import Array


@dataclass(frozen=True)
class Contrasts:
    """Combinations of weights, the rows of ``matrix``, each with its column and a name.

    A question with one weight has that one. A question with a weight per pair of answers has the
    worth of each pair, less both answers' means over the people learned from, plus the mean of
    all: whatever is added to all pairs of one answer changes no matching's probability.
    """

    columns: list[str]
    names: list[str]
    matrix: Array = field(repr=False)

    @classmethod
    def of(
        cls, answers: Sequence[Answers], questions: Sequence[Question], extra: Sequence[str]
    ) -> Self:
        """In the order of the questions' weights, features of one's own last."""
        columns, names, blocks = [], [], [np.empty((0, 0))]
        for asked, question in zip(answers, questions, strict=True):
            one = len(question.weights) == 1
            named, block = (list(question.weights), np.eye(1)) if one else _centred(asked, question)
            columns += [asked.column] * len(named)
            names += named
            blocks.append(block)
        matrix = block_diag(*blocks, np.eye(len(extra)))
        return cls([*columns, *extra], [*names, *extra], np.asarray(matrix))


def _centred(asked: Answers, question: Question) -> tuple[list[str], Array]:
    """Names, and rows (P T_w Pᵀ)_ab over the weights w, with P = I − 1 shareᵀ."""
    count = len(asked.levels)
    project = np.eye(count) - asked.share
    tables = project @ question.tables[:, :count, :count] @ project.T
    low, high = np.array(list(combinations_with_replacement(range(count), 2))).T
    names = [
        f"{asked.column} {asked.levels[a]} with {asked.levels[b]}"
        for a, b in zip(low, high, strict=True)
    ]
    return names, tables[:, low, high].T

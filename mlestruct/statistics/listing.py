"""Exact sums over all answers of a solver, where they are few enough to be asked for."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from mlestruct.batch import Batch
from mlestruct.inference.exact.common import over_rows
from mlestruct.kernels import clock
from mlestruct.oracle import Validated, resolve
from mlestruct.statistics.waiting import tell
from mlestruct.structures.base import Array

MOST = 1_000  # answers of one structure
DOUBT = 0.5  # of a score of whole numbers
EARLY = 20  # questions whose time tells how slow a solver is
ROOM = 1 << 24  # numbers of the rows summed together


class Listed:
    """log Z and τ by sums over every answer: a function of (batch, scores), as routines are."""

    def __init__(self, answers: dict[Any, Array]) -> None:
        self.answers = answers

    @classmethod
    def of(cls, batch: Batch[Any], oracle: Any, questions: int) -> Listed | None:
        """The answers to every structure of a batch; None where they take more ``questions``."""
        found: dict[Any, Array] = {}
        for structure, members in batch.groups():
            answers, asked = listed(batch.select(members[:1]), oracle, questions, bool(found))
            if answers is None:
                return None
            found[structure], questions = answers, questions - asked
        return cls(found)

    def __call__(self, batch: Batch[Any], scores: Array) -> tuple[Array, Array]:
        log_z, tau = np.empty(len(batch)), np.empty(batch.size)
        for structure, members in batch.groups():
            answers = self.answers[structure]
            share = max(1, ROOM // len(answers))
            for k in range(0, len(members), share):
                some = members[k : k + share]
                log_z[some], sums = over_rows(answers, batch.rows(scores, some))
                tau[batch.index(some)] = sums.ravel()
        return log_z, tau


def listed(
    one: Batch[Any], oracle: Any, questions: int, quiet: bool = True
) -> tuple[Array | None, int]:
    """(all answers of one structure, questions asked); None for more than MOST, or where unsure.

    Parts are held one after the other: a score that is large on held parts asks whether any
    answer continues them so. An answer found speaks for all its own beginnings. Every beginning
    that is open costs a question, and short ones go first: so too many are soon seen to be.
    Unless ``quiet``, whoever sits at the screen is told of a solver that is slow.
    """
    asked = Validated(resolve(oracle, one))
    size, count = one.size, 0
    found: list[Array] = []
    open_ = deque([np.zeros(0)])
    began = clock()
    while open_:
        if count == EARLY and not quiet:
            most = questions / EARLY * (clock() - began)
            tell(f"asking the solver for its answers, {questions} questions at most", most)
        if count + len(open_) > questions or len(found) == MOST:
            return None, count
        start = open_.popleft()
        score = np.zeros(size)
        score[: len(start)] = 2.0 * start - 1.0
        vertex, upper = asked.many(one, score)
        count += 1
        if upper[0] > score @ vertex + DOUBT or ((vertex != 0) & (vertex != 1)).any():
            return None, count  # not surely the best, or no answer but a relaxation's
        if (vertex[: len(start)] != start).any():
            continue
        found.append(vertex)
        for k in range(len(start), size):
            open_.append(np.append(vertex[:k], 1.0 - vertex[k]))
    return np.array(found), count

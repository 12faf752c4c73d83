"""What a fit keeps of the pairs it learned from: questions, a baseline, and who was paired."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from itertools import combinations_with_replacement
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import block_diag

from mlestruct import Batch
from mlestruct.features import Pairs, Question
from mlestruct.roommates.people import People
from mlestruct.roommates.questionnaire import Answers
from mlestruct.structures.base import Array, Ints

OTHERS, LARGEST = 10, 20_000  # pairs not observed, for every observed one and in all
NEWTON = 8  # steps, from nothing


def logistic(batch: Batch[Any], features: Pairs) -> Array:
    """The baseline that looks at one pair at a time: is it one of those observed, or another?

    A logistic regression with a small ridge, on all observed pairs and at most ``OTHERS`` times as
    many others, drawn from a fixed seed. Its constant is left out: it ranks nobody.
    """
    rng, rows, hits = np.random.default_rng(0), [], []
    for m in range(len(batch)):
        structure, own = batch.structure(m), features.select(np.array([m]))
        assert batch.target is not None
        true = np.flatnonzero(batch.target[batch.coordinates(m)] > 0.5)
        count = min(OTHERS * len(true), LARGEST // max(len(batch), 1), structure.size)
        drawn = np.setdiff1d(rng.choice(structure.size, count, replace=False), true)
        k = np.concatenate([true, drawn])
        rows.append(own.rows(*structure.nodes_of(k)))
        hits.append(np.arange(len(k)) < len(true))
    X, y = np.concatenate(rows), np.concatenate(hits).astype(float)
    X = np.hstack([X, np.ones((len(X), 1))])
    theta = np.zeros(X.shape[1])
    for _ in range(NEWTON):
        p = 1.0 / (1.0 + np.exp(-np.clip(X @ theta, -30.0, 30.0)))
        H = np.eye(len(theta)) + (X.T * (p * (1.0 - p))) @ X
        theta = theta + np.linalg.solve(H, X.T @ (y - p) - theta)
    return np.asarray(theta[:-1])


class Contrasts(NamedTuple):
    """Combinations of weights, the rows of ``matrix``, each with its column and a name.

    A question with one weight has that one. A question with a weight per pair of answers has the
    worth of each pair, less both answers' means over the people learned from, plus the mean of
    all: whatever is added to all pairs of one answer changes no matching's probability.
    """

    columns: list[str]
    names: list[str]
    matrix: Array


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


@dataclass(frozen=True)
class Questions:
    """The questions of a fit: their answers, and what of them is compared."""

    answers: tuple[Answers, ...]
    indicators: bool
    neutral: bool

    @cached_property
    def questions(self) -> list[Question]:
        return [answers.question(self.indicators, self.neutral) for answers in self.answers]

    def questions_for(self, codes: Ints) -> list[Question]:
        """The questions, with a level for unknown answers wherever somebody gave one."""
        last = codes.max(axis=0, initial=-1)
        return [
            answers.question(self.indicators, self.neutral or code == len(answers.levels))
            for answers, code in zip(self.answers, last, strict=True)
        ]

    @property
    def names(self) -> list[str]:
        """A name for every weight."""
        return [w for question in self.questions for w in question.weights]

    @property
    def contrasts(self) -> Contrasts:
        """In the order of the questions' weights."""
        columns, names, blocks = list[str](), list[str](), [np.empty((0, 0))]
        for asked, question in zip(self.answers, self.questions, strict=True):
            one = len(question.weights) == 1
            named, block = (list(question.weights), np.eye(1)) if one else _centred(asked, question)
            columns += [asked.column] * len(named)
            names += named
            blocks.append(block)
        return Contrasts(columns, names, np.asarray(block_diag(*blocks)))


def marks(people: People, pairs: Ints) -> Ints:
    """A digest of every pair, of 64 bits: the group, both ids, and what both answered.

    So a pair that was learned from is known again, and next year's people with this year's ids
    are not taken for them; nobody can be read out of a file that holds these numbers.
    """
    found = []
    for pair in pairs.tolist():
        key = people.groups[people.group_of[pair[0]]].key
        both = sorted((str(people.ids[row]), people.codes[row].tolist()) for row in pair)
        text = repr(([str(part) for part in key], both)).encode()
        found.append(int.from_bytes(sha256(text).digest()[:8], "little", signed=True))
    return np.array(found, dtype=np.int64)

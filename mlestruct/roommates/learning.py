"""What a fit keeps of the pairs it learned from: contrasts, a baseline, and who was paired."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from itertools import combinations_with_replacement
from typing import Any, NamedTuple

import numpy as np

from mlestruct import Batch
from mlestruct.estimators.examples import Given
from mlestruct.features import Pairs
from mlestruct.roommates.questionnaire import Answers
from mlestruct.statistics import Intervals, Named
from mlestruct.structures.base import Array, Ints

OTHERS, LARGEST = 10, 20_000  # pairs not observed, for every observed one and in all
NEWTON = 8  # steps, from nothing


class Known(NamedTuple):
    """Intervals of what pairs tell, the weights of a logistic regression, digests of all pairs."""

    told: Intervals
    logistic: Array
    marks: Ints


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


def contrasts_of(asked: Sequence[Answers], indicators: bool) -> list[tuple[str, Named]]:
    """Combinations of weights that pairs can tell, each with its column.

    A question with one weight has that one. A question with a weight per pair of answers has the
    worth of each pair, (P T Pᵀ)_ab with P = I − 1 shareᵀ: less both answers' means over the people
    learned from, plus the mean of all. Whatever is added to all pairs of one answer changes no
    matching's probability.
    """
    questions = [answers.question(indicators, False) for answers in asked]
    count, at, found = sum(len(q.weights) for q in questions), 0, list[tuple[str, Named]]()
    for answers, question in zip(asked, questions, strict=True):
        own, levels = slice(at, at + len(question.weights)), answers.levels
        named, at = [(question.weights[0], np.ones(1))], own.stop
        if len(question.weights) > 1:
            project = np.eye(len(levels)) - answers.share
            tables = project @ question.tables @ project.T
            named = [
                (f"{answers.column} {levels[a]} with {levels[b]}", tables[:, a, b])
                for a, b in combinations_with_replacement(range(len(levels)), 2)
            ]
        for name, part in named:
            row = np.zeros(count)
            row[own] = part
            found.append((answers.column, Named(name, row)))
    return found


def marks(given: Given) -> Ints:
    """A digest of every pair, of 64 bits: the group, both ids, and what both answered.

    So a pair that was learned from is known again, and next year's people with this year's ids
    are not taken for them; nobody can be read out of a file that holds these numbers.
    """
    found = []
    for (people, group), pairs in zip(given.X, given.outcomes, strict=True):
        for pair in group.members[pairs].tolist():
            both = sorted((str(people.ids[row]), people.codes[row].tolist()) for row in pair)
            text = repr(([str(part) for part in group.key], both)).encode()
            found.append(int.from_bytes(sha256(text).digest()[:8], "little", signed=True))
    return np.array(found, dtype=np.int64)

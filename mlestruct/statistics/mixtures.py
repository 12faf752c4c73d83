"""log Z and τ over the hull of an oracle's answers, with digits enough to take differences of.

Where all answers are few enough to be asked for, ``Listed`` sums over them.

Simplicial decomposition (von Hohenbalken 1977, Mathematical Programming 13): maximise over the
mixtures of the answers known (``climb``), ask the oracle at the gradient there, and take its answer
in, until none is better.
"""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

import numpy as np

from mlestruct.inference.exact import over_rows
from mlestruct.learning.dual import interior
from mlestruct.limits import check, parts
from mlestruct.native._door import AnswerPool, MixtureViews, climb
from mlestruct.native._door import Mixtures as Rows
from mlestruct.oracle import Validated, resolve
from mlestruct.progress import Watch
from mlestruct.structures.base import Array, Ints, Structure
from mlestruct.structures.batch import Batch
from mlestruct.structures.entropy import Entropy, Rho

ENOUGH = 1e-8  # what an answer may still gain
ROUNDS = 500  # questions about one row at most
ROOM = 1 << 22  # numbers of the rows compared together
FEW = 32  # answers, up to which a climb from the interior is quicker than a look for a nearer row
ANSWERS = 1_000  # answers of one structure
DOUBT = 0.5  # of a score of whole numbers
TOGETHER = 1 << 24  # numbers of the rows summed together


class Listed:
    """log Z and τ by sums over every answer: a function of (batch, scores), as routines are."""

    def __init__(self, answers: dict[Any, Array]) -> None:
        self.answers = answers

    @classmethod
    def of(cls, batch: Batch[Any], oracle: Any, questions: int) -> Listed | None:
        """The answers to every structure of a batch; None where they take more ``questions``."""
        found: dict[Any, Array] = {}
        what = f"asking the solver for its answers, {questions} questions at most"
        with Watch(what, questions) as watch:
            for structure, members in batch.groups():
                answers, asked = listed(batch.select(members[:1]), oracle, questions, watch)
                if answers is None:
                    return None
                found[structure], questions = answers, questions - asked
        return cls(found)

    def __call__(self, batch: Batch[Any], scores: Array) -> tuple[Array, Array]:
        log_z, tau = np.empty(len(batch)), np.empty(batch.size)
        for structure, members in batch.groups():
            answers = self.answers[structure]
            share = max(1, TOGETHER // len(answers))
            for k in range(0, len(members), share):
                some = members[k : k + share]
                log_z[some], sums = over_rows(answers, batch.rows(scores, some))
                tau[batch.index(some)] = sums.ravel()
        return log_z, tau


def listed(
    one: Batch[Any], oracle: Any, questions: int, watch: Watch | None = None
) -> tuple[Array | None, int]:
    """(all answers of one structure, questions asked); None for more than ANSWERS, or where unsure.

    Parts are held one after the other: a score that is large on held parts asks whether any
    answer continues them so. An answer found speaks for all its own beginnings. Every beginning
    that is open costs a question, and short ones go first: so too many are soon seen to be.
    """
    asked = Validated(resolve(oracle, one))
    size, count = one.size, 0
    found: list[Array] = []
    open_ = deque([np.zeros(0)])
    while open_:
        if count + len(open_) > questions or len(found) == ANSWERS:
            return None, count
        start = open_.popleft()
        score = np.zeros(size)
        score[: len(start)] = 2.0 * start - 1.0
        vertex, upper = asked.many(one, score)
        count += 1
        if watch is not None:
            watch(1)
        if upper[0] > score @ vertex + DOUBT or ((vertex != 0) & (vertex != 1)).any():
            return None, count  # not surely the best, or no answer but a relaxation's
        if (vertex[: len(start)] != start).any():
            continue
        found.append(vertex)
        for k in range(len(start), size):
            open_.append(np.append(vertex[:k], 1.0 - vertex[k]))
    return np.array(found), count


class Mixtures:
    """Marginals over an oracle's own polytope: a function of (batch, scores), as routines' are.

    Answers are kept by structure, and so are mixtures: a row begins with that of the nearest
    scores of the last call. A question an example and call; none where ``listed`` has all answers.
    """

    def __init__(self, oracle: Any, rho: Rho, listed: Listed | None = None) -> None:
        self.oracle, self.rho = oracle, rho
        self.listed = {} if listed is None else listed.answers
        self._known: dict[Structure, Hull] = {}

    def __call__(self, batch: Batch[Any], scores: Array) -> tuple[Array, Array]:
        return self._solved(batch, scores, near=False)

    def near(self, batch: Batch[Any], scores: Array) -> tuple[Array, Array]:
        """The same of scores beside those of the last call: of answers known, without questions.

        Where a mixture is inside a face, these span the face, so that slopes are those of all.
        """
        return self._solved(batch, scores, near=True)

    def _solved(self, batch: Batch[Any], scores: Array, near: bool) -> tuple[Array, Array]:
        log_z, tau = np.empty(len(batch)), np.empty(batch.size)
        for structure, members in batch.groups():
            hull = self._known.get(structure)
            if hull is None:
                one = batch.select(members[:1])
                every = self.listed.get(structure)
                hull = self._known[structure] = Hull(one, self.oracle, self.rho, every)
            log_z[members], rows = hull.solve(batch.rows(scores, members), near)
            tau[batch.index(members)] = rows.ravel()
        return log_z, tau


class HullViews(NamedTuple):
    """The entropy −Σ a t log t + b s log s with t = x + c0 and s = 1 − x.

    x are coordinates and mixed views alike.
    """

    a: Array
    b: Array
    c0: Array


class Pool(NamedTuple):
    """Answers as sparse rows of views."""

    start: Ints
    place: Ints
    amount: Array


class Earlier(NamedTuple):
    """Rows of scores, and the atoms of each: ``live`` of them, with their weights."""

    scores: Array
    atoms: Ints
    weight: Array
    live: Ints


class Hull:
    """One structure's answers so far; the first is a point in the interior, not an answer.

    ``one`` is an example of it, whose outcome stands in for a solver that finds none in time;
    ``every`` are all answers, if they are known.
    """

    def __init__(self, one: Batch[Any], oracle: Any, rho: Rho, every: Array | None = None) -> None:
        self.one, self.oracle = one, Validated(resolve(oracle, one))
        own = oracle is not None and not isinstance(oracle, str)
        inner = interior(one, self.oracle, Entropy.of(one, rho), stated=not own)
        entropy, mixed = inner.entropy, inner.entropy.mixed
        self.C, none = entropy.mixed_matrix(), np.zeros(one.size)
        self.views = HullViews(
            np.concatenate([entropy.a, mixed.a]),
            np.concatenate([entropy.b, 0 * mixed.a]),
            np.concatenate([none, mixed.c0]),
        )
        start, nothing = np.zeros(1, dtype=np.int64), np.zeros(0)
        self.pool, self.found = Pool(start, start[:0], nothing), set[bytes]()
        self._keep(inner.tau[None])
        self.complete = every is not None
        if every is not None:
            self._keep(every)
        self.last = Earlier(
            np.zeros((1, one.size)), np.zeros((1, 1), int), np.ones((1, 1)), np.ones(1, int)
        )

    def solve(self, scores: Array, beside: bool) -> tuple[Array, Array]:
        """(log Z, τ) of every row of scores, from the mixture of the nearest of the last call."""
        asks = not (beside or self.complete)
        few = self.complete and len(self.pool.start) <= FEW
        near = np.zeros(len(scores), dtype=np.int64) if few else _nearest(scores, self.last.scores)
        given = np.hstack([scores, np.zeros((len(scores), self.C.shape[0]))])
        atoms = np.zeros((len(scores), given.shape[1] + 2), dtype=np.int64)
        weight, width = np.zeros(atoms.shape), self.last.atoms.shape[1]
        atoms[:, :width], weight[:, :width] = self.last.atoms[near], self.last.weight[near]
        live, (x, slope) = self.last.live[near], np.empty((2, *given.shape))
        self._climb(asks, np.arange(len(scores)), given, atoms, weight, live, x, slope)
        most, size = int(live.max()), scores.shape[1]
        if not (few or beside):
            self.last = Earlier(scores, atoms[:, :most], weight[:, :most], live)
        return (scores * x[:, :size]).sum(axis=1) + self._entropy(x), x[:, :size]

    def _climb(self, asks: bool, open_: Ints, given: Array, *rows: Any) -> None:
        """These rows' best mixtures, as ``climb`` leaves them."""
        views = MixtureViews(given.shape[1], *self.views)
        for _ in range(ROUNDS if len(open_) else 0):
            answers = len(self.pool.start) - 1
            pool = AnswerPool(answers, views.size, len(self.pool.place), *self.pool)
            own, asked = [array[open_] for array in rows], given[open_]
            for some in parts(len(open_)):
                mine = [array[some] for array in own]
                shape = len(asked[some]), mine[0].shape[1], views.size, answers
                climb(views, pool, ENOUGH, asked[some], Rows(*shape, *mine))
                check()
            for array, found in zip(rows, own, strict=True):
                array[open_] = found
            open_ = open_[self._asked(*own[-2:])] if asks else open_[:0]
            if not len(open_):
                break

    def _asked(self, x: Array, slope: Array) -> Any:
        """For which rows the oracle has a better answer that was not known."""
        size, many = self.one.size, self.one.select(np.zeros(len(x), dtype=np.int64))
        score = slope[:, :size] + slope[:, size:] @ self.C
        vertices = self.oracle.many(many, score.ravel())[0].reshape(len(x), -1)
        gain = (score * (vertices - x[:, :size])).sum(axis=1)
        new = np.array([vertex.tobytes() not in self.found for vertex in vertices])
        better = new & (gain > ENOUGH)
        self._keep(np.unique(vertices[better], axis=0))
        return better

    def _keep(self, answers: Array) -> None:
        """Take answers into the pool."""
        self.found.update(answer.tobytes() for answer in answers)
        rows = np.hstack([answers, np.asarray(self.C @ answers.T).T])
        row, place = np.nonzero(rows != 0)
        ends = self.pool.start[-1] + np.cumsum(np.bincount(row, minlength=len(rows)))
        start, places, amount = self.pool
        self.pool = Pool(
            np.concatenate([start, ends]),
            np.concatenate([places, place]),
            np.concatenate([amount, rows[row, place]]),
        )

    def _entropy(self, x: Array) -> Array:
        """Of every mixture; a view that rounding made negative has none."""
        a, b, c0 = self.views
        return -_xlogx(x + c0) @ a - _xlogx(1.0 - x) @ b


def _nearest(scores: Array, solved: Array) -> Ints:
    """For every row the nearest one solved."""
    size, share = (solved**2).sum(axis=1), max(1, ROOM // len(solved))
    parts_of = (scores[k : k + share] for k in range(0, len(scores), share))
    return np.concatenate([(size - 2.0 * some @ solved.T).argmin(axis=1) for some in parts_of])


def _xlogx(t: Array) -> Array:
    return np.where(t > 0, t, 0.0) * np.log(np.where(t > 0, t, 1.0))

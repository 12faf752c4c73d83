"""log Z and τ over the hull of an oracle's answers, with digits enough to take differences of.

Simplicial decomposition (von Hohenbalken 1977, Mathematical Programming 13): maximise over the
mixtures of a few answers, ask the oracle at the gradient there, and take its answer in, until none
is better. Mixtures are found by a barrier method; all rows of one structure step together.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from mlestruct.batch import Batch
from mlestruct.dual import interior
from mlestruct.entropy import Entropy
from mlestruct.oracle import Validated, resolve
from mlestruct.reweighting import Rho
from mlestruct.statistics.climb import climb
from mlestruct.statistics.listing import Listed
from mlestruct.structures.base import Array, Ints, Structure

ENOUGH = 1e-8  # what an answer may still gain
LADDER = (1e-1, 1e-3, 1e-5, 1e-7, 1e-9)  # of barriers, from a cold start
WARM = 2  # rungs that a row skips which starts from a neighbour's mixture
ROUNDS = 500  # answers that one row may take in on a rung
FADED = 0.1  # of the barrier: weight of an atom that is given up
IDLE = 1e-8  # weight of an atom that a neighbour does not begin with
SHARE = 0.02  # weight of a new atom
ROOM = 1 << 22  # numbers of the rows solved together


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
        log_z, tau = np.empty(len(batch)), np.empty(batch.size)
        for structure, members in batch.groups():
            hull = self._known.get(structure)
            if hull is None:
                one = batch.select(members[:1])
                every = self.listed.get(structure)
                hull = self._known[structure] = Hull(one, self.oracle, self.rho, every)
            log_z[members], rows = hull.solve(batch.rows(scores, members))
            tau[batch.index(members)] = rows.ravel()
        return log_z, tau


class Rows(NamedTuple):
    """Mixtures being made: ``atoms`` (rows × k) numbers of answers, −1 for none; ``weight``."""

    atoms: Ints
    weight: Array


class Hull:
    """One structure's answers so far; the first is a point in the interior, not an answer.

    ``one`` is an example of it, whose outcome stands in for a solver that finds none in time;
    ``every`` are all answers, if they are known.
    """

    def __init__(self, one: Batch[Any], oracle: Any, rho: Rho, every: Array | None = None) -> None:
        self.one, self.oracle = one, Validated(resolve(oracle, one))
        own = oracle is not None and not isinstance(oracle, str)
        inner = interior(one, self.oracle, Entropy.of(one, rho), stated=not own)
        self.C, self.c0, self.a = _live(inner.entropy)
        self.answers, self.shown = inner.tau[None], self._views(inner.tau[None])
        self.found, self.complete = {inner.tau.tobytes(): 0}, every is not None
        if every is not None:
            self.answers = np.vstack([self.answers, every])
            self.shown = self._views(self.answers)
        self.last: tuple[Array, Rows] | None = None

    def solve(self, scores: Array) -> tuple[Array, Array]:
        """(log Z, τ) of every row of scores.

        Answers are taken in while the barrier is high: near a vertex, where an entropy may have no
        slope, nobody could say which are missing.
        """
        rows, rung = self._start(scores)
        for barrier in LADDER[rung:]:
            rows = self._completed(scores, rows, barrier)
        tau = self._tau(rows)
        self.last = scores, _packed(rows, IDLE)
        return (scores * tau).sum(axis=1) - _xlogx(self._views(tau)) @ self.a, tau

    def _completed(self, scores: Array, rows: Rows, barrier: float) -> Rows:
        """The best mixtures at this barrier, with every answer in that would improve them."""
        open_ = np.arange(len(scores))
        for _ in range(ROUNDS):
            atoms = rows.atoms[open_]
            weight = self._maximise(scores[open_], Rows(atoms, rows.weight[open_]), barrier)
            rows.weight[open_] = weight
            best, better = self._better(scores[open_], Rows(atoms, weight), barrier)
            if not better.any():
                break
            open_ = open_[better]
            rows = _taken_in(rows, open_, best[better], barrier)
        return rows

    def _start(self, scores: Array) -> tuple[Rows, int]:
        """The mixtures of the scores solved before, or of the nearest; else the interior point."""
        if self.last is None:
            return Rows(np.zeros((len(scores), 1), dtype=np.int64), np.ones((len(scores), 1))), 0
        solved, rows = self.last
        if len(solved) == len(scores):  # most likely the same examples
            return Rows(rows.atoms.copy(), rows.weight.copy()), WARM
        size, share = (solved**2).sum(axis=1), max(1, ROOM // len(solved))
        parts = [scores[k : k + share] for k in range(0, len(scores), share)]
        near = [(size - 2.0 * part @ solved.T).argmin(axis=1) for part in parts]
        nearest = np.concatenate(near)
        return Rows(rows.atoms[nearest], rows.weight[nearest]), WARM

    def _tau(self, rows: Rows) -> Array:
        return np.einsum("bk,bks->bs", rows.weight, self.answers[rows.atoms])

    def _better(self, scores: Array, rows: Rows, barrier: float) -> tuple[Ints, Any]:
        """For every row an answer that it has not, and whether it gains at the gradient.

        The solver is asked where no answer known gains more than the barrier holds back.
        """
        tau, every = self._tau(rows), np.arange(len(scores))
        t = np.maximum(self._views(tau), 1e-300)
        slope = scores - np.asarray(self.C.T @ (self.a * (np.log(t) + 1.0)).T).T
        here = (slope * tau).sum(axis=1)
        least = ENOUGH + 2.0 * barrier * (rows.atoms >= 0).sum(axis=1)
        gain = slope @ self.answers.T - here[:, None]
        gain[every[:, None], np.maximum(rows.atoms, 0)] = -np.inf
        best = gain.argmax(axis=1)
        better = gain[every, best] > least
        open_ = every[~better]
        if len(open_) and not self.complete:
            many = self.one.select(np.zeros(len(open_), dtype=np.int64))
            vertices = self.oracle.many(many, slope[open_].ravel())[0].reshape(len(open_), -1)
            best[open_] = [self._number(vertex) for vertex in vertices]
            gains = (slope[open_] * vertices).sum(axis=1) - here[open_] > least[open_]
            better[open_] = gains & ~(rows.atoms[open_] == best[open_, None]).any(axis=1)
        return best, better

    def _number(self, vertex: Array) -> int:
        key = vertex.tobytes()
        if key not in self.found:
            self.found[key] = len(self.answers)
            self.answers = np.vstack([self.answers, vertex])
            self.shown = np.vstack([self.shown, self._views(vertex[None])])
        return self.found[key]

    def _maximise(self, scores: Array, rows: Rows, barrier: float) -> Array:
        """The weights of the best mixture of every row's atoms."""
        share, found = max(1, ROOM // (rows.atoms.shape[1] * max(len(self.a), 1))), []
        for k in range(0, len(scores), share):
            atoms, weight = rows.atoms[k : k + share], rows.weight[k : k + share]
            score = np.einsum("bks,bs->bk", self.answers[atoms], scores[k : k + share])
            weight = np.where(atoms >= 0, np.maximum(weight, barrier), 0.0)
            weight /= weight.sum(axis=1, keepdims=True)
            climb(score, self.shown[atoms], self.a, weight, (atoms >= 0).sum(axis=1), barrier)
            found.append(weight)
        return np.concatenate(found)

    def _views(self, points: Array) -> Array:
        return np.asarray(self.C @ points.T).T + self.c0


def _live(entropy: Entropy) -> tuple[sp.csr_array, Array, Array]:
    """Every live view of one example: t = C τ + c0, with −a t log t each."""
    size = len(entropy.a)
    eye = sp.eye_array(size, format="csr")
    a, b, mixed = (np.flatnonzero(c) for c in (entropy.a, entropy.b, entropy.mixed.a))
    C = sp.vstack([eye[a], -eye[b], entropy.mixed_matrix()[mixed]])
    c0 = np.concatenate([np.zeros(len(a)), np.ones(len(b)), entropy.mixed.c0[mixed]])
    return sp.csr_array(C), c0, np.concatenate([entropy.a[a], entropy.b[b], entropy.mixed.a[mixed]])


def _taken_in(rows: Rows, which: Ints, best: Ints, barrier: float) -> Rows:
    """The rows with an atom more where ``which`` says so; faded ones are given up."""
    atoms, weight = _packed(rows, FADED * barrier)
    new = np.full(len(atoms), -1)
    new[which] = best
    more = np.where(new >= 0, SHARE, 0.0)
    weight = np.column_stack([weight * (1.0 - more)[:, None], more])
    return _packed(Rows(np.column_stack([atoms, new]), weight), 0.0)


def _packed(rows: Rows, least: float) -> Rows:
    """Without atoms of at most so much weight, except the interior point; those left first."""
    atoms = np.where(rows.weight > least, rows.atoms, -1)
    atoms[:, 0] = 0  # logarithms need it
    order = np.argsort(atoms < 0, axis=1, kind="stable")[:, : int((atoms >= 0).sum(axis=1).max())]
    atoms, weight = (np.take_along_axis(one, order, axis=1) for one in (atoms, rows.weight))
    weight = np.where(atoms >= 0, weight, 0.0)
    return Rows(atoms, weight / weight.sum(axis=1, keepdims=True))


def _xlogx(t: Array) -> Array:
    return np.where(t > 0, t, 0.0) * np.log(np.where(t > 0, t, 1.0))

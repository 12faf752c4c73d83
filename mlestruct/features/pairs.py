"""Features of every pair of people, from each one's answers: never expanded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations_with_replacement, pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mlestruct.features.base import Columns, restart
from mlestruct.native._door import PairAnswers, pairs_meetings
from mlestruct.structures.base import Array, Ints, as_integers, as_numbers
from mlestruct.structures.batch import Batch
from mlestruct.structures.graph_edges import ROWS, fold, unfold
from mlestruct.structures.matching import Matching

TABLES = 3000  # entries of all questions' tables, above which pairs of tables are not listed
FAR = 1e3  # times what levels are apart, as a rule
PARTS = 8  # native calls in which answers are counted, each of some .05 s for 2,400 people


@dataclass(frozen=True)
class Question:
    """What two answers to one question are worth together: Σ_w θ_w tables[w][a, b].

    ``tables`` (weights × levels × levels) are symmetric, one for each of ``weights``' names.

    >>> Question.ordinal("noise", ["low", "mid", "high"]).weights[:3]
    ('noise |difference|', 'noise low~low', 'noise low~mid')
    """

    name: str
    levels: tuple[str, ...]
    weights: tuple[str, ...]
    tables: Array = field(repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "tables", as_numbers(self.tables, "tables"))
        shape = (len(self.weights), len(self.levels), len(self.levels))
        if self.tables.shape != shape or not np.isfinite(self.tables).all():
            raise ValueError(f"question {self.name!r}: needs finite tables of shape {shape}")
        if not np.array_equal(self.tables, self.tables.transpose(0, 2, 1)):
            raise ValueError(f"question {self.name!r}: tables are not symmetric")

    @classmethod
    def ordinal(
        cls,
        name: str,
        levels: Sequence[Any],
        values: ArrayLike | None = None,
        *,
        indicators: bool = True,
    ) -> Question:
        """|difference| of the levels' values (default 0, 1, …), and each pair of levels."""
        at = np.arange(len(levels), dtype=float) if values is None else as_numbers(values, "values")
        if at.shape != (len(levels),) or not np.isfinite(at).all():
            raise ValueError(f"question {name!r}: needs a finite value for each level, got {at}")
        distance = np.abs(at[:, None] - at[None, :])
        return cls._of(name, levels, f"{name} |difference|", distance, indicators)

    @classmethod
    def categorical(cls, name: str, levels: Sequence[Any], *, indicators: bool = True) -> Question:
        """Whether the answers are the same, and each pair of levels."""
        return cls._of(name, levels, f"{name} same", np.eye(len(levels)), indicators)

    def near(self, alone: NDArray[np.bool_]) -> Question:
        """The same model of perfect matchings: levels far from all others moved near them.

        What an answer adds to all pairs of its person, each outcome has. With a last level for
        missing answers, since of their pairs too it is taken off. No pair has a level twice that
        is ``alone``: its entry is 0.
        """
        table = self.tables[0]
        others = table + np.diag(np.full(len(table), np.nan))
        size = np.nanmedian(others, axis=1) if len(table) > 1 else np.zeros(len(table))
        far = size > FAR * np.median(size)
        if not far.any():
            return self
        own = np.pad(np.where(far, size, 0.0), (0, 1))
        tables = np.pad(self.tables, ((0, 0), (0, 1), (0, 1)))
        tables[0] -= own[:, None] + own
        tables[0][np.diag(np.append(alone, True))] = 0.0
        return Question(self.name, (*self.levels, ""), self.weights, tables)

    @classmethod
    def _of(
        cls, name: str, levels: Sequence[Any], first: str, table: Array, indicators: bool
    ) -> Question:
        if len(levels) == 0 or len(set(levels)) < len(levels):
            raise ValueError(f"question {name!r}: levels are {list(levels)}, and must differ")
        pairs = list(combinations_with_replacement(range(len(levels)), 2)) if indicators else []
        tables = np.zeros((1 + len(pairs), len(levels), len(levels)))
        tables[0] = table
        for w, (a, b) in enumerate(pairs, start=1):
            tables[w, a, b] = tables[w, b, a] = 1.0
        names = [f"{name} {levels[a]}~{levels[b]}" for a, b in pairs]
        return cls(name, tuple(map(str, levels)), (first, *names), tables)


@dataclass(frozen=True)
class Pairs:
    """W = U S(θ) Uᵀ: a score for every pair of a complete graph, from one-hot answers U.

    S is block diagonal, a symmetric table per question; weights are shared by all examples, each
    of which is one group of people. ``codes[m]`` (people × questions) holds the level of every
    answer, −1 for a missing one, which then counts for nothing. Scores and moments cost a product
    of (people × levels) matrices and no memory beyond the pairs' own: 2,400 people's 224 features
    would fill 5 GB.

    >>> from mlestruct import Batch, Matching
    >>> people = np.array([[0, 1], [2, 1], [0, 0], [2, 0]])  # four people, two questions
    >>> asked = [Question.ordinal("noise", range(3)), Question.categorical("diet", ["any", "none"])]
    >>> features = Pairs.of(Batch.of(Matching(4)), [people], asked)
    >>> features.d, features.names[7:9]
    (11, ('diet same', 'diet any~any'))
    >>> features.potentials(np.eye(11)[0])  # |difference| of noise for pairs 01, 02, …, 23
    array([2., 0., 2., 2., 0., 2.])
    """

    questions: tuple[Question, ...]
    codes: tuple[Ints, ...]
    offsets: Ints

    @classmethod
    def of(
        cls, batch: Batch[Matching], codes: Sequence[ArrayLike], questions: Sequence[Question]
    ) -> Pairs:
        """One (people × questions) array of level numbers per example, −1 where missing."""
        if len(codes) != len(batch):
            raise ValueError(f"answers of {len(codes)} groups of people for {len(batch)} examples")
        counts, answers = np.array([len(q.levels) for q in questions], dtype=np.int64), []
        for m, given in enumerate(codes):
            structure = batch.structure(m)
            if not (isinstance(structure, Matching) and structure.graph.complete):
                raise ValueError(
                    f"example {m}: pair features are for complete graphs, Matching(n); forbid "
                    "pairs there, or make groups that never mix examples of their own"
                )
            own = as_integers(given, f"example {m}: level numbers").copy()
            if own.shape != (structure.n_nodes, len(questions)):
                shape = f"{own.shape}; expected {structure.n_nodes} people × {len(questions)}"
                raise ValueError(f"example {m}: answers have shape {shape} questions")
            for u, q in np.argwhere((own < -1) | (own >= counts))[:1]:
                raise ValueError(
                    f"example {m}: person {u} answers {questions[q].name!r} with level "
                    f"{own[u, q]}; levels are 0..{counts[q] - 1}, −1 is missing"
                )
            answers.append(own)
        return cls(tuple(questions), tuple(answers), batch.offsets)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Every weight's name: question and what of it."""
        return tuple(w for q in self.questions for w in q.weights)

    @property
    def d(self) -> int:
        return len(self.names)

    @property
    def columns(self) -> Columns:
        return Columns.all(self.d, len(self.codes))

    @cached_property
    def starts(self) -> tuple[Ints, Ints]:
        """Where each question's levels start among all, and its weights in θ."""
        levels = np.cumsum([0, *(len(q.levels) for q in self.questions)])
        return levels, np.cumsum([0, *(len(q.weights) for q in self.questions)])

    @cached_property
    def one_hot(self) -> tuple[Array, ...]:
        """U of every example, (people × all levels); −1 has a row of zeros."""
        eyes = [np.eye(len(q.levels) + 1, len(q.levels)) for q in self.questions]
        return tuple(
            np.hstack([np.empty((len(own), 0)), *(eye[own[:, q]] for q, eye in enumerate(eyes))])
            for own in self.codes
        )

    def potentials(self, theta: Array) -> Array:
        theta, (at, start) = as_numbers(theta, "theta", self.d), self.starts
        worth = np.zeros((at[-1], at[-1]))  # S(θ): what two answers are worth together
        for q, question in enumerate(self.questions):
            here, own = slice(*at[q : q + 2]), theta[start[q] : start[q + 1]]
            worth[here, here] = np.tensordot(own, question.tables, 1)
        out = np.empty(int(self.offsets[-1]))
        for m, people in enumerate(self.one_hot):
            part, n = out[self.offsets[m] : self.offsets[m + 1]], len(people)
            for first in range(0, n, ROWS):
                block = people[first : first + ROWS] @ worth @ people[first:].T
                fold(block, first, n, part)
        return out

    def moments(self, tau: Array) -> Array:
        return self.each(tau).reshape(-1, self.d).sum(axis=0)

    def each(self, tau: Array) -> Array:
        tau, (at, start) = as_numbers(tau, "tau", int(self.offsets[-1])), self.starts
        out = np.empty((len(self.codes), self.d))
        for m, people in enumerate(self.one_hot):
            part = tau[self.offsets[m] : self.offsets[m + 1]]
            together = people.T @ _reached(people, part, both=False)  # how much two answers meet
            for q, question in enumerate(self.questions):
                here = slice(*at[q : q + 2])
                met = np.tensordot(question.tables, together[here, here])
                out[m, start[q] : start[q + 1]] = met
        return out.ravel()

    def squares(self, v: Array) -> None:
        """None: the entries of Φ are never computed."""

    def near(self) -> Pairs:
        """The same model of perfect matchings, without what far-off answers add to every outcome.

        Otherwise one answer of 1e9 among ones of 1 to 5 leaves no digits for the rest.
        """
        if not self.questions:
            return self
        counts = np.array([people.sum(axis=0) for people in self.one_hot])
        alone = np.split((counts <= 1).all(axis=0), self.starts[0][1:-1])
        moved = tuple(q.near(one) for q, one in zip(self.questions, alone, strict=True))
        both = zip(moved, self.questions, strict=True)
        missing = [-1 if new is old else len(old.levels) for new, old in both]
        if max(missing) < 0:
            return self
        codes = tuple(np.where(own < 0, missing, own) for own in self.codes)
        return replace(self, questions=moved, codes=codes)

    def select(self, members: Ints) -> Pairs:
        codes = tuple(self.codes[m] for m in members)
        return Pairs(self.questions, codes, restart(self.offsets, members))

    def rows(self, low: Ints, high: Ints) -> Array:
        """The feature rows of some pairs, of the one example there is."""
        codes, none = self.codes[0], np.empty((len(low), 0))
        tables = [np.pad(q.tables, ((0, 0), (0, 1), (0, 1))) for q in self.questions]
        parts = [table[:, codes[low, q], codes[high, q]].T for q, table in enumerate(tables)]
        return np.hstack([none, *parts])

    def gram(self, weight: Array, slack: Array) -> Array:
        """Σ_m weight_m Φ_mᵀ [I − Bᵀ(slack_m I + B Bᵀ)⁻¹ B] Φ_m, B the people's pairs.

        What is left of ΦᵀΦ once each person's sum is taken out: zero for combinations that are
        constant on perfect matchings (slack 0), and the Hessian of log Z at θ = 0 for the right
        weights. Zeros where there are too many pairs of tables to be listed.
        """
        weight, slack = as_numbers(weight, "weight"), as_numbers(slack, "slack")
        out = np.zeros((self.d, self.d))
        for m, scale in enumerate(() if self._wide else weight):
            n = len(self.codes[m])
            second, rows = self.select(np.array([m])).weighted(np.ones(n * (n - 1) // 2))
            free = n - 2 + float(slack[m])  # (free·I + 11ᵀ)⁻¹ = (I − 11ᵀ/(free + n)) / free
            sums = rows.sum(axis=0)
            part = np.outer(sums, sums) / n**2  # what is left where free is 0: one pair alone
            if free > 0:
                part = (rows.T @ rows - np.outer(sums, sums) / (free + n)) / free
            out += scale * (second - part)
        return out

    @property
    def _wide(self) -> bool:
        return sum(len(q.levels) ** 2 for q in self.questions) > TABLES

    def weighted(self, v: Array) -> tuple[Array, Array]:
        """ΦᵀVΦ and BVΦ of the one example there is, for a weight v per pair.

        A pass over people's pairs for each pair of questions: .4 s for 2,400 people, 14 questions.
        How often four answers meet is enough: ``met[(q, k, l), (r, k', l')]`` is Σ v of the pairs
        whose people have q: k, l and r: k', l'.
        """
        v, (at, start) = as_numbers(v, "v", int(self.offsets[-1])), self.starts
        people, codes, n = self.one_hot[0], self.codes[0], len(self.codes[0])
        reached, sums = _reached(people, v, both=True), np.zeros((n, self.d))
        for q, question in enumerate(self.questions):
            for level, worth in enumerate(question.tables.transpose(1, 2, 0)):
                own = np.flatnonzero(codes[:, q] == level)
                sums[own, start[q] : start[q + 1]] = reached[own, at[q] : at[q + 1]] @ worth
        if self._wide:
            units = np.eye(self.d)
            return np.array([self.moments(v * self.potentials(unit)) for unit in units]), sums
        size, second = np.diff(at), np.zeros((self.d, self.d))
        place = np.where(codes < 0, at[-1], codes + at[:-1])
        squares = np.concatenate([[0], np.cumsum(size**2)])
        met = np.zeros((squares[-1],) * 2)
        answers = PairAnswers(n, len(size), int(at[-1]), len(met), place, at, squares)
        shares = n - n * np.sqrt(np.linspace(1.0, 0.0, PARTS + 1))  # of equally many pairs
        for low, high in pairwise(shares.astype(int).tolist()):
            pairs_meetings(answers, v, low, high, met)
        flat = [q.tables.reshape(len(q.tables), -1) for q in self.questions]
        for q, one in enumerate(flat):
            for r, other in enumerate(flat[q:], start=q):
                block = met[squares[q] : squares[q + 1], squares[r] : squares[r + 1]]
                second[start[q] : start[q + 1], start[r] : start[r + 1]] = one @ block @ other.T
        return np.triu(second) + np.triu(second, 1).T, sums


def _reached(people: Array, v: Array, both: bool) -> Array:
    """Σ_w v_uw U_w: how much each person meets each answer, of ``both`` or of those after them."""
    n, out = len(people), np.zeros(people.shape)
    for first in range(0, n, ROWS):
        block = np.empty((min(ROWS, n - first), n - first))
        unfold(v, first, n, block)
        out[first : first + ROWS] += block @ people[first:]
        if both:
            out[first:] += block.T @ people[first : first + ROWS]
    return out

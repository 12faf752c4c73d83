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
from mlestruct.structures.graph_edges import ROWS, fold, row_sums, unfold
from mlestruct.structures.matching import Matching

TABLES = 3000  # entries of all questions' tables, above which pairs of tables are not listed
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
    answer, −1 for a missing one, which then counts for nothing. ``planes[m]`` (extra × pairs) are
    features of the user's own. Scores and moments cost a product of (people × levels) matrices and
    no memory beyond the pairs' own: 2,400 people's 224 features would fill 5 GB.

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
    planes: tuple[Array, ...]
    extra: tuple[str, ...]
    offsets: Ints

    @classmethod
    def of(
        cls,
        batch: Batch[Matching],
        codes: Sequence[ArrayLike],
        questions: Sequence[Question],
        *,
        planes: Sequence[ArrayLike] | None = None,
        extra: Sequence[str] = (),
    ) -> Pairs:
        """One (people × questions) array of level numbers per example, −1 where missing.

        ``planes``: per example one symmetric (people × people) matrix for each name in ``extra``.
        """
        if len(codes) != len(batch):
            raise ValueError(f"answers of {len(codes)} groups of people for {len(batch)} examples")
        if planes is not None and len(planes) != len(batch):
            raise ValueError(f"planes of {len(planes)} groups for {len(batch)} examples")
        answers, folded = [], []
        for m in range(len(batch)):
            structure = batch.structure(m)
            if not (isinstance(structure, Matching) and structure.graph.complete):
                raise ValueError(
                    f"example {m}: pair features are for complete graphs, Matching(n); forbid "
                    "pairs there, or make groups that never mix examples of their own"
                )
            n = structure.n_nodes
            answers.append(_checked(codes[m], n, questions, m))
            own = np.empty((0, n, n)) if planes is None else planes[m]
            folded.append(_folded(own, n, extra, m))
        return cls(tuple(questions), tuple(answers), tuple(folded), tuple(extra), batch.offsets)

    @property
    def d(self) -> int:
        return len(self.names)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Every weight's name: question and what of it, then the user's own."""
        return (*(w for q in self.questions for w in q.weights), *self.extra)

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
        """U of every example, (people × all levels)."""
        eyes = [np.eye(len(q.levels) + 1, len(q.levels)) for q in self.questions]
        return tuple(self.looked_up(eyes, codes) for codes in self.codes)

    @staticmethod
    def looked_up(tables: Sequence[Array], codes: Ints) -> Array:
        """Each question's row for each person; the last row, of zeros, is that of code −1."""
        rows = [table[codes[:, q]] for q, table in enumerate(tables)]
        return np.concatenate([np.empty((len(codes), 0)), *rows], axis=1)

    def tables(self, theta: Array) -> list[Array]:
        """S(θ): each question's table of what two answers are worth together."""
        theta = as_numbers(theta, "theta")
        _, start = self.starts
        return [
            np.tensordot(theta[start[q] : start[q + 1]], question.tables, 1)
            for q, question in enumerate(self.questions)
        ]

    def potentials(self, theta: Array) -> Array:
        theta = as_numbers(theta, "theta")
        own = theta[self.d - len(self.extra) :]
        padded = [np.pad(table, ((0, 1), (0, 0))) for table in self.tables(theta)]
        out = np.empty(int(self.offsets[-1]))
        for m, codes in enumerate(self.codes):
            part = out[self.offsets[m] : self.offsets[m + 1]]
            worth, people = self.looked_up(padded, codes), self.one_hot[m].T
            for first in range(0, len(codes), ROWS):
                fold(worth[first : first + ROWS] @ people[:, first:], first, len(codes), part)
            for plane, weight in zip(self.planes[m], own, strict=True):
                part += weight * plane
        return out

    def moments(self, tau: Array) -> Array:
        return self.each(tau).reshape(-1, self.d).sum(axis=0)

    def each(self, tau: Array) -> Array:
        tau = as_numbers(tau, "tau", int(self.offsets[-1]))
        out = np.empty((len(self.codes), self.d))
        for m in range(len(self.codes)):
            part = tau[self.offsets[m] : self.offsets[m + 1]]
            out[m, self.d - len(self.extra) :] = self.planes[m] @ part
            out[m, : self.d - len(self.extra)] = self.met(self.together(m, part))
        return out.ravel()

    def together(self, m: int, tau: Array) -> Array:
        """Σ_{u<v} τ_uv U_u U_vᵀ: how much each two answers meet, (levels × levels)."""
        n = len(self.codes[m])
        tau = as_numbers(tau, "tau", n * (n - 1) // 2)
        people = self.one_hot[m]
        n, out = len(people), np.zeros((people.shape[1],) * 2)
        for first in range(0, n, ROWS):
            block = np.empty((min(ROWS, n - first), n - first))
            unfold(tau, first, n, block)
            out += people[first : first + ROWS].T @ (block @ people[first:])
        return out

    def met(self, together: Array) -> Array:
        """⟨table, diagonal block⟩ for every table."""
        together = as_numbers(together, "together")
        at, _ = self.starts
        met = [
            np.tensordot(q.tables, together[at[k] : at[k + 1], at[k] : at[k + 1]])
            for k, q in enumerate(self.questions)
        ]
        return np.concatenate([np.empty(0), *met])

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
        return Pairs(
            self.questions,
            tuple(self.codes[m] for m in members),
            tuple(self.planes[m] for m in members),
            self.extra,
            restart(self.offsets, members),
        )

    def rows(self, low: Ints, high: Ints) -> Array:
        """The feature rows of some pairs, of the one example there is."""
        codes, n = self.codes[0], len(self.codes[0])
        tables = [np.pad(q.tables, ((0, 0), (0, 1), (0, 1))) for q in self.questions]
        parts = [table[:, codes[low, q], codes[high, q]].T for q, table in enumerate(tables)]
        own = self.planes[0][:, low * (2 * n - low - 1) // 2 + high - low - 1]
        return np.hstack([*parts, own.T])

    def gram(self, weight: Array, slack: Array) -> Array:
        """Σ_m weight_m Φ_mᵀ [I − Bᵀ(slack_m I + B Bᵀ)⁻¹ B] Φ_m, B the people's pairs.

        What is left of ΦᵀΦ once each person's sum is taken out: zero for combinations that are
        constant on perfect matchings (slack 0), and the Hessian of log Z at θ = 0 for the right
        weights. O(people · d²), no pair is visited but for the user's own planes.
        """
        slack = as_numbers(slack, "slack")
        weight = as_numbers(weight, "weight")
        out = np.zeros((self.d, self.d))
        for m, scale in enumerate(weight):
            n, rows = len(self.codes[m]), _row_sums(self, m)
            free = n - 2 + float(slack[m])  # (free·I + 11ᵀ)⁻¹ = (I − 11ᵀ/(free + n)) / free
            sums = rows.sum(axis=0)
            part = np.outer(sums, sums) / n**2  # what is left where free is 0: one pair alone
            if free > 0:
                part = (rows.T @ rows - np.outer(sums, sums) / (free + n)) / free
            out += scale * (_second(self, m) - part)
        return out

    def weighted(self, v: Array) -> tuple[Array, Array]:
        """ΦᵀVΦ and BVΦ of the one example there is, for a weight v per pair.

        A pass over people's pairs for each pair of questions: .4 s for 2,400 people, 14 questions.
        """
        v = as_numbers(v, "v", int(self.offsets[-1]))
        if sum(len(q.levels) ** 2 for q in self.questions) > TABLES:
            columns = (v * self.potentials(unit) for unit in np.eye(self.d))
            n = len(self.codes[0])
            both = [(self.moments(column), row_sums(column, n)) for column in columns]
            return np.array([a for a, _ in both]), np.array([b for _, b in both]).T
        own, (at, start) = self.d - len(self.extra), self.starts
        second, sums = np.zeros((self.d, self.d)), np.zeros((len(self.codes[0]), self.d))
        second[:own, :own] = _met_twice(self, v)
        reached = _reached(self, v)
        for q, (question, codes) in enumerate(zip(self.questions, self.codes[0].T, strict=True)):
            worth = np.pad(question.tables, ((0, 0), (0, 1), (0, 0)))[:, codes]
            met = reached[:, at[q] : at[q + 1]]
            sums[:, start[q] : start[q + 1]] = np.einsum("wuk,uk->uw", worth, met)
        for e, plane in enumerate(self.planes[0], start=own):
            second[e, :own] = second[:own, e] = self.met(self.together(0, v * plane))
            second[e, own:] = self.planes[0] @ (v * plane)
            sums[:, e] = row_sums(v * plane, len(sums))
        return second, sums


def _checked(given: ArrayLike, n: int, questions: Sequence[Question], m: int) -> Ints:
    codes = as_integers(given, f"example {m}: level numbers")
    if codes.shape != (n, len(questions)):
        shape = f"shape {codes.shape}; expected {n} people × {len(questions)} questions"
        raise ValueError(f"example {m}: answers have {shape}")
    counts = np.array([len(q.levels) for q in questions], dtype=np.int64)
    wrong = np.argwhere((codes < -1) | (codes >= counts))
    for u, q in wrong[:1]:
        raise ValueError(
            f"example {m}: person {u} answers {questions[q].name!r} with level {codes[u, q]}; "
            f"levels are 0..{counts[q] - 1}, −1 is missing"
        )
    return codes.copy()


def _folded(given: ArrayLike, n: int, extra: Sequence[str], m: int) -> Array:
    """The pairs u < v of symmetric matrices."""
    planes = as_numbers(given, f"example {m}: planes")
    if planes.shape != (len(extra), n, n):
        expected = f"expected {len(extra)} names × {n} × {n}"
        raise ValueError(f"example {m}: planes have shape {planes.shape}; {expected}")
    pairs = np.triu_indices(n, 1)
    upper = planes[:, *pairs]
    if not np.isfinite(upper).all():
        raise ValueError(f"example {m}: planes hold numbers that are not finite")
    if not np.array_equal(upper, planes.transpose(0, 2, 1)[:, *pairs]):
        raise ValueError(f"example {m}: planes are not symmetric: a pair has no first person")
    return upper


def _alone(pairs: Pairs, m: int) -> Array:
    """T_w[a_u, a_u]: what each person would be worth with a double, (people × d')."""
    diagonals = [np.pad(np.einsum("wkk->kw", q.tables), ((0, 1), (0, 0))) for q in pairs.questions]
    return pairs.looked_up(diagonals, pairs.codes[m])


def _row_sums(pairs: Pairs, m: int) -> Array:
    """BΦ: every person's sum over all partners, (people × d)."""
    at, _ = pairs.starts
    counts = pairs.one_hot[m].sum(axis=0)
    reached = [
        np.pad((q.tables @ counts[at[k] : at[k + 1]]).T, ((0, 1), (0, 0)))
        for k, q in enumerate(pairs.questions)
    ]
    n = len(pairs.codes[m])
    own = np.array([row_sums(plane, n) for plane in pairs.planes[m]]).reshape(-1, n)
    return np.hstack([pairs.looked_up(reached, pairs.codes[m]) - _alone(pairs, m), own.T])


def _second(pairs: Pairs, m: int) -> Array:
    """ΦᵀΦ, of tables through the counts N = UᵀU alone."""
    at, start = pairs.starts
    count, alone = pairs.one_hot[m].T @ pairs.one_hot[m], _alone(pairs, m)
    out = np.zeros((pairs.d, pairs.d))
    for k, q in enumerate(pairs.questions):
        across = count[:, at[k] : at[k + 1]]
        for j, other in enumerate(pairs.questions):
            part = across[at[j] : at[j + 1]]
            met = part @ q.tables @ part.T
            out[start[j] : start[j + 1], start[k] : start[k + 1]] = np.tensordot(
                other.tables, met, ((1, 2), (1, 2))
            )
    own = pairs.d - len(pairs.extra)
    out[:own, :own] = 0.5 * (out[:own, :own] - alone.T @ alone)
    for e, plane in enumerate(pairs.planes[m], start=own):
        out[e, :own] = out[:own, e] = pairs.met(pairs.together(m, plane))
        out[e, own:] = pairs.planes[m] @ plane
    return out


def _met_twice(pairs: Pairs, v: Array) -> Array:
    """Σ_pairs v T_w T_w' for all tables, through how often four answers meet.

    ``met[(q, k, l), (r, k', l')]`` is Σ v of the pairs whose people have q: k, l and r: k', l'.
    """
    first, start = pairs.starts
    size = np.diff(first)
    at = np.where(pairs.codes[0] < 0, first[-1], pairs.codes[0] + first[:-1])
    squares = np.concatenate([[0], np.cumsum(size**2)])
    n, met = len(at), np.zeros((squares[-1],) * 2)
    answers = PairAnswers(n, len(size), int(first[-1]), len(met), at, first, squares)
    cut = n - n * np.sqrt(np.linspace(1.0, 0.0, PARTS + 1))  # of equally many pairs
    for low, high in pairwise(cut.astype(int).tolist()):
        pairs_meetings(answers, v, low, high, met)
    flat = [q.tables.reshape(len(q.tables), -1) for q in pairs.questions]
    out = np.zeros((start[-1],) * 2)
    for q, one in enumerate(flat):
        for r, other in enumerate(flat[q:], start=q):
            block = met[squares[q] : squares[q + 1], squares[r] : squares[r + 1]]
            out[start[q] : start[q + 1], start[r] : start[r + 1]] = one @ block @ other.T
    upper = np.triu(out)
    return upper + np.triu(out, 1).T


def _reached(pairs: Pairs, v: Array) -> Array:
    """Σ_v v_uv U_v: how much each person meets each answer, (people × levels)."""
    people = pairs.one_hot[0]
    n, out = len(people), np.zeros(people.shape)
    for first in range(0, n, ROWS):
        block = np.empty((min(ROWS, n - first), n - first))
        unfold(v, first, n, block)
        out[first : first + ROWS] += block @ people[first:]
        out[first:] += block.T @ people[first : first + ROWS]
    return out


FAR = 1e3  # times what levels are apart, as a rule

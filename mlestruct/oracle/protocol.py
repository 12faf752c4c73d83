"""The seam to every solver: an oracle maximises a linear score over a structure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from mlestruct.errors import Infeasible
from mlestruct.structures.base import Array, Ints, Structure, as_numbers
from mlestruct.structures.batch import Batch

S_contra = TypeVar("S_contra", bound=Structure, contravariant=True)
Answers = tuple[Array, Array]
HULL = "convex hull"


@dataclass(frozen=True)
class Answer:
    """What a solver may return instead of a vertex: its best one and a bound on the best score.

    ``upper`` is None where no bound is known.
    """

    vertex: Any
    upper: float | None


class Oracle(Protocol[S_contra]):
    """Maximises ANY real score over one fixed polytope per structure: the oracle is the polytope.

    Interface:

    - ``polytope``: its name, for certificates (``"convex hull"`` when answers are exact);
    - ``many(batch, scores)`` → (vertices, upper): flat vertices, and for every example a bound
      on the best score (equal to the score reached when the answer is exact).

    Scores may be −inf on coordinates the structure fixes at 0, and only there. An oracle that
    does not take every other score has ``perturbable(batch)`` → mask of the coordinates whose
    score may be anything.

    An oracle of a relaxation may state its ``grain``: the least positive entry of its answers.

    An oracle whose answers depend on what a batch was asked before (warm starts that choose among
    equally good answers) has two more methods, which checkpoints and lost workers need:
    ``memory(batch)`` → arrays, numbers and text in tuples, lists and dicts, or None; and
    ``remember(batch, kept)``, after which it answers like the one whose memory that was.
    """

    @property
    def polytope(self) -> str: ...

    def many(self, batch: Batch[S_contra], scores: Array) -> Answers: ...


def one_by_one(
    batch: Batch[Any], scores: Array, ready: Callable[[Any], Callable[[Array], tuple[Array, float]]]
) -> Answers:
    """Answers to one score after the other; ``ready(structure)`` makes a structure's solver.

    It returns a vertex and a bound on the best score, or raises :class:`Infeasible`: the example's
    number is added, and the structure's own reason takes the place of the solver's.
    """
    scores = batch.vector(scores, "scores")
    vertices, upper = np.empty(batch.size), np.empty(len(batch))
    for structure, members in batch.groups():
        solve = ready(structure)
        for m in members.tolist():
            part = batch.coordinates(m)
            try:
                vertices[part], upper[m] = solve(scores[part])
            except Infeasible as error:
                why = f"example {m}: {structure.impossible() or error}"
                raise Infeasible(why, error.separators, error.groups) from error
    return vertices, upper


def attained(score: Array, vertex: Array) -> float:
    """⟨score, vertex⟩ with −inf · 0 = 0."""
    score, vertex = as_numbers(score, "scores"), as_numbers(vertex, "vertex")
    return float(np.where(vertex != 0, score, 0.0) @ vertex)


def perturbable(oracle: Oracle[Any], batch: Batch[Any]) -> NDArray[np.bool_] | None:
    """The coordinates whose score may be anything, where these are not all."""
    own = getattr(oracle, "perturbable", None)
    return None if own is None else own(batch)


def memory(oracle: Oracle[Any], batch: Batch[Any]) -> Any:
    """What the oracle's next answers to this batch depend on besides the question."""
    own = getattr(oracle, "memory", None)
    return None if own is None else own(batch)


def remember(oracle: Oracle[Any], batch: Batch[Any], kept: Any) -> None:
    """Give an oracle the memory that one of its kind had of an equal batch."""
    if kept is not None:
        getattr(oracle, "remember")(batch, kept)  # noqa: B009


@dataclass(frozen=True)
class Simplices:
    """Product of simplices: every exactly-one group picks its best coordinate. O(size)."""

    polytope: str = HULL

    def many(self, batch: Batch[Any], scores: Array) -> Answers:
        scores = batch.vector(scores, "scores")
        vertices, upper = np.zeros(batch.size), np.zeros(len(batch))
        for structure, members in batch.groups():
            if not hasattr(structure, "groups"):
                raise ValueError(f"a {type(structure).__name__} states no exactly-one groups")
            table = batch.rows(scores, members)
            answer = np.zeros_like(table)
            grouped = np.zeros(structure.size, dtype=bool)
            if structure.groups:
                inside = np.concatenate(structure.groups)
                if np.bincount(inside).max() > 1:
                    raise ValueError("a product of simplices needs groups that do not overlap")
                grouped[inside] = True
                fixed, sizes = structure.fixed[inside], [len(g) for g in structure.groups]
                allowed = np.where(fixed == 0, -np.inf, table[:, inside])
                allowed[:, fixed == 1] = np.inf
                row, first = np.arange(len(members))[:, None], _firsts(allowed, np.array(sizes))
                answer[row, inside[first]] = 1.0
            alone = ~grouped
            answer[:, alone] = np.where(
                structure.fixed[alone] >= 0, structure.fixed[alone], table[:, alone] > 0
            )
            vertices[batch.index(members)] = answer.ravel()
            upper[members] = np.where(answer > 0, table, 0.0).sum(axis=1)
        return vertices, upper


def _firsts(table: Array, sizes: Ints) -> Ints:
    """Where each group of columns has its largest entry first, row by row."""
    starts, width = np.cumsum(sizes) - sizes, table.shape[1]
    best = np.repeat(np.maximum.reduceat(table, starts, axis=1), sizes, axis=1)
    return np.minimum.reduceat(np.where(table == best, np.arange(width), width), starts, axis=1)


@dataclass(frozen=True)
class BruteForce:
    """Scores every listed outcome; exact, for structures small enough. O(outcomes·size)."""

    outcomes: Callable[[Structure], Array]
    polytope: str = HULL
    _lists: dict[Structure, Array] = field(default_factory=dict, repr=False)

    def vertices(self, structure: Structure) -> Array:
        """All vertices that respect the structure's fixed coordinates, one per row."""
        if structure not in self._lists:
            listed = np.asarray(self.outcomes(structure), dtype=float)
            self._lists[structure] = listed[structure.contains(listed)]
        return self._lists[structure]

    def many(self, batch: Batch[Any], scores: Array) -> Answers:
        scores = batch.vector(scores, "scores")
        vertices, upper = np.empty(batch.size), np.empty(len(batch))
        for structure, members in batch.groups():
            listed = self.vertices(structure)
            if len(listed) == 0:
                raise Infeasible("no outcome respects the fixed coordinates")
            table = batch.rows(np.where(np.isneginf(scores), -1e300, scores), members) @ listed.T
            best = table.argmax(axis=1)
            vertices[batch.index(members)] = listed[best].ravel()
            upper[members] = table[np.arange(len(members)), best]
        return vertices, upper

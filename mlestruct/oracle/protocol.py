"""The seam to every solver: an oracle maximises a linear score over a structure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from mlestruct.errors import Infeasible
from mlestruct.structures.base import Array, Structure, as_numbers
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

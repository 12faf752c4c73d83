"""A plain function of a score as an oracle."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlestruct.batch import Batch
from mlestruct.oracle.protocol import HULL, Answer, Answers, attained
from mlestruct.structures.base import Array, Structure


@dataclass(frozen=True)
class Solver:
    """A user's plain callable as an oracle: of (score), (score, instance) or (structure, score).

    ``instance`` is what the example's structure carries: its own data, see StructuredModel.
    The score comes in the structure's shape; the answer is a vertex of that shape, an outcome, or
    an ``Answer`` with a bound. Fixed coordinates reach it as scores beyond all others.
    """

    solve: Callable[..., Any]
    polytope: str = HULL
    mask: Callable[[Structure], NDArray[np.bool_]] | None = None

    def many(self, batch: Batch[Any], scores: Array) -> Answers:
        vertices, upper = np.empty(batch.size), np.empty(len(batch))
        ask = _asking(self.solve)
        for m in range(len(batch)):
            structure, part = batch.structure(m), batch.coordinates(m)
            score = pin(structure, scores[part]).reshape(structure.shape).copy()  # to overwrite
            try:
                answer = ask(structure, score)
            except Exception as error:
                error.add_note(f"example {m}: the solver raised this")
                raise
            bounded = isinstance(answer, Answer)
            vertex = _as_vertex(structure, answer.vertex if bounded else answer, m)
            vertices[part] = vertex
            reached = attained(scores[part], vertex)
            upper[m] = _own_bound(answer.upper, structure, scores[part], m) if bounded else reached
        return vertices, upper

    def perturbable(self, batch: Batch[Any]) -> NDArray[np.bool_] | None:
        if self.mask is None:
            return None
        return np.concatenate([self.mask(batch.structure(m)) for m in range(len(batch))])


def pin(structure: Structure, score: Array) -> Array:
    """Finite scores under which no best answer breaks a fixed coordinate, if any answer obeys.

    O(size). Exact up to rounding at the scale of the sum of all |scores|.
    """
    if not (structure.fixed >= 0).any():
        return score
    open_ = structure.fixed < 0
    reach = 1.0 + 2.0 * float(np.abs(score[open_]).sum())
    return np.where(open_, score, np.where(structure.fixed == 1, reach, -reach))


def _own_bound(given: Any, structure: Structure, score: Array, example: int) -> float:
    """A bound on the pinned score, translated to the scores that were asked for."""
    try:
        upper = float(given)
    except (TypeError, ValueError) as error:
        raise ValueError(f"example {example}: the solver's bound is no number: {error}") from error
    forced = structure.fixed == 1
    if not (structure.fixed >= 0).any():
        return upper
    pinned = pin(structure, score)
    return float(upper - pinned[forced].sum() + score[forced].sum())


def takes_instance(oracle: Any) -> bool:
    """Whether a solver of the user's asks for an example's own data besides its score."""
    call = oracle.solve if isinstance(oracle, Solver) else oracle
    return callable(call) and not hasattr(call, "many") and _second(call) == "instance"


def _asking(solve: Callable[..., Any]) -> Callable[[Structure, Array], Any]:
    """(structure, score) → answer, by what the solver takes."""
    second = _second(solve)
    if second is None:
        return lambda structure, score: solve(score)
    if second == "instance":
        return lambda structure, score: solve(score, structure.instance)
    return solve


def _second(call: Callable[..., Any]) -> str | None:
    """What a solver takes besides the score: None, ``structure`` (first) or ``instance`` (last)."""
    try:
        names = list(inspect.signature(call).parameters)
    except (TypeError, ValueError):
        return None
    if "instance" in names[1:2]:
        return "instance"
    if _positional(call) < 2:
        return None
    first, second = names[:2]
    return "structure" if first == "structure" or second.startswith("score") else "instance"


def _positional(call: Callable[..., Any]) -> int:
    try:
        parameters = inspect.signature(call).parameters.values()
    except (TypeError, ValueError):
        return 1
    return sum(
        p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty
        for p in parameters
    )


def _as_vertex(structure: Structure, answer: Any, example: int) -> Array:
    try:
        array = np.asarray(answer, dtype=float)
        if array.shape == structure.shape and ((array >= 0) & (array <= 1)).all():
            vector = array.reshape(-1)
            if array.ndim > 1 or structure.contains(vector):
                return vector
            return _outcome_or(structure, answer, vector)  # a list of arcs can look like a vector
        return structure.encode(answer)
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"example {example}: the solver's answer is no outcome: {error}"
        ) from error


def _outcome_or(structure: Structure, answer: Any, vector: Array) -> Array:
    try:
        return structure.encode(answer)
    except (ValueError, TypeError):
        return vector

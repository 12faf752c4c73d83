"""A plain function of a score as an oracle."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mlestruct.batch import Batch
from mlestruct.oracle.protocol import HULL, Answer, Answers, attained
from mlestruct.structures.base import Array, Structure, refuse_masked

DOUBT = 1e-6  # relative: what a solver's own sum of its answer's scores may be off


@dataclass(frozen=True)
class Solver:
    """A user's plain callable as an oracle: of (score), (score, instance) or (structure, score).

    ``instance`` is what the example's structure carries: its own data, see StructuredModel.
    The score comes in the structure's shape; the answer is a vertex of that shape, an outcome, the
    numbers of the parts in it, or an ``Answer`` with a bound; a pair (answer, its value) is one
    too, and the value is checked. Fixed coordinates reach it as scores beyond all others.

    ``sense="min"``: it minimises costs, which are minus the scores, and bounds are bounds below.
    None, or ``Answer(None, upper)``, is no answer (a timeout): the observed outcome stands in for
    it, nothing is known of the best but ``upper``, and the certificate says so.
    """

    solve: Callable[..., Any]
    polytope: str = HULL
    mask: Callable[[Structure], NDArray[np.bool_]] | None = None
    sense: Literal["max", "min"] = "max"

    def __post_init__(self) -> None:
        if self.sense not in ("max", "min"):
            raise ValueError(f"sense is 'max' or 'min', not {self.sense!r}")

    def many(self, batch: Batch[Any], scores: Array) -> Answers:
        vertices, upper = np.empty(batch.size), np.empty(len(batch))
        ask, sign = _asking(self.solve), 1.0 if self.sense == "max" else -1.0
        for m in range(len(batch)):
            structure, part = batch.structure(m), batch.coordinates(m)
            score = sign * pin(structure, scores[part]).reshape(structure.shape)  # to overwrite
            try:
                answer = ask(structure, score.copy())
            except StopIteration as error:  # it would end a loop of ours, and nobody would know
                raise RuntimeError(f"example {m}: the solver raised StopIteration") from error
            except Exception as error:
                error.add_note(f"example {m}: the solver raised this")
                raise
            answer = _without_value(structure, answer, score, m)
            bounded = isinstance(answer, Answer)
            given = answer.vertex if bounded else answer
            vertex = _stand_in(batch, m) if given is None else _as_vertex(structure, given, m)
            vertices[part] = vertex
            if bounded:
                upper[m] = _own_bound(answer.upper, structure, scores[part], m, sign)
            else:
                upper[m] = np.inf if given is None else attained(scores[part], vertex)
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


def _without_value(structure: Structure, answer: Any, score: Array, example: int) -> Any:
    """The answer alone where a solver returns (answer, its value), once the value is right."""
    if not (type(answer) is tuple and len(answer) == 2 and np.ndim(answer[1]) == 0):
        return answer
    first, value = answer
    if np.ndim(first) == 0 or not isinstance(value, (float, int, np.floating, np.integer)):
        return answer
    worth = attained(score.reshape(-1), _as_vertex(structure, first, example))
    if not abs(worth - value) <= DOUBT * (1.0 + abs(worth)):
        other = (
            " (it is that of minus the score)" if abs(worth + value) < abs(worth - value) else ""
        )
        raise ValueError(
            f"example {example}: the solver says that its answer is worth {value:.10g}, by the "
            f"score it is {worth:.10g}{other}; a bound goes into Answer(answer, upper)"
        )
    return first


def _stand_in(batch: Batch[Any], m: int) -> Array:
    """The observed outcome, where a solver gives none."""
    if batch.target is not None:
        seen = np.asarray(batch.target[batch.coordinates(m)])
        if ((seen == 0) | (seen == 1)).all():
            return seen
    raise ValueError(
        f"example {m}: the solver gave no answer, and no outcome was observed that could stand in"
    )


def _own_bound(given: Any, structure: Structure, score: Array, example: int, sign: float) -> float:
    """A bound on the pinned score, translated to the scores that were asked for."""
    try:
        upper = sign * float(given)
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
    if isinstance(answer, (set, frozenset)):
        answer = sorted(answer)
    try:
        refuse_masked(answer, "the answer")
        if np.iscomplexobj(answer):
            raise ValueError("it holds complex numbers")
        array = np.asarray(answer, dtype=float)
        if array.shape == structure.shape and ((array >= 0) & (array <= 1)).all():
            vector = array.reshape(-1)
            if array.ndim > 1 or structure.contains(vector):
                return vector
            return _outcome_or(structure, answer, vector)  # a list of arcs can look like a vector
        return _encoded(structure, answer, array)
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"example {example}: the solver's answer is no outcome: {error}"
        ) from error


def _encoded(structure: Structure, answer: Any, array: Array) -> Array:
    """An outcome as a vector; where it is none, the numbers of its parts, or a flat vector."""
    try:
        return structure.encode(answer)
    except (ValueError, TypeError):
        flat = array.reshape(-1)
        if not np.isfinite(flat).all():
            raise
        if flat.shape == (structure.size,) and ((flat == 0) | (flat == 1)).all():
            return flat
        parts = flat.astype(np.int64)
        whole = (parts == flat).all() and ((parts >= 0) & (parts < structure.size)).all()
        if array.ndim != 1 or not whole or len(np.unique(parts)) != len(parts):
            raise
        vector = np.zeros(structure.size)
        vector[parts] = 1.0
        if not structure.contains(vector):
            raise
        return vector


def _outcome_or(structure: Structure, answer: Any, vector: Array) -> Array:
    try:
        return _encoded(structure, answer, np.asarray(answer, dtype=float))
    except (ValueError, TypeError):
        return vector

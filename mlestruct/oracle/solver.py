"""A plain function of a score as an oracle."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from mlestruct.limits import check, left
from mlestruct.oracle.protocol import (
    HULL,
    TOL,
    Answer,
    Answers,
    attained,
    innermost,
    refuse_outside,
)
from mlestruct.structures.base import Array, Structure, as_numbers, refuse_masked
from mlestruct.structures.batch import Batch

FEW = 5  # parts of an answer that are named by their types
DOUBT = 1e-6  # relative: what a solver's own sum of its answer's scores may be off
WHOLE = 1e-5  # what integer programs may be off a whole number: Gurobi's and CPLEX's default


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
    checked: ClassVar[bool] = True  # its answers are outcomes, or refused
    _takes: str | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.sense not in ("max", "min"):
            raise ValueError(f"sense is 'max' or 'min', not {self.sense!r}")
        self.__dict__["_takes"] = _second(self.solve)

    def many(self, batch: Batch[Any], scores: Array) -> Answers:
        scores = as_numbers(scores, "scores", batch.size)
        sign = 1.0 if self.sense == "max" else -1.0
        asked = sign * scores  # a copy: the solver may overwrite what it is asked
        pinned = [bool((structure.fixed >= 0).any()) for structure in batch.structures]
        vertices, upper = np.empty(batch.size), np.full(len(batch.which), np.inf)
        exact, which = np.ones(len(upper), dtype=bool), batch.which.tolist()
        limited = left() < np.inf
        for m, (first, last) in enumerate(pairwise(batch.offsets.tolist())):
            if limited:
                check()
            structure = batch.structures[which[m]]
            if pinned[which[m]]:
                asked[first:last] = sign * pin(structure, scores[first:last])
            question = asked[first:last].reshape(structure.shape)
            try:
                if self._takes is None:
                    given = self.solve(question)
                elif self._takes == "structure":
                    given = self.solve(structure, question)
                elif self._takes == "instance":
                    given = self.solve(question, structure.instance)
                else:
                    given = self.solve(question, instance=structure.instance)
            except Exception as error:
                self._name_example(error, m, sign * pin(structure, scores[first:last]))
                raise
            plain = type(given) is np.ndarray and given.dtype.kind in "biuf"
            if not plain or given.shape != question.shape:
                given, upper[m], exact[m] = self._read(given, batch, m, scores[first:last])
            vertices[first:last] = given.reshape(-1)
        if self.polytope == HULL and not ((vertices == 0) | (vertices == 1)).all():
            vertices = _rounded(vertices)
        rows = ((one, batch.rows(vertices, members)) for one, members in batch.groups())
        if not all(one.contains(own, TOL).all() for one, own in rows):
            refuse_outside(batch, vertices, self, _as_vertex)
        worth = np.where(vertices != 0, scores, 0.0) * vertices
        reached = np.add.reduceat(worth, batch.offsets[:-1])
        return vertices, np.where(exact, reached, upper)

    def _read(
        self, given: Any, batch: Batch[Any], m: int, score: Array
    ) -> tuple[Array, float, bool]:
        """An answer of any form as a vertex, a bound, and whether it is the best by itself."""
        structure, upper, exact = batch.structure(m), np.inf, True
        if type(given) is tuple and len(given) == 2:
            sign = 1.0 if self.sense == "max" else -1.0
            given = _without_value(structure, given, sign * pin(structure, score), m)
        if isinstance(given, Answer):
            upper, exact = self._own_bound(given.upper, structure, score, m), False
            given = given.vertex
        if given is None:
            return _stand_in(batch, m), upper, False
        return _as_vertex(structure, given, m), upper, exact

    def _own_bound(self, given: Any, structure: Structure, score: Array, example: int) -> float:
        """A bound on the pinned score, translated to the scores that were asked for."""
        if given is None:
            return np.inf
        try:
            upper = as_numbers(given, "it").item()
        except ValueError:
            raise ValueError(
                f"example {example}: the solver's bound is no number: {given!r:.80}"
            ) from None
        forced = structure.fixed == 1
        shift = score[forced].sum() - pin(structure, score)[forced].sum()
        return float(upper + shift if self.sense == "max" else shift - upper)

    def _name_example(self, error: Exception, example: int, question: Array) -> None:
        """Add the example to a solver's error, and what a solver of no such scores has to hear."""
        if isinstance(error, StopIteration):  # it would end a loop of ours, and nobody would know
            raise RuntimeError(f"example {example}: the solver raised StopIteration") from error
        asked = ""
        if question.size:
            what = "costs" if self.sense == "min" else "scores"
            asked = f", asked with {what} between {question.min():.3g} and {question.max():.3g}"
            asked += ", and learning asks with either sign" if question.min() < 0 else ""
        error.add_note(f"example {example}: the solver raised this{asked}")

    def perturbable(self, batch: Batch[Any]) -> NDArray[np.bool_] | None:
        if self.mask is None:
            return None
        return np.concatenate([self.mask(batch.structure(m)) for m in range(len(batch))])


def tells_best_from_worst(oracle: Any, example: Batch[Any], scores: Array) -> bool:
    """Whether a user's function answers one example with more than it answers minus its scores.

    A ValueError where it has less: then it minimises. Asks twice; nothing of other oracles.
    """
    if not isinstance(innermost(oracle), Solver):
        return True
    free = np.where(np.isfinite(scores), scores, 0.0)
    best, worst = (attained(free, oracle.many(example, sign * free)[0]) for sign in (1.0, -1.0))
    if worst > best + DOUBT * (1.0 + abs(best)):
        raise ValueError(
            f"example 0: asked for the best score, the solver answers {best:.6g}, and asked for "
            f"the worst, {worst:.6g}: where it minimises costs, say sense='min', or "
            "Solver(solve, sense='min')"
        )
    return best > worst


def pin(structure: Structure, score: Array) -> Array:
    """Finite scores under which no best answer breaks a fixed coordinate, if any answer obeys.

    O(size). Exact up to rounding at the scale of the sum of all |scores|.
    """
    score = as_numbers(score, "scores", structure.size)
    open_ = structure.fixed < 0
    if open_.all():
        return score
    reach = 1.0 + 2.0 * float(np.abs(score[open_]).sum())
    return np.where(open_, score, np.where(structure.fixed == 1, reach, -reach))


def _without_value(structure: Structure, pair: Any, question: Array, example: int) -> Any:
    """The answer alone where a solver returns (answer, its value), once the value is right."""
    answer, value = pair
    if not _is_number(value) or _is_number(answer):
        return pair
    worth = float(question.reshape(-1) @ _as_vertex(structure, answer, example))
    if not abs(worth - value) <= DOUBT * (1.0 + abs(worth)):
        other = (
            " (it is that of minus the score)" if abs(worth + value) < abs(worth - value) else ""
        )
        raise ValueError(
            f"example {example}: the solver says that its answer is worth {value:.10g}, by the "
            f"score it is {worth:.10g}{other}; a bound goes into Answer(answer, upper)"
        )
    return answer


def _is_number(value: Any) -> bool:
    """A value of an answer: a flag is none, nor is a status such as OPTIMAL."""
    if isinstance(value, (bool, np.bool_, Enum)):
        return False
    return isinstance(value, (float, int, np.floating, np.integer)) or (
        isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype.kind in "iuf"
    )


def _stand_in(batch: Batch[Any], m: int) -> Array:
    """The observed outcome, where a solver gives none."""
    if batch.target is not None:
        seen = np.asarray(batch.target[batch.coordinates(m)])
        if ((seen == 0) | (seen == 1)).all():
            return seen
    raise ValueError(
        f"example {m}: the solver gave no answer, and no outcome was observed that could stand in: "
        "let it return the best that it found, as Answer(vertex, upper)"
    )


def takes_instance(oracle: Any) -> bool:
    """Whether a solver of the user's asks for an example's own data besides its score."""
    call = oracle.solve if isinstance(oracle, Solver) else oracle
    own = callable(call) and not hasattr(call, "many")
    return own and _second(call) in ("instance", "named")


def _second(call: Callable[..., Any]) -> str | None:
    """What a solver takes besides the score: None, ``structure`` (first) or ``instance`` (last).

    ``named`` is an instance that has to be called so.
    """
    try:
        parameters = inspect.signature(call).parameters
    except (TypeError, ValueError):
        return None
    names = list(parameters)
    if "instance" in parameters and parameters["instance"].kind is inspect.Parameter.KEYWORD_ONLY:
        return "named"
    if "instance" in names[1:2]:
        return "instance"
    asked = (
        p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty
        for p in parameters.values()
    )
    if sum(asked) < 2:
        return None
    first, second = names[:2]
    return "structure" if first == "structure" or second.startswith("score") else "instance"


def _rounded(values: Array) -> Array:
    """Without what integer programs leave beside whole numbers."""
    whole = np.rint(values)
    with np.errstate(invalid="ignore"):  # infinities, refused later
        return np.where(np.abs(values - whole) <= WHOLE, whole, values)


def _as_vertex(structure: Structure, answer: Any, example: int) -> Array:
    """A vector of the structure: an array of its shape, an outcome, or the numbers of its parts."""
    if isinstance(answer, (set, frozenset)):
        answer = sorted(answer)
    try:
        refuse_masked(answer, "the answer")
        array = _array(answer)
        shaped, inside = array.shape == structure.shape, ((array >= 0) & (array <= 1)).all()
        vector = array.reshape(-1)
        if not (shaped and inside):
            near = _rounded(array) if shaped else array  # below 0 by a rounding
            return _encoded(structure, near if shaped else answer, near)
        if array.ndim > 1 or structure.contains(vector):
            return vector
        with suppress(ValueError, TypeError):  # a list of arcs can look like a vector
            return _encoded(structure, answer, array)
        return vector
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"example {example}: the solver's answer is no outcome: {error}"
        ) from error


def _array(answer: Any) -> Array:
    try:
        given = np.asarray(answer)
        if given.dtype.kind != "c":
            return np.asarray(given, dtype=float)
    except (ValueError, TypeError):
        several = isinstance(answer, (tuple, list)) and len(answer) <= FEW
        kinds = f" ({', '.join(type(part).__name__ for part in answer)})" if several else ""
        raise ValueError(
            f"it is of type {type(answer).__name__}{kinds}, no array of numbers; expected an "
            "outcome, a 0/1 vector, or one of these and its value: (outcome, value)"
        ) from None
    raise ValueError("it holds complex numbers")


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

"""The seam to every solver: an oracle maximises a linear score, and every answer is checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter as clock
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from mlestruct.errors import Infeasible, LostWorker
from mlestruct.structures.base import Array, Ints, Structure, as_numbers, refuse
from mlestruct.structures.batch import Batch, place_of

S_contra = TypeVar("S_contra", bound=Structure, contravariant=True)
Answers = tuple[Array, Array]
HULL = "convex hull"
TOL = 1e-7  # what answers may break constraints by, and bounds fall short by, relative


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
    scores = as_numbers(scores, "scores", batch.size)
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


class Around:
    """What goes around an oracle and leaves to it all that it does not do itself."""

    oracle: Oracle[Any]
    polytope: str

    def __getattr__(self, name: str) -> Any:
        if name == "oracle" or name.startswith("__"):  # not made yet, as in a copy
            raise AttributeError(name)
        return getattr(self.oracle, name)


def innermost(oracle: Any) -> Any:
    """The solver inside all that was put around it."""
    while isinstance(oracle, Around):
        oracle = oracle.oracle
    return oracle


def _named(oracle: Any) -> str:
    return f"oracle {type(innermost(oracle)).__name__}"


def name_of(oracle: Any) -> str:
    """The kind of the innermost solver, and a digest of its settings."""
    from mlestruct.storage.digest import digest

    inside = innermost(oracle)
    return f"{type(inside).__name__} {digest(inside)}"


@dataclass(eq=False)
class Validated(Around):
    """Checks every call: finite scores in; feasible vertices and honest bounds out. O(size).

    The oracle gets a copy of the scores and its answers are copied, so that it may overwrite both.
    """

    oracle: Oracle[Any]

    def many(self, batch: Batch[Any], scores: Array) -> Answers:
        scores = as_numbers(scores, "scores", batch.size)
        if not np.isfinite(scores).all():  # −inf where the structure fixes a coordinate at 0
            wrong = ~np.isfinite(scores) & ~(np.isneginf(scores) & (batch.fixed == 0))
            refuse(wrong, lambda k: f"{place_of(batch, k)} is {scores[k]}")
        try:
            answers: Any = self.oracle.many(batch, scores.copy())
        except Exception as error:
            self._name_example(batch, scores, error)
            raise
        if not (isinstance(answers, tuple) and len(answers) == 2):
            raise ValueError(f"{_named(self)} returned {answers!r}; expected (vertices, upper)")
        vertices, upper = (as_numbers(answer, "an oracle's answers").copy() for answer in answers)
        if vertices.shape != (batch.size,) or upper.shape != batch.which.shape:
            raise ValueError(
                f"{_named(self)} returned shapes {vertices.shape}, {upper.shape}; "
                f"expected ({batch.size},), ({len(batch)},)"
            )
        used = np.flatnonzero(vertices != 0)  # of floats themselves it is ten times slower
        value = vertices[used]
        if np.abs(value - 1.0).max(initial=0.0) > TOL:
            refuse_fractions(batch, vertices, self)
        if not getattr(self.oracle, "checked", False):
            refuse_outside(batch, vertices, self)
        owner = np.searchsorted(batch.offsets, used, side="right") - 1
        reached = np.bincount(owner, weights=scores[used] * value, minlength=len(batch.which))
        short = ~(upper >= reached - TOL * (1.0 + np.abs(reached)))
        if short.any():
            m = int(short.argmax())
            raise ValueError(
                f"example {m}: {_named(self)} bounds the best score by {upper[m]:.12g}, its own "
                f"answer reaches {reached[m]:.12g}: {reached[m] - upper[m]:.1g} more; what "
                "rounding may cost belongs into the bound; of one that is not known say None (does "
                "it bound costs? sense='min')"
            )
        return vertices, np.maximum(upper, reached)

    def _name_example(self, batch: Batch[Any], scores: Array, error: Exception) -> None:
        """Add to an error the example at which the oracle raises it alone, found by halves."""
        told = [str(error), *getattr(error, "__notes__", [])]
        place, left = "", np.arange(len(batch))
        if not isinstance(error, LostWorker) and not any(t.startswith("example ") for t in told):

            def raises(members: Ints) -> bool:
                flat = np.concatenate([scores[batch.coordinates(int(m))] for m in members])
                try:
                    self.oracle.many(batch.select(members), flat)
                except Exception as again:
                    return type(again) is type(error)
                return False

            while len(left) > 1:
                half = left[: len(left) // 2]
                left = half if raises(half) else left[len(half) :]
            place = f"example {left[0]}: " if raises(left) else ""
        if isinstance(error, StopIteration):  # it would end a loop of ours, and nobody know
            raise RuntimeError(f"{place}{_named(self)} raised StopIteration") from error
        if place:
            error.add_note(f"{place}the oracle raised this")


class Counted(Around):
    """Counts calls (one per example) and the seconds spent in them."""

    def __init__(self, oracle: Oracle[Any]) -> None:
        self.oracle, self.calls, self.seconds = oracle, 0, 0.0

    def many(self, batch: Batch[Any], scores: Array) -> Answers:
        start = clock()
        answers = self.oracle.many(batch, scores)
        self.seconds += clock() - start
        self.calls += len(batch)
        return answers


def refuse_fractions(batch: Batch[Any], vertices: Array, oracle: Oracle[Any]) -> None:
    """Refuse fractions of an oracle for the outcomes' hull, which answers with outcomes."""
    if oracle.polytope == HULL:
        wrong = ~(np.minimum(np.abs(vertices), np.abs(vertices - 1.0)) <= TOL)
        refuse(
            wrong,
            lambda k: (
                f"example {batch.owner[k]}: {_named(oracle)} answered {vertices[k]:g} at "
                f"coordinate {k - batch.offsets[batch.owner[k]]}; outcomes are 0 or 1. A solver of "
                "a relaxation says so: Solver(solve, polytope=...)"
            ),
        )


def refuse_outside(
    batch: Batch[Any],
    vertices: Array,
    oracle: Oracle[Any],
    reread: Callable[[Structure, Array, int], Array] | None = None,
) -> None:
    """Refuse answers that are none of their structure's, unless ``reread`` finds an outcome."""
    for structure, members in batch.groups():
        inside = structure.contains(batch.rows(vertices, members), TOL)
        for m in () if inside.all() else members[~inside].tolist():
            own = vertices[batch.coordinates(m)]
            if reread is not None:
                own[:] = reread(structure, own.reshape(structure.shape), m)
            if reread is None or not structure.contains(own, TOL):
                refuse_fractions(batch, vertices, oracle)
                why = structure.impossible()
                if why is not None:
                    raise Infeasible(f"example {m}: {why}")
                raise ValueError(f"example {m}: {_named(oracle)} returned an infeasible answer")


@dataclass(frozen=True)
class Simplices:
    """Product of simplices: every exactly-one group picks its best coordinate. O(size)."""

    polytope: str = HULL

    def many(self, batch: Batch[Any], scores: Array) -> Answers:
        scores = as_numbers(scores, "scores", batch.size)
        vertices, upper = np.zeros(batch.size), np.zeros(len(batch))
        for structure, members in batch.groups():
            if not hasattr(structure, "groups"):
                raise ValueError(f"a {type(structure).__name__} states no exactly-one groups")
            table, fixed = batch.rows(scores, members), structure.fixed
            worth = np.where(fixed == 0, -np.inf, np.where(fixed == 1, np.inf, table))
            answer, sizes = (worth > 0).astype(float), np.array([*map(len, structure.groups)])
            inside = np.concatenate([np.zeros(0, dtype=np.int64), *structure.groups])
            if len(np.unique(inside)) < len(inside):
                raise ValueError("a product of simplices needs groups that do not overlap")
            answer[:, inside] = 0.0
            for size in np.unique(sizes):
                groups = inside[np.repeat(sizes == size, sizes)].reshape(-1, size)
                best = worth[:, groups].argmax(axis=2)
                chosen = groups[np.arange(len(groups)), best]
                answer[np.arange(len(members))[:, None], chosen] = 1.0
            vertices[batch.index(members)] = answer.ravel()
            upper[members] = np.where(answer > 0, table, 0.0).sum(axis=1)
        return vertices, upper

"""The seam to every solver: an oracle maximises a linear score over a structure."""

from __future__ import annotations

import importlib
import inspect
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from mlestruct.batch import Batch
from mlestruct.errors import Infeasible
from mlestruct.structures.base import Array, Structure

S_contra = TypeVar("S_contra", bound=Structure, contravariant=True)
Answers = tuple[Array, Array]


@dataclass(frozen=True)
class Answer:
    """What a solver may return instead of a vertex: its best one and a bound on the best score."""

    vertex: Any
    upper: float


class Oracle(Protocol[S_contra]):
    """Maximises ANY real score over one fixed polytope per structure: the oracle is the polytope.

    Interface:

    - ``polytope``: its name, for certificates (``"convex hull"`` when answers are exact);
    - ``many(batch, scores)`` → (vertices, upper): flat vertices, and for every example a bound
      on the best score (equal to the score reached when the answer is exact);
    - ``perturbable(batch)`` → mask of the coordinates whose score may be anything, or None: all.

    Scores may be −inf on coordinates the structure fixes at 0, and only there.
    """

    @property
    def polytope(self) -> str: ...

    def many(self, batch: Batch[S_contra], scores: Array) -> Answers: ...

    def perturbable(self, batch: Batch[S_contra]) -> NDArray[np.bool_] | None: ...


HULL = "convex hull"


@dataclass(frozen=True)
class Simplices:
    """Product of simplices: every exactly-one group picks its best coordinate. O(size)."""

    polytope: str = HULL

    def many(self, batch: Batch[Any], scores: Array) -> Answers:
        vertices, upper = np.zeros(batch.size), np.zeros(len(batch))
        for structure, members in batch.groups():
            table = batch.rows(scores, members)
            answer = np.zeros_like(table)
            grouped = np.zeros(structure.size, dtype=bool)
            for group in structure.groups:
                if grouped[group].any():
                    raise ValueError("a product of simplices needs groups that do not overlap")
                grouped[group] = True
                allowed = np.where(structure.fixed[group] == 0, -np.inf, table[:, group])
                allowed[:, structure.fixed[group] == 1] = np.inf
                answer[np.arange(len(members)), group[allowed.argmax(axis=1)]] = 1.0
            alone = ~grouped
            answer[:, alone] = np.where(
                structure.fixed[alone] >= 0, structure.fixed[alone], table[:, alone] > 0
            )
            vertices[batch.index(members)] = answer.ravel()
            upper[members] = np.where(answer > 0, table, 0.0).sum(axis=1)
        return vertices, upper

    def perturbable(self, batch: Batch[Any]) -> None:
        return None


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

    def perturbable(self, batch: Batch[Any]) -> None:
        return None


@dataclass(frozen=True)
class Solver:
    """A user's plain callable(score) or callable(structure, score) as an oracle.

    The score comes in the structure's shape; the answer is a vertex of that shape, an outcome, or
    an :class:`Answer` with a bound. Fixed coordinates reach it as scores beyond all others.
    """

    solve: Callable[..., Any]
    polytope: str = HULL
    mask: Callable[[Structure], NDArray[np.bool_]] | None = None

    def many(self, batch: Batch[Any], scores: Array) -> Answers:
        vertices, upper = np.empty(batch.size), np.empty(len(batch))
        takes_structure = _positional(self.solve) >= 2
        for m in range(len(batch)):
            structure, part = batch.structure(m), batch.coordinates(m)
            score = pin(structure, scores[part]).reshape(structure.shape)
            answer = self.solve(structure, score) if takes_structure else self.solve(score)
            bounded = isinstance(answer, Answer)
            vertex = _as_vertex(structure, answer.vertex if bounded else answer, m)
            vertices[part] = vertex
            reached = attained(scores[part], vertex)
            upper[m] = _own_bound(answer.upper, structure, scores[part]) if bounded else reached
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


def _own_bound(upper: float, structure: Structure, score: Array) -> float:
    """A bound on the pinned score, translated to the scores that were asked for."""
    forced = structure.fixed == 1
    if not (structure.fixed >= 0).any():
        return float(upper)
    pinned = pin(structure, score)
    return float(upper - pinned[forced].sum() + score[forced].sum())


def attained(score: Array, vertex: Array) -> float:
    """⟨score, vertex⟩ with −inf · 0 = 0."""
    return float(np.where(vertex != 0, score, 0.0) @ vertex)


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


class Validated:
    """Checks every call: finite scores in; feasible vertices and honest bounds out. O(size)."""

    def __init__(self, oracle: Oracle[Any], tol: float = 1e-7) -> None:
        self.oracle, self.tol = oracle, tol

    @property
    def polytope(self) -> str:
        return self.oracle.polytope

    def perturbable(self, batch: Batch[Any]) -> NDArray[np.bool_] | None:
        return self.oracle.perturbable(batch)

    def many(self, batch: Batch[Any], scores: Array) -> Answers:
        self._gate(batch, scores)
        vertices, upper = self.oracle.many(batch, scores.copy())
        vertices, upper = np.asarray(vertices, dtype=float), np.asarray(upper, dtype=float)
        if vertices.shape != (batch.size,) or upper.shape != (len(batch),):
            raise ValueError(
                f"{self._name} returned shapes {vertices.shape}, {upper.shape}; "
                f"expected ({batch.size},), ({len(batch)},)"
            )
        for structure, members in batch.groups():
            inside = structure.contains(batch.rows(vertices, members), self.tol)
            if not inside.all():
                m = int(members[np.flatnonzero(~inside)[0]])
                why = structure.impossible()
                if why is not None:
                    raise Infeasible(f"example {m}: {why}")
                raise ValueError(f"example {m}: {self._name} returned an infeasible answer")
        reached = batch.totals(np.where(vertices != 0, scores, 0.0) * vertices)
        scale = 1.0 + np.abs(reached)
        low = np.flatnonzero(~(upper >= reached - self.tol * scale))
        if len(low):
            m = int(low[0])
            raise ValueError(
                f"example {m}: {self._name} bounds the best score by {upper[m]:g}, "
                f"its own answer reaches {reached[m]:g}"
            )
        return vertices, np.maximum(upper, reached)

    @property
    def _name(self) -> str:
        return f"oracle {type(self.oracle).__name__}"

    def _gate(self, batch: Batch[Any], scores: Array) -> None:
        if np.isfinite(scores).all():
            return
        fixed = np.concatenate([s.fixed for s in batch.structures])
        start = np.concatenate([[0], np.cumsum([s.size for s in batch.structures])])
        place = np.arange(batch.size) - batch.offsets[batch.owner] + start[batch.which[batch.owner]]
        bad = np.flatnonzero(~np.isfinite(scores) & ~(np.isneginf(scores) & (fixed[place] == 0)))
        if len(bad):
            k = int(bad[0])
            m = int(batch.owner[k])
            raise ValueError(
                f"example {m}: score of coordinate {k - batch.offsets[m]} is {scores[k]}"
            )


class Counted:
    """Counts calls (one per example) and the seconds spent in them."""

    def __init__(self, oracle: Oracle[Any]) -> None:
        self.oracle = oracle
        self.calls, self.seconds = 0, 0.0

    @property
    def polytope(self) -> str:
        return self.oracle.polytope

    def perturbable(self, batch: Batch[Any]) -> NDArray[np.bool_] | None:
        return self.oracle.perturbable(batch)

    def many(self, batch: Batch[Any], scores: Array) -> Answers:
        start = time.perf_counter()
        answers = self.oracle.many(batch, scores)
        self.seconds += time.perf_counter() - start
        self.calls += len(batch)
        return answers


class Cached:
    """Remembers the last ``capacity`` answers by (structure, score): asking twice costs nothing."""

    def __init__(self, oracle: Oracle[Any], capacity: int = 1024) -> None:
        self.oracle, self.capacity = oracle, capacity
        self._answers: OrderedDict[tuple[Any, bytes], tuple[Array, float]] = OrderedDict()

    @property
    def polytope(self) -> str:
        return self.oracle.polytope

    def perturbable(self, batch: Batch[Any]) -> NDArray[np.bool_] | None:
        return self.oracle.perturbable(batch)

    def many(self, batch: Batch[Any], scores: Array) -> Answers:
        keys = [
            (batch.structure(m).key, scores[batch.coordinates(m)].tobytes())
            for m in range(len(batch))
        ]
        unknown = [m for m, key in enumerate(keys) if key not in self._answers]
        if unknown:
            part = batch.select(unknown)
            asked = np.concatenate([scores[batch.coordinates(m)] for m in unknown])
            vertices, upper = self.oracle.many(part, asked)
            for i, m in enumerate(unknown):
                self._answers[keys[m]] = (vertices[part.coordinates(i)], float(upper[i]))
        found = [self._answers[key] for key in keys]
        for key in keys:
            self._answers.move_to_end(key)
        while len(self._answers) > self.capacity:
            self._answers.popitem(last=False)
        return np.concatenate([v for v, _ in found]), np.array([u for _, u in found])


@dataclass(frozen=True)
class PerStructure:
    """Every structure of a mixed batch goes to its own oracle."""

    choose: Callable[[Structure], Oracle[Any]]
    polytope: str

    @classmethod
    def default(cls, batch: Batch[Any]) -> PerStructure:
        oracles = {s.default_oracle: load(s.default_oracle) for s in batch.structures}
        names = " / ".join(sorted({oracle.polytope for oracle in oracles.values()}))
        return cls(lambda structure: oracles[structure.default_oracle], names)

    def many(self, batch: Batch[Any], scores: Array) -> Answers:
        vertices, upper = np.empty(batch.size), np.empty(len(batch))
        for structure, members in batch.groups():
            place = batch.index(members)
            try:
                answers = self.choose(structure).many(batch.select(members), scores[place])
            except Infeasible as error:
                raise Infeasible(structure.impossible() or str(error)) from error
            vertices[place], upper[members] = answers
        return vertices, upper

    def perturbable(self, batch: Batch[Any]) -> NDArray[np.bool_] | None:
        free = np.ones(batch.size, dtype=bool)
        for structure, members in batch.groups():
            mask = self.choose(structure).perturbable(batch.select(members))
            if mask is not None:
                free[batch.index(members)] = mask
        return None if free.all() else free


REGISTRY = {
    "assignment": "mlestruct_oracles.assignment:Assignment",
    "linear_program": "mlestruct_oracles.linear_program:LinearProgram",
    "b_matching": "mlestruct_oracles.b_matching:BMatchingSolver",
    "blossom": "mlestruct_oracles.general_matching:Blossom",
    "cp_sat": "mlestruct_oracles.cp_sat:CPSat",
    "graph_cut": "mlestruct_oracles.qpbo_oracle:GraphCut",
    "min_cost_flow": "mlestruct_oracles.min_cost_flow:MinCostFlow",
    "networkx_matching": "mlestruct_oracles.networkx_matching:NetworkxMatching",
    "planar_ising": "mlestruct_oracles.planar_ising:PlanarIsing",
    "qpbo": "mlestruct_oracles.qpbo_oracle:QPBO",
    "shortest_path": "mlestruct_oracles.shortest_path:ShortestPath",
    "simplices": "mlestruct.oracle:Simplices",
    "trw_s": "mlestruct_oracles.trw_s:TRWS",
    "viterbi": "mlestruct_oracles.viterbi:Viterbi",
}


def resolve(
    oracle: Oracle[Any] | Callable[..., Any] | str | None, batch: Batch[Any]
) -> Oracle[Any]:
    """An oracle from a name, a plain callable, an oracle, or None (the structure's default)."""
    if oracle is None:
        names = {s.default_oracle for s in batch.structures}
        if None in names:
            kinds = sorted({type(s).__name__ for s in batch.structures if not s.default_oracle})
            raise ValueError(f"{' and '.join(kinds)} has no default oracle: pass oracle=")
        oracle = names.pop() if len(names) == 1 else PerStructure.default(batch)
    if isinstance(oracle, str):
        return load(oracle)
    if hasattr(oracle, "many"):
        return oracle  # type: ignore[return-value]
    if callable(oracle):
        return Solver(oracle)
    raise ValueError(f"an oracle is a name, a callable or has a method many; got {oracle!r}")


def load(name: str | None) -> Oracle[Any]:
    """The registered oracle of that name; its module is imported now."""
    if name not in REGISTRY:
        raise ValueError(f"no oracle named {name!r}; there are {', '.join(sorted(REGISTRY))}")
    module, found = REGISTRY[name].split(":")
    oracle: Oracle[Any] = getattr(importlib.import_module(module), found)()
    return oracle

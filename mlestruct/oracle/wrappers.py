"""Oracles around oracles: checked, counted."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter as clock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlestruct.errors import Infeasible, LostWorker
from mlestruct.oracle.protocol import HULL, Answers, Oracle, memory, perturbable, remember
from mlestruct.storage.digest import digest
from mlestruct.structures.base import Array, Ints, Structure, as_numbers
from mlestruct.structures.batch import Batch

TOL = 1e-7  # what answers may break constraints by, and bounds fall short by, relative


class Around:
    """What every wrapper leaves to the oracle inside."""

    oracle: Oracle[Any]

    @property
    def polytope(self) -> str:
        return self.oracle.polytope

    def perturbable(self, batch: Batch[Any]) -> NDArray[np.bool_] | None:
        return perturbable(self.oracle, batch)

    def memory(self, batch: Batch[Any]) -> Any:
        return memory(self.oracle, batch)

    def remember(self, batch: Batch[Any], kept: Any) -> None:
        remember(self.oracle, batch, kept)


class Validated(Around):
    """Checks every call: finite scores in; feasible vertices and honest bounds out. O(size).

    The oracle gets a copy of the scores and its answers are copied, so that it may overwrite both.
    """

    def __init__(self, oracle: Oracle[Any]) -> None:
        self.oracle, self._name = oracle, f"oracle {type(oracle).__name__}"
        self._checked = getattr(innermost(oracle), "checked", False)

    def many(self, batch: Batch[Any], scores: Array) -> Answers:
        scores = batch.vector(scores, "scores")
        if not np.isfinite(scores).all():
            self._refuse_infinite(batch, scores)
        try:
            answers = self.oracle.many(batch, scores.copy())
        except Exception as error:
            place = self._culprit(batch, scores, error)
            if isinstance(error, StopIteration):  # it would end a loop of ours, and nobody know
                raise RuntimeError(f"{place}{self._name} raised StopIteration") from error
            if place:
                error.add_note(f"{place}the oracle raised this")
            raise
        vertices, upper = self._arrays(batch, answers)
        used = np.flatnonzero(vertices != 0)  # of floats themselves it is ten times slower
        value = vertices[used]
        if np.abs(value - 1.0).max(initial=0.0) > TOL:
            refuse_fractions(batch, vertices, self.oracle)
        if not self._checked:
            refuse_outside(batch, vertices, self.oracle)
        owner = np.searchsorted(batch.offsets, used, side="right") - 1
        reached = np.bincount(owner, weights=scores[used] * value, minlength=len(batch.which))
        honest = upper >= reached - TOL * (1.0 + np.abs(reached))
        if not honest.all():
            self._refuse_bound(int(honest.argmin()), upper, reached)
        return vertices, np.maximum(upper, reached)

    def _arrays(self, batch: Batch[Any], answers: Any) -> Answers:
        """Copies of what was returned, in the shapes that were asked for."""
        if not (isinstance(answers, tuple) and len(answers) == 2):
            raise ValueError(f"{self._name} returned {answers!r}; expected (vertices, upper)")
        vertices, upper = (as_numbers(answer, f"{self._name}: answers") for answer in answers)
        if vertices.shape != (batch.size,) or upper.shape != batch.which.shape:
            raise ValueError(
                f"{self._name} returned shapes {vertices.shape}, {upper.shape}; "
                f"expected ({batch.size},), ({len(batch)},)"
            )
        return vertices.copy(), upper.copy()

    def _refuse_bound(self, m: int, upper: Array, reached: Ints | Array) -> None:
        """Name a bound that lies below what its own answer reaches."""
        if np.isnan(upper[m]):
            raise ValueError(f"example {m}: {self._name} bounds the best score by nan; say None")
        raise ValueError(
            f"example {m}: {self._name} bounds the best score by {upper[m]:.12g}, "
            f"its own answer reaches {reached[m]:.12g}: {reached[m] - upper[m]:.1g} more; what "
            "rounding may cost belongs into the bound (does it bound costs? sense='min')"
        )

    def _culprit(self, batch: Batch[Any], scores: Array, error: Exception) -> str:
        """Which example it raises at when asked about that alone, found by halves; or nothing."""
        told = [str(error), *getattr(error, "__notes__", [])]
        if isinstance(error, LostWorker) or any(text.startswith("example ") for text in told):
            return ""

        def raises(members: Ints) -> bool:
            flat = np.concatenate([scores[batch.coordinates(int(m))] for m in members])
            try:
                self.oracle.many(batch.select(members), flat)
            except Exception as again:
                return type(again) is type(error)
            return False

        left = np.arange(len(batch))
        while len(left) > 1:
            half = left[: len(left) // 2]
            left = half if raises(half) else left[len(half) :]
        return f"example {left[0]}: " if len(left) and raises(left) else ""

    def _refuse_infinite(self, batch: Batch[Any], scores: Array) -> None:
        """Scores are finite, or −inf where the structure fixes a coordinate at 0."""
        bad = np.flatnonzero(~np.isfinite(scores) & ~(np.isneginf(scores) & (batch.fixed == 0)))
        if len(bad):
            k = int(bad[0])
            m = int(batch.owner[k])
            raise ValueError(
                f"example {m}: score of coordinate {k - batch.offsets[m]} is {scores[k]}"
            )


class Counted(Around):
    """Counts calls (one per example) and the seconds spent in them."""

    def __init__(self, oracle: Oracle[Any]) -> None:
        self.oracle = oracle
        self.calls, self.seconds = 0, 0.0

    def many(self, batch: Batch[Any], scores: Array) -> Answers:
        start = clock()
        answers = self.oracle.many(batch, scores)
        self.seconds += clock() - start
        self.calls += len(batch)
        return answers


def refuse_fractions(batch: Batch[Any], vertices: Array, oracle: Oracle[Any]) -> None:
    """Who answers for the hull of the outcomes answers with outcomes."""
    wrong = np.flatnonzero(~(np.minimum(np.abs(vertices), np.abs(vertices - 1.0)) <= TOL))
    if oracle.polytope == HULL and len(wrong):
        k = int(wrong[0])
        m = int(batch.owner[k])
        raise ValueError(
            f"example {m}: oracle {type(oracle).__name__} answered {vertices[k]:g} at coordinate "
            f"{k - batch.offsets[m]}; outcomes are 0 or 1. A solver of a relaxation says so: "
            "Solver(solve, polytope=...)"
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
                kind = type(oracle).__name__
                raise ValueError(f"example {m}: oracle {kind} returned an infeasible answer")


def innermost(oracle: Any) -> Any:
    """The solver inside all that was put around it."""
    while isinstance(oracle, Around):
        oracle = oracle.oracle
    return oracle


def name_of(oracle: Any) -> str:
    """The kind of the innermost solver, and a digest of its settings."""
    inside = innermost(oracle)
    return f"{type(inside).__name__} {digest(inside)}"

"""The laws of oracles."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlestruct.batch import Batch
from mlestruct.oracle import HULL, Oracle, perturbable
from mlestruct.structures.base import Array, Structure
from mlestruct.testing.listing import hold, vertices


def check_oracle(
    oracle: Oracle[Any],
    structure: Structure,
    outcomes: Iterable[Any] | None = None,
    *,
    instances: int = 60,
    exact: bool | None = None,
    base: Array | None = None,
    rng: np.random.Generator | None = None,
) -> None:
    """The oracle's answers are feasible, bounded, deterministic and, where exact, the best.

    Scores hold ties, low rank, many scales, and −inf on coordinates fixed at 0; only perturbable
    ones vary, the others keep ``base`` (default 0). ``exact`` defaults to what the oracle's
    polytope says: the convex hull's answers equal brute force, a larger polytope's are no less.
    """
    rng = np.random.default_rng(0) if rng is None else rng
    found = vertices(structure, outcomes)
    batch = Batch.of(structure, count=instances)
    scores = _scores(structure, instances, rng)
    mask = perturbable(oracle, batch)
    if mask is not None:
        rest = np.zeros(structure.size) if base is None else base
        scores = np.where(mask.reshape(scores.shape), scores, rest)
    given = scores.copy()
    answer, upper = oracle.many(batch, scores.ravel())
    hold(
        bool(np.array_equal(scores, given)),
        "an oracle does not change its input",
        "the scores were written to",
    )
    finite = np.where(np.isfinite(scores), scores, 0.0)
    best = (finite @ found.T).max(axis=1)
    tol = 1e-9 * (1.0 + np.abs(finite).sum(axis=1))
    points = np.asarray(answer).reshape(scores.shape)
    reached = (np.where(points != 0, scores, 0.0) * points).sum(axis=1)
    exact = oracle.polytope == HULL if exact is None else exact
    relaxed = not exact and oracle.polytope != HULL
    laws: list[tuple[str, NDArray[Any]]] = [
        ("an answer lies in the structure", structure.contains(points, 1e-7))
    ]
    if exact:
        laws.append(("an exact answer equals brute force", np.abs(reached - best) <= tol))
    elif relaxed:
        laws.append(("a relaxed answer is no less than brute force", reached >= best - tol))
    laws.append(("the bound is no less than the best score", upper >= best - tol))
    laws.append(("the bound is no less than the answer's score", upper >= reached - tol))
    for law, true in laws:
        wrong = np.flatnonzero(~np.asarray(true))
        if len(wrong):
            m = int(wrong[0])
            raise AssertionError(
                f"{law}: instance {m} with scores {scores[m].tolist()} reaches {reached[m]:.12g}, "
                f"bound {upper[m]:.12g}, best {best[m]:.12g}, answer {points[m].tolist()}"
            )
    _check_asking(oracle, batch, scores, answer, upper, tol, rng)


def _check_asking(
    oracle: Oracle[Any],
    batch: Batch[Any],
    scores: Array,
    answer: Array,
    upper: Array,
    tol: Array,
    rng: np.random.Generator,
) -> None:
    again, bound = oracle.many(batch, scores.ravel())
    hold(
        bool(np.array_equal(again, answer) and np.array_equal(bound, upper)),
        "an oracle is deterministic",
        "the same question has two answers",
    )
    order = rng.permutation(len(batch))
    _, bound = oracle.many(batch.select(order), scores[order].ravel())
    hold(
        bool(_near(bound, upper[order], tol[order]).all()),
        "the order of a batch changes no answer",
        f"bounds {bound.tolist()} and {upper[order].tolist()}",
    )
    for m in range(min(len(batch), 12)):
        _, one = oracle.many(batch.select([m]), scores[m])
        hold(
            bool(_near(one, upper[m : m + 1], tol[m : m + 1]).all()),
            "many questions at once get the answers they get one at a time",
            f"instance {m}: {one[0]:.12g} alone, {upper[m]:.12g} in the batch",
        )


def _near(one: Array, other: Array, tol: Array) -> NDArray[np.bool_]:
    with np.errstate(invalid="ignore"):  # bounds may be infinite
        return np.asarray((one == other) | (np.abs(one - other) <= tol))


def _scores(structure: Structure, count: int, rng: np.random.Generator) -> Array:
    """Plain, tied, low-rank, sparse, huge, tiny and zero scores; −inf where it is allowed."""
    size = structure.size
    scores = rng.standard_normal((count, size))
    scores[1::6] = rng.integers(-2, 3, scores[1::6].shape)
    scores[2::6] = _low_rank(structure, len(scores[2::6]), rng)
    scores[3::6] *= 10.0 ** rng.integers(-6, 7, (len(scores[3::6]), 1))
    scores[4::6] *= rng.random(scores[4::6].shape) < 0.2
    scores[5::12] = -np.abs(scores[5::12])
    scores[:1] = 0.0
    never = (structure.fixed == 0) & (np.arange(count) % 2 == 1)[:, None]
    scores[never] = -np.inf
    return scores


def _low_rank(structure: Structure, count: int, rng: np.random.Generator) -> Array:
    shape = structure.shape
    if len(shape) == 2:
        left, right = rng.standard_normal((count, shape[0])), rng.standard_normal((count, shape[1]))
        return np.asarray((left[:, :, None] * right[:, None, :]).reshape(count, -1))
    return rng.choice([-1.0, 0.5], (count, structure.size)) * rng.random((count, 1))

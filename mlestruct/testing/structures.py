"""The laws of structures."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlestruct.structures.base import Array, Structure
from mlestruct.testing.listing import hold, inside, vertices

Clamp = tuple[Any, Callable[[Any], bool]]


def check_structure(
    structure: Structure,
    outcomes: Iterable[Any] | None = None,
    *,
    clamps: Iterable[Clamp] = (),
    rng: np.random.Generator | None = None,
) -> None:
    """Codes, views, constraints, loss, shifts, interior and clamps agree with listed outcomes.

    ``outcomes`` lists all of them (default: :func:`vertices`); each clamp is an observation and
    the rule that tells which outcomes agree with it.
    """
    rng = np.random.default_rng(0) if rng is None else rng
    found = vertices(structure, outcomes)
    hold(len(found) > 0, "a structure has an outcome", f"{structure} has none")
    _check_shape(structure)
    _check_codes(structure, found)
    _check_contains(structure, found, rng)
    _check_views(structure, found)
    _check_loss(structure, found)
    _check_levelled(structure, found, rng)
    _check_interior(structure, found)
    for observed, agrees in clamps:
        _check_clamp(structure, found, observed, agrees)


def _check_shape(structure: Structure) -> None:
    fixed = structure.fixed
    hold(
        fixed.shape == (structure.size,) and bool(np.isin(fixed, (-1, 0, 1)).all()),
        "fixed holds −1, 0 or 1 for every coordinate",
        f"it has shape {fixed.shape} and values {np.unique(fixed).tolist()}",
    )
    hold(
        int(np.prod(structure.shape)) == structure.size,
        "shape holds every coordinate",
        f"shape {structure.shape}, size {structure.size}",
    )
    twin = copy.deepcopy(structure)
    hold(
        twin == structure and hash(twin) == hash(structure),
        "equal structures are equal and hash alike",
        "a deep copy differs",
    )


def _check_codes(structure: Structure, found: Array) -> None:
    for vertex in found:
        outcome = structure.decode(vertex)
        again = structure.encode(outcome)
        hold(
            again.shape == (structure.size,) and bool(np.array_equal(again, vertex)),
            "decode then encode gives the vertex back",
            f"{vertex.tolist()} decodes to {outcome}, which encodes to {again.tolist()}",
        )


def _check_contains(structure: Structure, found: Array, rng: np.random.Generator) -> None:
    hold(
        bool(structure.contains(found).all()),
        "contains accepts every outcome",
        f"{found[~structure.contains(found)][:1].tolist()} is refused",
    )
    mixed = inside(found, 8, rng)
    hold(
        bool(structure.contains(mixed).all()),
        "contains accepts every mean of outcomes",
        f"{mixed[~structure.contains(mixed)][:1].tolist()} is refused",
    )
    hold(
        not bool(structure.contains(found[0] + 2.0) or structure.contains(found[0] - 2.0)),
        "contains refuses points outside the unit box",
        f"{found[0].tolist()} ± 2 is accepted",
    )
    constraints = structure.constraints()
    if constraints is None:
        return
    worst = float(constraints.slack(found).max())
    hold(worst <= 1e-9, "outcomes satisfy the constraints", f"violated by {worst:g}")
    listed = {vertex.tobytes() for vertex in found}
    for vertex in found[:50]:
        flipped = vertex.copy()
        flipped[rng.choice(structure.size, rng.integers(1, 3), replace=True)] += 1.0
        flipped %= 2.0
        hold(
            flipped.tobytes() in listed or not bool(structure.contains(flipped)),
            "the constraints refuse a 0/1 vector that is no outcome",
            f"{flipped.tolist()} is accepted",
        )


def _check_views(structure: Structure, found: Array) -> None:
    views = structure.views()
    seen = found @ views.C.toarray().T + views.c0
    whole = np.isclose(seen, 0.0) | np.isclose(seen, 1.0)
    hold(
        bool(whole.all()),
        "views of an outcome are 0 or 1",
        f"view {int(np.argwhere(~whole)[0, 1]) if not whole.all() else -1} is neither",
    )
    member = views.D.toarray() > 0
    total = seen @ member
    hold(
        bool((total <= 1 + 1e-9).all()),
        "an outcome uses at most one view of a distribution",
        f"distribution {int(total.max(axis=0).argmax())} has {total.max():g}",
    )
    counting = structure.counting()
    hold(
        counting.shape == (member.shape[1],),
        "counting gives a number per distribution",
        f"{counting.shape} for {member.shape[1]} distributions",
    )
    pattern = [_names(seen[:, member[:, j]]) for j in range(member.shape[1])]
    for larger, smaller in views.over.tolist():
        pairs = np.unique(np.stack([pattern[larger], pattern[smaller]], axis=1), axis=0)
        hold(
            len(pairs) == len(np.unique(pattern[larger])),
            "over names pairs of which the second is a marginal of the first",
            f"distribution {larger} does not determine {smaller}",
        )


def _names(rows: Array) -> NDArray[Any]:
    """A number per distinct row."""
    if rows.shape[1] == 0:
        return np.zeros(len(rows), dtype=np.int64)
    return np.asarray(np.unique(rows.round(), axis=0, return_inverse=True)[1]).ravel()


def _check_loss(structure: Structure, found: Array) -> None:
    for vertex in found[:50]:
        linear, constant = structure.loss(vertex)
        own, others = float(linear @ vertex) + constant, found @ linear + constant
        hold(abs(own) <= 1e-9, "an outcome's loss to itself is 0", f"it is {own:g}")
        hold(
            bool((others >= -1e-9).all()),
            "a loss is not negative",
            f"{found[others.argmin()].tolist()} has {others.min():g}",
        )


def _check_levelled(structure: Structure, found: Array, rng: np.random.Generator) -> None:
    scores = rng.standard_normal((1, structure.size, 2)) + 3.0
    lost = found @ (scores - structure.levelled(scores))[0]
    hold(
        bool((np.ptp(lost, axis=0) <= 1e-9).all()),
        "levelled scores differ by the same for every outcome",
        f"they differ by {np.ptp(lost, axis=0).max():g}",
    )


def _check_interior(structure: Structure, found: Array) -> None:
    """Feasible, and positive wherever an outcome is: a view that no outcome uses may be 0."""
    point = structure.interior()
    if point is None:
        return
    views = structure.views()
    hold(
        bool(structure.contains(point)),
        "the interior point is feasible",
        f"{point.tolist()} is not",
    )
    used = (found @ views.C.toarray().T + views.c0 > 0.5).any(axis=0)
    dead = np.flatnonzero(used & (views.C @ point + views.c0 <= 1e-12))
    hold(
        len(dead) == 0,
        "the interior point is positive in every view that an outcome uses (else give None: the "
        "oracle is asked)",
        f"view {dead[:1].tolist()} is 0",
    )
    pinned = structure.fixed >= 0
    hold(
        bool(np.allclose(point[pinned], structure.fixed[pinned])),
        "the interior point keeps fixed coordinates",
        f"{point[pinned].tolist()} for {structure.fixed[pinned].tolist()}",
    )


def _check_clamp(
    structure: Structure, found: Array, observed: Any, agrees: Callable[[Any], bool]
) -> None:
    kept = np.array([bool(agrees(structure.decode(vertex))) for vertex in found])
    before = structure.fixed.copy()
    clamped = structure.clamp(observed)
    inside = clamped.contains(found)
    hold(
        type(clamped) is type(structure) and bool(np.array_equal(structure.fixed, before)),
        "a clamp is a new structure of the same kind",
        f"{type(clamped).__name__} of {type(structure).__name__}, or the old one changed",
    )
    hold(
        bool(np.array_equal(inside, kept)),
        "a clamp keeps exactly the outcomes that agree",
        f"observed {observed!r} keeps {inside.sum()} outcomes, {kept.sum()} agree",
    )

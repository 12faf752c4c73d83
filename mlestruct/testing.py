"""The laws that structures, oracles and entropies obey; each check raises AssertionError in words.

For a structure or a solver of your own, small enough to list its outcomes:

>>> from mlestruct.structures import BipartiteMatching
>>> from mlestruct.oracle import load
>>> small = BipartiteMatching(3, kind="partial", forbidden=[(0, 1)])
>>> check_structure(small)
>>> check_oracle(load("assignment"), small)
>>> check_entropy(small, rho=0.5)
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlestruct.batch import Batch
from mlestruct.entropy import Entropy
from mlestruct.frank_wolfe import FrankWolfe
from mlestruct.inference import marginals
from mlestruct.oracle import HULL, BruteForce, Oracle
from mlestruct.reweighting import Rho, counting_numbers
from mlestruct.structures import BipartiteMatching, FactorGraph, Paths
from mlestruct.structures.base import Array, Structure

LISTED = 20  # coordinates up to which every 0/1 vector of an unknown structure is tried
Clamp = tuple[Any, Callable[[Any], bool]]


def vertices(structure: Structure, outcomes: Iterable[Any] | None = None) -> Array:
    """Every outcome that respects the fixed coordinates, encoded, one per row.

    Structures of the library list their own outcomes; others need ``outcomes``, or a size of at
    most 20 and a ``contains`` that tells outcomes from other 0/1 vectors. O(outcomes · size).
    """
    known = _outcomes(structure) if outcomes is None else outcomes
    if known is None:
        if structure.size > LISTED:
            raise ValueError(f"{structure.size} coordinates are too many to try: pass outcomes")
        rows = np.array(list(itertools.product((0.0, 1.0), repeat=structure.size)))
    else:
        rows = np.array([structure.encode(y) for y in known]).reshape(-1, structure.size)
    return np.asarray(rows[structure.contains(rows)])


def check_structure(
    structure: Structure,
    outcomes: Iterable[Any] | None = None,
    *,
    clamps: Iterable[Clamp] = (),
    rng: np.random.Generator | None = None,
) -> None:
    """Encoding, views, constraints, loss, interior and clamps agree with the listed outcomes.

    ``outcomes`` lists all of them (default: :func:`vertices`); each clamp is an observation and
    the rule that tells which outcomes agree with it.
    """
    rng = np.random.default_rng(0) if rng is None else rng
    found = vertices(structure, outcomes)
    _hold(len(found) > 0, "a structure has an outcome", f"{structure} has none")
    _check_shape(structure)
    _check_codes(structure, found)
    _check_contains(structure, found, rng)
    _check_views(structure, found)
    _check_loss(structure, found)
    _check_interior(structure)
    for observed, agrees in clamps:
        _check_clamp(structure, found, observed, agrees)


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
    mask = oracle.perturbable(batch)
    if mask is not None:
        rest = np.zeros(structure.size) if base is None else base
        scores = np.where(mask.reshape(scores.shape), scores, rest)
    given = scores.copy()
    answer, upper = oracle.many(batch, scores.ravel())
    _hold(
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


def check_entropy(
    structure: Structure,
    rho: Rho = None,
    outcomes: Iterable[Any] | None = None,
    *,
    oracle: Oracle[Any] | None = None,
    models: int = 48,
    allow_nonconvex: bool = False,
    rng: np.random.Generator | None = None,
) -> None:
    """Value, gradient and line terms agree; concave where it says so; log Z bounded as claimed.

    ``models`` random Gibbs distributions over the listed outcomes test the bound at their own
    marginals, a dozen of them also at the maximum, found by Frank-Wolfe with ``oracle`` (default:
    brute force over the outcomes).
    """
    rng = np.random.default_rng(0) if rng is None else rng
    found = vertices(structure, outcomes)
    entropy = Entropy.of(Batch.of(structure), rho, allow_nonconvex=allow_nonconvex)
    points = _inside(found, 12, rng)
    _check_values(structure, entropy, rho, found, points)
    _check_slopes(structure, entropy, found, points, rng)
    if entropy.concave:
        _check_concave(structure, entropy, found, rng)
    _check_temperature(structure, entropy, rho, points)
    _check_bound(structure, entropy, rho, found, models, oracle, rng)


def _hold(true: bool, law: str, detail: str) -> None:
    if not true:
        raise AssertionError(f"{law}: {detail}")


def _outcomes(structure: Structure) -> Iterator[Any] | None:
    if isinstance(structure, FactorGraph):
        return itertools.product(*(range(int(k)) for k in structure.cards))
    if isinstance(structure, BipartiteMatching):
        return _matchings(structure)
    if isinstance(structure, Paths):
        return _paths(structure, structure.source)
    return None


def _matchings(structure: BipartiteMatching) -> Iterator[tuple[int, ...]]:
    lowest = -1 if structure.kind == "partial" else 0
    for partner in itertools.product(range(lowest, structure.columns), repeat=structure.rows):
        used = [column for column in partner if column >= 0]
        if len(set(used)) == len(used):
            yield partner


def _paths(structure: Paths, node: int) -> Iterator[list[int]]:
    if node == structure.sink:
        yield []
        return
    for arc in np.flatnonzero(structure.arcs[:, 0] == node).tolist():
        for rest in _paths(structure, int(structure.arcs[arc, 1])):
            yield [arc, *rest]


# --- structures ----------------------------------------------------------------------------------


def _check_shape(structure: Structure) -> None:
    fixed = structure.fixed
    _hold(
        fixed.shape == (structure.size,) and bool(np.isin(fixed, (-1, 0, 1)).all()),
        "fixed holds −1, 0 or 1 for every coordinate",
        f"it has shape {fixed.shape} and values {np.unique(fixed).tolist()}",
    )
    _hold(
        int(np.prod(structure.shape)) == structure.size,
        "shape holds every coordinate",
        f"shape {structure.shape}, size {structure.size}",
    )
    twin = copy.deepcopy(structure)
    _hold(
        twin == structure and hash(twin) == hash(structure),
        "equal structures are equal and hash alike",
        "a deep copy differs",
    )


def _check_codes(structure: Structure, found: Array) -> None:
    for vertex in found:
        outcome = structure.decode(vertex)
        again = structure.encode(outcome)
        _hold(
            again.shape == (structure.size,) and bool(np.array_equal(again, vertex)),
            "decode then encode gives the vertex back",
            f"{vertex.tolist()} decodes to {outcome}, which encodes to {again.tolist()}",
        )


def _check_contains(structure: Structure, found: Array, rng: np.random.Generator) -> None:
    _hold(
        bool(structure.contains(found).all()),
        "contains accepts every outcome",
        f"{found[~structure.contains(found)][:1].tolist()} is refused",
    )
    mixed = _inside(found, 8, rng)
    _hold(
        bool(structure.contains(mixed).all()),
        "contains accepts every mean of outcomes",
        f"{mixed[~structure.contains(mixed)][:1].tolist()} is refused",
    )
    _hold(
        not bool(structure.contains(found[0] + 2.0) or structure.contains(found[0] - 2.0)),
        "contains refuses points outside the unit box",
        f"{found[0].tolist()} ± 2 is accepted",
    )
    constraints = structure.constraints()
    if constraints is None:
        return
    worst = float(constraints.slack(found).max())
    _hold(worst <= 1e-9, "outcomes satisfy the constraints", f"violated by {worst:g}")
    listed = {vertex.tobytes() for vertex in found}
    for vertex in found[:50]:
        flipped = vertex.copy()
        flipped[rng.choice(structure.size, rng.integers(1, 3), replace=True)] += 1.0
        flipped %= 2.0
        _hold(
            flipped.tobytes() in listed or not bool(structure.contains(flipped)),
            "the constraints refuse a 0/1 vector that is no outcome",
            f"{flipped.tolist()} is accepted",
        )


def _check_views(structure: Structure, found: Array) -> None:
    views = structure.views()
    seen = found @ views.C.toarray().T + views.c0
    whole = np.isclose(seen, 0.0) | np.isclose(seen, 1.0)
    _hold(
        bool(whole.all()),
        "views of an outcome are 0 or 1",
        f"view {int(np.argwhere(~whole)[0, 1]) if not whole.all() else -1} is neither",
    )
    member = views.D.toarray() > 0
    total = seen @ member
    _hold(
        bool((total <= 1 + 1e-9).all()),
        "an outcome uses at most one view of a distribution",
        f"distribution {int(total.max(axis=0).argmax())} has {total.max():g}",
    )
    counting = structure.counting()
    _hold(
        counting.shape == (member.shape[1],),
        "counting gives a number per distribution",
        f"{counting.shape} for {member.shape[1]} distributions",
    )
    pattern = [_names(seen[:, member[:, j]]) for j in range(member.shape[1])]
    for larger, smaller in views.over.tolist():
        pairs = np.unique(np.stack([pattern[larger], pattern[smaller]], axis=1), axis=0)
        _hold(
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
        _hold(abs(own) <= 1e-9, "an outcome's loss to itself is 0", f"it is {own:g}")
        _hold(
            bool((others >= -1e-9).all()),
            "a loss is not negative",
            f"{found[others.argmin()].tolist()} has {others.min():g}",
        )


def _check_interior(structure: Structure) -> None:
    point = structure.interior()
    if point is None:
        return
    views = structure.views()
    _hold(
        bool(structure.contains(point)),
        "the interior point is feasible",
        f"{point.tolist()} is not",
    )
    dead = np.flatnonzero(views.C @ point + views.c0 <= 1e-12)
    _hold(
        len(dead) == 0,
        "the interior point is positive in every view (else give None: the oracle is asked)",
        f"view {dead[:1].tolist()} is 0",
    )
    pinned = structure.fixed >= 0
    _hold(
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
    _hold(
        type(clamped) is type(structure) and bool(np.array_equal(structure.fixed, before)),
        "a clamp is a new structure of the same kind",
        f"{type(clamped).__name__} of {type(structure).__name__}, or the old one changed",
    )
    _hold(
        bool(np.array_equal(inside, kept)),
        "a clamp keeps exactly the outcomes that agree",
        f"observed {observed!r} keeps {inside.sum()} outcomes, {kept.sum()} agree",
    )


# --- oracles -------------------------------------------------------------------------------------


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
    _hold(
        bool(np.array_equal(again, answer) and np.array_equal(bound, upper)),
        "an oracle is deterministic",
        "the same question has two answers",
    )
    order = rng.permutation(len(batch))
    _, bound = oracle.many(batch.select(order), scores[order].ravel())
    _hold(
        bool(_near(bound, upper[order], tol[order]).all()),
        "the order of a batch changes no answer",
        f"bounds {bound.tolist()} and {upper[order].tolist()}",
    )
    for m in range(min(len(batch), 12)):
        _, one = oracle.many(batch.select([m]), scores[m])
        _hold(
            bool(_near(one, upper[m : m + 1], tol[m : m + 1]).all()),
            "many questions at once get the answers they get one at a time",
            f"instance {m}: {one[0]:.12g} alone, {upper[m]:.12g} in the batch",
        )


def _near(one: Array, other: Array, tol: Array) -> NDArray[np.bool_]:
    with np.errstate(invalid="ignore"):  # bounds may be infinite
        return np.asarray((one == other) | (np.abs(one - other) <= tol))


# --- entropies -----------------------------------------------------------------------------------


def _inside(found: Array, count: int, rng: np.random.Generator) -> Array:
    """Means of all outcomes, none of them with no weight."""
    return rng.dirichlet(np.ones(len(found)), count) @ found


def _check_values(
    structure: Structure, entropy: Entropy, rho: Rho, found: Array, points: Array
) -> None:
    at_vertices = _each(structure, entropy, found)
    _hold(
        float(np.abs(at_vertices).max()) <= 1e-9,
        "an outcome has entropy 0",
        f"{at_vertices[np.abs(at_vertices).argmax()]:g}",
    )
    views = structure.views()
    a = views.coefficients(counting_numbers(structure, rho))
    t = np.maximum(points @ views.C.toarray().T + views.c0, 0.0)
    direct = -(t * np.log(np.where(t > 0, t, 1.0))) @ a
    _hold(
        bool(np.allclose(_each(structure, entropy, points), direct, rtol=1e-9, atol=1e-9)),
        "the entropy is −Σ a t log t over the views",
        "the compiled form differs",
    )


def _each(structure: Structure, entropy: Entropy, points: Array) -> Array:
    """The entropy of many points, as one batch."""
    many = Entropy.of(
        Batch.of(structure, count=len(points)), entropy.rho, allow_nonconvex=not entropy.concave
    )
    return many.each(points.ravel())


def _check_slopes(
    structure: Structure, entropy: Entropy, found: Array, points: Array, rng: np.random.Generator
) -> None:
    weighed = replace(entropy, batch=replace(entropy.batch, weight=np.array([1.7])))
    for point in points:
        delta = found[rng.integers(len(found))] - found[rng.integers(len(found))]
        delta = delta + 0.3 * (found[rng.integers(len(found))] - point)
        h = 1e-5 * _room(structure, point, delta)
        high, low = _each(structure, entropy, np.stack([point + h * delta, point - h * delta]))
        slope = float(entropy.grad(point) @ delta)
        line = weighed.line(point, delta)
        size = 1.0 + abs(slope)
        _hold(
            abs((high - low) / (2 * h) - slope) <= 1e-5 * size,
            "the gradient is the slope by finite differences",
            f"{slope:.9g} against {(high - low) / (2 * h):.9g}",
        )
        _hold(
            abs(line.slope(0.0) - 1.7 * slope) <= 1e-9 * size,
            "the line's slope is the example's weight times the gradient's",
            f"{line.slope(0.0):.9g} against {1.7 * slope:.9g}",
        )
        bend = (line.slope(h) - line.slope(-h)) / (2 * h)
        _hold(
            abs(bend - line.curvature(0.0)) <= 1e-5 * (1.0 + abs(bend)),
            "the line's curvature is its slope's by finite differences",
            f"{line.curvature(0.0):.9g} against {bend:.9g}",
        )


def _room(structure: Structure, point: Array, delta: Array) -> float:
    """How far every view stays positive along ±delta."""
    views = structure.views()
    t, dt = views.C @ point + views.c0, np.abs(views.C @ delta)
    moving = dt > 1e-12
    return float(min(1.0, (t[moving] / dt[moving]).min(initial=1.0)))


def _check_concave(
    structure: Structure, entropy: Entropy, found: Array, rng: np.random.Generator
) -> None:
    """Random points look concave where strongly correlated ones are not: try near few outcomes."""
    views = structure.views()
    C = views.C.toarray()
    rho = entropy.rho
    a = views.coefficients(counting_numbers(structure, rho))
    _, size, directions = np.linalg.svd(found - found.mean(axis=0), full_matrices=False)
    tangent = directions[size > 1e-9].T
    for trial in range(60):
        few = found[rng.integers(len(found), size=2 + trial % 3)]
        spread = 10.0 ** -(trial % 5)
        point = (1 - spread) * few.mean(axis=0) + spread * _inside(found, 1, rng)[0]
        t = C @ point + views.c0
        live = (t > 1e-12) & (a != 0)
        moved = C[live] @ tangent
        hessian = -(moved.T * (a[live] / t[live])) @ moved
        largest = float(np.linalg.eigvalsh(hessian).max(initial=-np.inf))
        _hold(
            largest <= 1e-9 * (1.0 + float(np.abs(hessian).max(initial=0.0))),
            "an entropy that says concave has no positive curvature in the polytope",
            f"eigenvalue {largest:g} at {point.tolist()}",
        )


def _check_temperature(structure: Structure, entropy: Entropy, rho: Rho, points: Array) -> None:
    for temperature in (0.0, 0.5, 2.0):
        scaled = Entropy.of(entropy.batch, rho, temperature=temperature, allow_nonconvex=True)
        _hold(
            bool(np.allclose(scaled.each(points[0]), temperature * entropy.each(points[0]))),
            "a temperature multiplies the entropy",
            f"T = {temperature:g} gives {scaled.each(points[0])}",
        )
    _hold(
        Entropy.of(entropy.batch, rho, temperature=0.0, allow_nonconvex=True).flat,
        "at temperature 0 there is no entropy",
        "some coefficient is left",
    )


def _check_bound(
    structure: Structure,
    entropy: Entropy,
    rho: Rho,
    found: Array,
    models: int,
    oracle: Oracle[Any] | None,
    rng: np.random.Generator,
) -> None:
    scale = rng.choice([0.3, 1.0, 3.0], (models, 1))
    scores = scale * rng.standard_normal((models, structure.size))
    energy = scores @ found.T
    top = energy.max(axis=1)
    log_z = top + np.log(np.exp(energy - top[:, None]).sum(axis=1))
    exact = np.exp(energy - log_z[:, None]) @ found
    value = (scores * exact).sum(axis=1) + _each(structure, entropy, exact)
    kind, tol = entropy.bound.kind, 1e-7 * (1.0 + np.abs(log_z))
    tried = np.arange(min(models, 12))
    if kind in (
        "upper",
        "exact",
    ):  # ⟨score, τ⟩ + H(τ) ≥ log Z at the model's own marginals proves it
        tried = np.union1d(tried, np.flatnonzero(value < log_z - tol))
    if kind in ("lower", "exact"):
        _no_violation("at the exact marginals", kind, value <= log_z + tol, value, log_z)
    if kind == "none" or not entropy.concave:
        return
    batch = Batch.of(structure, count=len(tried))
    asked = BruteForce(lambda _: found) if oracle is None else oracle
    solver = FrankWolfe(tol=1e-5, rounds=80)
    result = marginals(batch, scores[tried].ravel(), asked, rho=rho, solver=solver)
    log_z, tol = log_z[tried], tol[tried]
    _no_violation(
        "an interval's ends", "ordered", result.lower <= result.upper + tol, result.upper, log_z
    )
    if kind in ("upper", "exact"):
        _no_violation("at its maximum", kind, result.upper >= log_z - tol, result.upper, log_z)
    if kind in ("lower", "exact"):
        _no_violation("at its maximum", kind, result.lower <= log_z + tol, result.lower, log_z)


def _no_violation(
    where: str, kind: str, true: NDArray[np.bool_], value: Array, log_z: Array
) -> None:
    wrong: Sequence[int] = np.flatnonzero(~true).tolist()
    if wrong:
        m = wrong[0]
        raise AssertionError(
            f"log Z is bounded as the entropy claims ({kind}): {where}, model {m} has "
            f"{value[m]:.9g} against {log_z[m]:.9g}"
        )

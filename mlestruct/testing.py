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
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlestruct.inference import marginals
from mlestruct.inference.exact import LISTABLE
from mlestruct.inference.exact import outcomes as every
from mlestruct.learning.frank_wolfe import FrankWolfe
from mlestruct.oracle import HULL, Oracle, Solver, perturbable
from mlestruct.structures.base import Array, Structure
from mlestruct.structures.batch import Batch
from mlestruct.structures.entropy import Entropy, Rho, counting_numbers

__all__ = ["check_entropy", "check_oracle", "check_structure", "vertices"]

LISTED = 20  # coordinates up to which every 0/1 vector of an unknown structure is tried
Clamp = tuple[Any, Callable[[Any], bool]]


def vertices(structure: Structure, outcomes: Iterable[Any] | None = None) -> Array:
    """Every outcome that respects the fixed coordinates, encoded, one per row.

    Structures of the library list their own outcomes; others need ``outcomes``, or a size of at
    most 20 and a ``contains`` that tells outcomes from other 0/1 vectors. O(outcomes · size).
    """
    if outcomes is None and isinstance(structure, LISTABLE):
        return every(structure)
    if outcomes is None:
        if structure.size > LISTED:
            raise ValueError(f"{structure.size} coordinates are too many to try: pass outcomes")
        rows = np.array(list(itertools.product((0.0, 1.0), repeat=structure.size)))
    else:
        rows = np.array([structure.encode(y) for y in outcomes]).reshape(-1, structure.size)
    return np.asarray(rows[structure.contains(rows)])


def _hold(true: Any, law: str, detail: str) -> None:
    if not true:
        raise AssertionError(f"{law}: {detail}")


def _inside(found: Array, count: int, rng: np.random.Generator) -> Array:
    """Means of all outcomes, none of them with no weight."""
    return rng.dirichlet(np.ones(len(found)), count) @ found


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
    _hold(len(found) > 0, "a structure has an outcome", f"{structure} has none")
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
    fixed, size = structure.fixed, structure.size
    right: Any = fixed.shape == (size,) and np.isin(fixed, (-1, 0, 1)).all()
    _hold(right, "fixed holds −1, 0 or 1 for every coordinate", f"it is {fixed.tolist()}")
    right = np.prod(structure.shape) == size
    _hold(right, "shape holds every coordinate", f"shape {structure.shape}, size {size}")
    twin = copy.deepcopy(structure)
    right = twin == structure and hash(twin) == hash(structure)
    _hold(right, "equal structures are equal and hash alike", "a deep copy differs")


def _check_codes(structure: Structure, found: Array) -> None:
    law = "decode then encode gives the vertex back"
    for vertex in found:
        outcome = structure.decode(vertex)
        again = structure.encode(outcome)
        told = f"{vertex.tolist()} decodes to {outcome}, which encodes to {again.tolist()}"
        _hold(again.shape == (structure.size,) and np.array_equal(again, vertex), law, told)


def _check_contains(structure: Structure, found: Array, rng: np.random.Generator) -> None:
    for what, points in (("outcome", found), ("mean of outcomes", _inside(found, 8, rng))):
        inside = structure.contains(points)
        told = f"{points[~inside][:1].tolist()} is refused"
        _hold(inside.all(), f"contains accepts every {what}", told)
    outside = structure.contains(found[0] + 2.0) or structure.contains(found[0] - 2.0)
    law = "contains refuses points outside the unit box"
    _hold(not outside, law, f"{found[0].tolist()} ± 2 is accepted")
    constraints = structure.constraints()
    if constraints is None:
        return
    worst = float(constraints.slack(found).max())
    _hold(worst <= 1e-9, "outcomes satisfy the constraints", f"violated by {worst:g}")
    listed, law = {vertex.tobytes() for vertex in found}, "the constraints refuse other 0/1 vectors"
    for vertex in found[:50]:
        flipped = vertex.copy()
        flipped[rng.choice(structure.size, rng.integers(1, 3), replace=True)] += 1.0
        flipped %= 2.0
        right = flipped.tobytes() in listed or not structure.contains(flipped)
        _hold(right, law, f"{flipped.tolist()} is no outcome and accepted")


def _check_views(structure: Structure, found: Array) -> None:
    views = structure.views()
    seen = found @ views.C.toarray().T + views.c0
    whole = np.isclose(seen, 0.0) | np.isclose(seen, 1.0)
    told = f"views {np.flatnonzero(~whole.all(axis=0)).tolist()} are neither"
    _hold(whole.all(), "views of an outcome are 0 or 1", told)
    member = views.D.toarray() > 0
    total = seen @ member
    told = f"distribution {total.max(axis=0).argmax()} has {total.max():g}"
    law = "an outcome uses at most one view of a distribution"
    _hold((total <= 1 + 1e-9).all(), law, told)
    counting, many = structure.counting(), member.shape[1]
    told = f"{counting.shape} for {many} distributions"
    _hold(counting.shape == (many,), "counting gives a number per distribution", told)
    pattern = [_names(seen[:, member[:, j]]) for j in range(many)]
    law = "over names pairs of which the second is a marginal of the first"
    for larger, smaller in views.over.tolist():
        pairs = np.unique(np.stack([pattern[larger], pattern[smaller]], axis=1), axis=0)
        told = f"distribution {larger} does not determine {smaller}"
        _hold(len(pairs) == len(np.unique(pattern[larger])), law, told)


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
        told = f"{found[others.argmin()].tolist()} has {others.min():g}"
        _hold((others >= -1e-9).all(), "a loss is not negative", told)


def _check_levelled(structure: Structure, found: Array, rng: np.random.Generator) -> None:
    scores = rng.standard_normal((1, structure.size, 2)) + 3.0
    apart = np.ptp(found @ (scores - structure.levelled(scores))[0], axis=0).max()
    law = "levelled scores differ by the same for every outcome"
    _hold(apart <= 1e-9, law, f"they differ by {apart:g}")


def _check_interior(structure: Structure, found: Array) -> None:
    """Feasible, and positive wherever an outcome is: a view that no outcome uses may be 0."""
    point = structure.interior()
    if point is None:
        return
    views, told = structure.views(), f"{point.tolist()}"
    _hold(structure.contains(point), "the interior point is feasible", told)
    used = (found @ views.C.toarray().T + views.c0 > 0.5).any(axis=0)
    dead = np.flatnonzero(used & (views.C @ point + views.c0 <= 1e-12))
    law = "the interior point is positive in every view that an outcome uses"
    _hold(len(dead) == 0, law, f"views {dead.tolist()} are 0 (else give None: the oracle is asked)")
    pinned = structure.fixed >= 0
    right = np.allclose(point[pinned], structure.fixed[pinned])
    _hold(right, "the interior point keeps fixed coordinates", told)


def _check_clamp(
    structure: Structure, found: Array, observed: Any, agrees: Callable[[Any], bool]
) -> None:
    kept = np.array([bool(agrees(structure.decode(vertex))) for vertex in found])
    before = structure.fixed.copy()
    clamped = structure.clamp(observed)
    inside = clamped.contains(found)
    right = type(clamped) is type(structure) and np.array_equal(structure.fixed, before)
    told = f"{type(clamped).__name__} of {type(structure).__name__}, or the old one changed"
    _hold(right, "a clamp is a new structure of the same kind", told)
    told = f"observed {observed!r} keeps {inside.sum()} outcomes, {kept.sum()} agree"
    _hold(np.array_equal(inside, kept), "a clamp keeps exactly the outcomes that agree", told)


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
    law = "an oracle does not change its input"
    _hold(np.array_equal(scores, given), law, "the scores were written to")
    finite = np.where(np.isfinite(scores), scores, 0.0)
    best = (finite @ found.T).max(axis=1)
    tol = 1e-9 * (1.0 + np.abs(finite).sum(axis=1))
    points = np.asarray(answer).reshape(scores.shape)
    reached = (np.where(points != 0, scores, 0.0) * points).sum(axis=1)
    exact = oracle.polytope == HULL if exact is None else exact
    laws: list[tuple[str, Any]] = [
        ("an answer lies in the structure", structure.contains(points, 1e-7))
    ]
    if exact:
        laws.append(("an exact answer equals brute force", np.abs(reached - best) <= tol))
    elif oracle.polytope != HULL:
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
    again, bound = oracle.many(batch, scores.ravel())
    same = np.array_equal(again, answer) and np.array_equal(bound, upper)
    _hold(same, "an oracle is deterministic", "the same question has two answers")
    order = rng.permutation(len(batch))
    _, bound = oracle.many(batch.select(order), scores[order].ravel())
    told = f"bounds {bound.tolist()} and {upper[order].tolist()}"
    law = "the order of a batch changes no answer"
    _hold(_near(bound, upper[order], tol[order]), law, told)
    law = "many questions at once get the answers they get one at a time"
    for m in range(min(len(batch), 12)):
        _, one = oracle.many(batch.select([m]), scores[m])
        told = f"instance {m}: {one[0]:.12g} alone, {upper[m]:.12g} in the batch"
        _hold(_near(one, upper[m : m + 1], tol[m : m + 1]), law, told)


def _near(one: Array, other: Array, tol: Array) -> bool:
    with np.errstate(invalid="ignore"):  # bounds may be infinite
        return bool(((one == other) | (np.abs(one - other) <= tol)).all())


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
    """Value and gradient agree; concave where it says so; log Z bounded as claimed.

    ``models`` random Gibbs distributions over the listed outcomes test the bound at their own
    marginals, a dozen of them also at the maximum, found by Frank-Wolfe with ``oracle`` (default:
    brute force over the outcomes).
    """
    rng = np.random.default_rng(0) if rng is None else rng
    found = vertices(structure, outcomes)
    entropy = Entropy.of(Batch.of(structure), rho, allow_nonconvex=allow_nonconvex)
    points = _inside(found, 12, rng)
    a = structure.views().coefficients(counting_numbers(structure, rho))
    _check_formula(structure, entropy, a, found, points)
    if entropy.concave:
        _check_concave(structure, a, found, rng)
    _check_bound(structure, entropy, rho, found, models, oracle, rng)


def _check_formula(
    structure: Structure, entropy: Entropy, a: Array, found: Array, points: Array
) -> None:
    most = float(np.abs(_each(structure, entropy, found)).max())
    _hold(most <= 1e-9, "an outcome has entropy 0", f"{most:g}")
    views = structure.views()
    C = views.C.toarray()
    t = np.maximum(points @ C.T + views.c0, 0.0)
    log = np.log(np.where(t > 0, t, 1.0))
    right = np.allclose(_each(structure, entropy, points), -(t * log) @ a, rtol=1e-9, atol=1e-9)
    _hold(right, "the entropy is −Σ a t log t over the views", "the compiled form differs")
    ways = found - found[0]  # views that do not change along them may be 0
    for point, slope in zip(points, -(a * (log + 1.0)) @ C, strict=True):
        apart = float(np.abs(ways @ (entropy.grad(point) - slope)).max())
        law = "the gradient is the slope −Σ a (log t + 1) of the views"
        _hold(apart <= 1e-7 * (1.0 + np.abs(slope).sum()), law, f"{apart:.3g} apart")


def _each(structure: Structure, entropy: Entropy, points: Array) -> Array:
    """The entropy of many points, as one batch."""
    batch = Batch.of(structure, count=len(points))
    return Entropy.of(batch, entropy.rho, allow_nonconvex=not entropy.concave).each(points.ravel())


def _check_concave(structure: Structure, a: Array, found: Array, rng: np.random.Generator) -> None:
    """Random points look concave where strongly correlated ones are not: try near few outcomes."""
    views = structure.views()
    C, law = views.C.toarray(), "a concave entropy has no positive curvature in the polytope"
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
        most = 1e-9 * (1.0 + float(np.abs(hessian).max(initial=0.0)))
        _hold(largest <= most, law, f"eigenvalue {largest:g} at {point.tolist()}")


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
    if kind in ("upper", "exact"):  # at the model's own marginals a value ≥ log Z proves it
        tried = np.union1d(tried, np.flatnonzero(value < log_z - tol))
    if kind in ("lower", "exact"):
        _bounded("at the exact marginals", kind, value <= log_z + tol, value, log_z)
    if kind == "none" or not entropy.concave:
        return
    batch = Batch.of(structure, count=len(tried))
    listed = Solver(lambda score: found[(found @ score.ravel()).argmax()].reshape(score.shape))
    asked = listed if oracle is None else oracle
    solver = FrankWolfe(tol=1e-5, rounds=80)
    result = marginals(batch, scores[tried].ravel(), asked, rho=rho, solver=solver)
    log_z, tol, lower, upper = log_z[tried], tol[tried], result.lower, result.upper
    _bounded("an interval's ends", "ordered", lower <= upper + tol, upper, lower)
    if kind in ("upper", "exact"):
        _bounded("at its maximum", kind, upper >= log_z - tol, upper, log_z)
    if kind in ("lower", "exact"):
        _bounded("at its maximum", kind, lower <= log_z + tol, lower, log_z)


def _bounded(where: str, kind: str, true: Any, value: Array, log_z: Array) -> None:
    wrong = np.flatnonzero(~true)
    if len(wrong):
        m, law = wrong[0], f"log Z is bounded as the entropy claims ({kind})"
        raise AssertionError(f"{law}: {where}, model {m} has {value[m]:.9g} against {log_z[m]:.9g}")

"""The dual objective of every convex learner, and the certificate that bounds its error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from mlestruct.errors import Infeasible, counting_from
from mlestruct.features import Features
from mlestruct.learning.regulariser import Regulariser
from mlestruct.limits import OutOfTime
from mlestruct.oracle import HULL, Oracle
from mlestruct.oracle.protocol import innermost
from mlestruct.results import Shown
from mlestruct.storage.digest import digest, named
from mlestruct.structures.base import Array, Ints, as_numbers
from mlestruct.structures.batch import Batch
from mlestruct.structures.entropy import FLOOR, TINY, Entropy

DOUBT = 1e-6  # relative to a score: what solvers' own tolerances may explain
CLEAR = 0.999  # of the least that an answer could have: a bound below proves that none has any
UNASKED = "was not asked about all parts in time"
MIX = 1e-10  # certificates are taken at (1−MIX)τ + MIX·u where a logarithm would be clipped


@dataclass(frozen=True)
class Dual:
    """min over τ_m in P_m of R*(r) − Σ w_m [H(τ_m) + ⟨bias_m, τ_m⟩ + constant_m].

    r = Σ w_m (φ_m − Φ_mᵀτ_m) are the moments still missing. The optimal value equals the largest
    surrogate log-likelihood (or minus the least margin loss); the best weights are θ = ∇R*(r).
    """

    batch: Batch[Any]
    features: Features
    entropy: Entropy
    regulariser: Regulariser

    def named(self) -> dict[str, Any]:
        """What tells this problem from others, for checkpoints."""
        entropy = digest(self.entropy.a, self.entropy.b, self.entropy.mixed)
        return {**named(self.batch, self.features, self.regulariser), "entropy": entropy}

    @cached_property
    def observed(self) -> Array:
        """Σ w_m φ_m."""
        if self.batch.target is None:
            return np.zeros(self.features.d)
        return self.features.moments(self.weigh(self.batch.target))

    def weigh(self, flat: Array) -> Array:
        if (self.batch.weight == 1).all():
            return flat
        return flat * self.batch.weights

    def residual(self, tau: Array) -> Array:
        return self.observed - self.features.moments(self.weigh(tau))

    def theta(self, tau: Array) -> Array:
        return self.regulariser.weights(self.residual(tau))

    def scores(self, theta: Array) -> Array:
        """Φθ + bias: what a MAP solver of the model maximises."""
        return self.features.potentials(theta) + self.batch.bias

    def energy(self, tau: Array) -> float:
        """Σ w_m [H(τ_m) + ⟨bias_m, τ_m⟩ + constant_m]."""
        each = self.entropy.each(tau) + self.batch.totals(self.batch.bias * tau)
        if self.batch.constant is not None:
            each = each + self.batch.constant
        return float(self.batch.weight @ each)

    def value(self, tau: Array) -> float:
        return self.regulariser.conj(self.residual(tau)) - self.energy(tau)


@dataclass(frozen=True)
class Certificate(Shown):
    """gap ≥ distance of the stated objective from its optimum, over the stated polytope.

    ``slack`` is the part that comes from the oracle's own bounds; ``relative`` divides by
    max(1, |objective|). ``withheld`` says why there is none (then gap is infinite); ``unused``
    counts parts that no answer uses, which were fixed at 0.
    """

    gap: float
    slack: float
    objective: float
    polytope: str
    bound: str
    withheld: str | None = None
    unused: int = 0

    @property
    def relative(self) -> float:
        return self.gap / max(1.0, abs(self.objective))

    @property
    def unbounded(self) -> bool:
        """The oracle left questions without a bound, so that no gap is known."""
        return self.withheld is None and bool(np.isinf(self.slack))

    def __add__(self, other: Certificate) -> Certificate:
        """The certificate of the sum of two objectives."""
        polytope, bound = _either(self.polytope, other.polytope), _either(self.bound, other.bound)
        withheld, unused = self.withheld or other.withheld, self.unused + other.unused
        gap, slack = self.gap + other.gap, self.slack + other.slack
        objective = self.objective + other.objective
        return Certificate(gap, slack, objective, polytope, bound, withheld, unused)

    def columns(self) -> dict[str, list[Any]]:
        """One row: what is proven, of what, and over which polytope."""
        fields = asdict(self) | {"relative": self.relative}
        return {name: [value] for name, value in fields.items()}

    def remarks(self) -> list[str]:
        return [str(self)]

    def plot(self, ax: Any = None) -> Any:
        """The interval that is proven to hold the optimum, from objective − gap to objective."""
        from mlestruct.plot import dots

        ends = [(self.objective - self.gap, self.objective)]
        return dots(["objective"], [self.objective], ends, label="optimum is proven here", ax=ax)

    def __str__(self) -> str:
        if self.withheld:
            return f"no certificate: {self.withheld}"
        if self.unbounded:
            return (
                f"objective {self.objective:.6g}; how far from the optimum is not known, as the "
                "oracle left questions without a bound"
            )
        unused = f"; {self.unused} parts that the oracle says no answer uses are fixed at 0"
        unused = unused if self.unused else ""
        return (
            f"objective {self.objective:.6g} within {self.gap:.2g} of the optimum "
            f"(relative {self.relative:.1e}; oracle's slack {self.slack:.1e}) of the surrogate "
            f"over the {self.polytope}; log Z is {self.bound}{unused}"
        )


def _either(one: str, other: str) -> str:
    return one if other in (one, *one.split(" / ")) else f"{one} / {other}"


def refuse_below(batch: Batch[Any], upper: Array, here: Array, what: str, advice: str = "") -> None:
    """No bound on the best score lies below the score of a point of the polytope.

    Where one does, the oracle's answer was not the best, or not to this question.
    """
    short = np.flatnonzero(~(upper >= here - DOUBT * (1.0 + np.abs(here))))
    if len(short):
        m = int(short[0])
        raise ValueError(
            f"example {m}: the oracle says that no score exceeds {upper[m]:.10g}, but {what} has "
            f"{here[m]:.10g}{advice}; where its answers may be wrong, let it return "
            "Answer(vertex, upper), where it minimises, say Solver(solve, sense='min'), and where "
            "scores are equal, as at first all are, it has to keep its constraints, too"
        )


def certificate(
    dual: Dual,
    oracle: Oracle[Any],
    theta: Array,
    tau: Array,
    inner: Interior | None = None,
    at: Array | None = None,
    *,
    mixture: bool = False,
) -> Certificate:
    """The certificate of any pair (θ, τ) with τ in the polytope. One oracle call per example.

    gap = Σ w_m max_s ⟨Φ_mθ + bias_m + ∇H(τ_m), s − τ_m⟩ + [R(θ) + R*(r(τ)) − ⟨θ, r(τ)⟩].
    ``at`` takes the entropy's tangent at another point, see :func:`tangent_gaps`. A τ outside the
    oracle's polytope is refused, unless you state that it is a ``mixture`` of the oracle's answers.
    """
    theta, tau = as_numbers(theta, "theta"), as_numbers(tau, "tau", dual.batch.size)
    at = None if at is None else as_numbers(at, "at", dual.batch.size)
    inner = interior(dual.batch, oracle, dual.entropy) if inner is None else inner
    dual = replace(dual, entropy=inner.entropy)
    point = inner.pull(tau) if at is None else tau
    known = dual.batch, dual.entropy, oracle, dual.scores(theta)
    gaps, slack = tangent_gaps(*known, point, at, mixture=mixture)
    bracket = dual.regulariser.bracket(theta, dual.residual(point))
    weight = dual.batch.weight
    gap = float(weight @ gaps) + bracket if inner.withheld is None else float("inf")
    told = oracle.polytope, str(dual.entropy.bound), inner.withheld, inner.unused
    return Certificate(gap, float(weight @ slack), dual.value(point), *told)


def tangent_gaps(
    batch: Batch[Any],
    entropy: Entropy,
    oracle: Oracle[Any],
    scores: Array,
    tau: Array,
    at: Array | None = None,
    *,
    mixture: bool = False,
) -> tuple[Array, Array]:
    """Every example's max_s ⟨score + ∇H(τ), s − τ⟩, and the part due to the oracle's own bounds.

    A concave H lies below each of its tangents, so the one ``at`` any other point bounds the error
    too, once H(at) + ⟨∇H(at), τ − at⟩ − H(τ) is added; near the boundary it is the better bound.
    """
    scores, tau = as_numbers(scores, "scores", batch.size), as_numbers(tau, "tau", batch.size)
    _refuse_outside(batch, tau, HULL in oracle.polytope and not mixture)
    slope = entropy.grad(tau if at is None else at)
    score = scores + slope
    vertices, upper = oracle.many(batch, score)
    reached = batch.totals(np.where(vertices != 0, score, 0.0) * vertices)
    here = batch.totals(score * tau)
    refuse_below(batch, upper, here, "tau")
    gaps = upper - here
    if at is not None:
        over = entropy.each(at) - entropy.each(tau) + batch.totals(slope * (tau - at))
        gaps = gaps + over
    return gaps, upper - reached


def _refuse_outside(batch: Batch[Any], tau: Array, hull: bool) -> None:
    """Points that break stated constraints; those outside the outcomes' hull where it is meant."""
    for structure, members in batch.groups():
        rows = batch.rows(tau, members)
        feasible = structure.contains(rows, 1e-8)
        inside = feasible & structure.in_hull(rows) if hull else feasible
        if inside.all():
            continue
        first = int(np.flatnonzero(~(inside if feasible.all() else feasible))[0])
        why = "tau is not feasible, so no gap would mean anything"
        if feasible[first]:
            why = (
                "tau keeps the stated constraints but is not known to be a mixture "
                f"of a {type(structure).__name__}'s outcomes (odd sets), so no gap would mean "
                "anything; if the oracle's answers make it up, say mixture=True"
            )
        raise ValueError(f"example {members[first]}: {why}")


@dataclass(frozen=True)
class Interior:
    """A point positive in every view an answer can use, and the entropy without the others.

    ``unused`` counts coordinates with an entropy that the oracle proved 0 in every answer.
    """

    tau: Array
    entropy: Entropy
    unused: int
    withheld: str | None = None

    def pull(self, tau: Array) -> Array:
        """τ itself, or (1−δ)τ + δu where an entropy would need the logarithm of nothing."""
        entropy = self.entropy
        coordinates, complements, mixed = entropy.views(tau)
        touches = (
            ((entropy.a != 0) & (coordinates < TINY)).any()
            or ((entropy.b != 0) & (complements < 10 * FLOOR)).any()
            or ((entropy.mixed.a != 0) & (mixed < 10 * FLOOR)).any()
        )
        return (1 - MIX) * coordinates + MIX * self.tau if touches else coordinates


def interior(
    batch: Batch[Any],
    oracle: Oracle[Any],
    entropy: Entropy,
    *,
    stated: bool = True,
    late: Callable[[], bool] | None = None,
) -> Interior:
    """Average oracle answers, once per distinct structure, until they cover every view.

    A structure's own interior point is taken instead where it has one, if ``stated``: a solver that
    rules some of its outcomes out has a smaller polytope.

    Each question is Σ of the uncovered views; when its best score proves that no answer uses
    them, they are dead: their coordinates are fixed and their entropy dropped. An oracle that
    cannot prove it leaves the certificate withheld, as it is where it gets ``late`` before all
    views are covered.
    """
    tau = np.empty(batch.size)
    dead = [np.zeros(len(a), dtype=bool) for a in (entropy.a, entropy.b, entropy.mixed.a)]
    starts, withheld = (batch.offsets, batch.offsets, entropy.mixed.start), None
    for structure, members in batch.groups():
        known = structure.interior() if stated else None
        if known is not None:
            point, gone, short = known, [known == 0], ""
        else:
            point, gone, short = _cover(batch, members, oracle, entropy, late)
        tau[batch.index(members)] = np.tile(point, len(members))
        for whole, part, start in zip(dead, gone, starts, strict=False):
            places = start[members][:, None] + np.arange(len(part))
            whole[places.ravel()] = np.tile(part, len(members))
        if short:
            withheld = f"of a {type(structure).__name__} the oracle {short}"
    lost = np.flatnonzero(dead[0] & (0 if batch.target is None else batch.target > 0))
    if len(lost):
        k = int(lost[0])
        m = int(batch.owner[k])
        raise ValueError(
            f"example {m}: the oracle says that no answer uses coordinate {k - batch.offsets[m]}, "
            "but the observed outcome does; where it minimises, say Solver(solve, sense='min')"
        )
    dead[0] &= entropy.a != 0
    return Interior(tau, entropy.drop(*dead), int(dead[0].sum()), withheld)


def _cover(
    batch: Batch[Any],
    members: Ints,
    oracle: Oracle[Any],
    entropy: Entropy,
    late: Callable[[], bool] | None,
) -> tuple[Array, list[Any], str]:
    """Return the mean of answers, the views that they leave out, and why that is not proven."""
    m = int(members[0])
    structure, one, part = batch.structure(m), batch.select([m]), batch.coordinates(m)
    rows = slice(int(entropy.mixed.start[m]), int(entropy.mixed.start[m + 1]))
    C, c0 = entropy.mixed_matrix()[rows][:, part], entropy.mixed.c0[rows]
    needs = [entropy.a[part] != 0, entropy.b[part] != 0, entropy.mixed.a[rows] != 0]
    found: list[Array] = []

    def take(answer: Array) -> bool:
        """Whether the answer shows a view that none before did; it counts if so."""
        clear = [view > 1e-9 for view in (answer, 1 - answer, C @ answer + c0)]
        news = any((need & seen).any() for need, seen in zip(needs, clear, strict=True))
        if news or not found:
            found.append(answer)
        for need, seen in zip(needs, clear, strict=True):
            need &= ~seen
        return news

    # Outcomes that were observed are answers, whatever the oracle says.
    target, shown = batch.target, () if batch.target is None else members
    seen = (target[batch.coordinates(int(k))] for k in shown)  # type: ignore[index]
    outcomes = (each for each in seen if ((each == 0) | (each == 1)).all())
    short = ""
    while not short and (not found or any(need.any() for need in needs)):
        score = needs[0].astype(float) - needs[1] + C.T @ needs[2].astype(float)
        try:
            with counting_from(m):
                vertex, upper = oracle.many(one, score)
                if not structure.contains(vertex, 1e-6):
                    raise Infeasible("example 0: the oracle found no feasible answer")
        except OutOfTime:
            return np.mean(found or [np.full(structure.size, np.nan)], axis=0), needs, UNASKED
        except Infeasible as error:
            why = structure.impossible()
            raise Infeasible(f"example {m}: {why}" if why else str(error)) from error
        fresh = take(vertex)
        if late is not None and late() and any(need.any() for need in needs):
            short = UNASKED
            _ = [take(each) for each in outcomes]
        elif not fresh:
            # What a view of whole numbers is at least, in an answer that has any of it.
            whole = all(bool((own == np.rint(own)).all()) for own in (C.data, c0))
            inner: Any = innermost(oracle)
            least = float(getattr(inner, "grain", 1.0 if inner.polytope == HULL else 0.0))
            best = float(upper[0]) + needs[1].sum() + c0[needs[2]].sum()
            if best <= max(1e-6, CLEAR * least * whole):
                break
            if not any(take(each) for each in outcomes):
                short = _unproven(needs)
    return np.mean(found, axis=0), needs, short


def _unproven(needs: list[Any]) -> str:
    never, always = (np.flatnonzero(need) for need in needs[:2])
    told = [
        f"{what} {', '.join(map(str, parts[:5].tolist()))}{', …' * (len(parts) > 5)}"
        for what, parts in (("never used the parts", never), ("always used the parts", always))
        if len(parts)
    ]
    how = " and ".join(told) or "never loosened some constraints"
    return f"{how}, and did not prove that no answer differs"

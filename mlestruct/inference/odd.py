"""Matchings where odd sets bind: scaling under prices of the sets, which cut trees find.

The hull of a general graph's matchings is what of the degree polytope also keeps, for every odd set
S of nodes, Σ τ inside S ≤ (|S| − 1)/2 (Edmonds 1965). With prices z ≥ 0 of such sets,

    max over the hull of ⟨score, τ⟩ + H  ≤  D(z) = log Z(score') + Σ_S z_S (|S| − 1)/2,

where score' is less z_S for all pairs inside S, and log Z is over the degrees: scaling's, bounded
by the nodes' prices. D is convex, a bound for any sets and prices, and equal at its least where
every set that binds is among them. Its slope is what sets have left, its Hessian that of log Z
between them: Newton's steps find the least over the sets known, a cut tree
(:func:`mlestruct.structures.odd_sets.violated_sets`) what its τ breaks, until it breaks none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.optimize import nnls

from mlestruct.inference.matching import MatchingPrices, Scaling
from mlestruct.inference.routine import Beliefs, Routine
from mlestruct.limits import late
from mlestruct.oracle import HULL
from mlestruct.storage.trees import Tree, like
from mlestruct.structures.base import Array, Marks, as_numbers
from mlestruct.structures.batch import Batch
from mlestruct.structures.entropy import Entropy
from mlestruct.structures.matching import Matching
from mlestruct.structures.odd_sets import EXACT, SMALL, calm, odd_set_proof, violated_sets

ROUNDS = 50  # of looking for what is broken
STEPS = 40  # of Newton, for one family of sets
LOW = 0.1  # ρ from which slacks have entropy enough for Newton
ENOUGH = 1e-12  # of what a set has left
FINE = 1e-13  # scaling's residual below the sets
RIDGE, TINY = 1e-12, 1e-30  # keep singular Hessians from being solved for
FIRST, BEYOND, SHORTEST = 4.0, 0.01, 1e-12  # of a step in a price
NEAR = 1e-6  # of τ = 1/(2ρ), where an edge's slope has its pole
DOUBT = 1e-7  # relative: of values near vertices above ρ = ½


class Family(NamedTuple):
    """Odd sets as rows of flags over the nodes, and their prices; a row without a price is none."""

    sets: Marks
    price: Array

    @property
    def worth(self) -> float:
        """Σ z_S (|S| − 1)/2."""
        return float(self.price @ (self.sets.sum(axis=1) - 1)) / 2.0

    def cut(self, structure: Matching) -> Array:
        """Σ z_S over the sets around every edge."""
        inside = self.sets.astype(float)
        tail, head = structure.ends.T
        return np.asarray(((inside.T * self.price) @ inside)[tail, head])

    def priced(self) -> Family:
        return Family(self.sets[self.price > 0], self.price[self.price > 0])

    def joined(self, sets: Marks) -> Family:
        """With those of more sets that are not among them."""
        known = {row.tobytes() for row in self.sets}
        fresh = [row for row in sets if row.tobytes() not in known]
        more = np.array(fresh, dtype=bool).reshape(-1, self.sets.shape[1])
        return Family(np.concatenate([self.sets, more]), np.r_[self.price, np.zeros(len(more))])


class DualPoint(NamedTuple):
    """D at a family's prices, its slope, its τ over the degrees, and scaling's next start."""

    value: float
    left: Array
    tau: Array
    warm: list[MatchingPrices]

    def error(self, family: Family) -> float:
        """How far D's slope is from that of a least value."""
        free = (family.price > 0) | (self.left < 0)
        return float(np.abs(self.left[free]).max(initial=0.0))


@dataclass(frozen=True)
class Cohort:
    """One example: a general matching, its scores, and what scales it."""

    structure: Matching
    score: Array
    scaling: Scaling

    def at(self, family: Family, warm: list[MatchingPrices]) -> DualPoint:
        """D, whose slope is (|S| − 1)/2 − Σ τ inside S. O(edges) a sweep."""
        scores = self.score - family.cut(self.structure)
        log_z, tau, warm = self.scaling.many(Batch.of(self.structure, count=1), scores, warm)
        inside = family.sets.T.astype(float)
        held = (inside * (self._table(tau) @ inside)).sum(0)
        left = (family.sets.sum(axis=1) - 1 - held) / 2.0
        return DualPoint(float(log_z[0]) + family.worth, left, tau, warm)

    def curvature(self, sets: Marks, tau: Array) -> Array:
        """D's Hessian: A M Aᵀ of the sets' edges A, M the slopes of τ by scores over the degrees.

        M = W − W Bᵀ (B W Bᵀ + slacks)⁻¹ B W, with the nodes' edges B, and W = τ(1 − τ)/(1 − 2ρτ).
        O(nodes³ + sets² nodes).
        """
        rho, inside = self.scaling.rho, sets.T.astype(float)
        pole = 1.0 - 2.0 * rho * tau
        table = self._table(tau * (1.0 - tau) / np.where(np.abs(pole) < NEAR, NEAR, pole))
        system, weight = table.copy(), table.sum(axis=1)
        if self.structure.kind == "partial":
            single = np.maximum(1.0 - self.structure.graph.degrees(tau[None])[0], 0.0)
            weight += single / max(rho, NEAR)
        system[np.diag_indices(len(system))] += weight + RIDGE * np.abs(weight).max()
        across = inside * (table @ inside)
        own = np.empty((len(sets),) * 2)
        for k, members in enumerate(sets):
            part = inside[members]
            own[k] = (part * (table[np.ix_(members, members)] @ part)).sum(axis=0) / 2.0
        return np.asarray(own - across.T @ np.linalg.solve(system, across))

    def _table(self, values: Array) -> Array:
        """Symmetric, nodes × nodes."""
        tail, head = self.structure.ends.T
        table = np.zeros((self.structure.n_nodes,) * 2)
        table[tail, head] = table[head, tail] = values
        return table

    def priced(self, family: Family, now: DualPoint) -> tuple[Family, DualPoint]:
        """The least D over a family: Newton's steps, of a length that has led down so far.

        A price at zero that would fall stays there. At ρ = 1 D has kinks, with plateaus beyond:
        from beside one a short step leads nowhere, and one of ``BEYOND`` to the plateau.
        """
        most = FIRST
        for _ in range(STEPS):
            if now.error(family) <= ENOUGH or most < SHORTEST or late():
                break
            free, step = (family.price > 0) | (now.left < 0), np.zeros(len(now.left))
            curvature = self.curvature(family.sets[free], now.tau)
            step[free] = _newton(curvature, now.left[free], family.price[free])
            long = max(np.abs(step).max(), TINY)
            for length in (min(1.0, most / long), BEYOND / long)[: 1 + (long < BEYOND)]:
                trial = family._replace(price=np.maximum(family.price + length * step, 0.0))
                new = self.at(trial, now.warm)
                gain, doubt = now.value - new.value, DOUBT * (1.0 + abs(now.value))
                if gain > doubt or (gain >= -doubt and new.error(trial) < now.error(family)):
                    family, now, most = trial, new, 4.0 * most
                    break
            else:
                most = 0.25 * min(most, long)
        return family, now

    def repriced(
        self, family: Family, warm: list[MatchingPrices], broken: Marks
    ) -> tuple[Family, DualPoint, bool]:
        """The least D over all odd sets, from a family and what is broken without it.

        Its τ, where nodes may be single, is less what sets hold too much; else the hull's to mend.
        Say whether that was looked up, and breaks no odd set.
        """
        for _ in range(ROUNDS):
            family = family.priced().joined(broken)
            family, now = self.priced(family, self.at(family, warm))
            warm = now.warm
            if late():
                break
            broken = violated_sets(self.structure, now.tau)
            if len(family.joined(broken).sets) == len(family.sets):
                break
        if self.structure.kind == "partial":
            over = -2.0 * now.left / np.maximum(family.sets.sum(axis=1) - 1, 1)
            most = over[family.price > 0].max(initial=0.0)
            now = now._replace(tau=now.tau / (1.0 + most))
        return family.priced(), now, len(broken) == 0


class HullState(NamedTuple):
    """Where the next call starts: scaling's state, and odd sets with prices by example."""

    scaling: list[MatchingPrices]
    sets: dict[int, Family]
    mixtures: Any = None  # flags of examples whose last τ breaks no odd set


@dataclass(frozen=True)
class HullScaling(Scaling):
    """:class:`Scaling` over the hull: where an odd set of a general graph binds, it has a price.

    ``coarser`` it is scaling over the degrees alone: a fit looks for sets near its end. Examples
    of more than ``EXACT`` nodes, whose cut trees take long, are left to scaling; what proves them
    says so.
    """

    @classmethod
    def serve(cls, entropy: Entropy) -> Self | None:
        """Matchings that scaling serves, if any of them has odd cycles."""
        found = super().serve(entropy)
        odd = map(_searchable, entropy.batch.structures)
        return found if found is not None and found.rho >= LOW and any(odd) else None

    def over(self, polytope: str) -> Routine:
        return self if HULL in polytope else Scaling(self.rho, self.residual, self.sweeps)

    def many(self, batch: Batch[Any], scores: Array, warm: HullState | None = None) -> Beliefs:
        """Over the degrees; then example by example, where sets bind or did in the last call."""
        scores = as_numbers(scores, "scores", batch.size)
        log_z, tau, state = super().many(batch, scores, warm and warm.scaling)
        sets = {} if warm is None else warm.sets
        if self.residual > Scaling.residual:
            return Beliefs(log_z, tau, HullState(state, sets))
        kept, mixtures = dict[int, Family](), np.zeros(len(batch), dtype=bool)
        for (structure, members), prices in zip(batch.groups(), state, strict=True):
            if not _searchable(structure):
                continue
            mixtures[members], rows = True, batch.rows(tau, members)
            few = structure.n_nodes <= SMALL  # then all at once
            proven = structure.in_hull(rows) if few else calm(structure, rows)
            for i in np.flatnonzero(~proven).tolist():
                m = int(members[i])
                if late():
                    mixtures[m] = False
                    continue
                if not few and odd_set_proof(structure, rows[i]):
                    continue
                broken = violated_sets(structure, rows[i])
                if not len(broken):
                    continue
                place, own = batch.coordinates(m), [MatchingPrices(*(p[i : i + 1] for p in prices))]
                one = Cohort(structure, scores[place], Scaling(self.rho, FINE, self.sweeps))
                before = sets.get(m, Family(broken[:0], np.zeros(0)))
                kept[m], found, mixtures[m] = one.repriced(before, own, broken)
                log_z[m], tau[place] = found.value, found.tau
                for mine, fresh in zip(prices, found.warm[0], strict=True):
                    mine[i] = fresh[0]
        return Beliefs(log_z, tau, HullState(state, kept, mixtures))

    def mixtures(self, warm: HullState) -> Any:
        return warm.mixtures

    def above(self, batch: Batch[Any], scores: Array, warm: HullState, value: Array) -> Array:
        """By the prices of sets and nodes: a bound over the hull, whatever they are."""
        scores = as_numbers(scores, "scores", batch.size)
        cut, worth = np.zeros(batch.size), np.zeros(len(batch))
        for m, family in warm.sets.items():
            cut[batch.coordinates(m)] = family.cut(batch.structure(m))
            worth[m] = family.worth
        value = as_numbers(value, "values") - worth
        return np.asarray(super().above(batch, scores - cut, warm.scaling, value) + worth)

    def pack(self, warm: HullState) -> Tree:  # type: ignore[override]
        return super().pack(warm.scaling), {m: tuple(kept) for m, kept in warm.sets.items()}

    def unpack(self, batch: Batch[Any], tree: Tree) -> HullState:
        scaling, sets = tree
        for m, (flags, price) in sets.items():
            like(flags, np.zeros((len(price), batch.structure(m).n_nodes), dtype=bool))
            like(price, np.zeros(len(flags)))
            if not ((price > 0) & (flags.sum(axis=1) % 2 == 1)).all():
                raise ValueError("odd sets with prices expected")
        known = {m: Family(*kept) for m, kept in sets.items()}
        return HullState(super().unpack(batch, scaling), known)


def binding(entropy: Entropy, scores: Array) -> list[Marks]:
    """Every example's odd sets that have a price at these scores: rows of flags over its nodes."""
    batch, direct = entropy.batch, HullScaling.serve(entropy)
    sets = {} if direct is None else direct.many(batch, scores).warm.sets
    none = np.zeros((0, 0), dtype=bool)
    return [sets[m].sets if m in sets else none for m in range(len(batch))]


def _searchable(structure: Any) -> bool:
    """A general graph on which odd sets can be looked up."""
    if type(structure) is not Matching or not structure.odd or structure.n_nodes > EXACT:
        return False
    return structure.kind == "partial" or structure.n_nodes % 2 == 0


def _newton(curvature: Array, slope: Array, price: Array) -> Array:
    """Newton's step among prices that are not negative: min ⟨slope, d⟩ + ½ dᵀ C d, price + d ≥ 0.

    Sets that differ by a pair which is all but certain have almost one row in C: prices that are
    clipped only after a step without that bound lead nowhere there.
    """
    size, axes = np.linalg.eigh(curvature)
    root = np.sqrt(np.maximum(size, RIDGE * np.abs(size).max() + TINY))
    goal = root * (axes.T @ price) - axes.T @ slope / root
    try:
        return np.asarray(nnls(root[:, None] * axes.T, goal)[0] - price)
    except RuntimeError:  # it went round in circles
        return np.zeros_like(price)

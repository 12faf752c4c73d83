"""How close τ comes, proven by one formula, whatever computed it.

For every example, with s the score, H the entropy and P the polytope,

    upper − lower = [a bound on max over P of ⟨s, ·⟩ + H]  −  [⟨s, τ⟩ + H(τ)].

H is concave, so at any t it lies below its tangent, and the first bracket is at most
H(t) − ⟨∇H(t), t⟩ + max over P of ⟨s + ∇H(t), ·⟩. Four ways to it, the cheapest first: exact sums
(log Z itself, and then lower = upper), prices of nodes and odd sets, messages, and the oracle,
which maximises the tangent. A fit's certificate is the weighted sum of these gaps and its
regulariser's own.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mlestruct.errors import Infeasible
from mlestruct.inference.routine import Beliefs, Routine
from mlestruct.learning.dual import Certificate, interior, tangent_gaps
from mlestruct.limits import late
from mlestruct.oracle import HULL, Oracle
from mlestruct.structures.base import Array, Bound, Marks
from mlestruct.structures.batch import Batch
from mlestruct.structures.entropy import Entropy

DIGITS = 1e-13  # of the largest number in a sum over outcomes: what floats may have lost
PROVEN = "convex hull of matchings, odd sets proven"
DEGREES = "degree polytope of matchings, odd sets not proven"
LITTLE = np.array([1e-9, 1e-7, 1e-5, 1e-3])  # of the way from a τ outside to an interior point
HALVINGS = 8  # of what is left of it


class Inferred(NamedTuple):
    """A feasible τ with lower ≤ max over the polytope of ⟨s, ·⟩ + H ≤ upper, per example.

    ``slack`` is the part of ``upper`` that is due to the oracle's own bounds. ``withheld`` says why
    nothing is proven, and ``upper`` is then infinite; ``unused`` counts parts that no answer uses;
    ``moved``: odd sets kept τ from where the routine had it; ``summed``: τ is the
    mean over all outcomes.
    """

    tau: Array
    lower: Array
    upper: Array
    slack: Array
    polytope: str
    withheld: str | None = None
    unused: int = 0
    moved: bool = False
    summed: bool = False

    def certificate(self, batch: Batch[Any], objective: float, bound: Bound) -> Certificate:
        """The certificate of these examples' share in an objective."""
        gap, slack = batch.weight @ (self.upper - self.lower), batch.weight @ self.slack
        rest = self.polytope, str(bound), self.withheld, self.unused
        return Certificate(float(gap), float(slack), objective, *rest)


def infer(
    batch: Batch[Any],
    entropy: Entropy,
    oracle: Oracle[Any],
    routine: Routine,
    scores: Array,
    *,
    warm: Any = None,
    enough: float = 0.0,
    relative: float = 0.0,
) -> Inferred:
    """A routine's τ, and its proof, the cheapest way first.

    No costlier one is looked for where Σ w·gap is at most ``enough``, or ``relative`` to Σ w·lower,
    nor over the degree polytope: an oracle bounds over the hull alone, which τ need not be in.
    """
    quick = routine.rough()
    try:
        found = quick.many(batch, scores, warm)
    except Infeasible:
        interior(batch, oracle, entropy)  # an oracle often knows why
        raise
    proof = own_proof(batch, entropy, oracle, quick, scores, found)
    if proof is not None:
        size = max(1.0, abs(float(batch.weight @ proof.lower)))
        near = float(batch.weight @ (proof.upper - proof.lower)) <= max(enough, relative * size)
        if near or quick.exact or proof.polytope == DEGREES or late():
            return proof
    if quick is not routine:
        found = routine.many(batch, scores, found.warm)
        proof = own_proof(batch, entropy, oracle, routine, scores, found)
    return asked_proof(batch, entropy, oracle, scores, found, proof)


def own_proof(
    batch: Batch[Any],
    entropy: Entropy,
    oracle: Oracle[Any],
    routine: Routine,
    scores: Array,
    found: Beliefs,
) -> Inferred | None:
    """What the routine itself proves, without the oracle; None where it bounds nothing.

    On graphs with odd cycles the degrees allow more than matchings do: τ is looked up in their
    hull, and moved into it from an interior point where it is outside. Graphs that are too large
    for odd sets to be searched keep τ, and the answer is one over the degree polytope unless τ
    happens to be proven; its upper bound holds over the hull, too.
    """
    tau, none, worth = found.tau, np.zeros(len(batch)), products(scores, found.tau)
    if routine.exact:
        lost = DIGITS * (1.0 + np.abs(found.log_z) + batch.totals(np.abs(worth, out=worth)))
        return Inferred(tau, found.log_z - lost, found.log_z + lost, none, HULL, summed=True)
    polytope = routine.polytope or oracle.polytope
    if relaxed(batch, oracle):
        outside = _outside(batch, tau, routine.mixtures(found.warm))
        large = outside & unsearchable(batch)
        polytope, outside = DEGREES if large.any() else PROVEN, outside & ~large
        if outside.any():
            tau = into_hull(batch, tau, interior(batch, oracle, entropy).tau, outside)
            worth = products(scores, tau)
    value = entropy.each(tau) + batch.totals(worth)
    upper = routine.above(batch, scores, found.warm, value)
    if upper is None:
        return None
    moved = tau is not found.tau and polytope != DEGREES  # no mixture for Frank-Wolfe to start at
    return Inferred(tau, value, np.maximum(upper, value), none, polytope, moved=moved)


def asked_proof(
    batch: Batch[Any],
    entropy: Entropy,
    oracle: Oracle[Any],
    scores: Array,
    found: Beliefs,
    own: Inferred | None,
) -> Inferred:
    """By one oracle call per example, at a point where the entropy has a gradient.

    The bounds hold for the maximum, so the least of both counts whatever τ they were made at.
    """
    inner, odd = interior(batch, oracle, entropy), relaxed(batch, oracle)
    tau = found.tau if own is None else own.tau
    if own is None and odd:
        tau = into_hull(batch, tau, inner.tau, _outside(batch, tau, None))
    moved, at = tau is not found.tau, inner.pull(tau)
    tau = at if moved else tau  # Frank-Wolfe goes on from here, and needs slopes
    gaps, slack = tangent_gaps(batch, inner.entropy, oracle, scores, at, mixture=odd)
    upper = inner.entropy.each(at) + batch.totals(products(scores, at)) + gaps
    value = inner.entropy.each(tau) + batch.totals(products(scores, tau))
    if own is not None:
        slack = np.where(upper < own.upper, slack, 0.0)
        upper = np.minimum(upper, own.upper)
    upper = np.maximum(upper, value) if inner.withheld is None else np.full_like(value, np.inf)
    rest = slack, oracle.polytope, inner.withheld, inner.unused, moved
    return Inferred(tau, value, upper, *rest)


def products(scores: Array, tau: Array) -> Array:
    """Entry by entry; a part that is forbidden and not used counts nothing."""
    out = np.where(tau != 0, scores, 0.0)
    out *= tau
    return out


def relaxed(batch: Batch[Any], oracle: Oracle[Any]) -> bool:
    """True where the degrees alone allow more than the oracle does: matchings with odd cycles."""
    return any(structure.odd for structure in batch.structures) and HULL in oracle.polytope


def unsearchable(batch: Batch[Any]) -> Marks:
    """Flags of matchings on graphs with odd cycles and more nodes than odd sets are searched on."""
    from mlestruct.structures.odd_sets import EXACT

    large = [one.odd and one.n_nodes > EXACT for one in batch.structures]
    return np.array(large)[batch.which]


def _outside(batch: Batch[Any], tau: Array, known: Any) -> Marks:
    """Flags of examples whose τ is not known to be a mixture of matchings."""
    outside = np.ones(len(batch), dtype=bool) if known is None else ~known
    for structure, members in batch.groups():
        left = members[outside[members]]
        if len(left):
            outside[left] = ~_mixtures(structure, batch.rows(tau, left))
    return outside


def into_hull(batch: Batch[Any], tau: Array, inside: Array, outside: Marks) -> Array:
    """τ, of examples that are flagged as ``outside`` as far towards it as is proven a mixture.

    As near to it as a power of ten, else the last point of a bisection.
    """
    out = tau.copy() if outside.any() else tau
    for m in np.flatnonzero(outside).tolist():
        structure, part = batch.structure(m), batch.coordinates(m)
        begin, way = inside[part], tau[part] - inside[part]
        proven = (s for s in 1.0 - LITTLE if _mixtures(structure, (begin + s * way)[None])[0])
        share = next(proven, 0.0)
        for step in 0.5 ** np.arange(1, HALVINGS + 1) if share == 0.0 else ():
            if _mixtures(structure, (begin + (share + step) * way)[None])[0]:
                share += step
        out[part] = begin + share * way
    return out


def _mixtures(structure: Any, rows: Array) -> Any:
    """Which rows are mixtures of matchings; where time has run out, which are quickly proven so."""
    if not late():
        return structure.in_hull(rows)
    from mlestruct.structures.odd_sets import odd_set_proof

    return np.array([odd_set_proof(structure, row) for row in rows])

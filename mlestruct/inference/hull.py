"""General matchings: inference over the degrees, proven (or moved) into the hull of matchings."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlestruct.batch import Batch
from mlestruct.dual import Certificate, Dual, block_gaps
from mlestruct.entropy import Entropy
from mlestruct.inference.matching.graph import Layout
from mlestruct.inference.matching.newton import DENSE
from mlestruct.inference.matching.scaling import Scaling, prepared
from mlestruct.inference.matching.split import approach, split_value
from mlestruct.inference.matching.values import price_value
from mlestruct.inference.messages import Messages
from mlestruct.oracle import HULL, Oracle
from mlestruct.structures.base import Array
from mlestruct.structures.matching import Matching

PROVEN = "convex hull of matchings, odd sets proven"
DEGREES = "degree polytope"
LOOSE = 1e-8  # relative; a bound that is looser is worth better prices
HALVINGS = 12  # of the way from an interior point to a τ outside the hull


def relaxed(batch: Batch[Any], oracle: Oracle[Any]) -> bool:
    """True where the degrees alone allow more than the oracle does: matchings with odd cycles."""
    return HULL in oracle.polytope and any(
        isinstance(s, Matching) and s.graph.sides is None for s in batch.structures
    )


def into_hull(batch: Batch[Any], tau: Array, inside: Array) -> Array:
    """τ where it is a mixture of matchings, else as far towards it as is proven to be one."""
    out = tau
    for structure, members in batch.groups():
        for m in members[~structure.in_hull(batch.rows(tau, members))]:
            part = batch.coordinates(m)
            out = tau.copy() if out is tau else out
            out[part] = _between(structure, inside[part], tau[part])
    return out


def _between(structure: Matching, inside: Array, outside: Array) -> Array:
    """The last point of a bisection that is in the hull."""
    share, step = 0.0, 0.5
    for _ in range(HALVINGS):
        trial = share + step
        if structure.in_hull(inside + trial * (outside - inside)):
            share = trial
        step /= 2
    return np.asarray(inside + share * (outside - inside))


def hull_gaps(
    dual: Dual, oracle: Oracle[Any], theta: Array, tau: Array, warm: Any, enough: float
) -> tuple[Array, Array, str]:
    """Every example's gap at a τ of the hull, the part due to the oracle, and how it was proven.

    By node prices; where they leave more than ``enough`` in all by the oracle too, the less counts.
    """
    gaps, slack = price_gaps(dual, theta, tau, warm), np.zeros(len(dual.batch))
    if float(dual.batch.weight @ gaps) <= enough:
        return gaps, slack, PROVEN
    asked, more = block_gaps(dual, oracle, theta, tau, mixture=True)
    return np.minimum(asked, gaps), np.where(asked < gaps, more, slack), oracle.polytope


def degree_gaps(
    dual: Dual, oracle: Oracle[Any], theta: Array, tau: Array, warm: Any, messages: Messages
) -> tuple[Array, Array]:
    """Every example's gap where nothing but the degrees binds, and the part due to the oracle.

    By the oracle; above ρ = ½ the nodes' own bound counts where it is less, as near a vertex: there
    (1 − τ) log(1 − τ) is steep, and its slope at a τ in floats says little.
    """
    gaps, slack = block_gaps(dual, oracle, theta, tau)
    if not isinstance(messages, Scaling) or messages.rho <= 0.5:
        return gaps, slack
    own = price_gaps(dual, theta, tau, warm)
    return np.minimum(gaps, own), np.where(own < gaps, 0.0, slack)


def dual_certificate(
    dual: Dual, theta: Array, tau: Array, warm: Any, polytope: str | None = None
) -> Certificate:
    """The certificate of (θ, τ) without an oracle call, from the node prices of inference at θ.

    Its upper ends hold over all degree-feasible points, so the gap is valid over the hull of
    matchings too where every τ is in it: that is looked up, unless ``polytope`` already says it.
    O(coordinates). At the message solution every perfect matching ties, and an oracle would take
    its worst time.
    """
    batch = dual.batch
    if polytope is None:
        inside = True
        for structure, members in batch.groups():
            rows = batch.rows(tau, members)
            if not structure.contains(rows, 1e-8).all():
                raise ValueError("tau is not feasible, so no gap would mean anything")
            inside = inside and bool(structure.in_hull(rows).all())
        polytope = PROVEN if inside else DEGREES
    gaps = price_gaps(dual, theta, tau, warm)
    return Certificate(
        float(batch.weight @ gaps) + dual.regulariser.bracket(theta, dual.residual(tau)),
        0.0,
        dual.value(tau),
        polytope,
        str(dual.entropy.bound),
    )


def price_gaps(dual: Dual, theta: Array, tau: Array, warm: Any) -> Array:
    """Every example's upper bound on max ⟨score, ·⟩ + H, less its value at τ.

    For ρ ≤ ½ the dual value, a bound at any node prices; above, the sum of the nodes' own. Where
    that is loose, prices of small graphs are improved first.
    """
    batch, rho = dual.batch, _common(dual.entropy)
    scores, upper = dual.scores(theta), np.empty(len(dual.batch))
    value = dual.entropy.each(tau) + batch.totals(scores * tau)
    for number, (structure, members) in enumerate(batch.groups()):
        graph, _ = prepared(structure)
        asked = batch.rows(scores, members)
        sure = asked @ graph.base if graph.base is not None else np.zeros(len(members))
        for m, row, x, base in zip(members, graph.gather(asked), warm[number].x, sure, strict=True):
            upper[m] = base + _above(row, graph, rho, x, value[m] - base)
    return np.maximum(upper - value, 0.0)


def _above(score: Array, graph: Layout, rho: float, x: Array, value: float) -> float:
    """One example's bound; Newton's prices, O(nodes³) a step, where it is far from ``value``."""
    ptr, head, strict = graph.ptr, graph.head, graph.strict
    if rho <= 0.5:
        return float(price_value(score, ptr, head, strict, rho, x))
    bound = float(split_value(score, ptr, head, strict, rho, x))
    if bound - value <= LOOSE * (1.0 + abs(value)) or graph.nodes > DENSE:
        return bound
    better, tau = x.copy(), np.empty(graph.live)
    approach(score, ptr, head, strict, rho, better, tau, 1e-9, 100)
    return min(bound, float(split_value(score, ptr, head, strict, rho, better)))


def _common(entropy: Entropy) -> float:
    """The one ρ of all nodes."""
    rho = {float(counting[-1]) for counting in entropy.counting}
    if len(rho) != 1:
        raise ValueError(f"dual_certificate needs one rho for all examples, got {sorted(rho)}")
    return rho.pop()

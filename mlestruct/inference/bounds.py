"""Intervals for the exact log Z and the exact likelihood, wherever a theorem gives them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mlestruct.inference.decoding import decode
from mlestruct.inference.predict import Marginals
from mlestruct.inference.routine import routine
from mlestruct.lazy import getter
from mlestruct.oracle.registry import AnyOracle
from mlestruct.structures import BipartiteMatching, Matching
from mlestruct.structures.base import Array, Ints, Structure, as_numbers
from mlestruct.structures.batch import Batch
from mlestruct.structures.entropy import Entropy

__getattr__ = getter(__name__, {})


@dataclass(frozen=True)
class ProvenInterval:
    """lower ≤ the exact value ≤ upper, per example or for a sum; ±inf where no theorem helps."""

    lower: Array
    upper: Array
    why: str

    def __and__(self, other: ProvenInterval) -> ProvenInterval:
        """What both prove; ends that rounding has crossed are put in order."""
        why = self.why if self.why == other.why else f"{self.why}; {other.why}"
        low = np.maximum(self.lower, other.lower)
        high = np.minimum(self.upper, other.upper)
        return ProvenInterval(np.minimum(low, high), np.maximum(low, high), why)


def log_z_interval(found: Marginals) -> ProvenInterval:
    """What surrogate marginals prove about the exact log Z: only what their ``bound`` is.

    The surrogate's own optimum lies in [lower, upper] by its certificate. An upper surrogate puts
    log Z below its upper end, a lower one above its lower end, an exact one inside; a surrogate
    without a theorem proves nothing, however close it may be.
    """
    none = np.full(len(found.lower), np.inf)
    exact = found.certificate.bound.startswith("exact")  # log Z is, however τ was found
    kind = "exact" if exact else found.bound.kind
    lower = found.lower if kind in ("exact", "lower") else -none
    upper = found.upper if kind in ("exact", "upper") else none
    return ProvenInterval(lower.copy(), upper.copy(), str(found.bound))


def outcome_interval(
    batch: Batch[Any], scores: ArrayLike, oracle: AnyOracle = None
) -> ProvenInterval:
    """log Z ≥ the score of any outcome: the best one that is found where answers are fractions.

    −inf where that is no outcome that the structure allows. One oracle call each.
    """
    lower = decode(batch, scores, oracle).scores.copy()
    return ProvenInterval(lower, np.full(len(batch), np.inf), "the score of one outcome")


def permanent_interval(batch: Batch[Any], bethe: Marginals) -> ProvenInterval:
    """log Z of perfect matchings of two sides of n is at most Bethe's value + (n/2) log 2.

    ``bethe`` are the marginals at ρ = 1. Anari and Rezaei (2019, FOCS, theorem 1: a permanent is
    at most √2ⁿ times its Bethe permanent); nothing of other structures.
    """
    perfect = [
        structure.shape[0]
        if isinstance(structure, BipartiteMatching) and structure.kind == "perfect"
        else 0
        for structure in batch.structures
    ]
    size = np.array(perfect)[batch.which]
    upper = np.where(size > 0, bethe.upper + size / 2.0 * np.log(2.0), np.inf)
    return ProvenInterval(np.full(len(batch), -np.inf), upper, "Bethe's permanent times √2ⁿ")


def halves_interval(matching: Matching, score: ArrayLike, side: ArrayLike) -> ProvenInterval:
    """log Z of a complete graph ≥ log Z of its pairs between two halves ≥ their Bethe value.

    ``side`` puts each node into half 0 or 1, as many into each. Valid for any halves; a good pair
    of them lies across the likely pairs, see :func:`halves`. At best about (n/2) log 2 below.
    """
    values, place = as_numbers(score, "scores"), as_numbers(side, "side")
    left, right = np.flatnonzero(place == 0), np.flatnonzero(place == 1)
    if not (matching.graph.complete and len(left) == len(right) == matching.n_nodes / 2):
        raise ValueError(
            f"halves of {len(left)} and {len(right)} nodes for a matching of {matching.n_nodes}; "
            "expected a complete graph and two equal halves"
        )
    a, b = np.meshgrid(left, right, indexing="ij")
    table = values[matching.graph.place(np.minimum(a, b).ravel(), np.maximum(a, b).ravel())]
    lower = np.array([bethe_value(BipartiteMatching(len(left)), table)])
    return ProvenInterval(lower, np.full(1, np.inf), "Bethe on the pairs between two halves")


def bethe_value(structure: Structure, score: Array) -> float:
    """Bethe's value of a perfect matching, nearly its maximum: a point that fits every degree."""
    batch = Batch.of(structure, count=1)
    entropy = Entropy.of(batch, 1.0, allow_nonconvex=True)
    found = routine(entropy)
    assert found is not None
    tau = found.over("degrees").many(batch, score).tau
    return float(entropy.each(tau)[0] + score @ tau)


def halves(n: int, tau: Array, partner: Ints) -> Ints:
    """0 or 1 for every node of a complete graph: partners apart, and likely pairs where it goes."""
    low, high = np.triu_indices(n, 1)
    table = np.zeros((n, n))
    table[low, high] = table[high, low] = tau
    sign, pull = np.zeros(n), np.zeros(n)
    for u in np.flatnonzero(np.arange(n) < partner):
        v = partner[u]
        sign[u] = -1.0 if pull[u] > pull[v] else 1.0
        sign[v] = -sign[u]
        pull += sign[u] * (table[u] - table[v])
    return (sign > 0).astype(np.int64)

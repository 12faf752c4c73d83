"""Intervals for the exact log Z and the exact likelihood, wherever a theorem gives them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mlestruct.inference.decoding import decode
from mlestruct.inference.predict import Marginals
from mlestruct.lazy import getter
from mlestruct.oracle.registry import AnyOracle
from mlestruct.structures import BipartiteMatching
from mlestruct.structures.base import Array
from mlestruct.structures.batch import Batch

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

"""Routines compute log Z and τ of a batch directly, and say what they know of their answer."""

from __future__ import annotations

import importlib
from abc import abstractmethod
from typing import Any, NamedTuple, Protocol, Self

from mlestruct.storage.trees import Tree
from mlestruct.structures.base import Array, one_of
from mlestruct.structures.batch import Batch
from mlestruct.structures.entropy import Entropy


class Beliefs(NamedTuple):
    """log Z per example, a feasible τ, and what the next call at nearby scores may start from.

    Of one structure, which exact sums take as well, log Z is a number.
    """

    log_z: Any
    tau: Array
    warm: Any = None


class Routine(Protocol):
    """Computes log Z and the maximiser τ of ⟨score, τ⟩ + H(τ) directly, for a whole batch.

    Interface: ``serve(entropy)`` → a routine for this entropy, or None; ``many(batch, scores,
    warm)`` → :class:`Beliefs`. τ is always feasible (repaired where iterations stopped short), so
    that :func:`mlestruct.inference.proof.infer` can say what is missing. A new routine is one
    module with these two and a line in ``ROUTINES``.

    What else it can do, each with a default here: ``exact`` says that ``log_z`` is the sum over all
    outcomes and τ its gradient; else ``above`` may bound the maximum over ``polytope`` (None: that
    of the oracle). ``over`` names the routine of a larger polytope. ``warm`` is a tree of arrays by
    ``pack`` and ``unpack``. ``coarser`` and ``rough`` are the same routine stopping earlier, and
    without its costly last resort. ``first`` is the residual that a descent may begin with, 0 where
    nothing iterates: of a larger one values are too rough for its line searches.
    """

    exact: bool = False
    polytope: str | None = None
    first: float = 0.0

    @classmethod
    def serve(cls, entropy: Entropy) -> Self | None:
        """A routine for the entropy, or None."""
        return None

    @abstractmethod
    def many(self, batch: Batch[Any], scores: Array, warm: Any = None) -> Beliefs:
        """log Z, τ and the next start."""

    def above(self, batch: Batch[Any], scores: Array, warm: Any, value: Array) -> Array | None:
        """At least the maximum over the polytope, per example; ``value`` is what τ reaches."""
        return None

    def over(self, polytope: str) -> Routine:
        """The routine over an oracle's polytope, where that is larger than its own."""
        return self

    def mixtures(self, warm: Any) -> Any:
        """Flags of examples whose τ it has looked up in the hull of a general graph's matchings."""
        return None

    def stalled(self, warm: Any) -> int:
        """Examples on which iterations ended before they had converged."""
        return 0

    def coarser(self, tol: float) -> Self:
        """The routine that stops at residual ``tol``, if it iterates and ``tol`` is coarser."""
        return self

    def rough(self) -> Self:
        """The routine without the fallback for iterations that do not converge."""
        return self

    def alike(self, batch: Batch[Any]) -> tuple[Array, Array] | None:
        """(w, s) of the Hessian at equal scores, where it has a closed form."""
        return None

    def pack(self, warm: Any) -> Tree:
        """The warm start as a tree of arrays."""
        return None

    def unpack(self, batch: Batch[Any], tree: Tree) -> Any:
        """The warm start again."""
        return None


ROUTINES = (
    ("mlestruct.inference.forests:ForwardBackward", "FactorGraph"),
    ("mlestruct.inference.exact:ExactSums", "Paths", "RegionGraph", "Ising"),
    ("mlestruct.inference.odd:HullScaling", "Matching"),
    ("mlestruct.inference.matching:Scaling", "BipartiteMatching", "Matching"),
    ("mlestruct.inference.sum_product:SumProduct", "FactorGraph"),
)
"""Module:class, and the structures it may serve, by name: what is not for a batch stays unloaded.

Tried in this order: exact ones first, then the fastest.
"""


def routine(entropy: Entropy) -> Routine | None:
    """The first routine that serves the entropy; None means Frank-Wolfe."""
    if entropy.temperature != 1:
        return None
    for place, *kinds in ROUTINES:
        if not all(one_of(structure, *kinds) for structure in entropy.batch.structures):
            continue
        module, name = place.split(":")
        kind = getattr(importlib.import_module(module), name)
        found: Routine | None = kind.serve(entropy)
        if found is not None:
            return found
    return None

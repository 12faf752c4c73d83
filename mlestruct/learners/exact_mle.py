"""Exact maximum likelihood: log Z and marginals by elimination, subsets or messages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlestruct.batch import Batch
from mlestruct.entropy import Entropy
from mlestruct.inference.choose import Summed
from mlestruct.inference.exact import exact
from mlestruct.inference.exact.common import MEMORY
from mlestruct.inference.routine import Beliefs, Routine
from mlestruct.learners.primal import Primal, refuse
from mlestruct.objectives import Surrogate
from mlestruct.oracle import HULL
from mlestruct.reweighting import Rho
from mlestruct.structures.base import Array


@dataclass(frozen=True)
class Sums(Routine):
    """:func:`mlestruct.inference.exact.exact` in the place of messages."""

    memory: float = MEMORY
    exact = True

    @classmethod
    def serve(cls, entropy: Entropy) -> Sums | None:
        """Entropies that are exact."""
        return cls() if entropy.bound.kind == "exact" else None

    def many(self, batch: Batch[Any], scores: Array, warm: Any = None) -> Beliefs:
        return exact(batch, scores, memory=self.memory)


def exact_mle(
    rho: Rho = None,
    oracle: Any = None,
    route: str = "auto",
    memory: float = MEMORY,
    **settings: Any,
) -> Primal:
    """Σ_m [⟨θ, φ_m⟩ − log Z(θ, x_m)] − R(θ), log Z exact; a ValueError says what is too wide.

    ``memory`` in GiB bounds the tables of one structure; ``settings`` are those of
    :class:`Primal`.
    """
    refuse("exact_mle", route, rho=rho, oracle=oracle)
    words = (HULL, "exact (every outcome is summed)")
    sums, recipe = Sums(memory), Summed(memory)
    return Primal("exact_mle", lambda batch: Surrogate(sums), *words, inference=recipe, **settings)

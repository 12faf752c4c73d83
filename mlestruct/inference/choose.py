"""Inference as a value: chosen at a fit, kept by the model, used by all that predicts.

An inference says which τ a model's scores mean. It holds settings and what was learned of them (a
ρ per structure, an entropy's weights), never data, engines or checkpoints; every learner has one,
and its model keeps it. ``infer=`` of an estimator puts another in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self

import numpy as np

from mlestruct import limits
from mlestruct.errors import Unserved
from mlestruct.learning.dual import Certificate
from mlestruct.learning.frank_wolfe import FrankWolfe
from mlestruct.oracle import HULL
from mlestruct.oracle.registry import AnyOracle
from mlestruct.storage.digest import digest
from mlestruct.storage.trees import Tree
from mlestruct.structures.base import Array, Bound
from mlestruct.structures.batch import Batch
from mlestruct.structures.entropy import Entropy, Rho, in_words

if TYPE_CHECKING:
    from mlestruct.inference.predict import Marginals

Route = Literal["auto", "direct", "frank_wolfe"]
Search = FrankWolfe | None


class Inference(Protocol):
    """Which τ a model's scores mean, and what is proven of it.

    Interface: ``marginals(batch, scores, oracle, solver)`` → :class:`Marginals`, or
    :class:`mlestruct.errors.Unserved`, which names the structure that it cannot serve (estimators
    add what ``infer=`` may say instead); ``str()`` in words. A subclass
    need not have the rest: ``recall`` gives the same inference with what was learned of it, a tree
    of arrays that stands in model files and checkpoints beside θ; ``sums(batch)``: τ are the means
    of exp⟨s, v⟩ / Z, of which samples are drawn.
    """

    def marginals(
        self, batch: Batch[Any], scores: Array, oracle: AnyOracle = None, solver: Search = None
    ) -> Marginals:
        """τ and its bounds; ``solver`` holds tolerance and limits where Frank-Wolfe runs."""

    def recall(self, learned: Tree) -> Self:
        """With what a fit learned, which is nothing unless a subclass says so."""
        if learned is not None:
            raise ValueError(f"nothing is learned of {self}")
        return self

    def sums(self, batch: Batch[Any]) -> bool:
        """Whether its marginals are those of the distribution over outcomes."""
        return False


@dataclass(frozen=True)
class Reweighted(Inference):
    """The entropy of ρ: by the routine that serves it, else (or by ``route``) by Frank-Wolfe.

    ``learned`` are counting numbers by the digest of the structure they were learned on; other
    structures are then refused.
    """

    rho: Rho = None
    route: Route = "auto"
    learned: Mapping[str, Array] | None = field(default=None, repr=False)

    def marginals(
        self, batch: Batch[Any], scores: Array, oracle: AnyOracle = None, solver: Search = None
    ) -> Marginals:
        from mlestruct.inference.predict import marginals

        rho = self.rho if self.learned is None else self._known
        return marginals(batch, scores, oracle, rho=rho, solver=solver, route=self.route)

    def sums(self, batch: Batch[Any]) -> bool:
        try:
            rho = self.rho if self.learned is None else self._known
            return Entropy.of(batch, rho).bound.kind == "exact"
        except Unserved:
            return False

    def _known(self, structure: Any) -> Array:
        assert self.learned is not None
        key = digest(structure)
        if key not in self.learned:
            raise Unserved(
                f"no ρ was learned for this {type(structure).__name__} of {structure.size} "
                "coordinates: learn with its like"
            )
        return self.learned[key]

    def recall(self, learned: Tree) -> Reweighted:
        """With counting numbers per structure."""
        return self if learned is None else replace(self, learned=dict(learned))

    def __str__(self) -> str:
        numbers = "learned ρ" if self.learned is not None else in_words(self.rho)
        how = "" if self.route == "auto" else f", {self.route} route"
        return f"marginals of the entropy with {numbers}{how}"


DEFAULT = Reweighted()
"""For learners that computed no marginals: the structure's own entropy."""


@dataclass(frozen=True)
class Summed(Inference):
    """Sums over all outcomes, exact; structures that are too wide for ``memory`` are refused."""

    memory: float = 2.0  # GiB

    def marginals(
        self, batch: Batch[Any], scores: Array, oracle: AnyOracle = None, solver: Search = None
    ) -> Marginals:
        from mlestruct.inference.exact import exact
        from mlestruct.inference.predict import Marginals

        try:
            log_z, tau, _ = exact(batch, scores, memory=self.memory)
        except ValueError as error:
            raise ValueError(f"{error} (or set infer='surrogate')") from error
        known = ~np.isnan(log_z)  # of others a limit of time was reached before their turn
        low, high = np.where(known, log_z, -np.inf), np.where(known, log_z, np.inf)
        if not known.all():
            limits.note(f"{np.sum(~known)} of {len(batch)} examples were not summed")
        gap = 0.0 if known.all() else np.inf
        proof = Certificate(gap, 0.0, -float(batch.weight @ log_z), HULL, "exact")
        return Marginals(tau, low, high, Bound("exact", "every outcome is summed"), proof)

    def sums(self, batch: Batch[Any]) -> bool:
        return True

    def __str__(self) -> str:
        return "exact sums over all outcomes"


@dataclass(frozen=True)
class Propagation(Inference):
    """Sum-product messages at any counting numbers, concave or not: nothing is proven."""

    rho: Rho = 1.0
    schedule: Literal["sequential", "flooding", "residual"] = "residual"
    damping: float = 0.0
    sweeps: int = 200
    residual: float = 1e-8

    def routine(self, batch: Batch[Any]) -> Any:
        """The messages of this batch."""
        from mlestruct.inference.sum_product import SumProduct

        entropy = Entropy.of(batch, self.rho, allow_nonconvex=True)
        how = {"schedule": self.schedule, "damping": self.damping, "residual": self.residual}
        return SumProduct.of(entropy, takeover=False, sweeps=self.sweeps, **how)

    def marginals(
        self, batch: Batch[Any], scores: Array, oracle: AnyOracle = None, solver: Search = None
    ) -> Marginals:
        from mlestruct.inference.predict import unproven

        tau = self.routine(batch).many(batch, scores).tau
        return unproven(tau, len(batch), "fixed points of belief propagation bound nothing")

    def __str__(self) -> str:
        return f"belief propagation with {in_words(self.rho)}"


INFERENCES: dict[str, Callable[[Rho], Inference]] = {
    "surrogate": Reweighted,
    "frank_wolfe": lambda rho: Reweighted(rho, "frank_wolfe"),
    "exact": lambda rho: Summed(),
    "propagation": lambda rho: Propagation(1.0 if rho is None else rho),
}
"""What ``infer=`` may say by name; ρ is the estimator's."""


def named_inference(given: str | Inference, rho: Rho = None) -> Inference:
    """An inference by name, or one of your own."""
    if not isinstance(given, str):
        return given
    if given not in INFERENCES:
        raise ValueError(f"no inference {given!r}; there are {', '.join(INFERENCES)}")
    return INFERENCES[given](rho)

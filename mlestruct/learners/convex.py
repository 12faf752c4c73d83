"""What every convex learner shares: build its dual, run the core, keep weights and certificate."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mlestruct.batch import Batch
from mlestruct.dual import Certificate, Dual
from mlestruct.entropy import Entropy
from mlestruct.features import Features
from mlestruct.frank_wolfe import FrankWolfe, State
from mlestruct.inference.messages import routine
from mlestruct.oracle import Oracle, Validated, resolve
from mlestruct.regulariser import Regulariser
from mlestruct.structures.base import Array
from mlestruct.train import Direct

AnyOracle = Oracle[Any] | Callable[..., Any] | str | None


@dataclass(frozen=True)
class Model:
    """Learned weights, the certificate they come with, and how the gap fell."""

    theta: Array
    certificate: Certificate
    history: list[tuple[int, float, float, float]] = field(repr=False)
    """(calls, seconds, objective, gap) of every round."""


@dataclass(frozen=True)
class Learner:
    """A convex learner: ``surrogate`` turns a batch into (batch with bias, entropy).

    ``direct`` allows the fast route (marginals and L-BFGS) where the structure's own oracle is
    used and marginals exist; otherwise, and always with an oracle of yours, Frank-Wolfe runs.
    ``regulariser`` is λ of a ridge (λ/2)‖θ‖² on the SUM over examples, or a :class:`Regulariser`.
    """

    name: str
    surrogate: Callable[[Batch[Any]], tuple[Batch[Any], Entropy]]
    regulariser: float | Regulariser = 1.0
    oracle: AnyOracle = None
    solver: FrankWolfe = FrankWolfe()
    direct: bool = True

    def dual(self, batch: Batch[Any], features: Features) -> Dual:
        """The dual objective this learner minimises."""
        if batch.target is None:
            raise ValueError(f"{self.name} learns from outcomes, and this batch has none")
        shaped, entropy = self.surrogate(batch)
        given = self.regulariser
        regulariser = given if isinstance(given, Regulariser) else Regulariser.of(features.d, given)
        if len(regulariser) != features.d:
            raise ValueError(f"regulariser of {len(regulariser)} weights for {features.d} features")
        rows = len(features.potentials(np.zeros(features.d)))
        if rows != batch.size:
            raise ValueError(f"features have {rows} rows for {batch.size} coordinates")
        return Dual(shaped, features, entropy, regulariser)

    def states(self, batch: Batch[Any], features: Features) -> Iterator[State]:
        """Every round of the fit, certified: for progress bars, early stopping, plots."""
        oracle, dual = Validated(resolve(self.oracle, batch)), self.dual(batch, features)
        messages = routine(dual.entropy) if self.route(dual) else None
        if messages is None:
            yield from self.solver.run(dual, oracle)
        else:
            direct = Direct(self.solver.tol, self.solver.rounds, self.solver.seconds)
            yield from direct.run(dual, oracle, messages)

    def route(self, dual: Dual) -> bool:
        """Whether marginals may be computed directly instead of through the oracle."""
        return self.direct and dual.regulariser.plain and self.oracle is None

    def fit(self, batch: Batch[Any], features: Features) -> Model:
        """Run to the solver's tolerance or budget."""
        return collect(self.states(batch, features))


def collect(states: Iterator[State]) -> Model:
    """Consume rounds into a model."""
    history = []
    for state in states:
        proof = state.certificate
        history.append((state.calls, state.seconds, proof.objective, proof.gap))
    return Model(state.theta, state.certificate, history)

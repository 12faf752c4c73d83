"""The convex learners, which have a dual: likelihoods, tree-reweighted or not, and margins.

A structured SVM is the same dual at temperature zero, with the loss as bias.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from mlestruct.engine import engine_of
from mlestruct.features import Features
from mlestruct.features.tied import weighed
from mlestruct.inference.choose import Reweighted, Route
from mlestruct.inference.routine import Routine, routine
from mlestruct.learners.base import Learns, Start, check_problem, ridge_of
from mlestruct.learning.bcfw import BCFW
from mlestruct.learning.dual import Dual
from mlestruct.learning.frank_wolfe import FrankWolfe
from mlestruct.learning.loop import Found, Loop
from mlestruct.learning.regulariser import Regulariser
from mlestruct.oracle import Validated, resolve
from mlestruct.oracle.registry import AnyOracle
from mlestruct.structures.base import Array, Structure
from mlestruct.structures.batch import Batch
from mlestruct.structures.entropy import Entropy, Rho

ROUNDING = 1e-7  # a relative gap that inference's last digits explain: no other route is tried
log = logging.getLogger("mlestruct")


@dataclass(frozen=True)
class Learner(Learns):
    """A convex learner: ``surrogate`` turns a batch into (batch with bias, entropy).

    ``route``: ``auto`` goes ``direct`` (marginals and L-BFGS) where a routine serves the entropy
    and no oracle of yours is named, else by ``frank_wolfe``; the model says which it was.
    ``regulariser`` is λ of a ridge (λ/2)‖θ‖² on the SUM over examples, or a :class:`Regulariser`.
    """

    name: str
    surrogate: Callable[[Batch[Any]], tuple[Batch[Any], Entropy]]
    regulariser: float | Regulariser = 1.0
    oracle: AnyOracle = None
    solver: Any = field(default_factory=FrankWolfe)  # or a BCFW
    route: Route = "auto"
    rho: Rho = None
    """The ρ that its models predict with."""
    alone: bool = False
    """By Frank-Wolfe it asks its oracle and nothing else, no sums over outcomes either."""

    @property
    def inference(self) -> Reweighted:
        """By the route that learns."""
        return Reweighted(self.rho, self.route)

    def dual(self, batch: Batch[Any], features: Features) -> Dual:
        """The dual objective this learner minimises."""
        check_problem(self.name, batch, features)
        if batch.counts is not None:
            batch, features = weighed(batch, features)
        shaped, entropy = self.surrogate(batch)
        return Dual(shaped, features, entropy, ridge_of(self.regulariser, features.d))

    def run(self, batch: Batch[Any], features: Features, loop: Loop, start: Start) -> Found:
        """By descent, and on by Frank-Wolfe where odd sets bind or no step led on; or by it alone.

        Where exact sums over the declared structure are at hand, they bound what Frank-Wolfe moves.
        """
        oracle = Validated(resolve(self.oracle, batch))
        dual = self.dual(batch, features)
        messages = self.messages(dual)
        log.info("%s: %s route", self.name, "frank_wolfe" if messages is None else "direct")
        if isinstance(start, Found):  # τ of a fit that has come to its end may be gone
            start = start.theta if messages is not None else start.tau if len(start.tau) else None
        if messages is None:
            ask = not (self.alone or isinstance(self.solver, BCFW))
            known = routine(dual.entropy) if ask else None
            sums = {"sums": known.many} if known is not None and known.exact else {}
            found: Found = self.solver.on(dual, oracle, loop, start, **sums)
            return found
        from mlestruct.learning.minimise import likelihood, minimise

        engine = engine_of(self.solver.engine, self.solver.workers)
        problem = likelihood(dual, messages.over(oracle.polytope), engine, oracle)
        first = minimise(problem, Loop(loop, "direct", after=None), start)
        left, relative = loop.rounds - first.round, first.certificate.relative
        lost = first.short == "step" and not relative <= ROUNDING
        more = (first.moved or lost) and not relative <= loop.tol
        if not more or left <= 0 or loop.spent(first):
            return first
        why = "odd sets bind" if first.moved else "stuck"
        log.info("%s: %s, on by frank_wolfe", self.name, why)
        rest: Any = {"rounds": left, "calls": loop.left(first.calls)}
        inside = Loop(loop, "frank_wolfe", after=first, **rest)
        begin = first.tau if first.moved else None
        return loop.better(first, self.solver.on(dual, oracle, inside, begin))

    def messages(self, dual: Dual) -> Routine | None:
        """What the direct route computes marginals with, or None: Frank-Wolfe."""
        if self.route not in ("auto", "direct", "frank_wolfe"):
            raise ValueError(f"route is auto, direct or frank_wolfe, not {self.route!r}")
        if isinstance(self.solver, BCFW) or self.route == "frank_wolfe":
            return None
        if self.route == "auto" and self.oracle is not None:
            return None
        found = routine(dual.entropy)
        if found is None and self.route == "direct":
            kinds = ", ".join(sorted({type(s).__name__ for s in dual.batch.structures}))
            raise ValueError(
                f"no routine computes marginals of this entropy on {kinds} (temperature "
                f"{dual.entropy.temperature:g}), so there is no direct route; use route='auto'"
            )
        return found

    def of_seen(self, tol: float) -> Learns:
        """The learner of the likelihood of what was seen, where labels are missing."""
        from mlestruct.learners.missing import Missing

        return Missing(self, tol)


def mle_struct(rho: Rho = None, **settings: Any) -> Learner:
    """Σ_m [⟨θ, φ_m⟩ − log Z_ρ(θ, x_m)] − R(θ), maximised over θ through its dual.

    ``rho`` reweights the entropy (default: the structure's own, an upper bound on log Z, exact on
    chains, trees and paths); ``settings`` are those of :class:`Learner`.
    """
    return Learner("mle_struct", partial(_reweighted, rho), rho=rho, **settings)


def _reweighted(rho: Rho, batch: Batch[Any]) -> tuple[Batch[Any], Entropy]:
    entropy = Entropy.of(batch, rho)
    if batch.target is None or not batch.bias.any():
        return batch, entropy
    observed = batch.observed(batch.bias)  # part of the likelihood, not of θ's
    return replace(batch, constant=-observed), entropy


Loss = Callable[[Structure, Array], tuple[Array, float]]


def hamming(structure: Structure, vertex: Array) -> tuple[Array, float]:
    """The structure's own Hamming loss: wrong variables, rows or coordinates."""
    return structure.loss(vertex)


def ssvm(
    loss: Loss = hamming, temperature: float = 0.0, rho: Rho = None, **settings: Any
) -> Learner:
    """R(θ) + Σ_m max_y [loss(y) + ⟨θ, φ(y)⟩ − ⟨θ, φ_m⟩], minimised through its dual.

    ``loss(structure, vertex)`` returns (ℓ, constant) with loss(s) = ⟨ℓ, s⟩ + constant. A positive
    ``temperature`` T replaces max by T·log Σ exp(·/T), or its surrogate with ``rho``.
    """
    return Learner("ssvm", partial(_margin, loss, temperature, rho), rho=rho, **settings)


def _margin(
    loss: Loss, temperature: float, rho: Rho, batch: Batch[Any]
) -> tuple[Batch[Any], Entropy]:
    target = batch.target
    assert target is not None
    parts = [loss(batch.structure(m), target[batch.coordinates(m)]) for m in range(len(batch))]
    observed = batch.totals(batch.bias * target)
    shaped = replace(
        batch,
        bias=batch.bias + np.concatenate([bias for bias, _ in parts]),
        constant=np.array([constant for _, constant in parts]) - observed,
    )
    return shaped, Entropy.of(shaped, rho, temperature=temperature)

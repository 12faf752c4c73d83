"""What every convex learner shares: build its dual, run the core, keep weights and certificate.

A structured SVM is the same dual at temperature zero, with the loss as bias.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from mlestruct.checkpoint import Loop, begin
from mlestruct.digest import digest
from mlestruct.drive import Progress, then, within
from mlestruct.dual import Dual
from mlestruct.features import Features
from mlestruct.features.weighed import weighed
from mlestruct.frank_wolfe import BCFW, FrankWolfe
from mlestruct.inference.choose import Reweighted, Route
from mlestruct.inference.routine import Routine, routine
from mlestruct.learners.model import Fits, Learns, check_problem, ridge_of
from mlestruct.oracle import Oracle, Validated, resolve
from mlestruct.oracle.registry import AnyOracle
from mlestruct.regulariser import Regulariser
from mlestruct.structures.base import Array, Structure
from mlestruct.structures.batch import Batch
from mlestruct.structures.entropy import Entropy, Rho

ROUNDING = 1e-7  # a relative gap that inference's last digits explain: no other route is tried
log = logging.getLogger("mlestruct")


@dataclass(frozen=True)
class Learner(Fits):
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

    def states(
        self, batch: Batch[Any], features: Features, start: Array | None = None
    ) -> Iterator[Progress]:
        """Every round of the fit: for progress bars, early stopping, plots; the last is certified.

        ``start`` is where to begin: weights on the direct route, τ on the other.
        """
        dual, oracle = self.problem(batch, features)
        loop = begin(self.solver.checkpoint, self.name, lambda: {"start": digest(start)})
        yield from self.within(loop)._run(dual, oracle, self.messages(dual), start)
        loop.finish()

    def within(self, loop: Loop, calls: int = 0) -> Learner:
        """The learner with its solvers' checkpoints inside a loop, and the calls that are left."""
        return replace(self, solver=within(self.solver, loop, calls))

    def _run(
        self, dual: Dual, oracle: Oracle[Any], messages: Routine | None, start: Array | None
    ) -> Iterator[Progress]:
        """By Frank-Wolfe, where exact sums over the declared structure bound what it moves."""
        log.info("%s: %s route", self.name, "frank_wolfe" if messages is None else "direct")
        if messages is None:
            ask = not (self.alone or isinstance(self.solver, BCFW))
            known = routine(dual.entropy) if ask else None
            sums = {"sums": known.many} if known is not None and known.exact else {}
            found: Iterator[Progress] = self.solver.run(dual, oracle, start, **sums)
            return found
        from mlestruct.train.direct import direct

        messages = messages.over(oracle.polytope)
        first = direct(dual, oracle, messages, self.solver, start)
        return then(first, partial(self._onward, dual, oracle))

    def _onward(self, dual: Dual, oracle: Oracle[Any], end: Progress) -> Iterator[Progress] | None:
        """Frank-Wolfe from where the direct route ends short: odd sets bind, or no step led on."""
        proof, solver, left = end.certificate, self.solver, self.solver.rounds - end.round
        lost = end.short == "step" and not proof.relative <= ROUNDING
        if not (end.cut or lost) or proof.relative <= solver.tol or left <= 0:
            return None
        if solver.budget.spent(end):
            return None
        log.info("%s: %s, on by frank_wolfe", self.name, "odd sets bind" if end.cut else "stuck")
        start = end.tau if end.cut else None
        solver = within(solver, solver.checkpoint, end.calls)
        return replace(solver, rounds=left).run(dual, oracle, start)

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

    def problem(self, batch: Batch[Any], features: Features) -> tuple[Dual, Oracle[Any]]:
        """The dual, and who is asked."""
        oracle = Validated(resolve(self.oracle, batch))
        return self.dual(batch, features), oracle

    def run(self, problem: Any, given: Any, last: Any, loop: Loop) -> Iterator[Progress]:
        """From the last one's θ where marginals learn, else from its τ."""
        dual, oracle = problem
        dual = replace(dual, regulariser=ridge_of(given, dual.features.d))
        messages, start = self.messages(dual), None
        if last is not None:
            start = last.tau if messages is None else last.theta
            start = start if len(start) else None  # as of a fit that has come to its end
        return self.within(loop)._run(dual, oracle, messages, start)


def mle_struct(rho: Rho = None, **settings: Any) -> Learner:
    """Σ_m [⟨θ, φ_m⟩ − log Z_ρ(θ, x_m)] − R(θ), maximised over θ through its dual.

    ``rho`` reweights the entropy (default: the structure's own, an upper bound on log Z, exact on
    chains, trees and paths); ``settings`` are those of :class:`Learner`.
    """

    def surrogate(batch: Batch[Any]) -> tuple[Batch[Any], Entropy]:
        entropy = Entropy.of(batch, rho)
        if batch.target is None or not batch.bias.any():
            return batch, entropy
        observed = batch.observed(batch.bias)  # part of the likelihood, not of θ's
        return replace(batch, constant=-observed), entropy

    return Learner("mle_struct", surrogate, rho=rho, **settings)


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

    def surrogate(batch: Batch[Any]) -> tuple[Batch[Any], Entropy]:
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

    return Learner("ssvm", surrogate, rho=rho, **settings)

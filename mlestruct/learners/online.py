"""Averaged perceptron: online updates towards what was observed, through any oracle."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mlestruct.errors import counting_from
from mlestruct.features import Features
from mlestruct.inference.choose import DEFAULT, Inference
from mlestruct.learners.base import Learns, Start, check_problem, ridge_of
from mlestruct.learning.dual import Certificate
from mlestruct.learning.frank_wolfe import FrankWolfe
from mlestruct.learning.loop import NONE, Found, Loop
from mlestruct.learning.regulariser import Regulariser
from mlestruct.oracle import Validated, memory, remember, resolve
from mlestruct.oracle.registry import AnyOracle
from mlestruct.structures.batch import Batch

WHY = "an averaged perceptron minimises no objective that bounds its error"


@dataclass(frozen=True)
class Perceptron(Learns):
    """θ ← θ + w_m (φ_m − φ(ŷ))/λ for one example after another; the answer is the mean of all θ.

    On separable examples it makes finitely many mistakes, whatever their order (Novikoff); else
    it stops after ``epochs``. One oracle call per example and epoch, nothing is certified. λ sets
    the size of the weights; where columns have their own, it undoes their units.
    """

    oracle: AnyOracle = None
    epochs: int = 20
    seed: int = 0
    solver: FrankWolfe = field(default=FrankWolfe())
    """Of which it takes ``seconds`` and ``checkpoint``."""
    name: str = "perceptron"
    inference: Inference = DEFAULT
    regulariser: float | Regulariser = 1.0

    def run(self, batch: Batch[Any], features: Features, loop: Loop, start: Start) -> Found:
        """Learn in epochs; the objective is the share of examples that one was wrong about.

        It begins with weights of 0, whatever ``start`` says.
        """
        from mlestruct.oracle.solver import tells_best_from_worst

        check_problem(self.name, batch, features)
        oracle, count = Validated(resolve(self.oracle, batch)), len(batch)
        ones = [(batch.select(m), features.select(m)) for m in np.arange(count)[:, None]]
        lam = ridge_of(self.regulariser, features.d).lam
        rng, epoch, calls = np.random.default_rng(self.seed), 0, 0
        theta, total = np.zeros(len(lam)), np.zeros(len(lam))
        if loop.state is not None:
            epoch, theta, total, rng.bit_generator.state, memories = loop.state
            calls = epoch * count
            for (one, _), kept in zip(ones, memories, strict=True):
                remember(oracle, one, kept)
        loop.rounds, loop.calls, maximises = self.epochs - 1, None, False
        while True:
            mistakes, seen = 0, 0
            for m in rng.permutation(count):
                if calls and loop.late():
                    break
                one, own = ones[m]
                score = own.potentials(theta) + one.bias
                with counting_from(int(m)):
                    off = one.target - oracle.many(one, score)[0]
                    # Of a solver that minimises no weights would come out.
                    if not maximises and theta.any():
                        maximises = tells_best_from_worst(oracle, one, score)
                off = off if one.counts is None else off * one.counts
                step = one.weight[0] * own.moments(off) if off.any() else np.zeros(len(theta))
                mistakes += bool(step.any())
                theta = theta + step / lam
                total, seen, calls = total + theta, seen + 1, calls + 1
            share = mistakes / count if seen == count else 1.0  # cut short, it may have had more
            proof = Certificate(np.inf, 0.0, share, oracle.polytope, "not used", WHY)
            mean = np.asarray(total / calls)
            said = Found(mean, proof, NONE, NONE, epoch, calls, count, "online")
            why = loop.over(said)
            if why or share == 0.0:
                why = "epochs" if why == "rounds" else why
                return loop.end(said, why if share > 0.0 else "")
            loop.tell(said)
            epoch += 1
            memories = [memory(oracle, one) for one, _ in ones]
            loop.save((epoch, theta, total, rng.bit_generator.state, memories))


def perceptron(
    rho: None = None,
    regulariser: float | Regulariser | None = None,
    oracle: AnyOracle = None,
    route: str = "auto",
    solver: FrankWolfe | None = None,
    epochs: int = 20,
    seed: int = 0,
) -> Perceptron:
    """The mean of online updates θ ← θ + φ_m − φ(ŷ); early stopping is all its regularisation.

    It refuses ``rho``. Of ``regulariser`` it uses λ alone, which divides updates; of ``solver``,
    ``seconds`` and ``checkpoint``.
    """
    if rho is not None:
        raise ValueError(f"a perceptron has no entropy to reweight, got rho={rho!r}")
    if route not in ("auto", "frank_wolfe"):
        raise ValueError(f"a perceptron asks its oracle; there is no {route} route")
    found = Perceptron(oracle, epochs, seed, FrankWolfe() if solver is None else solver)
    return replace(found, regulariser=regulariser) if regulariser else found

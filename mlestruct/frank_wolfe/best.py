"""The two sides of a certificate, each the least so far: what is printed never rises.

For any weights θ, any point ``at`` and any τ of the polytope, gap = P(θ, at) + D(τ) with

    P = R(θ) − ⟨θ, φ⟩ + Σ w [max ⟨Φθ + bias + ∇H(at), s⟩ + H(at) − ⟨∇H(at), at⟩],
    D = R*(r(τ)) − Σ w [H(τ) + ⟨bias, τ⟩].

−P never exceeds the optimum and D is never below it, whichever rounds they come from.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from mlestruct.dual import Certificate
from mlestruct.structures.base import Array
from mlestruct.trees import Tree


def _nothing() -> Array:
    return np.zeros(0)


@dataclass
class Best:
    """The weights that reach the least P, where their tangent lies, and the τ of the least D."""

    theta: Array = field(default_factory=_nothing)
    at: Array = field(default_factory=_nothing)
    tau: Array = field(default_factory=_nothing)
    primal: float = np.inf
    slack: float = 0.0
    dual: float = np.inf

    def take(
        self, proof: Certificate, primal: float, theta: Array, at: Array, tau: Array
    ) -> Certificate:
        """The certificate of the best so far, after a round's own, of which P is ``primal``.

        ``tau`` is copied. Where no bound is known (P = ∞), the last weights are the best.
        """
        objective = proof.objective
        if primal <= self.primal:
            self.theta, self.at, self.primal, self.slack = theta, at, primal, proof.slack
        if objective < self.dual:
            self.tau, self.dual = tau.copy(), objective
        if proof.withheld is None:
            proof = replace(proof, gap=max(self.primal + self.dual, 0.0))
        return replace(proof, slack=self.slack, objective=self.dual)

    def tree(self) -> Tree:
        return self.theta, self.at, self.tau, self.primal, self.slack, self.dual

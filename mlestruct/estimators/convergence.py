"""A fit that ended before what was asked of it says so, once, with the likely cause."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np

from mlestruct.errors import ConvergenceWarning, outside
from mlestruct.learning.dual import Certificate

CAUSES: dict[str, tuple[str, dict[str, str]]] = {
    "rounds": ("its rounds ran out", {"max_rounds": "raise max_rounds", "tol": "raise tol"}),
    "epochs": ("it was still wrong about some examples in its last epoch", {}),
    "seconds": ("its time ran out", {"max_seconds": "raise max_seconds"}),
    "calls": ("its calls ran out", {}),
    "step": (
        "no step was found that inference's last digits could tell from none",
        {
            "solver": "look for features of very different sizes, raise alpha, or take "
            "solver='frank_wolfe'",
            "alpha": "raise alpha",
        },
    ),
    "proof": (
        "the weights stand still, and what proves them leaves more",
        {"solver": "raise tol, or take solver='frank_wolfe'", "tol": "raise tol"},
    ),
    "interrupted": ("it was interrupted", {}),
}
"""What a model's ``short`` says → (in words, what to do where an estimator has a setting)."""

CUT = ("rounds", "seconds", "calls")  # ways to end early that say nothing against the weights
LOOSE = 0.1  # relative gaps above it say little about the weights


@dataclass(frozen=True)
class Ending:
    """How a fit ended: ``short`` is empty where it reached ``tol``; ``missed`` are other alphas.

    ``settings`` are those that the estimator has: advice names no other. ``hint`` is a likelier
    cause, and what to do about it; ``learned``: some weight is not 0.
    """

    short: str
    certificate: Certificate
    tol: float
    missed: Sequence[float] = field(default=())
    tried: int = 1
    settings: Collection[str] = ()
    hint: str = ""
    learned: bool = True

    @property
    def heard(self) -> bool:
        """An averaged perceptron stops early by design, and an interrupted fit raises."""
        return self.short not in ("", "epochs", "interrupted")

    def warn(self, name: str) -> None:
        """A :class:`ConvergenceWarning` where this library was called, if there is cause."""
        if self.heard:
            warnings.warn(f"{name}: {self}", ConvergenceWarning, stacklevel=outside())

    def __str__(self) -> str:
        cause, advice = CAUSES.get(self.short, (self.short, {}))
        told = [f"the fit has not converged: {self._distance()}; {cause}"]
        proof, advised = self.certificate, self.hint
        if proof.unbounded:
            advised = "let the solver say how good an answer could be, Answer(None, upper)"
        elif proof.withheld is None and proof.slack > proof.gap / 2:
            told.append("most of the gap is what the oracle's own bounds leave open")
        elif self.short in CUT and not self.learned:
            told.append("nothing better than weights of 0 was found")
        elif self.short in CUT and proof.relative > LOOSE:
            told.append(
                "the gap is what is proven, not what is wrong with the weights, which may be far "
                "better than it says"
            )
        if self.missed:
            listed = ", ".join(f"{alpha:g}" for alpha in self.missed)
            told.append(f"{len(self.missed)} of {self.tried} alphas missed it, too: {listed}")
        general = [words for name, words in advice.items() if name in self.settings]
        told += [advised] if advised else general[:1]
        return "; ".join(told)

    def _distance(self) -> str:
        proof = self.certificate
        if np.isfinite(proof.gap):
            return f"relative gap {proof.relative:.1e} where tol={self.tol:g} was asked for"
        if proof.withheld:
            return f"tol={self.tol:g} was asked for and nothing is certified ({proof.withheld})"
        why = ", as the oracle left questions without a bound" * proof.unbounded
        return f"tol={self.tol:g} was asked for and no gap is known{why}"

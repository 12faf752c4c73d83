"""A fit that ended before what was asked of it says so, once, with the likely cause."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from mlestruct.errors import ConvergenceWarning, outside

CAUSES = {
    "rounds": "its rounds ran out: raise max_rounds or tol, or bring columns of very different "
    "sizes to one (penalty='standardised')",
    "seconds": "its time ran out: raise max_seconds",
    "calls": "its calls ran out",
    "step": "no step was found that inference's last digits could tell from none: look for "
    "features of very different sizes, raise alpha, or take solver='frank_wolfe'",
    "proof": "the weights stand still, and what proves them leaves more: raise tol",
}
"""What a model's ``short`` says → in words, with what to do."""

LOOSE = 0.1  # relative gaps above it say little about weights that were cut short


def warn_short(model: Any, missed: Sequence[float], tried: int) -> None:
    """A :class:`ConvergenceWarning` where this library was called, if a fit missed its ``tol``.

    ``missed`` are other alphas, of all that were ``tried``, that did so too. Nothing is said of an
    averaged perceptron, which stops early by design, and of an interrupted fit, which raises.
    """
    if model._short in ("epochs", "interrupted"):
        return
    proof, cause = model.certificate_, CAUSES.get(model._short, model._short)
    found = f"relative gap {proof.relative:.1e}" if np.isfinite(proof.gap) else "no gap is known"
    if proof.withheld:
        found = f"nothing is certified ({proof.withheld})"
    elif proof.unbounded:
        found += ", as the oracle left questions without a bound"
        cause += "; let the solver say how good an answer could be, Answer(None, upper)"
    told = [f"{type(model).__name__}: the fit has not converged: {found}"]
    told += [f"tol={model.tol:g} was asked for", cause]
    if model._short in ("rounds", "seconds", "calls") and proof.relative > LOOSE:
        told.append("the gap is what is proven: the weights may be far better than it says")
    if missed:
        listed = ", ".join(f"{alpha:g}" for alpha in missed)
        told.append(f"{len(missed)} of {tried} alphas missed it, too: {listed}")
    warnings.warn("; ".join(told), ConvergenceWarning, stacklevel=outside())

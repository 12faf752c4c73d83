"""A fit that ended before what was asked of it says so, once, with the likely cause."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from mlestruct.errors import ConvergenceWarning, outside

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


def warn_short(model: Any, missed: Sequence[float], tried: int) -> None:
    """A :class:`ConvergenceWarning` where this library was called, if a fit missed its ``tol``.

    ``missed`` are other alphas, of all that were ``tried``, that did so too. Nothing is said of an
    averaged perceptron, which stops early by design, and of an interrupted fit, which raises.
    """
    if model._short in ("epochs", "interrupted"):
        return
    proof, settings, cut = model.certificate_, model.get_params(), model._short in CUT
    cause, advice = CAUSES.get(model._short, (model._short, {}))
    asked, hint = f"tol={model.tol:g} was asked for", model._hint
    distance = f"{asked} and no gap is known"
    if np.isfinite(proof.gap):
        distance = f"relative gap {proof.relative:.1e} where {asked}"
    elif proof.withheld:
        distance = f"{asked} and nothing is certified ({proof.withheld})"
    elif proof.unbounded:
        distance += ", as the oracle left questions without a bound"
    told = [f"{type(model).__name__}: the fit has not converged: {distance}; {cause}"]
    if proof.unbounded:
        hint = "let the solver say how good an answer could be, Answer(None, upper)"
    elif proof.withheld is None and proof.slack > proof.gap / 2:
        told.append("most of the gap is what the oracle's own bounds leave open")
    elif cut and not model.coef_.any():
        told.append("nothing better than weights of 0 was found")
    elif cut and proof.relative > LOOSE:
        told.append(
            "the gap is what is proven, not what is wrong with the weights, which may be far "
            "better than it says"
        )
    if missed:
        listed = ", ".join(f"{alpha:g}" for alpha in missed)
        told.append(f"{len(missed)} of {tried} alphas missed it, too: {listed}")
    general = [words for name, words in advice.items() if name in settings]
    told += [hint] if hint else general[:1]
    warnings.warn("; ".join(told), ConvergenceWarning, stacklevel=outside())

"""The thesis's ways of fitting, and the inference each is used with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import mlestruct as ms
from mlestruct.families.fitting.condensed import Condensed
from mlestruct.families.fitting.implicit import coefficients, convex_likelihood
from mlestruct.families.fitting.losses import errors, variables
from mlestruct.families.fitting.truncated import Messages, beliefs
from mlestruct.inference.sum_product import SumProduct
from mlestruct.learners import LEARNERS
from papers._run import Setting

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Believe = Callable[["Part", Array], Array]
"""Beliefs of labelled graphs at some weights."""

A = coefficients(0.01)  # of variables, 1 on pairs: the thesis's
LBP = {"sweeps": 50, "residual": 1e-5, "restarts": 2}
BRIEF = 5  # rounds of a fit, where all is to take seconds


@dataclass(frozen=True)
class Part:
    """Labelled graphs with features of scores, and of log-coefficients where these are fitted."""

    batch: ms.Batch[Any]
    features: Any
    entropy: Any = None

    def errors(self, tau: Array) -> float:
        return errors(tau, variables(self.batch))

    def scores(self, theta: Array) -> Array:
        return self.features.potentials(theta[: self.features.d])


def convex_beliefs(part: Part, theta: Array, rho: Any = A, early: int | None = None) -> Array:
    """At the optimum of the convex free energy, of fitted coefficients if ``part`` has them.

    ``early``: instead after so many steps of the thesis's algorithm 1.
    """
    inference = Condensed(early=early)
    return inference.minimise(part.batch, part.scores(theta), weights(part, theta, rho)).tau


def weights(part: Part, theta: Array, rho: Any = A) -> Array:
    """The entropy's coefficients: ρ's, times exp(Ψω) where they are fitted."""
    given = Condensed().weights(part.batch, rho)
    if part.entropy is None:
        return given
    return np.asarray(given * np.exp(part.entropy.potentials(theta[part.features.d :])))


def loopy_beliefs(part: Part, theta: Array) -> Array:
    """Belief propagation, a hundred sweeps at most."""
    entropy = ms.Entropy.of(part.batch, 1.0, allow_nonconvex=True)
    loopy = SumProduct.of(entropy, sweeps=100, residual=1e-6, takeover=False)
    return loopy.many(part.batch, part.scores(theta)).tau


def truncated_beliefs(k: int) -> Believe:
    """After k iterations."""
    return lambda part, theta: beliefs(part.batch, [part.scores(theta)], Messages(), k, whole=False)


def budget(setting: Setting, how: dict[str, Any]) -> dict[str, Any]:
    """How to fit, or how to begin to."""
    return how | {"solver": replace(how["solver"], rounds=BRIEF)} if setting.quick else how


def fit(method: str, train: Part, start: Array, how: dict[str, Any]) -> tuple[Array, Believe]:
    """Weights by a method of the thesis, and the inference they are used with."""
    loss, _, k = method.partition("-")
    if method == "convex":
        theta = start
    elif method in ("pseudo", "lbp"):
        name, more = ("pseudo_likelihood", {}) if method == "pseudo" else ("lbp", LBP)
        theta = LEARNERS[name](**how, **more).fit(train.batch, train.features).theta
    elif k:
        theta = begun(start, LEARNERS["procedural"](loss=loss, iterations=int(k), **how), train)
    else:
        theta = implicit(loss, train, start, how)
    return theta, inference(method)


def inference(method: str) -> Believe:
    """What a method's weights are used with."""
    _, _, k = method.partition("-")
    if method in ("pseudo", "lbp"):
        return loopy_beliefs
    return truncated_beliefs(int(k)) if k else convex_beliefs


def implicit(
    loss: str,
    train: Part,
    start: Array,
    how: dict[str, Any],
    rho: Any = A,
    early: int | None = None,
) -> Array:
    """Weights from a start, then those of log-coefficients from 0 where ``train`` has them."""
    how = how | {"loss": loss, "early": early}
    if train.entropy is None:
        return begun(start, LEARNERS["implicit"](rho, **how), train)
    learner = LEARNERS["implicit"](rho, entropy=lambda batch: train.entropy, **how)
    return begun(np.concatenate([start, np.zeros(train.entropy.d)]), learner, train)


def begun(start: Array, learner: Any, train: Part) -> Array:
    """Weights that a learner finds from a start."""
    from_there = replace(learner, begin=lambda batch, features: start)
    return np.asarray(from_there.fit(train.batch, train.features).theta)


def convex(train: Part, how: dict[str, Any], rho: Any = A) -> Array:
    """The convex surrogate likelihood's weights, where the other fits start."""
    return convex_likelihood(rho, **how).fit(train.batch, train.features).theta

"""Strongly convex, separable regularisers with closed-form conjugates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from mlestruct.structures.base import Array, as_count, as_numbers

LEAST = 1e-100  # of λ


@dataclass(frozen=True)
class Regulariser:
    """R(θ) = Σ_j λ_j/2 (θ_j − prior_j)² + l1_j |θ_j|, within lower ≤ θ ≤ upper.

    Ridge, prior mean, elastic net, a λ per group, bounds and fixed entries (lower = upper) are
    settings of this one function; every operation costs O(d).

    >>> Regulariser.of(2, lam=2.0).weights(np.array([4.0, -2.0])).tolist()
    [2.0, -1.0]
    """

    lam: Array
    prior: Array
    l1: Array
    lower: Array
    upper: Array

    @classmethod
    def of(
        cls,
        d: int,
        lam: ArrayLike = 1.0,
        *,
        prior: ArrayLike = 0.0,
        l1: ArrayLike = 0.0,
        lower: ArrayLike = -np.inf,
        upper: ArrayLike = np.inf,
        fixed: Mapping[int, float] | None = None,
    ) -> Regulariser:
        """Broadcast and check; ``fixed`` maps a weight's index to its value."""
        d = as_count(d, "the number of weights")
        given = {"lam": lam, "prior": prior, "l1": l1, "lower": lower, "upper": upper}
        values: dict[str, Array] = {}
        for name, value in given.items():
            array = as_numbers(value, name)
            if array.shape not in ((), (d,)):
                raise ValueError(
                    f"{name} has shape {array.shape}; it must be a number or have {d} entries"
                )
            if np.isnan(array).any():
                raise ValueError(f"{name} holds NaN")
            values[name] = np.full(d, array)
        for index, value in (fixed or {}).items():
            if index not in range(d):
                raise ValueError(f"cannot fix weight {index} of {d}")
            if not np.isfinite(value):
                raise ValueError(f"cannot fix weight {index} at {value}")
            values["lower"][index] = values["upper"][index] = value
        rules = (
            ("lam", values["lam"] > 0, "positive: the dual needs a strongly convex regulariser"),
            ("lam", np.isfinite(values["lam"]), "finite"),
            ("lam", values["lam"] >= LEAST, f"at least {LEAST:g}: the dual divides by it"),
            ("prior", np.isfinite(values["prior"]), "finite"),
            ("l1", (values["l1"] >= 0) & np.isfinite(values["l1"]), "finite and not negative"),
            ("lower", values["lower"] <= values["upper"], "at most upper"),
            ("lower", values["lower"] < np.inf, "less than infinity"),
            ("upper", values["upper"] > -np.inf, "more than minus infinity"),
        )
        for name, right, rule in rules:
            if not right.all():
                j = int(np.flatnonzero(~right)[0])
                raise ValueError(f"{name}[{j}] is {values[name][j]}; it must be {rule}")
        return cls(**values)

    def __len__(self) -> int:
        return len(self.lam)

    @cached_property
    def plain(self) -> bool:
        """True for ridge with a prior mean: weights are affine in r."""
        return bool(
            (self.l1 == 0).all() and np.isneginf(self.lower).all() and np.isposinf(self.upper).all()
        )

    def value(self, theta: Array) -> float:
        """R(θ); +inf outside the bounds."""
        theta = as_numbers(theta, "theta")
        if ((theta < self.lower - 1e-12) | (theta > self.upper + 1e-12)).any():
            return float("inf")
        return float((self.lam / 2 * (theta - self.prior) ** 2 + self.l1 * np.abs(theta)).sum())

    def grad(self, theta: Array) -> Array:
        """A subgradient, zero slope of |θ| at 0."""
        theta = as_numbers(theta, "theta")
        return self.lam * (theta - self.prior) + self.l1 * np.sign(theta)

    def weights(self, r: Array) -> Array:
        """∇R*(r): the θ that attains max ⟨r, θ⟩ − R(θ)."""
        pull = as_numbers(r, "r") + self.lam * self.prior
        if self.plain:
            return pull / self.lam
        shrunk = np.sign(pull) * np.maximum(np.abs(pull) - self.l1, 0.0)
        return np.clip(shrunk / self.lam, self.lower, self.upper)

    def conj(self, r: Array) -> float:
        """R*(r) = max_θ ⟨r, θ⟩ − R(θ)."""
        theta = self.weights(r)
        cost = self.lam / 2 * (theta - self.prior) ** 2 + self.l1 * np.abs(theta)
        return float(as_numbers(r, "r") @ theta) - float(cost.sum())

    def bracket(self, theta: Array, r: Array) -> float:
        """R(θ) + R*(r) − ⟨θ, r⟩ ≥ 0, summed from terms that are never negative."""
        theta, r = as_numbers(theta, "theta"), as_numbers(r, "r")
        if self.plain:
            off = theta - self.weights(r)
            return 0.5 * float(self.lam @ (off * off))
        if ((theta < self.lower - 1e-12) | (theta > self.upper + 1e-12)).any():
            return float("inf")
        best = self.weights(r)
        off = theta - best
        held = r - self.lam * (best - self.prior)  # a subgradient of l1·|θ| and bounds at the best
        kink = self.l1 * (np.abs(theta) - np.abs(best)) - held * off
        return float((0.5 * self.lam * off**2 + np.maximum(kink, 0.0)).sum())

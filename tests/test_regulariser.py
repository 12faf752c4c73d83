"""Regularisers: conjugates by brute maximisation, Fenchel-Young, and every setting's own rule."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from mlestruct.learning.regulariser import Regulariser

SETTINGS = {
    "ridge": {"lam": 2.0},
    "prior": {"lam": 0.5, "prior": [1.0, -2.0, 0.0, 3.0]},
    "bounds": {"lower": [-0.5, 0.0, -np.inf, 1.0], "upper": [0.5, np.inf, 0.2, 2.0]},
    "fixed": {"lam": 0.7, "fixed": {1: 0.3, 3: -2.0}},
    "elastic net": {"lam": 1.5, "l1": [0.4, 0.0, 2.0, 1.0]},
    "group": {"lam": [0.3, 4.0, 4.0, 4.0]},
    "all": {
        "lam": [0.5, 1.0, 2.0, 4.0],
        "prior": [0.4, -1.0, 1.0, 0.0],
        "l1": [0.2, 0.3, 0.0, 1.0],
        "lower": [0.1, -np.inf, -1.0, -0.2],
        "upper": [np.inf, 0.5, 1.0, 0.2],
        "fixed": {2: 0.25},
    },
}


@pytest.fixture(params=SETTINGS)
def regulariser(request):
    return Regulariser.of(4, **SETTINGS[request.param])


def inside(regulariser, rng):
    return np.clip(3 * rng.standard_normal(4), regulariser.lower, regulariser.upper)


def test_fenchel_young_is_never_negative_and_zero_at_the_weights(regulariser, rng):
    """R(θ) + R*(r) − ⟨θ, r⟩ ≥ 0, with equality exactly at θ = ∇R*(r)."""
    for _ in range(200):
        r, theta = 4 * rng.standard_normal(4), inside(regulariser, rng)
        gap = regulariser.value(theta) + regulariser.conj(r) - theta @ r
        assert gap >= -1e-12
        own = regulariser.weights(r)
        assert regulariser.value(own) + regulariser.conj(r) - own @ r == pytest.approx(0, abs=1e-12)
        distance = regulariser.lam / 2 @ (theta - own) ** 2
        assert gap >= distance * (1 - 1e-9) - 1e-12  # strong convexity


def test_the_conjugate_is_the_largest_value(regulariser, rng):
    for _ in range(10):
        r = 3 * rng.standard_normal(4)
        total = 0.0
        for j in range(4):
            one = Regulariser(
                *(
                    getattr(regulariser, name)[j : j + 1]
                    for name in regulariser.__dataclass_fields__
                )
            )
            low, high = max(one.lower[0], -30.0), min(one.upper[0], 30.0)

            def loss(x, one=one, j=j, r=r):
                return one.value(np.array([x])) - r[j] * x

            ends = [-loss(low), -loss(high), -loss(0.0) if low <= 0 <= high else -np.inf]
            if high > low:
                found = minimize_scalar(
                    loss, bounds=(low, high), method="bounded", options={"xatol": 1e-10}
                )
                ends.append(-found.fun)
            total += max(ends)
        assert regulariser.conj(r) == pytest.approx(total, abs=1e-7)


def test_slopes_of_the_conjugate_by_finite_differences(regulariser, rng):
    """∇R* = weights."""
    for _ in range(20):
        r, direction, h = 3 * rng.standard_normal(4), rng.standard_normal(4), 1e-6
        up, down = regulariser.conj(r + h * direction), regulariser.conj(r - h * direction)
        assert (up - down) / (2 * h) == pytest.approx(regulariser.weights(r) @ direction, abs=1e-6)


MISUSE = [
    ({"lam": np.inf}, "finite"),
    ({"lam": [1, 2]}, "must be a number or have 4 entries"),
    ({"prior": [0, np.inf, 0, 0]}, r"prior\[1\] is inf"),
    ({"prior": np.nan}, "prior holds NaN"),
    ({"l1": -1.0}, r"l1\[0\] is -1.0"),
    ({"fixed": {-1: 0.0}}, "cannot fix weight -1 of 4"),
    ({"fixed": {0: np.nan}}, "cannot fix weight 0 at nan"),
    ({"fixed": {0: np.inf}}, "cannot fix weight 0 at inf"),
    ({"lower": np.inf}, "less than infinity"),
]


@pytest.mark.parametrize(("settings", "message"), MISUSE)
def test_misuse_names_the_entry_and_the_rule(settings, message):
    with pytest.raises(ValueError, match=message):
        Regulariser.of(4, **settings)

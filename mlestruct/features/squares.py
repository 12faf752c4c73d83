"""Σ_k v_k Φ_kj²: every weight's curvature in what is summed over coordinates."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlestruct.features.base import Features
from mlestruct.structures.base import Array

FEW, PROBES = 64, 32  # weights that are tried one by one; random signs where there are more


def squares(features: Features, v: Array) -> Array:
    """diag(Φᵀ diag(v) Φ), exactly where the entries of Φ are at hand or d ≤ 64; v ≥ 0.

    Otherwise an estimate of it that needs moments alone: E[(Φᵀ √v ε)²] over random signs ε, which
    is off by a quarter. Always the same for the same features and v.
    """
    own = features.squares(v)
    if own is not None:
        return own
    return _columns(features, v) if features.d <= FEW else _probed(features, v)


def power(matrix: Any) -> Any:
    """The squares of a matrix's entries, dense or sparse."""
    return matrix.multiply(matrix) if hasattr(matrix, "multiply") else matrix**2


def _columns(features: Features, v: Array) -> Array:
    return np.array([v @ features.potentials(unit) ** 2 for unit in np.eye(features.d)])


def _probed(features: Features, v: Array) -> Array:
    rng, root, total = np.random.default_rng(0), np.sqrt(v), np.zeros(features.d)
    for _ in range(PROBES):
        signs = 2.0 * rng.integers(0, 2, len(v)) - 1.0
        total += features.moments(root * signs) ** 2
    return total / PROBES

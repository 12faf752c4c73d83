"""Σ_k v_k Φ_kj²: how much every weight bends what is summed over coordinates."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mlestruct.features.base import CHUNK, Features
from mlestruct.features.dense import Dense
from mlestruct.features.masked import Masked
from mlestruct.features.per_table import PerTable
from mlestruct.features.shared import Shared
from mlestruct.features.sparse import Sparse
from mlestruct.features.tied import Tied
from mlestruct.structures.base import Array

FEW, PROBES = 64, 32  # weights that are tried one by one; random signs where there are more


def squares(features: Features, v: Array) -> Array:
    """diag(Φᵀ diag(v) Φ), exactly where the entries of Φ are at hand or d ≤ 64; v ≥ 0.

    Otherwise an estimate of it that needs moments alone: E[(Φᵀ √v ε)²] over random signs ε, which
    is off by a quarter. Always the same for the same features and v.
    """
    if isinstance(features, Masked):
        return features.gather(squares(features.inner, v))
    if isinstance(features, Shared):  # inner weights that share one are of different coordinates
        return np.asarray(features.spread.power(2).T @ squares(features.inner, v))
    if isinstance(features, PerTable):
        return squares(features.inner, features.sums(v))
    if isinstance(features, Tied):
        return _squared_tied(features).moments(v)
    if isinstance(features, Sparse):
        return np.asarray(_power(features.matrix).T @ v)
    if isinstance(features, Dense):
        return _dense(features, v)
    return _columns(features, v) if features.d <= FEW else _probed(features, v)


def _squared_tied(features: Tied) -> Tied:
    return replace(features, nodes=_power(features.nodes), factors=_power(features.factors))


def _power(matrix: Any) -> Any:
    return matrix.multiply(matrix) if hasattr(matrix, "multiply") else matrix**2


def _dense(features: Dense, v: Array) -> Array:
    out = np.zeros(features.d)
    for first in range(0, len(v), CHUNK):
        rows = slice(first, first + CHUNK)
        out += v[rows] @ np.asarray(features.matrix[rows], dtype=float) ** 2
    return out


def _columns(features: Features, v: Array) -> Array:
    return np.array([v @ features.potentials(unit) ** 2 for unit in np.eye(features.d)])


def _probed(features: Features, v: Array) -> Array:
    rng, root, total = np.random.default_rng(0), np.sqrt(v), np.zeros(features.d)
    for _ in range(PROBES):
        signs = 2.0 * rng.integers(0, 2, len(v)) - 1.0
        total += features.moments(root * signs) ** 2
    return total / PROBES

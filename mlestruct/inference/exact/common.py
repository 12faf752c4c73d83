"""What every exact routine returns, and the limits it keeps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mlestruct.errors import Infeasible
from mlestruct.structures.base import Array

LARGEST = 1 << 24  # numbers in one listing
MEMORY = 2.0  # GiB that tables may take


@dataclass(frozen=True)
class Exact:
    """log Σ exp⟨score, v⟩ over all outcomes v, and E[v] under the distribution it normalises."""

    log_z: float
    tau: Array


def two_to(power: float) -> float:
    """2 to this power, at most 2**1000: beyond 2**1023 Python raises and NumPy warns."""
    return float(2.0 ** min(power, 1000.0))


def refuse_large(count: float, what: str) -> None:
    """A ValueError with the number, above what is worth listing."""
    if count > LARGEST:
        raise ValueError(f"{count:.3g} {what}; exact inference stops at {LARGEST:.3g}")


def refuse_memory(numbers: float, memory: float, what: str) -> None:
    """A ValueError with the size, above ``memory`` GiB."""
    gib = 8.0 * numbers / 2**30
    if gib > memory:
        raise ValueError(
            f"{what} would need {gib:.3g} GiB, the limit is memory={memory:g} GiB: "
            f"raise it, or use marginals() for a surrogate with a certificate"
        )


def log_sum(values: Array, axis: int) -> Array:
    """log Σ exp along an axis, −inf where every term is."""
    with np.errstate(divide="ignore"):
        top = values.max(axis=axis, keepdims=True)
        top = np.where(np.isfinite(top), top, 0.0)
        return np.asarray(np.log(np.exp(values - top).sum(axis=axis)) + np.squeeze(top, axis=axis))


def over_rows(rows: Array, scores: Array) -> tuple[Array, Array]:
    """log Z and τ for every row of ``scores``, summed over the outcomes that are listed in rows."""
    if len(rows) == 0:
        raise Infeasible("no outcome respects the fixed coordinates")
    shut = np.isneginf(scores)
    total = np.where(shut, 0.0, scores) @ rows.T
    if shut.any():
        total[shut @ rows.T > 0] = -np.inf
    log_z = log_sum(total, 1)
    if np.isneginf(log_z).any():
        raise Infeasible("no outcome has a finite score")
    return log_z, np.exp(total - log_z[:, None]) @ rows

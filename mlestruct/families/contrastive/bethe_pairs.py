"""The best table of a binary pair under the Bethe free energy given its ends, to every digit."""

from __future__ import annotations

import numpy as np

from mlestruct.kernels import kernel


@kernel(error_model="numpy")
def cells(W: float, p: float, p0: float, q: float, q0: float) -> tuple[float, float, float, float]:
    """(P11, P10, P01, P00) with ends p, q minimising −W·P11 − H; p0 = 1 − p, q0 = 1 − q.

    Each cell to relative precision at any W: repelling pairs are attracting ones with an end
    flipped, and from there on every formula adds positive terms only.
    """
    if W < 0.0:
        P11, P10, P01, P00 = _attracting(np.expm1(-W), p, p0, q0, q)
        return P10, P11, P00, P01
    return _attracting(np.expm1(W), p, p0, q, q0)


@kernel(error_model="numpy")
def _attracting(
    alpha: float, p: float, p0: float, q: float, q0: float
) -> tuple[float, float, float, float]:
    """The same for e^W − 1 = alpha ≥ 0; above 1 divided by it, so that it may be infinite."""
    d = p - q if p + q < 1.0 else q0 - p0
    apart = p * q0 + q * p0
    if alpha <= 1.0:
        R = np.sqrt(1.0 + alpha * (2.0 * apart + alpha * d * d))
        P11 = 2.0 * (1.0 + alpha) * p * q / (1.0 + alpha * (p + q) + R)
        P00 = 2.0 * (1.0 + alpha) * p0 * q0 / (1.0 + alpha * (p0 + q0) + R)
        return P11, 2.0 * p * q0 / (1.0 - alpha * d + R), 2.0 * q * p0 / (1.0 + alpha * d + R), P00
    c = 1.0 / alpha
    R = np.sqrt(c * c + 2.0 * c * apart + d * d)
    P11 = 2.0 * (1.0 + c) * p * q / (c + p + q + R)
    P00 = 2.0 * (1.0 + c) * p0 * q0 / (c + p0 + q0 + R)
    P10 = 2.0 * c * p * q0 / (c - d + R) if c > d else 0.5 * (R - c + d)
    P01 = 2.0 * c * q * p0 / (c + d + R) if c > -d else 0.5 * (R - c - d)
    return P11, P10, P01, P00

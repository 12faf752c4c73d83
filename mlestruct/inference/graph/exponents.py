"""Logarithms and exponentials of many numbers at once: processors take four or eight together.

FreeBSD's msun (e_log.c, e_exp.c; Sun Microsystems 1993) without its branches, so that compilers
can do so: an error of at most one unit in the last place, for positive normal numbers and for
exponents from −700 to 700. The bits depend on no other number of the row.
"""

from __future__ import annotations

import numpy as np

from mlestruct.kernels import kernel

HIGH, LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10  # ln 2, in two parts
L1, L2, L3, L4, L5, L6, L7 = (
    6.666666666666735130e-01,
    3.999999999940941908e-01,
    2.857142874366239149e-01,
    2.222219843214978396e-01,
    1.818357216161805012e-01,
    1.531383769920937332e-01,
    1.479819860511658591e-01,
)
E1, E2, E3, E4, E5 = (
    1.66666666666666019037e-01,
    -2.77777777770155933842e-03,
    6.61375632143793436117e-05,
    -1.65339022054652515390e-06,
    4.13813679705723846039e-08,
)
MANTISSA, ONE = 0x000FFFFFFFFFFFFF, 0x3FF0000000000000
WHOLE, SHIFT = 0x4330000000000000, 4503599627370496.0  # 2^52: whole numbers in the last bits
ROUND = 6755399441055744.0  # 1.5 · 2^52: added, it rounds; the whole number is in the last bits
LEAST = -708.0  # exponents below this give what this one gives: 3e-308


@kernel(error_model="numpy", forceinline=True)
def logarithm(x):
    """ln x for a positive normal number."""
    bits = np.float64(x).view(np.int64)
    part = np.int64((bits & MANTISSA) | ONE).view(np.float64)
    power = np.int64((bits >> 52) | WHOLE).view(np.float64) - (SHIFT + 1023.0)
    large = part > 1.4142135623730951
    part = 0.5 * part if large else part
    power = power + 1.0 if large else power
    f = part - 1.0
    s = f / (2.0 + f)
    z = s * s
    rest = z * (L1 + z * (L2 + z * (L3 + z * (L4 + z * (L5 + z * (L6 + z * L7))))))
    half = 0.5 * f * f
    return power * HIGH - ((half - (s * (half + rest) + power * LOW)) - f)


@kernel(error_model="numpy", forceinline=True)
def exponential(x):
    """e^x, at least e^LEAST."""
    x = max(x, LEAST)
    turned = x * 1.4426950408889634 + ROUND
    power = turned - ROUND
    high, low = x - power * HIGH, power * LOW
    r = high - low
    z = r * r
    c = r - z * (E1 + z * (E2 + z * (E3 + z * (E4 + z * E5))))
    y = 1.0 - ((low - (r * c) / (2.0 - c)) - high)
    bits = np.float64(y).view(np.int64) + (np.float64(turned).view(np.int64) << 52)
    return np.int64(bits).view(np.float64)


@kernel(error_model="numpy")
def take_logs(values, first, last):
    """In place."""
    for k in range(np.uint64(first), np.uint64(last)):
        values[k] = logarithm(values[k])


@kernel(error_model="numpy")
def exponentiate(values, first, last):
    """In place; −∞ gives 0."""
    for k in range(np.uint64(first), np.uint64(last)):
        values[k] = exponential(values[k]) if values[k] > LEAST else 0.0

"""Logarithms and exponentials of rows: processors take four or eight together.

FreeBSD's msun (e_log.c, e_exp.c; Sun Microsystems 1993) without its branches, so that they can: an
error of 1.02 units in the last place at most (measured), for positive normal numbers and for
exponents from −700 to 700. The bits depend on no other number of the row.
"""

from __future__ import annotations

import math
from typing import Any

from mlestruct.lanes import Row, alone, rows

HIGH, LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10  # ln 2, in two parts
LOGS = (
    6.666666666666735130e-01,
    3.999999999940941908e-01,
    2.857142874366239149e-01,
    2.222219843214978396e-01,
    1.818357216161805012e-01,
    1.531383769920937332e-01,
    1.479819860511658591e-01,
)
EXPONENTIALS = tuple(1.0 / math.factorial(k) for k in range(2, 14))
MANTISSA, ONE = 0x000FFFFFFFFFFFFF, 0x3FF0000000000000
WHOLE, SHIFT = 0x4330000000000000, 4503599627370496.0  # 2^52: whole numbers in the last bits
ROUND = 6755399441055744.0  # 1.5 · 2^52: added, it rounds; the whole number is in the last bits
LEAST = -708.0  # exponents below this give 0


def _series(z: Row, terms: tuple[float, ...]) -> Row:
    """z · (t₁ + z · (t₂ + …)) by pairs of terms, then pairs of pairs: few wait for one another."""
    found: list[Any] = list(terms)
    power = z
    while len(found) > 1:
        pairs = [one + power * other for one, other in zip(found[::2], found[1::2], strict=False)]
        found = pairs + found[2 * len(pairs) :]
        power = power * power
    return z * found[0]


def logarithm(x: Row) -> Row:
    """ln x of positive normal numbers."""
    bits = x.bits()
    part = (bits & MANTISSA | ONE).floats()
    power = (bits >> 52 | WHOLE).floats() - (SHIFT + 1023.0)
    power = part.where_above(1.4142135623730951, power + 1.0, power)
    f = part.where_above(1.4142135623730951, 0.5 * part, part) - 1.0
    s = f / (2.0 + f)
    half = 0.5 * f * f
    rest = half + _series(s * s, LOGS)
    return power * HIGH - ((half - (s * rest + power * LOW)) - f)


def exponential(x: Row) -> Row:
    """e^x; 0 from LEAST down."""
    kept = x.most(LEAST)
    turned = kept * 1.4426950408889634 + ROUND
    power = turned - ROUND
    r = (kept - power * HIGH) - power * LOW
    y = 1.0 + (r + r * _series(r, EXPONENTIALS))
    return x.where_above(LEAST, (y.bits() + (turned.bits() << 52)).floats(), 0.0)


@rows
def exponentiate(x: Row) -> Row:
    """Exponentials of rows."""
    return exponential(x)


@alone
def exp(x: Row) -> Row:
    """e^x."""
    return exponential(x)

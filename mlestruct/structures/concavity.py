"""When a reweighted entropy is concave: every negative counting number is paid for (Heskes)."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from mlestruct.structures.base import Array, Ints

TOL = 1e-12  # what rounding may leave of a payment


def payments(counting: Array, over: Ints) -> Array | None:
    """What α pays for i, for each (α, i) in ``over``: x ≥ 0; None if impossible.

    Σ_α c_α H_α is concave if c_i + Σ_α x_αi ≥ 0 and c_α ≥ Σ_i x_αi: then it is a sum of entropies
    H_i and conditional entropies H_α − H_i. A transport problem: impossible where all together
    have too little, solved where even shares suffice, and an LP between the two.
    """
    counting, over = np.asarray(counting, dtype=float), np.asarray(over, dtype=np.int64)
    paid = np.zeros(len(over))
    demand = np.maximum(-counting, 0.0)
    if not (demand > TOL).any():
        return paid
    supply = np.maximum(counting, 0.0)
    used = np.flatnonzero((supply[over[:, 0]] > TOL) & (demand[over[:, 1]] > TOL))
    arcs = over[used]
    needy = np.flatnonzero(demand > TOL)
    if len(arcs) == 0 or not np.isin(needy, arcs[:, 1]).all():
        return None
    payers, takers = np.unique(arcs[:, 0], return_inverse=True)
    if supply[payers].sum() + TOL * len(counting) < demand.sum():
        return None
    even = supply[arcs[:, 0]] / np.bincount(takers)[takers]
    if (np.bincount(arcs[:, 1], even, len(counting)) >= demand).all():
        paid[used] = even
        return paid
    n, m = len(counting), len(arcs)
    columns = np.arange(m)
    pays = sp.csr_array((np.ones(m), (arcs[:, 0], columns)), shape=(n, m))
    gets = sp.csr_array((-np.ones(m), (arcs[:, 1], columns)), shape=(n, m))
    rows: Any = sp.vstack([pays, gets])
    result = linprog(np.zeros(m), rows, np.r_[supply + TOL, TOL - demand], method="highs")
    if result.status != 0:
        return None
    paid[used] = result.x
    return paid

"""The sum of every coordinate's binary entropy: the entropy of structures with no better one."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from mlestruct.structures.base import Array, Bound, Structure, Views, as_numbers


def binary_views(structure: Structure) -> Views:
    """Coordinates and complements; the distributions are the coordinates' own."""
    size = structure.size
    eye = sp.eye_array(size, format="csr")
    pair = sp.csr_array(sp.vstack([eye, eye]))
    C = sp.csr_array(sp.vstack([eye, -eye]))
    return Views(C, np.repeat([0.0, 1.0], size), pair, np.zeros((0, 2), dtype=np.int64))


def binary_counting(structure: Structure, rho: Any = None) -> Array:
    """1 for every coordinate; refuses a reweighting, which would have nothing to reweight."""
    if rho is not None:
        raise ValueError(
            f"a {type(structure).__name__} has no reweighted Bethe entropy that separates over "
            "nodes: leave rho out; its entropy is the sum of binary entropies, an upper bound"
        )
    return np.ones(structure.size)


def binary_bound(structure: Structure, counting: Array) -> Bound:
    """Never below the entropy: coordinates are at most independent."""
    counting = as_numbers(counting, "counting")
    if (counting == 1).all():
        return Bound("upper", "sum of binary entropies")
    return Bound("none", "counting numbers of no known theorem")

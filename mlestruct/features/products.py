"""Features made of others before learning: a constant beside them, products with a context."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from mlestruct.structures.base import as_count, as_numbers


def crossed(context: ArrayLike, parts: ArrayLike | int) -> Any:
    """(parts × d) features of an example whose context changes what its parts are worth.

    ``parts`` are features of the parts (parts × p): then d = p · (features of the context), and
    weight (j, k) says how much part feature j is worth per unit of context feature k. Or it is
    their number: then every part has weights of its own, and the matrix is sparse.

    >>> crossed([1.0, 3.0], [[1.0], [2.0]]).tolist()
    [[1.0, 3.0], [2.0, 6.0]]
    >>> crossed([1.0, 3.0], 2).toarray().tolist()
    [[1.0, 3.0, 0.0, 0.0], [0.0, 0.0, 1.0, 3.0]]
    """
    row = as_numbers(context, "context").reshape(1, -1)
    if np.ndim(parts) == 0:
        count = as_count(parts, "the number of parts", least=1)
        return sp.csr_array(sp.kron(sp.eye_array(count), sp.csr_array(row)))
    table = as_numbers(parts, "features of parts")
    if table.ndim != 2:
        raise ValueError(f"features of parts have shape {table.shape}; expected (parts, features)")
    return np.kron(table, row)


def with_intercept(array: NDArray[Any]) -> NDArray[Any]:
    """The same features with a constant 1 appended. Never done for you."""
    array = as_numbers(array, "features")
    return np.concatenate([array, np.ones((*array.shape[:-1], 1), dtype=array.dtype)], axis=-1)

"""Tables of two labels: a weight for each pair, for each unordered pair, or for equal labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
import scipy.sparse as sp

Table = Literal["full", "symmetric", "potts"]


def check_table(given: Any) -> Table:
    """A kind of table by name."""
    if given not in get_args(Table):
        raise ValueError(f"a table is 'full', 'symmetric' or 'potts', not {given!r}")
    return given


def table_spread(kind: Table, states: int) -> sp.csr_array:
    """(K² × weights): the weight of each entry of a full table.

    >>> table_spread("symmetric", 2).toarray().tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    first, second = np.divmod(np.arange(states**2), states)
    if kind == "full":
        return sp.csr_array(sp.eye_array(states**2, format="csr"))
    if kind == "potts":
        return sp.csr_array((first == second).astype(float)[:, None])
    pair = np.minimum(first, second) * states + np.maximum(first, second)
    _, weight = np.unique(pair, return_inverse=True)
    rows = np.arange(states**2)
    return sp.csr_array((np.ones(states**2), (rows, weight)))


def table_names(kind: Table, labels: Sequence[str]) -> list[str]:
    """What the weights of a table are called, in order.

    >>> table_names("symmetric", ["a", "b"]), table_names("potts", ["a", "b"])
    (['a – a', 'a – b', 'b – b'], ['same label'])
    """
    if kind == "potts":
        return ["same label"]
    if kind == "full":
        return [f"{a} → {b}" for a in labels for b in labels]
    return [f"{a} – {b}" for i, a in enumerate(labels) for b in labels[i:]]

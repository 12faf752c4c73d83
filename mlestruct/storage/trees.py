"""Trees of arrays as JSON beside named arrays: the form in which files hold what a fit knows.

A tree is None, a number, text, an array, or a tuple, list or mapping of trees. Nothing else goes
in, so nothing but values comes out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]
Tree = Any


def pack(tree: Tree, prefix: str = "tree") -> tuple[Any, Arrays]:
    """JSON in which arrays stand by name, and those arrays; TypeError for what is no tree.

    >>> pack({"at": (1, None)})[0]
    {'mapping': [['at', {'tuple': [1, None]}]]}
    """
    arrays: Arrays = {}
    return _packed(tree, arrays, prefix), arrays


def _packed(tree: Tree, arrays: Arrays, prefix: str) -> Any:
    if tree is None or isinstance(tree, (bool, int, float, str)):
        return tree
    if isinstance(tree, np.generic):
        return _packed(tree.item(), arrays, prefix)
    if isinstance(tree, np.ndarray):
        name = f"{prefix}.{len(arrays)}"
        arrays[name] = tree
        return {"array": name}
    if isinstance(tree, Mapping):
        pairs = [[_packed(part, arrays, prefix) for part in pair] for pair in tree.items()]
        return {"mapping": pairs}
    if isinstance(tree, (tuple, list)):
        parts = [_packed(part, arrays, prefix) for part in tree]
        return {"tuple": parts} if isinstance(tree, tuple) else parts
    raise TypeError(f"{type(tree).__name__} is no value")


def unpack(packed: Any, arrays: Mapping[str, NDArray[Any]]) -> Tree:
    """The inverse of :func:`pack`; KeyError or TypeError where it was not packed so."""
    if isinstance(packed, list):
        return [unpack(part, arrays) for part in packed]
    if not isinstance(packed, dict):
        return packed
    if "tuple" in packed:
        return tuple(unpack(part, arrays) for part in packed["tuple"])
    if "mapping" in packed:
        return {unpack(key, arrays): unpack(value, arrays) for key, value in packed["mapping"]}
    return arrays[packed["array"]]


def like(kept: Tree, own: Tree) -> Tree:
    """A tree of the form of another, itself; ValueError for another: kernels trust their arrays."""
    if isinstance(own, (tuple, list)):
        if not isinstance(kept, (tuple, list)) or len(kept) != len(own):
            raise ValueError(f"{len(own)} parts expected")
        for part, model in zip(kept, own, strict=True):
            like(part, model)
    elif isinstance(own, np.ndarray):
        form = getattr(kept, "dtype", None), np.shape(kept)
        if not isinstance(kept, np.ndarray) or form != (own.dtype, own.shape):
            raise ValueError(f"an array of {own.dtype} {own.shape} expected, found {form}")
    elif type(kept) is not type(own):
        raise ValueError(f"a {type(own).__name__} expected, found {kept!r}")
    return kept

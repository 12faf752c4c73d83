"""Lists with an entry per example, of any sizes, as estimators return them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Ragged(list[Any]):
    """A list that ``np.concatenate`` joins example by example, as cross-validation does.

    Everything else treats it as the list it is.

    >>> folds = [Ragged([np.zeros(2)]), Ragged([np.ones(3), np.ones(1)])]
    >>> [entry.tolist() for entry in np.concatenate(folds)]
    [[0.0, 0.0], [1.0, 1.0, 1.0], [1.0]]
    """

    def __array_function__(
        self, function: Callable[..., Any], kinds: Any, args: Any, kwargs: Any
    ) -> Any:
        if function is np.concatenate and all(isinstance(part, Ragged) for part in args[0]):
            return _entries([entry for part in args[0] for entry in part])
        return function(*_plain(args), **{name: _plain(value) for name, value in kwargs.items()})


def _entries(entries: list[Any]) -> NDArray[np.object_]:
    """An array of objects, one per entry, whatever their shapes."""
    found = np.empty(len(entries), dtype=object)
    for m, entry in enumerate(entries):
        found[m] = entry
    return found


def _plain(value: Any) -> Any:
    """The same arguments with plain lists for ours, so that NumPy does not ask again."""
    if isinstance(value, Ragged):
        return list(value)
    if isinstance(value, (list, tuple)) and any(isinstance(v, (list, tuple)) for v in value):
        return type(value)(_plain(v) for v in value)
    return value

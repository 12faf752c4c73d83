"""Digests: equal values have equal ones, in any process; what a checkpoint tells data apart by."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Any

import numpy as np

DIGITS, FEW = 16, 10
Feed = Callable[[Any], None]


def digest(*values: Any) -> str:
    """Of arrays, values, containers and dataclasses of these; code counts by its name alone.

    Fields whose name starts with ``_`` are caches and do not count; nor does what an object that
    is none of these holds, unless it has a ``key``, or ``potentials``, which are then asked for.

    >>> digest({"a": [1, 2.0]}) == digest({"a": [1, 2.0]}) != digest({"a": [1, 2.5]})
    True
    """
    found = hashlib.sha256()
    _feed(values, found.update)
    return found.hexdigest()[:DIGITS]


def _feed(value: Any, feed: Feed) -> None:
    if isinstance(value, np.ndarray) and value.dtype != object:
        feed(f"array {value.dtype.str} {value.shape}".encode())
        feed(np.ascontiguousarray(value).view(np.uint8).data if value.size else b"")
    elif isinstance(value, bytes):
        feed(f"bytes {len(value)};".encode())
        feed(value)
    elif value is None or isinstance(value, (bool, int, float, str, np.generic)):
        feed(f"{type(value).__name__} {value!r};".encode())
    elif isinstance(value, Mapping):
        _feed_all("mapping", [part for pair in value.items() for part in pair], feed)
    elif isinstance(value, (set, frozenset)):
        _feed_all("set", sorted(digest(part) for part in value), feed)
    elif isinstance(value, (tuple, list, np.ndarray)):
        _feed_all("list", list(value), feed)
    else:
        _feed_all(*_parts(value), feed)


def _parts(value: Any) -> tuple[str, list[Any]]:
    """What kind of object it is, and what of it counts."""
    kind = type(value).__qualname__
    if hasattr(value, "key"):
        return kind, [value.key]
    if isinstance(value, partial):
        return "partial", [value.func, value.args, value.keywords]
    if hasattr(value, "__qualname__"):
        return "code", [getattr(value, "__module__", ""), value.__qualname__]
    if hasattr(value, "tocsr"):
        rows = value.tocsr()
        return kind, [rows.shape, rows.indptr, rows.indices, rows.data]
    if hasattr(value, "__array__"):
        return kind, [np.asarray(value)]
    if is_dataclass(value):
        names = [field.name for field in fields(value) if not field.name.startswith("_")]
        return kind, [getattr(value, name) for name in names]
    if hasattr(value, "potentials"):
        return kind, [value.d, value.potentials(np.cos(np.arange(value.d)))]
    return kind, []


def _feed_all(kind: str, parts: list[Any], feed: Feed) -> None:
    feed(f"{kind} of {len(parts)}:".encode())
    for part in parts:
        _feed(part, feed)


def named(batch: Any, features: Any, regulariser: Any) -> dict[str, Any]:
    """What is learned from, and λ: numbers where they are few, digests where they are many."""
    found = {
        "examples": len(batch),
        "structures": digest(batch.structures, batch.which),
        "outcomes": digest(batch.target),
        "example weights": digest(batch.weight),
        "bias": digest(batch.bias, batch.constant),
        "features": digest(features),
    }
    for field in fields(regulariser):
        values = getattr(regulariser, field.name)
        alike = len(values) > 0 and (values == values[0]).all()
        found[field.name] = float(values[0]) if alike else digest(values)
    return found


def shown(value: Any) -> Any:
    """A setting as people know it, where it is a plain value or a few of them."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    few = isinstance(value, (tuple, list)) and len(value) <= FEW
    return repr(value) if few and all(shown(v) is v for v in value) else digest(value)

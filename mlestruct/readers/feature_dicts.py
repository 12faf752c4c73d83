"""CRFsuite-style features: per position a dict, a list or a set of named attributes."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from reprlib import repr as short
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mlestruct.errors import DataWarning, outside
from mlestruct.storage.files import parsed
from mlestruct.structures.base import Array, Ints, Shorts

Position = Mapping[str, Any] | Iterable[str]

NESTED = 100  # dicts in dicts: more is a mistake, and Python's own stack ends at a few hundred
HOLDS = list, tuple, Set, Mapping
NUMBERS = int, float, np.integer, np.floating


def pairs_of(position: Position, inside: int = 0) -> Iterable[tuple[str, float]]:
    """(attribute, value) as CRFsuite reads them.

    Numbers are values, True is 1 and False nothing, a string makes the attribute ``name:string``,
    a list or set one such attribute per member, and a nested dict is prefixed by its name.
    """
    if not isinstance(position, Mapping):
        yield from ((_text(name), 1.0) for name in _each(position))
        return
    for name, value in position.items():
        _text(name)
        if isinstance(value, str):
            yield f"{name}:{value}", 1.0
        elif isinstance(value, (bool, np.bool_)):
            if value:
                yield name, 1.0
        elif isinstance(value, Mapping):
            if inside == NESTED:
                raise ValueError(f"attribute {name!r} is a dict in {NESTED} dicts or more")
            found = pairs_of(value, inside + 1)
            yield from ((f"{name}:{inner}", number) for inner, number in found)
        elif _number(value):
            yield name, _finite(name, value)
        elif isinstance(value, Iterable) and not _whole(value):
            yield from ((f"{name}:{_shallow(name, inner)}", 1.0) for inner in _in_order(value))
        else:
            raise ValueError(
                f"attribute {name!r} has value {short(value)}; expected number or text"
            )


def _shallow(name: str, member: Any) -> Any:
    """A member of a list, refused if it holds more than plain values: its text becomes a name."""
    held = isinstance(member, HOLDS)
    if held and (isinstance(member, Mapping) or any(isinstance(one, HOLDS) for one in member)):
        raise ValueError(f"attribute {name!r} lists {short(member)}; expected number or text")
    return member


def _whole(value: Any) -> bool:
    """Bytes have members, and an array without axes pretends to."""
    return isinstance(value, bytes) or getattr(value, "shape", None) == ()


def _number(value: Any) -> bool:
    """A span of time is an integer to NumPy."""
    exact = type(value).__name__ in ("Decimal", "Fraction")
    return exact or (isinstance(value, NUMBERS) and not isinstance(value, np.timedelta64))


def _finite(name: str, value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"attribute {name!r} is a number of {len(str(value))} digits") from None


def _each(position: Any) -> Iterable[Any]:
    if isinstance(position, str) or not isinstance(position, Iterable):
        raise ValueError(f"a position has a dict, a list or a set of names, not {short(position)}")
    return _in_order(position)


def _in_order(members: Iterable[Any]) -> Iterable[Any]:
    """A set has no order of its own, and that of its hashes is another in every process."""
    return sorted(members, key=str) if isinstance(members, Set) else members


def _text(name: Any) -> str:
    if not isinstance(name, str):
        raise ValueError(f"{short(name)} is no name of an attribute: names are text")
    return name


def _all_text(names: Iterable[Any]) -> None:
    try:
        "".join(names)  # in C: names are text, each of them, nearly always
    except TypeError:
        for name in names:
            _text(name)


@dataclass(frozen=True)
class Attributes:
    """The dictionary of attributes seen in training; ``names[j]`` is column j.

    >>> attributes = Attributes.of([[{"word": "a", "upper": True}, {"word": "b"}]])
    >>> attributes.names
    ['word:a', 'upper', 'word:b']
    >>> attributes.rows([{"word": "b", "bias": 1.0}]).toarray().tolist()
    [[0.0, 0.0, 1.0]]
    """

    place: dict[str, int]

    @classmethod
    def of(cls, X: Sequence[Sequence[Position]]) -> Attributes:
        """Every attribute of every position, in order of appearance."""
        place = Growing()
        _read(X, place.__getitem__)
        return cls(dict(place))

    @property
    def names(self) -> list[str]:
        return list(self.place)

    def packed(self) -> NDArray[np.uint8]:
        """The names as an array, for a model file."""
        return np.frombuffer(json.dumps(self.names).encode(), dtype=np.uint8)

    @classmethod
    def unpacked(cls, array: NDArray[np.uint8]) -> Attributes:
        """The inverse of :meth:`packed`."""
        return cls({name: j for j, name in enumerate(parsed(array.tobytes().decode()))})

    def __len__(self) -> int:
        return len(self.place)

    @cached_property
    def _heads(self) -> set[str]:
        """The names of attributes that were text."""
        return {name.partition(":")[0] for name in self.place if ":" in name}

    def _doubt(self, position: Any) -> None:
        """Warn of what was numbers in training and is text, or the other way: it counts nothing.

        The first position alone is looked at: a table read in another way shows there.
        """
        if type(position) is not dict:
            return
        for name, value in position.items():
            text = isinstance(value, str)
            known = name in self.place
            if text and known and f"{name}:{value}" not in self.place and name not in self._heads:
                was = "numbers"
            elif not text and _number(value) and not known and name in self._heads:
                was = "text"
            else:
                continue
            warnings.warn(
                f"attribute {name!r} is {short(value)}, and was {was} in training: it counts for "
                "nothing",
                DataWarning,
                stacklevel=outside(),
            )

    def rows(self, x: Sequence[Position]) -> sp.csr_array:
        """One sequence as (positions × attributes); attributes not seen are left out."""
        return self.stack([x])

    def stack(self, X: Sequence[Sequence[Position]]) -> sp.csr_array:
        """All positions of all sequences, one below the other; repeats add up."""
        start, index, data = self.entries(X)
        rows = sp.csr_array((data, index, start), shape=(len(start) - 1, len(self)))
        rows.sum_duplicates()
        return rows

    def entries(self, X: Sequence[Sequence[Position]]) -> tuple[Ints, Shorts, Array]:
        """(first entry of every position, column of every entry, its value), as in a CSR matrix."""
        start, index, odd = _read(X, self.place.get)
        self._doubt(next((next(iter(x)) for x in X if len(x)), None))
        data = np.ones(len(index))
        for k, value in odd:
            data[k] = value
        return np.array(start), np.array(index, np.int32), data


class Growing(dict[str, int]):
    """A name that is not yet there gets the next number."""

    def __missing__(self, name: str) -> int:
        number = self[name] = len(self)
        return number


def _read(
    X: Sequence[Sequence[Position]], find: Callable[[str], int | None]
) -> tuple[list[int], list[int], list[tuple[int, float]]]:
    """Where positions start, the numbers of attributes found, and values other than 1, by place.

    One loop without a call of ours per attribute, for the kinds of values that are usual:
    :func:`pairs_of` says what all others mean, and takes four times as long.
    """
    start, index, odd = [0], list[int](), list[tuple[int, float]]()
    m = i = 0
    try:
        for m, x in enumerate(X):  # noqa: B007 (errors name it)
            for i, position in enumerate(x):  # noqa: B007
                if type(position) is not dict:
                    _add(pairs_of(position), find, index, odd)
                    start.append(len(index))
                    continue
                _all_text(position)
                for name, value in position.items():
                    kind = type(value)
                    if kind is str:
                        number = find(f"{name}:{value}")
                    elif value is True or ((kind is float or kind is int) and value == 1.0):
                        number = find(name)
                    else:
                        _add(pairs_of({name: value}), find, index, odd)
                        continue
                    if number is not None:
                        index.append(number)
                start.append(len(index))
    except ValueError as error:
        raise ValueError(f"example {m}, position {i}: {error}") from error
    return start, index, odd


def _add(
    pairs: Iterable[tuple[str, float]],
    find: Callable[[str], int | None],
    index: list[int],
    odd: list[tuple[int, float]],
) -> None:
    for name, value in pairs:
        if not isfinite(value):
            raise ValueError(f"{name!r} is {value}")
        number = find(name)
        if number is not None:
            if value != 1.0:
                odd.append((len(index), value))
            index.append(number)

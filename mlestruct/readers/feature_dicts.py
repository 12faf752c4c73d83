"""CRFsuite-style features: per position a dict, a list or a set of named attributes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from mlestruct.structures.graph import FactorGraph
from mlestruct.structures.shapes import chain

Position = Mapping[str, Any] | Iterable[str]


def pairs_of(position: Position) -> Iterable[tuple[str, float]]:
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
            yield from ((f"{name}:{inner}", number) for inner, number in pairs_of(value))
        elif isinstance(value, (int, float, np.number)):
            yield name, float(value)
        elif isinstance(value, Iterable):
            yield from ((f"{name}:{inner}", 1.0) for inner in value)
        else:
            raise ValueError(f"attribute {name!r} has value {value!r}; expected number or text")


def _each(position: Any) -> Iterable[Any]:
    if isinstance(position, str) or not isinstance(position, Iterable):
        raise ValueError(f"a position has a dict, a list or a set of attributes, not {position!r}")
    return position


def _text(name: Any) -> str:
    if not isinstance(name, str):
        raise ValueError(f"{name!r} is no name of an attribute: names are text")
    return name


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
        place: dict[str, int] = {}
        for m, x in enumerate(X):
            for i, position in enumerate(x):
                try:
                    for name, _ in pairs_of(position):
                        place.setdefault(name, len(place))
                except ValueError as error:
                    raise ValueError(f"example {m}, position {i}: {error}") from error
        return cls(place)

    @property
    def names(self) -> list[str]:
        return list(self.place)

    def __len__(self) -> int:
        return len(self.place)

    def rows(self, x: Sequence[Position]) -> sp.csr_array:
        """One sequence as (positions × attributes); attributes not seen are left out."""
        return self.stack([x])

    def stack(self, X: Sequence[Sequence[Position]]) -> sp.csr_array:
        """All positions of all sequences, one below the other; repeats add up."""
        start, index, data = [0], [], []
        for m, x in enumerate(X):
            for i, position in enumerate(x):
                for name, value in pairs_of(position):
                    if not np.isfinite(value):
                        raise ValueError(f"example {m}, position {i}: {name!r} is {value}")
                    if name in self.place:
                        index.append(self.place[name])
                        data.append(value)
                start.append(len(index))
        shape = (len(start) - 1, len(self))
        rows = sp.csr_array((np.array(data, float), np.array(index, np.int32), start), shape=shape)
        rows.sum_duplicates()
        return rows


def bio_rules(labels: Sequence[str]) -> tuple[list[int], list[tuple[int, int]]]:
    """(labels that may not begin a sequence, pairs that may not follow each other) of BIO tags.

    ``I-x`` follows only ``B-x`` and ``I-x``.
    """
    inside = [k for k, label in enumerate(labels) if str(label).startswith("I-")]
    pairs = [
        (j, k)
        for k in inside
        for j, before in enumerate(labels)
        if str(before)[2:] != str(labels[k])[2:] or str(before)[:2] not in ("B-", "I-")
    ]
    return inside, pairs


def bio_chain(labels: Sequence[str]) -> Callable[[int], FactorGraph]:
    """length → a chain over these labels on which only well-formed BIO sequences are possible."""
    first, pairs = bio_rules(labels)

    def make(length: int) -> FactorGraph:
        free, states = chain(length, len(labels)), len(labels)
        fixed = free.fixed.copy()
        fixed[first] = 0
        entries = np.array([j * states + k for j, k in pairs], dtype=np.int64)
        fixed[np.add.outer(free.table_start[:-1], entries)] = 0
        return FactorGraph(free.cards, free.scope.reshape(-1, 2), fixed=fixed)

    return make

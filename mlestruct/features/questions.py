"""What two people's answers to one question are worth together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mlestruct.structures.base import Array

FAR = 1e3  # times what levels are apart, as a rule


@dataclass(frozen=True)
class Question:
    """What two answers to one question are worth together: Σ_w θ_w tables[w][a, b].

    ``tables`` (weights × levels × levels) are symmetric, one for each of ``weights``' names.

    >>> Question.ordinal("noise", ["low", "mid", "high"]).weights[:3]
    ('noise |difference|', 'noise low~low', 'noise low~mid')
    """

    name: str
    levels: tuple[str, ...]
    weights: tuple[str, ...]
    tables: Array = field(repr=False)

    def __post_init__(self) -> None:
        shape = (len(self.weights), len(self.levels), len(self.levels))
        if self.tables.shape != shape or not np.isfinite(self.tables).all():
            raise ValueError(f"question {self.name!r}: needs finite tables of shape {shape}")
        if not np.array_equal(self.tables, self.tables.transpose(0, 2, 1)):
            raise ValueError(f"question {self.name!r}: tables are not symmetric")

    @classmethod
    def ordinal(
        cls,
        name: str,
        levels: Sequence[Any],
        values: ArrayLike | None = None,
        *,
        indicators: bool = True,
    ) -> Question:
        """|difference| of the levels' values (default 0, 1, …), and each pair of levels."""
        at = np.arange(len(levels), dtype=float) if values is None else np.asarray(values, float)
        if at.shape != (len(levels),) or not np.isfinite(at).all():
            raise ValueError(f"question {name!r}: needs a finite value for each level, got {at}")
        distance = np.abs(at[:, None] - at[None, :])
        return cls._of(name, levels, f"{name} |difference|", distance, indicators)

    @classmethod
    def categorical(cls, name: str, levels: Sequence[Any], *, indicators: bool = True) -> Question:
        """Whether the answers are the same, and each pair of levels."""
        return cls._of(name, levels, f"{name} same", np.eye(len(levels)), indicators)

    def near(self, alone: NDArray[np.bool_]) -> Question:
        """The same model of perfect matchings: levels far from all others moved near them.

        What an answer adds to all pairs of its person, each outcome has. With a last level for
        missing answers, since of their pairs too it is taken off. No pair has a level twice that
        is ``alone``: its entry is 0.
        """
        table = self.tables[0]
        others = table + np.diag(np.full(len(table), np.nan))
        size = np.nanmedian(others, axis=1) if len(table) > 1 else np.zeros(len(table))
        far = size > FAR * np.median(size)
        if not far.any():
            return self
        own = np.pad(np.where(far, size, 0.0), (0, 1))
        tables = np.pad(self.tables, ((0, 0), (0, 1), (0, 1)))
        tables[0] -= own[:, None] + own
        tables[0][np.diag(np.append(alone, True))] = 0.0
        return Question(self.name, (*self.levels, ""), self.weights, tables)

    @classmethod
    def _of(
        cls, name: str, levels: Sequence[Any], first: str, table: Array, indicators: bool
    ) -> Question:
        if len(levels) == 0 or len(set(levels)) < len(levels):
            raise ValueError(f"question {name!r}: levels are {list(levels)}, and must differ")
        pairs = list(combinations_with_replacement(range(len(levels)), 2)) if indicators else []
        tables = np.zeros((1 + len(pairs), len(levels), len(levels)))
        tables[0] = table
        for w, (a, b) in enumerate(pairs, start=1):
            tables[w, a, b] = tables[w, b, a] = 1.0
        names = [f"{name} {levels[a]}~{levels[b]}" for a, b in pairs]
        return cls(name, tuple(map(str, levels)), (first, *names), tables)

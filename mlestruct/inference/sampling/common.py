"""What every sampler returns: vertices, and in words what they are samples of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlestruct.batch import Batch
from mlestruct.structures.base import Array, Structure, as_count, refuse_made


@dataclass(frozen=True)
class Samples:
    """0/1 vertices of one structure, one per row.

    ``exact``: independent draws of exp⟨score, v⟩ / Z. Otherwise ``how`` says what they are: a
    Markov chain of that law (dependent, and started somewhere), or an approximation.
    """

    structure: Structure
    vertices: Array
    exact: bool
    how: str

    def __len__(self) -> int:
        return len(self.vertices)

    @property
    def tau(self) -> Array:
        """The mean: an estimate of every coordinate's probability."""
        return self.vertices.mean(axis=0)

    def outcomes(self) -> list[Any]:
        """The samples decoded."""
        return [self.structure.decode(v) for v in self.vertices]


def as_draws(count: Any, problem: Batch[Any] | Structure) -> int:
    """How many samples of each, at least one, where all their vertices fit into memory."""
    count = as_count(count, "count", least=1)
    refuse_made(count * problem.size, f"count={count}")
    return count

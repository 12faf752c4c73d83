"""Features a user computes, and features made of others before learning."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from mlestruct.features.base import Columns, restart
from mlestruct.structures.base import Array, Ints, as_count, as_numbers
from mlestruct.structures.batch import Batch


@dataclass(frozen=True)
class Functions:
    """A user's own pair, per example: potentials(x, θ) → scores and moments(x, τ) → d numbers."""

    inputs: Sequence[Any]
    d: int
    potentials_of: Callable[[Any, Array], Any]
    moments_of: Callable[[Any, Array], Any]
    offsets: Ints

    @classmethod
    def of(
        cls,
        batch: Batch[Any],
        inputs: Sequence[Any],
        d: int,
        potentials: Callable[[Any, Array], Any],
        moments: Callable[[Any, Array], Any],
    ) -> Functions:
        """Checked on the spot: shapes, and that the two are adjoint to each other."""
        if len(inputs) != len(batch):
            raise ValueError(f"{len(inputs)} inputs for {len(batch)} examples")
        features = cls(
            list(inputs),
            as_count(d, "the number of features", least=1),
            potentials,
            moments,
            batch.offsets,
        )
        rng = np.random.default_rng(0)
        theta, tau = rng.standard_normal(d), rng.random(batch.size)
        scores = features.potentials(theta)
        local = features.each(tau).reshape(-1, d)
        for m in range(len(batch)):
            one, other = scores[batch.coordinates(m)] @ tau[batch.coordinates(m)], local[m] @ theta
            if not np.isclose(one, other, rtol=1e-6, atol=1e-9):
                raise ValueError(
                    f"example {m}: potentials and moments are not adjoint: "
                    f"⟨potentials(θ), τ⟩ = {one:g} but ⟨θ, moments(τ)⟩ = {other:g}"
                )
        return features

    @property
    def columns(self) -> Columns:
        return Columns.all(self.d, len(self.inputs))

    def potentials(self, theta: Array) -> Array:
        theta = as_numbers(theta, "theta")
        out = np.empty(int(self.offsets[-1]))
        for m, x in enumerate(self.inputs):
            scores = np.asarray(self.potentials_of(x, theta), dtype=float).reshape(-1)
            if len(scores) != self.offsets[m + 1] - self.offsets[m]:
                raise ValueError(f"example {m}: potentials returned {len(scores)} scores")
            if not np.isfinite(scores).all():
                raise ValueError(
                    f"example {m}: potentials returned {scores[~np.isfinite(scores)][0]}"
                )
            out[self.offsets[m] : self.offsets[m + 1]] = scores
        return out

    def moments(self, tau: Array) -> Array:
        return np.asarray(self.each(tau).reshape(-1, self.d).sum(axis=0))

    def each(self, tau: Array) -> Array:
        tau = as_numbers(tau, "tau")
        out = np.empty((len(self.inputs), self.d))
        for m, x in enumerate(self.inputs):
            moments = np.asarray(
                self.moments_of(x, tau[self.offsets[m] : self.offsets[m + 1]]), dtype=float
            )
            if moments.shape != (self.d,):
                raise ValueError(f"example {m}: moments returned shape {moments.shape}")
            out[m] = moments
        return out.ravel()

    def squares(self, v: Array) -> None:
        """None: functions do not give the entries of Φ."""

    def select(self, members: Ints) -> Functions:
        return Functions(
            [self.inputs[m] for m in members],
            self.d,
            self.potentials_of,
            self.moments_of,
            restart(self.offsets, members),
        )


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

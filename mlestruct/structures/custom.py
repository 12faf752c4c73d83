"""A user's own 0/1 structure: the oracle defines it, declared groups tighten its entropy."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from mlestruct.structures.base import (
    Array,
    Bound,
    Constraints,
    Structure,
    Views,
    as_count,
    as_fixed,
    as_integers,
    as_numbers,
    as_sparse,
    refuse,
)


class Custom(Structure):
    """0/1 vectors of ``size`` coordinates, known through a solver alone; an outcome is the vector.

    An outcome may also be given as the set of the numbers of its ones.

    ``exactly_one`` lists groups of coordinates of which every outcome uses exactly one; they may
    overlap. ``A``, ``lower``, ``upper`` state lower ≤ A s ≤ upper, where you have them.

    >>> Custom(3, exactly_one=[[0, 1]]).contains([0.5, 0.5, 1.0]).item()
    True
    """

    def __init__(
        self,
        size: int,
        *,
        exactly_one: Sequence[Sequence[int]] = (),
        A: Any = None,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        shape: tuple[int, ...] | None = None,
        fixed: ArrayLike | None = None,
    ) -> None:
        self.size = as_count(size, "the number of coordinates", least=1)
        self.shape = (size,) if shape is None else tuple(shape)
        if min(self.shape, default=0) < 1 or int(np.prod(self.shape)) != size:
            raise ValueError(f"shape {self.shape} does not hold {size} coordinates")
        self.fixed = as_fixed(size, fixed)
        self.groups = [
            as_integers(group, f"group {number}: coordinates")
            for number, group in enumerate(exactly_one)
        ]
        for number, group in enumerate(self.groups):
            if len(group) == 0 or group.min() < 0 or group.max() >= size:
                raise ValueError(f"group {number} must name coordinates in 0..{size - 1}")
            if len(np.unique(group)) < len(group):
                raise ValueError(f"group {number} names a coordinate twice")
        self.rows = None if A is None else as_sparse(A, "A")
        if self.rows is not None and self.rows.shape[1] != size:
            raise ValueError(f"A has {self.rows.shape[1]} columns for {size} coordinates")
        if self.rows is not None and not np.isfinite(self.rows.data).all():
            raise ValueError("A holds NaN or infinity")
        n_rows = 0 if self.rows is None else self.rows.shape[0]
        self.lower = _side("lower", -np.inf if lower is None else lower, n_rows)
        self.upper = _side("upper", np.inf if upper is None else upper, n_rows)
        empty = (self.lower > self.upper) | (self.lower == np.inf) | (self.upper == -np.inf)
        words = "row {} of A: {:g} ≤ … ≤ {:g}".format
        refuse(empty, lambda row: words(row, self.lower[row], self.upper[row]))

    def identity(self) -> Any:
        rows = self.rows
        parts = () if rows is None else (rows.data, rows.indices, rows.indptr)
        arrays = (*self.groups, *parts, self.lower, self.upper)
        return self.size, self.shape, len(self.groups), tuple(a.tobytes() for a in arrays)

    def membership(self) -> sp.csr_array:
        """(groups × coordinates)."""
        start = np.cumsum([0, *map(len, self.groups)])
        columns = np.concatenate([*self.groups, np.zeros(0, dtype=np.int64)])
        shape = len(self.groups), self.size
        return sp.csr_array((np.ones(len(columns)), columns, start), shape=shape)

    def encode(self, outcome: ArrayLike | Set[int]) -> Array:
        if isinstance(outcome, Set):
            used, vector = (
                as_integers(sorted(outcome), "numbers of coordinates"),
                np.zeros(self.size),
            )
            wrong, last = (used < 0) | (used >= self.size), self.size - 1
            refuse(wrong, lambda k: f"there is no coordinate {used[k]}; there are 0 to {last}")
            vector[used] = 1.0
        else:
            vector = as_numbers(outcome, "coordinates").reshape(-1).copy()
        if vector.shape != (self.size,):
            raise ValueError(
                f"an outcome has {self.size} coordinates, got {vector.shape[0]}; the numbers of "
                "those that are used are a set, as in {0, 2}"
            )
        wrong = (vector != 0) & (vector != 1)
        refuse(wrong, lambda k: f"coordinate {k} is {vector[k]}; an outcome is 0 or 1")
        for number, group in enumerate(self.groups):
            ones = vector[group].sum()
            if ones != 1:
                raise ValueError(f"group {number} has {ones:g} ones; exactly one was declared")
        return vector

    def decode(self, vector: ArrayLike) -> Array:
        return as_numbers(vector, "vector").reshape(self.shape).round()

    def views(self) -> Views:
        """Coordinates and complements; distributions: coordinates, then groups."""
        eye, member = sp.eye_array(self.size, format="csr"), self.membership()
        D = sp.block_array([[eye, member.T], [eye, None]], format="csr")
        ends = member.tocoo()
        over = np.stack([self.size + ends.row, ends.col], axis=1).astype(np.int64)
        c0 = np.repeat([0.0, 1.0], self.size)
        return Views(sp.csr_array(sp.vstack([eye, -eye])), c0, sp.csr_array(D), over)

    def counting(self, rho: float | ArrayLike | None = None) -> Array:
        """ρ on groups, 1 − Σρ on coordinates; default 1/(groups a coordinate shares) (Shearer)."""
        member = self.membership()
        if rho is None:
            shared = np.asarray(member.sum(axis=0))
            rho = np.array([1.0 / shared[group].max() for group in self.groups])
        weight = np.broadcast_to(as_numbers(rho, "rho"), (len(self.groups),))
        return np.concatenate([1.0 - member.T @ weight, weight])

    def constraints(self) -> Constraints:
        member, ones = self.membership(), np.ones(len(self.groups))
        if self.rows is None:
            return Constraints(member, ones, ones)
        return Constraints(
            sp.csr_array(sp.vstack([member, self.rows])),
            np.concatenate([ones, self.lower]),
            np.concatenate([ones, self.upper]),
        )

    def clamp(self, observed: ArrayLike) -> Custom:
        """Fix the coordinates observed as 0 or 1; −1 stays free."""
        seen = as_fixed(self.size, observed)
        wrong = (seen >= 0) & (self.fixed >= 0) & (seen != self.fixed)
        words = "coordinate {} is observed as {}, fixed at {}".format
        refuse(wrong, lambda k: words(k, seen[k], self.fixed[k]))
        return self.refix(np.where(seen >= 0, seen, self.fixed))  # type: ignore[return-value]

    def impossible(self) -> str | None:
        """A group without an allowed coordinate, or with two that are required."""
        for number, group in enumerate(self.groups):
            if (self.fixed[group] == 0).all():
                return f"group {number} has no allowed coordinate left"
            required = group[self.fixed[group] == 1].tolist()
            if len(required) > 1:
                return f"group {number} has more than one required coordinate: {required}"
        return None

    def bound(self, counting: Array) -> Bound:
        counting = as_numbers(counting, "counting")
        if (counting >= -1e-12).all():
            return Bound("upper", "Shearer: every coordinate covered once")
        return Bound("none", "no theorem for negative counting numbers on a structure of one's own")


def _side(name: str, bound: ArrayLike, rows: int) -> Array:
    values = as_numbers(bound, name)
    if values.ndim > 1 or (values.ndim == 1 and len(values) != rows):
        raise ValueError(f"{name} has shape {values.shape} for {rows} rows of A")
    if np.isnan(values).any():
        raise ValueError(f"{name} holds NaN")
    return np.broadcast_to(values, (rows,))

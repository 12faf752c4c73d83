"""The log-likelihood of some weights, example by example, and its slopes by differences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from mlestruct.features import Features
from mlestruct.limits import check
from mlestruct.progress import Watch
from mlestruct.structures.base import Array
from mlestruct.structures.batch import Batch

Infer = Callable[[Batch[Any], Array], tuple[Array, Array]]
"""(log Z of every example, τ flat) at flat scores: exact sums, or a surrogate's."""

STEP = 0.01  # of a difference, in standard errors that a single example would leave
TOGETHER = 1 << 21  # coordinates that one call of inference is asked for
KEPT = 1 << 25  # numbers of features that are kept as a matrix


class Slopes(NamedTuple):
    """At one θ, along the columns of a basis: all that the estimates and errors are made of.

    ``value`` and ``score`` (θ's slope) are those of each example, ``hessian`` is how much each
    example's expected moments move. ``third`` is Σ_k ∂³ log Z / ∂β_j ∂β_k² summed over examples:
    the slope of log det H where the basis makes H the identity.
    """

    value: Array
    score: Array
    hessian: Array
    third: Array


@dataclass(frozen=True)
class Likelihood:
    """Σ_m w_m [⟨θ, φ_m⟩ − log Z_m(θ)]; inference may be exact or a surrogate's."""

    batch: Batch[Any]
    features: Features
    infer: Infer
    near: Infer | None = None
    """The same beside scores asked for before, where that is quicker."""
    watch: Watch = field(default_factory=lambda: Watch("looking for intervals"))
    """Is told how many inferences of all examples were made."""
    _copies: dict[int, Batch[Any]] = field(default_factory=dict, init=False, repr=False)
    """The batch so many times over, by how often."""

    def __len__(self) -> int:
        return len(self.batch)

    @property
    def d(self) -> int:
        return self.features.d

    @property
    def step(self) -> float:
        """The length of a difference, in the standard errors that all examples leave."""
        return STEP * float(np.sqrt(len(self)))

    def values(self, theta: Array) -> tuple[Array, Array]:
        """Every example's weighted log-likelihood, and its slope in θ."""
        value, score = self._asked(theta[None], self.infer)
        return value[0], score[0]

    def slopes(self, theta: Array, basis: Array, step: float | None = None) -> Slopes:
        """By differences along ``basis`` (d × r), whose columns are standard errors of θ or so.

        2r + 1 calls of inference, sent as few large batches.
        """
        r, step = basis.shape[1], self.step if step is None else step
        moves = np.concatenate([step * basis.T, -step * basis.T])
        value, score = self.values(theta)
        beside = self._asked(theta + moves, self.near or self.infer)[1] @ basis
        score, up, down = score @ basis, beside[:r], beside[r:]
        hessian = ((down - up) / (2.0 * step)).transpose(1, 2, 0)
        third = -(up + down - 2.0 * score).sum(axis=(0, 1)) / step**2
        return Slopes(value, score, (hessian + hessian.transpose(0, 2, 1)) / 2.0, third)

    def _asked(self, thetas: Array, infer: Infer) -> tuple[Array, Array]:
        """Values (thetas × examples) and scores (thetas × examples × d)."""
        share = max(1, TOGETHER // max(self.batch.size, 1))
        parts = [self._together(thetas[k : k + share], infer) for k in range(0, len(thetas), share)]
        values, scores = zip(*parts, strict=True)
        return np.concatenate(values), np.concatenate(scores)

    def _together(self, thetas: Array, infer: Infer) -> tuple[Array, Array]:
        count, n = len(thetas), len(self)
        if count not in self._copies:
            every = np.tile(np.arange(n), count)
            self._copies[count] = self.batch if count == 1 else self.batch.select(every)
        many = self._copies[count]
        log_z, tau = infer(many, self._potentials(thetas).ravel() + many.bias)
        self.watch(count)
        check()  # what was cut short is no value to take differences of
        observed = self._observed @ thetas.T + self._known[:, None]
        values = self.batch.weight * (observed.T - log_z.reshape(count, n))
        missing = self._observed - self._moments(tau.reshape(count, -1))
        return values, self.batch.weight[:, None] * missing

    @cached_property
    def _known(self) -> Array:
        """What is known beforehand of every example's observed score."""
        assert self.batch.target is not None
        return self.batch.totals(self.batch.bias * self.batch.target)

    @cached_property
    def _observed(self) -> Array:
        assert self.batch.target is not None
        return np.asarray(self._moments(self.batch.target[None])[0])

    @cached_property
    def _matrix(self) -> sp.csr_array | None:
        """Φ, a row per coordinate; None where that would be too much to keep."""
        if self.d * self.batch.size > KEPT:
            return None
        columns = [sp.csc_array(self.features.potentials(e)[:, None]) for e in np.eye(self.d)]
        return sp.csr_array(sp.hstack(columns))

    @cached_property
    def _by_example(self) -> sp.csr_array | None:
        """What takes τ to all Φ_mᵀτ_m, (examples · d) of them."""
        if self._matrix is None:
            return None
        entries = self._matrix.tocoo()
        row, column = entries.coords
        place = self.batch.owner[row] * self.d + column
        shape = len(self) * self.d, self.batch.size
        return sp.csr_array((entries.data, (place, row)), shape)

    def _potentials(self, thetas: Array) -> Array:
        """Φθ of every θ, a row each."""
        if self._matrix is None:
            return np.array([self.features.potentials(theta) for theta in thetas])
        return np.asarray((self._matrix @ thetas.T).T)

    def _moments(self, taus: Array) -> Array:
        """Φ_mᵀτ_m of every τ and example, (τ × examples × d)."""
        if self._by_example is None:
            return np.array([self._each(tau) for tau in taus])
        return np.asarray((self._by_example @ taus.T).T).reshape(len(taus), len(self), self.d)

    def _each(self, tau: Array) -> Array:
        """Φ_mᵀτ_m of every example, (examples × d)."""
        local, columns = self.features.each(tau), self.features.columns
        if len(local) == len(self) * self.d:
            return np.asarray(local).reshape(len(self), self.d)
        out = np.zeros((len(self), self.d))
        owner = np.repeat(np.arange(len(self)), np.diff(columns.start))
        out[owner, columns.index] = local
        return out

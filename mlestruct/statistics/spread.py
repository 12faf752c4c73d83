"""How far estimates spread between independent units: sandwiches for few of them.

All matrices are in a basis that makes the whole Hessian the identity, so that H⁻¹ drops out.
CR2 and its degrees of freedom: Bell & McCaffrey (2002, Survey Methodology 28). The moderated
variance is the idea of Smyth (2004, Stat. Appl. Genet. Mol. Biol. 3): a model's variance counts as
so many degrees of freedom.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from mlestruct.structures.base import Array, Ints

CLOSED = 1e-8  # share of a unit's own residual below which it determines a direction alone
LIVE = 1e-8  # of a variance's largest eigenvalue
POOLED = 0.75  # of the squares in the dispersion that count as degrees of freedom


class Spread(NamedTuple):
    """A contrast's variance, and the degrees of freedom of the t distribution it goes with."""

    variance: float
    freedom: float


@dataclass(frozen=True)
class Units:
    """Independent units: ``score`` (units × r) at the estimate, ``hessian`` (units × r × r).

    ``exact`` is the variance that the model gives to every unit's score, where it can be had.
    """

    score: Array
    hessian: Array
    exact: Array | None

    @classmethod
    def of(cls, score: Array, hessian: Array, exact: Array | None, unit: Ints) -> Units:
        """Sums over the examples of each unit."""
        return cls(*(None if a is None else _sums(a, unit) for a in (score, hessian, exact)))  # type: ignore[arg-type]

    def __len__(self) -> int:
        return len(self.score)

    @cached_property
    def dispersion(self) -> float:
        """How much more the scores vary than the model says, per direction; about 1 if it holds."""
        assert self.exact is not None
        total, count = 0.0, 0
        for s, J in zip(self.score, self.exact, strict=True):
            value, vector = np.linalg.eigh(J)
            live = value > LIVE * max(float(value[-1]), 1e-300)
            total += float(((vector[:, live].T @ s) ** 2 / value[live]).sum())
            count += int(live.sum())
        return total / (count * (1.0 - 1.0 / len(self)))

    @cached_property
    def _roots(self) -> Array:
        return np.array([_root(unit) for unit in self.hessian])

    def robust(self, contrast: Array) -> Spread:
        """CR2: from the units' scores alone."""
        H, pull = self.hessian, self._roots @ contrast
        reached = np.einsum("mi,mi->m", pull, self.score)
        # covariance of these under the working model: units' scores less what the fit takes away
        swing = np.einsum("mij,mj->mi", H, pull)
        P = -swing @ swing.T
        P[np.diag_indices(len(P))] += np.einsum("mi,mi->m", pull, swing)
        return Spread(float(reached @ reached), float(np.trace(P) ** 2 / (P**2).sum()))

    def modelled(self, contrast: Array) -> float:
        """c′Jc: the variance if the model is right."""
        assert self.exact is not None
        return float(contrast @ self.exact.sum(axis=0) @ contrast)

    def moderated(self, contrast: Array) -> Spread:
        """CR2 and the model's variance times the dispersion, weighed by degrees of freedom.

        In this mean the model counts as many degrees as there are weights. The dispersion pools
        rank × (units − 1) squares, so most of those count as degrees of the t distribution too;
        not all, as scores of few outcomes are not normal.
        """
        own, r = self.robust(contrast), self.score.shape[1]
        prior = self.dispersion * self.modelled(contrast)
        variance = (own.freedom * own.variance + r * prior) / (own.freedom + r)
        return Spread(variance, own.freedom + POOLED * r * (len(self) - 1))


def _sums(values: Array, unit: Ints) -> Array:
    out = np.zeros((int(unit.max()) + 1, *values.shape[1:]))
    np.add.at(out, unit, values)
    return out


def _root(hessian: Array) -> Array:
    """(I − H_m)^−½, with 0 where the unit alone determines a direction."""
    value, vector = np.linalg.eigh(np.eye(len(hessian)) - hessian)
    root = np.where(value > CLOSED, 1.0 / np.sqrt(np.maximum(value, CLOSED)), 0.0)
    return np.asarray((vector * root) @ vector.T)

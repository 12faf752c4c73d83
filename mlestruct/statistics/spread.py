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

CLOSED = 1e-3  # share of a unit's own residual below which it determines a direction alone


class Spread(NamedTuple):
    """A variance, and the degrees of freedom of the t distribution it goes with."""

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
    def dispersion(self) -> Spread:
        """How much more the scores vary than the model says, over all directions alike; about 1.

        The sum of squared scores over what the model expects of it, and the degrees of freedom of
        such a sum. No unit is measured by its own variance: where it has few outcomes that is
        nearly 0 in some direction, the outcomes that would show it are too rare to be seen, and a
        mean of such ratios is too small (.7 for 1 on short paths).
        """
        assert self.exact is not None
        H, J = self.hessian, self.exact
        inverse = np.linalg.inv(J.sum(axis=0))
        reached = np.einsum("mi,ij,mj->", self.score, inverse, self.score)
        # the fit takes H_m Σ s away from the score of unit m
        left = J - H @ J - J @ H + H @ J.sum(axis=0) @ H
        expected = float(np.einsum("ij,mij->", inverse, left))
        if expected <= CLOSED * len(inverse):
            return Spread(1.0, 0.0)
        own, across = (H - H @ H) @ inverse, H @ inverse @ H
        square = (
            np.einsum("mij,mji->", own, own) - (across**2).sum() + (across.sum(axis=0) ** 2).sum()
        )
        freedom = float(np.trace(own.sum(axis=0))) ** 2 / float(square)
        return Spread(float(reached) / expected, freedom)

    @cached_property
    def _own(self) -> tuple[Array, Array]:
        """Of I − H_m, a unit's own share of its residual: eigenvalues and vectors, as rows."""
        value, vector = np.linalg.eigh(np.eye(self.score.shape[1]) - self.hessian)
        return value, vector.transpose(0, 2, 1)

    @cached_property
    def _roots(self) -> Array:
        """(I − H_m)^−½, with 0 where the unit alone determines a direction."""
        value, vector = self._own
        size = np.where(value > CLOSED, 1.0 / np.sqrt(np.maximum(value, CLOSED)), 0.0)
        return np.asarray(vector.transpose(0, 2, 1) @ (size[:, :, None] * vector))

    def told(self, contrast: Array) -> bool:
        """Whether units can differ about a contrast: not where one of them alone determines it.

        Nor where that is so of nearly all else, and no residual is left to measure any by.
        """
        if self.exact is not None and self.dispersion.freedom == 0.0:
            return False
        value, vector = self._own
        alone = ((vector[value <= CLOSED] @ contrast) ** 2).sum()
        return bool(alone <= CLOSED * (contrast @ contrast))

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

        In this mean the model counts as many degrees as there are weights. The t distribution has
        the dispersion's: those of CR2 are among them.
        """
        own, r = self.robust(contrast), self.score.shape[1]
        prior = self.dispersion.variance * self.modelled(contrast)
        variance = (own.freedom * own.variance + r * prior) / (own.freedom + r)
        return Spread(variance, self.dispersion.freedom)


def _sums(values: Array, unit: Ints) -> Array:
    out = np.zeros((int(unit.max()) + 1, *values.shape[1:]))
    np.add.at(out, unit, values)
    return out

"""The sandwich of ridge weights: for one matching, whose pairs are the independent units.

Of many examples :mod:`mlestruct.statistics` makes intervals that hold for few of them, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from mlestruct.dual import Dual
from mlestruct.inference.curvature import Response, binding, node_sums, respond
from mlestruct.structures import BipartiteMatching, Matching
from mlestruct.structures.base import Array, as_numbers

NULL = 1e-9  # eigenvalues of the scaled Hessian below this share of the largest are no information
PAIRS = 3.0  # undecided pairs for every identified weight, from which on intervals hold


class Contrast(NamedTuple):
    """A combination of weights: its debiased estimate, error and interval, or not identified.

    Too few units leave the error and both ends NaN: there is no honest interval.
    """

    estimate: float
    error: float
    lower: float
    upper: float
    identified: bool


@dataclass(frozen=True)
class Sandwich:
    """Errors of ridge weights θ̂ around the surrogate's own limit (the truth where it is exact).

    ``debiased`` = θ̂ + H⁺r undoes the shrinkage, with covariance ``spread`` = H⁺ J H⁺, J the
    variance of the observed moments, where the data say anything: the columns of ``null`` are
    combinations of weights that change no probability, so only contrasts orthogonal to them are
    identified. ``units`` is how many independent ones J was taken from: pairs and singles;
    ``undecided``, how many of them the model is not sure of, which alone tell anything.
    """

    theta: Array
    debiased: Array
    spread: Array
    null: Array
    units: int
    undecided: float

    @classmethod
    def of(cls, dual: Dual, theta: Array, tau: Array, meat: Literal["model", "parts"]) -> Sandwich:
        """At the optimum θ with its τ; ``meat`` is how J is estimated.

        ``model``: the surrogate's own variance, J = Σ w²H. ``parts``: from the observed pairs and
        singles of large matchings, each less what its nodes explain. O(d) solves each.
        """
        if meat not in ("model", "parts"):
            raise ValueError(f"meat is model or parts, not {meat!r}")
        if not dual.regulariser.plain:
            raise ValueError("standard errors need a ridge: no l1, bounds or fixed weights")
        H, J = (np.zeros((len(theta),) * 2) for _ in range(2))
        units, undecided, sets = 0, 0.0, binding(dual, theta)
        for m, weight in enumerate(dual.batch.weight):
            response = respond(dual, m, tau, sets[m])
            rows = _parts(dual, m, response) if meat == "parts" else None
            H += weight * response.hessian
            J += weight**2 * (response.hessian if rows is None else rows.T @ rows)
            units += 1 if rows is None else len(rows)
            undecided += 1.0 if rows is None else len(rows) * _doubt(dual, m, tau)
        H, J = (H + H.T) / 2, (J + J.T) / 2
        inverse, null = _pseudo_inverse(H)
        debiased = theta + inverse @ dual.residual(tau)
        return cls(theta, debiased, inverse @ J @ inverse, null, units, undecided)

    @property
    def rank(self) -> int:
        """How many combinations of the weights the data identify."""
        return len(self.theta) - self.null.shape[1]

    @property
    def enough(self) -> bool:
        """Whether there are units enough for intervals: three undecided for every weight."""
        return self.undecided >= PAIRS * max(self.rank, 1)

    def contrast(self, combination: ArrayLike, level: float = 0.95) -> Contrast:
        """⟨combination, θ⟩ debiased, with its ``level`` interval for the surrogate's limit.

        With N units, U of them undecided, and p identified weights: J × N/(U − p), and t with
        U − p degrees of freedom.
        """
        c = as_numbers(combination, "combination")
        if c.shape != self.theta.shape or not np.isfinite(c).all():
            raise ValueError(f"a contrast has {len(self.theta)} finite entries, got {c}")
        if not 0 < level < 1:
            raise ValueError(f"level is {level}; it must be between 0 and 1")
        if not np.linalg.norm(self.null.T @ c) <= 1e-6 * np.linalg.norm(c):
            return Contrast(np.nan, np.inf, -np.inf, np.inf, False)
        estimate, variance = float(c @ self.debiased), max(float(c @ self.spread @ c), 0.0)
        if not self.enough:
            return Contrast(estimate, np.nan, np.nan, np.nan, True)
        left = self.undecided - self.rank
        error = float(np.sqrt(variance * self.units / left))
        width = float(stdtrit(left, 0.5 + level / 2)) * error
        return Contrast(estimate, error, estimate - width, estimate + width, True)


def _parts(dual: Dual, m: int, response: Response) -> Array:
    """The rows of an example's observed pairs and singles."""
    if response.rows is None or dual.batch.target is None:
        kind = type(dual.batch.structure(m)).__name__
        raise ValueError(f"meat='parts' is for observed matchings, not for a {kind}")
    return np.asarray(response.rows(dual.batch.target[dual.batch.coordinates(m)]))


def _doubt(dual: Dual, m: int, tau: Array) -> float:
    """The mean over nodes of 1 − Σ p², p being what a node may do: its pairs, and being single."""
    structure, point = dual.batch.structure(m), tau[dual.batch.coordinates(m)]
    assert isinstance(structure, (BipartiteMatching, Matching))
    alone = np.zeros(0)
    if len(structure.optional):
        alone = np.maximum(1.0 - node_sums(structure, point[:, None])[structure.optional, 0], 0.0)
    return max(1.0 - float(2.0 * point @ point + alone @ alone) / structure.n_nodes, 0.0)


def _pseudo_inverse(H: Array) -> tuple[Array, Array]:
    """H⁺ on what is identified, and an orthonormal basis of what is not; units do not matter."""
    size = np.diag(H).copy()
    size[size <= 1e-14 * max(float(size.max(initial=0.0)), 1e-300)] = 1.0
    scale = 1.0 / np.sqrt(size)
    value, vector = np.linalg.eigh(scale[:, None] * H * scale)
    live = value > NULL * max(float(value.max(initial=0.0)), 1e-300)
    vector = scale[:, None] * vector
    null = np.linalg.qr(vector[:, ~live])[0] if not live.all() else np.zeros((len(H), 0))
    return (vector[:, live] / value[live]) @ vector[:, live].T, null


def echelon(rows: Array) -> Array:
    """Rows that span the same space, each with a 1 in a column where all others have 0."""
    rows, done = rows.copy(), 0
    for j in range(rows.shape[1]):
        if done == len(rows):
            break
        best = done + int(np.abs(rows[done:, j]).argmax())
        if abs(rows[best, j]) < 1e-7:
            continue
        rows[[done, best]] = rows[[best, done]]
        rows[done] /= rows[done, j]
        others = np.arange(len(rows)) != done
        rows[others] -= np.outer(rows[others, j], rows[done])
        done += 1
    return rows

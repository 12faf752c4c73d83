"""The sandwich of ridge weights: for few matchings, whose pairs are the independent units.

It needs the Hessian of the surrogate log Z: how τ answers to scores, seen through the features. Of
many examples :mod:`mlestruct.statistics` makes intervals that hold for few of them, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import solve
from scipy.special import stdtrit

from mlestruct.inference.odd import binding
from mlestruct.learning.dual import Dual
from mlestruct.structures import BipartiteMatching, Matching
from mlestruct.structures.base import Array, as_numbers

RIDGE = 1e-13  # for the constraints' redundant rows, relative
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
    def of(cls, dual: Dual, theta: Array, tau: Array) -> Sandwich:
        """At the optimum θ with its τ: J is that of the observed pairs and singles of matchings.

        Each less what its nodes explain. O(d) solves for each matching.
        """
        batch = dual.batch
        if not dual.regulariser.plain:
            raise ValueError("standard errors need a ridge: no l1, bounds or fixed weights")
        if batch.target is None:
            raise ValueError("standard errors are for observed matchings, and nothing is observed")
        H, J = (np.zeros((len(theta),) * 2) for _ in range(2))
        units, undecided, sets = 0, 0.0, binding(dual.entropy, dual.scores(theta))
        for m, weight in enumerate(batch.weight):
            hessian, rows, doubt = respond(dual, m, tau, sets[m])
            H += weight * hessian
            J += weight**2 * rows.T @ rows
            units += len(rows)
            undecided += len(rows) * doubt
        # H⁺ on what is identified, in units of its own; ``null`` spans what is not.
        H = (H + H.T) / 2
        size = np.diag(H).copy()
        size[size <= 1e-14 * max(float(size.max(initial=0.0)), 1e-300)] = 1.0
        scale = 1.0 / np.sqrt(size)
        value, vector = np.linalg.eigh(scale[:, None] * H * scale)
        live = value > NULL * max(float(value.max(initial=0.0)), 1e-300)
        vector = scale[:, None] * vector
        null = np.linalg.qr(vector[:, ~live])[0] if not live.all() else np.zeros((len(H), 0))
        inverse = (vector[:, live] / value[live]) @ vector[:, live].T
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


class Response(NamedTuple):
    """One matching: the Hessian Φᵀ(∂τ/∂score)Φ, and its households' rows once nodes are taken out.

    ``rows`` are the feature rows of the observed pairs, and of who stays single, less what their
    nodes explain: they add up to the observed moments less a constant. ``doubt`` is the mean over
    nodes of 1 − Σ p², p being what a node may do: its pairs, and being single.
    """

    hessian: Array
    rows: Array
    doubt: float


def respond(dual: Dual, m: int, tau: Array, sets: Any) -> Response:
    """The response of example m at its maximiser τ (a flat array of the whole batch).

    V − V Bᵀ (K + B V Bᵀ)⁻¹ B V between the features: B the edges of the nodes and those inside each
    odd set of ``sets``, which bind; V the slopes of the edges' own entropies, K what slack gives.
    A dense solve; features that offer ``weighted`` are never expanded.
    """
    batch, entropy, structure = dual.batch, dual.entropy, dual.batch.structure(m)
    if not isinstance(structure, (Matching, BipartiteMatching)):
        kind = type(structure).__name__
        raise ValueError(f"standard errors are for observed matchings, not for a {kind}")
    part = batch.coordinates(m)
    features: Any = dual.features.select(np.array([m]))
    point, n, optional = tau[part], structure.n_nodes, structure.optional
    diagonal = entropy.a[part] * (1.0 - point) + entropy.b[part] * point
    v = np.divide(point * (1.0 - point), diagonal, out=np.zeros_like(point), where=diagonal != 0)
    low, high = structure.nodes_of(np.arange(structure.size))

    def node_sums(columns: Array) -> Array:
        """What the edges of every node add up to, in each column."""
        out = np.zeros((n, columns.shape[1]))
        np.add.at(out, low, columns)
        np.add.at(out, high, columns)
        return out

    if hasattr(features, "weighted"):
        second, sums = features.weighted(v)
    else:
        full = np.stack([features.potentials(unit) for unit in np.eye(features.d)], axis=1)
        second, sums = full.T @ (v[:, None] * full), node_sums(v[:, None] * full)
    single = np.maximum(1.0 - node_sums(point[:, None])[optional, 0], 0.0)
    system = np.zeros((n, n))
    system[low, high] = system[high, low] = v
    system[np.diag_indices(n)] = system.sum(axis=0)
    rho = float(entropy.counting[batch.which[m]][-1])
    system[optional, optional] += single / max(rho * entropy.temperature, 1e-12)
    nodes = np.einsum("ii->i", system)
    nodes[nodes == 0] = 1.0  # nodes without a live edge
    nodes += RIDGE * nodes.mean()  # the gauge between two sides
    inside = np.asarray(sets, dtype=float).reshape(-1, n).T
    pairs = np.flatnonzero((0.0 * tau if batch.target is None else batch.target)[part] > 0.5)
    wanted = [pairs, *(np.flatnonzero(held) for held in (inside[low] * inside[high]).T)]
    known = hasattr(features, "weighted")
    given = [features.rows(low[k], high[k]) if known else full[k] for k in wanted]
    if inside.shape[1]:
        held = inside[low] * inside[high]
        weighed = v[:, None] * held
        across = node_sums(weighed)
        system = np.block([[system, across], [across.T, held.T @ weighed]])
        sums = np.vstack([sums, *(v[k] @ g for k, g in zip(wanted[1:], given[1:], strict=True))])
    effects = solve(system, sums, assume_a="sym", check_finite=False)
    u, w = low[pairs], high[pairs]
    shared = effects[u] + effects[w] + (inside[u] * inside[w]) @ effects[n:]
    alone = np.setdiff1d(optional, np.concatenate([u, w]))
    rows = np.concatenate([given[0] - shared, -effects[alone]])
    doubt = max(1.0 - float(2.0 * point @ point + single @ single) / n, 0.0)
    return Response(second - sums.T @ effects, rows, doubt)


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

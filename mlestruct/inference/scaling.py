"""Matching marginals at ρ = ½ by scaling rows and columns (Sinkhorn), made exactly feasible."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba as nb
import numpy as np

from mlestruct.batch import Batch
from mlestruct.entropy import Entropy
from mlestruct.inference.messages import Beliefs
from mlestruct.structures.base import Array
from mlestruct.structures.bipartite import BipartiteMatching


@dataclass(frozen=True)
class Scaling:
    """max ⟨W, τ⟩ − Σ τ log τ over perfect bipartite matchings.

    ``residual`` is the largest row or column error left before τ is repaired; the certificate at
    the repaired τ pays for it. O(rows · columns) per sweep, at most ``sweeps``.
    """

    residual: float = 1e-11
    sweeps: int = 10_000

    @classmethod
    def serve(cls, entropy: Entropy) -> Scaling | None:
        """Complete perfect bipartite matchings at ρ = ½."""
        for structure, counting in zip(entropy.batch.structures, entropy.counting, strict=True):
            if not (isinstance(structure, BipartiteMatching) and structure.kind == "perfect"):
                return None
            if (structure.fixed >= 0).any():
                return None
            if not np.array_equal(counting, structure.counting(0.5)):
                return None
        return cls()

    def many(self, batch: Batch[BipartiteMatching], scores: Array, warm: Any = None) -> Beliefs:
        """The next call starts from this one's dual variables.

        log Z is the dual value Σ τ + Σ u + Σ v − n, a bound from above for any u and v.
        """
        tau, log_z = np.empty(batch.size), np.empty(len(batch))
        sides = np.array([s.rows + s.columns for s in batch.structures])[batch.which]
        start = np.concatenate([[0], np.cumsum(sides)])
        duals = np.zeros(int(start[-1])) if warm is None else warm.copy()
        for structure, members in batch.groups():
            n = structure.rows
            table = batch.rows(scores, members).reshape(-1, n, n)
            places = (start[members][:, None] + np.arange(2 * n)).ravel()
            uv = duals[places].reshape(-1, 2 * n)
            out, part = np.empty_like(table), np.empty(len(members))
            _scale(np.ascontiguousarray(table), uv, warm is None, self.residual, self.sweeps, out, part)
            duals[places] = uv.ravel()
            tau[batch.index(members)] = out.ravel()
            log_z[members] = part
        return Beliefs(log_z, tau, duals)


@nb.njit(cache=True, nogil=True)
def _scale(score, uv, cold, residual, sweeps, tau, log_z):
    n = score.shape[1]
    a, b = np.ones(n), np.ones(n)
    for m in range(len(score)):
        u, v = uv[m, :n], uv[m, n:]
        if cold:
            for i in range(n):
                u[i] = score[m, i].max()
            for j in range(n):
                v[j] = (score[m, :, j] - u).max()
        _kernel(score[m], u, v, a, b, tau[m])
        for sweep in range(sweeps):
            worst = 0.0
            for j in range(n):
                mass = 0.0
                for i in range(n):
                    mass += tau[m, i, j] * a[i]
                b[j] = 1.0 / mass
            large = 0.0
            for i in range(n):
                mass = 0.0
                for j in range(n):
                    mass += tau[m, i, j] * b[j]
                worst = max(worst, abs(mass * a[i] - 1.0))
                a[i] = 1.0 / mass
                large = max(large, max(a[i], mass))
            if worst <= residual:
                break
            # Scalings that leave the safe range go into the duals, and the kernel is made anew.
            if large > 1e100 or sweep == 0:
                _kernel(score[m], u, v, a, b, tau[m])
        _kernel(score[m], u, v, a, b, tau[m])
        log_z[m] = tau[m].sum() - n + u.sum() + v.sum()
        _repair(tau[m])


@nb.njit(cache=True, nogil=True)
def _kernel(score, u, v, a, b, out):
    """Absorb the scalings into the duals; out = exp(score − u − v)."""
    n = len(u)
    for i in range(n):
        u[i] -= np.log(a[i])
        v[i] -= np.log(b[i])
        a[i] = b[i] = 1.0
    for i in range(n):
        for j in range(n):
            out[i, j] = np.exp(score[i, j] - u[i] - v[j])


@nb.njit(cache=True, nogil=True)
def _repair(tau):
    """The nearest feasible point of a kind: rows and columns scaled below one, the rest spread."""
    n = len(tau)
    for i in range(n):
        mass = tau[i].sum()
        if mass > 1.0:
            for j in range(n):
                tau[i, j] /= mass
    for j in range(n):
        mass = tau[:, j].sum()
        if mass > 1.0:
            for i in range(n):
                tau[i, j] /= mass
    rows, columns = np.empty(n), np.empty(n)
    for i in range(n):
        rows[i] = max(1.0 - tau[i].sum(), 0.0)
        columns[i] = max(1.0 - tau[:, i].sum(), 0.0)
    left = rows.sum()
    if left > 0.0:
        for i in range(n):
            for j in range(n):
                tau[i, j] += rows[i] * columns[j] / left

"""The dual of counted tables: logistic regressions that share weights and multipliers."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mlestruct import Batch, Certificate
from mlestruct.learning.dual import Dual
from mlestruct.learning.loop import NONE, Found, Loop
from mlestruct.learning.minimise import LBFGS
from mlestruct.limits import OutOfTime
from mlestruct.structures.base import Array
from mlestruct.structures.regions import Cover

NEWTON = 600  # weights and multipliers up to which the last digits come from dense Newton steps


class Coupled:
    """min over (θ, δ) of R(θ) − ⟨θ, Σwφ⟩ + Σ w_m [Σ_i c_i log Z_i(θ, δ_m) + constant_m].

    Its optimum is that of the :class:`Dual`, whose entropy must count the largest tables alone:
    every one is a multinomial logistic regression with scores Sᵀ(Φθ + bias) + Bᵀδ. One evaluation
    costs O(nnz). Without ``consistent`` there is no δ: tables know each other through θ only.
    ``ridge`` False leaves θ unpenalised (hard moments).
    """

    def __init__(self, dual: Dual, consistent: bool = True, ridge: bool = True) -> None:
        self.dual, self.ridge, batch = dual, ridge, dual.batch
        covers = {s: Cover.of(s) for s in batch.structures}
        listed = [covers[batch.structure(m)] for m in range(len(batch))]
        self.S = sp.csr_array(sp.block_diag([c.S for c in listed], format="csr"))
        self.B = sp.csr_array(sp.block_diag([c.B for c in listed], format="csr"))
        shift = np.cumsum([0, *(len(c.own) for c in listed)])
        self.start = np.concatenate([c.starts + k for c, k in zip(listed, shift, strict=False)])
        own = np.concatenate([batch.offsets[m] + c.own for m, c in enumerate(listed)])
        counted = np.zeros(batch.size, dtype=bool)
        counted[own] = True
        if (dual.entropy.a[~counted] != 0).any() or (dual.entropy.a[own] <= 0).any():
            raise ValueError(
                "the dual of coupled tables needs an entropy that counts the largest tables and "
                "nothing else; use route='frank_wolfe'"
            )
        self.c = dual.entropy.a[own]
        self.table = np.repeat(np.arange(len(self.start)), np.diff(np.append(self.start, len(own))))
        fixed = np.concatenate([batch.structure(m).fixed for m in range(len(batch))])
        self.closed = fixed[own] == 0
        self.weight = batch.weights[own]
        self.rows = np.repeat(batch.weight, [c.B.shape[0] for c in listed])
        if not consistent:
            self.B, self.rows = self.B[:0], self.rows[:0]
        self.d = dual.features.d
        self.dead = np.zeros(len(own), dtype=bool)
        if not ridge:
            self.dead = ~self._support()
            self.closed = self.closed | self.dead

    def tables(self, x: Array) -> tuple[float, Array]:
        """Σ w_m Σ_i c_i log Z_i, and the probabilities p of every table's entries."""
        score = self.S.T @ self.dual.scores(x[: self.d]) + self.B.T @ x[self.d :]
        score = np.where(self.closed, -np.inf, score) / self.c
        top = np.maximum.reduceat(score, self.start)
        p = np.exp(score - top[self.table])
        total = np.add.reduceat(p, self.start)
        log_z = (top + np.log(total)) * (self.c * self.weight)[self.start]
        return float(log_z.sum()), p / total[self.table]

    def __call__(self, x: Array) -> tuple[float, Array]:
        dual, theta = self.dual, x[: self.d]
        value, p = self.tables(x)
        value -= float(theta @ dual.observed)
        if dual.batch.constant is not None:
            value += float(dual.batch.weight @ dual.batch.constant)
        slope = dual.features.moments(dual.weigh(self.S @ p)) - dual.observed
        if self.ridge:
            value += dual.regulariser.value(theta)
            slope += dual.regulariser.grad(theta)
        return value, np.concatenate([slope, self.rows * (self.B @ p)])

    def gap(self, slope: Array) -> float:
        """How far a value with this slope is from the least, where the slope in δ is none."""
        return float((slope[: self.d] ** 2 / (2 * self.dual.regulariser.lam)).sum())

    def solve(self, start: Array | None = None, loop: Loop | None = None) -> Array:
        """(θ, δ) by L-BFGS from a start, the last digits by Newton where that is affordable.

        Without multipliers, a gap below the loop's ``tol``, relative, is enough.
        """
        x = np.zeros(self.d + self.B.shape[0]) if start is None else start
        if not self.dual.regulariser.plain:
            raise ValueError("this dual takes a ridge alone; use route='frank_wolfe'")
        end = self._descend(x, Loop(tol=0.0, rounds=2000) if loop is None else loop)
        return self._newton(end.theta) if end.short and len(x) <= NEWTON else end.theta

    def _descend(self, x: Array, loop: Loop) -> Found:
        if loop.found is not None:
            return loop.found
        examples = len(self.dual.batch)
        said: Found | None = None
        number, where = (0, None) if loop.state is None else loop.state
        provable = self.ridge and self.B.shape[0] == 0

        def evaluate(x: Array) -> tuple[float, Array]:
            if said is not None and loop.late():
                raise OutOfTime
            return self(x)

        descent = LBFGS(evaluate, x, state=where)
        while True:
            try:
                moved = descent.step()
            except OutOfTime:  # the last point stands
                if said is None:
                    raise
            gap = self.gap(descent.gradient) if provable else np.inf
            proof = Certificate(gap, 0.0, -descent.value, "product of simplices", "none")
            calls, flat = (number + 1) * examples, np.abs(descent.gradient).max(initial=0.0) < 1e-12
            said = Found(descent.theta, proof, NONE, NONE, number, calls, examples, "direct")
            why = loop.over(said, "step" if flat or not moved else "")
            if why or proof.relative <= loop.tol:
                return loop.end(said, "" if proof.relative <= loop.tol else why)
            loop.tell(said)
            number += 1
            loop.save(lambda: (number, descent.state()))  # noqa: B023

    def _newton(self, x: Array) -> Array:
        """Steps that shrink the slope; directions without curvature are left alone."""
        _, slope = self(x)
        for _ in range(20):
            step = np.linalg.lstsq(self._curvature(x), slope, rcond=1e-13)[0]
            _, fresh = self(x - step)
            if not np.abs(fresh).max(initial=0.0) < np.abs(slope).max(initial=0.0):
                return x
            x, slope = x - step, fresh
        return x

    @cached_property
    def _matrix(self) -> Array:
        """Scores by (θ, δ), dense."""
        columns = [self.dual.features.potentials(e) for e in np.eye(self.d)]
        by_theta = self.S.T @ np.array(columns).reshape(self.d, self.dual.batch.size).T
        return np.hstack([by_theta, self.B.T.toarray()])

    def _curvature(self, x: Array) -> Array:
        p, J = self.tables(x)[1], self._matrix
        mean = np.add.reduceat(p[:, None] * J, self.start, axis=0)
        centred = J - mean[self.table]
        out = (centred.T * (p * self.weight / self.c)) @ centred
        if self.ridge:
            out[np.arange(self.d), np.arange(self.d)] += self.dual.regulariser.lam
        return np.asarray(out)

    def _support(self) -> NDArray[np.bool_]:
        """Entries that are positive in some tables with exactly the observed moments.

        The largest face that hard moments allow, by one linear program: s = κt, u ≤ min(s, 1).
        """
        from scipy.optimize import linprog

        n, theta = len(self.c), self._matrix[:, : self.d]
        sums = sp.csr_array((np.ones(n), (self.table, np.arange(n))))
        moments = sp.csr_array((theta * self.weight[:, None]).T)
        right = np.r_[np.ones(len(self.start)), np.zeros(self.B.shape[0]), self.dual.observed]
        A = sp.hstack([sp.vstack([sums, self.B, moments]), sp.csr_array(-right[:, None])])
        equal: Any = sp.hstack([A, sp.csr_array((len(right), n))])
        least: Any = sp.hstack([-sp.eye_array(n), sp.csr_array((n, 1)), sp.eye_array(n)])
        bounds = [(0, 0 if shut else None) for shut in self.closed] + [(0, None)] + [(0, 1)] * n
        cost = np.concatenate([np.zeros(n + 1), -np.ones(n)])
        found = linprog(cost, least, np.zeros(n), equal, 0 * right, bounds, method="highs")
        if found.x is None or found.x[n] < 0.5:
            raise ValueError("no tables have the observed moments")
        return np.asarray(found.x[n + 1 :] > 0.5)

    def attained(self, theta: Array) -> Array:
        """θ, with ∓∞ where hard moments want that: features of nothing but impossible entries."""
        if not self.dead.any():
            return theta
        alive, dead = self._matrix[~self.dead, : self.d], self._matrix[self.dead, : self.d]
        gone = (dead != 0).any(axis=0) & (alive == 0).all(axis=0)
        out = theta.copy()
        out[gone] = -np.inf * np.sign(dead.sum(axis=0)[gone])
        return out

    def tau(self, x: Array) -> Array:
        """All coordinates from the tables: consistent as far as δ has converged."""
        return np.asarray(self.S @ self.tables(x)[1])

    def violation(self, x: Array) -> float:
        """The largest disagreement of two tables about a marginal."""
        return float(np.abs(self.B @ self.tables(x)[1]).max(initial=0.0))


def mean_targets(batch: Batch[Any]) -> Array:
    """Every example's target replaced by the mean over the examples with its structure."""
    assert batch.target is not None
    out = np.empty(batch.size)
    for _, members in batch.groups():
        rows, weight = batch.rows(batch.target, members), batch.weight[members]
        out[batch.index(members)] = np.tile(weight @ rows / weight.sum(), len(members))
    return out

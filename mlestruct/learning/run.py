"""What runs of Frank-Wolfe and BCFW share: settings, a round's certificate, and the best so far."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import partial
from time import perf_counter as clock
from typing import Any, Literal, get_args

import numpy as np

from mlestruct.errors import counting_from, refuse_removed
from mlestruct.learning.dual import MIX, Certificate, Dual, Interior, interior, refuse_below
from mlestruct.learning.iterate import Iterate, Tangent, plain
from mlestruct.learning.loop import Found, Loop, Told
from mlestruct.learning.steering import Centre
from mlestruct.native._door import reach_vertices
from mlestruct.oracle import Answers, Oracle, perturbable
from mlestruct.oracle.wrappers import name_of
from mlestruct.storage.digest import digest
from mlestruct.storage.trees import Tree
from mlestruct.structures.base import Array, as_count, as_numbers
from mlestruct.structures.batch import Batch

DIGITS = 1e-13  # of log Z: what floats may have lost
FREE = ("workers", "engine", "checkpoint")  # settings that change no bit
Keep = Literal["best", "last"]
Sums = Callable[[Batch[Any], Array], tuple[Array, Array, Any]]
"""Scores to log Z and τ of every example, summed over all outcomes: exact."""


class SolverSettings:
    """What settings of either algorithm share."""

    def check(self: Any, least: dict[str, int], **kinds: Any) -> None:
        """Raise a ValueError for a number below its ``least``, or a word that is none of a kind."""
        for name, fewest in least.items():
            if name != "corrective" or self.corrective is not None:
                as_count(getattr(self, name), name, fewest)
        for name in ("tol", "calls", "seconds"):
            limit = getattr(self, name)
            if (limit is not None or name == "tol") and not as_numbers(limit, name) >= 0:
                raise ValueError(f"{name} is {limit}; it must be 0 or more")
        for name, kind in {**kinds, "keep": Keep}.items():
            if (given := getattr(self, name)) not in get_args(kind):
                raise ValueError(f"{name} is one of {', '.join(get_args(kind))}, not {given!r}")

    @property
    def limits(self: Any) -> dict[str, Any]:
        """What a run may take, for :class:`mlestruct.learning.loop.Loop`."""
        return {name: getattr(self, name) for name in ("tol", "rounds", "seconds", "calls")}

    def run(self, *given: Any) -> None:
        """Removed."""
        refuse_removed("FrankWolfe.run")

    def solve(
        self: Any,
        dual: Dual,
        oracle: Oracle[Any],
        start: Array | None = None,
        *,
        told: Told = None,
        **more: Any,
    ) -> Found:
        """Minimise the dual; ``told`` is told of every round, ``more`` are arguments of ``on``."""
        setting = partial(self._setting, dual, oracle, start, more.get("sums"))
        loop = Loop.begin(self.checkpoint, self.name, setting, **self.limits, told=told)
        found: Found = self.on(dual, oracle, loop, start, **more)
        return found

    def _setting(
        self: Any, dual: Dual, oracle: Oracle[Any], start: Array | None, sums: Sums | None
    ) -> dict[str, Any]:
        """Return what a run is of, and its settings, for its checkpoint.

        Within another loop the start follows from the runs before, whose τ are not kept.
        """
        given = "" if isinstance(self.checkpoint, Loop) else digest(start)
        own = {one.name: getattr(self, one.name) for one in fields(self) if one.name not in FREE}
        known = {"oracle": name_of(oracle), "start": given, "sums": sums is not None}
        return {**dual.named(), **known, **own}


@dataclass(frozen=True)
class Reply:
    """What was asked in a round, and what its answers prove of the dual objective and of P.

    ``objective`` is D(τ). P at the weights that were asked about is at most ``primal``, by the
    oracle, or by sums over all outcomes where that is less, with the tangent ``at`` a point.
    """

    tangent: Tangent
    vertices: Array
    objective: float
    primal: float
    at: Array
    slack: float  # the part that comes from the oracle's own bounds
    gap: float  # by the oracle alone, withheld or not
    mass: float  # the vertices' Σ|a|·view
    lag: float  # the part of the gap that is there because θ is not ∇R*(r)


def proven(iterate: Iterate, tangent: Tangent, answers: Answers, sums: Sums | None = None) -> Reply:
    """Return what a round's answers to its tangent's scores prove.

    ``sums`` give log Z itself. Maximised over all that the structure declares, it bounds what any
    solver for a part of it can reach. The tangent at its τ says the same, so the certificate can be
    found again.
    """
    dual, x, theta, upper = iterate.dual, iterate.x, tangent.theta, answers[1]
    batch, weight, vertices = dual.batch, dual.batch.weight, plain(answers[0])
    best, here, mass = out = np.empty((3, len(batch)))
    reach_vertices(x, tangent.score, vertices, out)
    refuse_below(batch, upper, here, "the current point")
    if batch.target is not None:
        seen, mend = batch.observed(tangent.score), "; where that breaks its constraints, mend it"
        refuse_below(batch, upper, seen, "the observed outcome", mend)
    energy = tangent.energy if batch.constant is None else tangent.energy + batch.constant
    held = float(weight @ energy)
    # What τ reaches; not the gap less D: where a column is a Unix time R*(r) may be 1e17, and P is
    # lost in it.
    reached = dual.regulariser.value(theta) - float(theta @ x.r) + held
    lag, own = dual.regulariser.bracket(theta, x.r), float(weight @ (upper - here + tangent.spread))
    gap, slack, at = own + lag, float(weight @ (upper - best)), tangent.at
    if sums is not None:
        scores = dual.scores(theta)
        log_z, top = sums(batch, scores)[:2]
        there = tangent.energy + batch.totals((scores - batch.bias) * x.tau)
        summed = float(weight @ (log_z + DIGITS * (1.0 + np.abs(log_z)) - there))
        if summed < own:
            own, slack, at = summed, 0.0, top
    objective = dual.regulariser.conj(x.r) - held
    total = float(weight @ mass)
    return Reply(tangent, vertices, objective, own + reached, at, slack, gap, total, lag)


def is_margin(dual: Dual) -> bool:
    """Whether there is no entropy, and outcomes are to be told from the others."""
    return dual.entropy.flat and dual.batch.target is not None


class Best:
    """The two sides of a certificate, each the least so far: what is printed never rises.

    For any weights θ, any point ``at`` and any τ of the polytope, gap = P(θ, at) + D(τ) with

        P = R(θ) − ⟨θ, φ⟩ + Σ w [max ⟨Φθ + bias + ∇H(at), s⟩ + H(at) − ⟨∇H(at), at⟩],
        D = R*(r(τ)) − Σ w [H(τ) + ⟨bias, τ⟩].

    −P never exceeds the optimum and D is never below it, whichever rounds they come from. Kept are
    the weights of the least P, where their tangent lies, and the τ of the least D. With ``last``
    the last weights are taken, whether better or not.
    """

    def __init__(self, *, last: bool) -> None:
        self.last, self.theta = last, np.zeros(0)
        self.at = self.tau = self.theta
        self.primal, self.slack, self.dual = np.inf, 0.0, np.inf

    def take(self, found: Reply, tau: Array) -> None:
        """Keep what is better in a round. Where no bound is known (P = ∞), its weights are."""
        if self.last or found.primal <= self.primal:
            self.theta, self.at = found.tangent.theta, found.at
            self.primal, self.slack = found.primal, found.slack
        if found.objective < self.dual:
            self.tau, self.dual = tau.copy(), found.objective

    def tree(self) -> Tree:
        return tuple(getattr(self, name) for name in BEST)

    def recall(self, tree: Tree) -> None:
        for name, value in zip(BEST, tree, strict=True):
            setattr(self, name, value)


BEST = "theta", "at", "tau", "primal", "slack", "dual"


def shorter(iterate: Iterate, theta: Array) -> float:
    """Return Newton's share of the first weights, by the curvature of independent parts.

    The first θ(τ) is a long step along a gradient: all of it may be worse than no weights, and a
    run that is cut would end with it.
    """
    dual, tau = iterate.dual, iterate.x.tau
    spread = dual.features.potentials(theta) ** 2 * np.maximum(tau * (1.0 - tau), 0.0)
    bend = float(dual.weigh(spread).sum()) + float(dual.regulariser.lam @ theta**2)
    return float(np.clip(theta @ iterate.x.r / max(bend, 1e-300), 0.0, 1.0))


def _refuse_minimiser(batch: Batch[Any], oracle: Any) -> None:
    """Of a loss the least is no loss, that of the observed outcome: no bound would be broken."""
    from mlestruct.oracle.solver import tells_best_from_worst

    for m in range(len(batch)):
        with counting_from(m):
            one = batch.select([m])
            if tells_best_from_worst(oracle, one, one.bias):
                return


def _refuse_masked(dual: Dual, oracle: Oracle[Any]) -> None:
    mask = perturbable(oracle, dual.batch)
    wrong = np.flatnonzero(dual.entropy.perturbs() & (False if mask is None else ~mask))
    if len(wrong):
        k = int(wrong[0])
        m = int(dual.batch.owner[k])
        raise ValueError(
            f"example {m}: the entropy perturbs coordinate {k - dual.batch.offsets[m]}, which this "
            "oracle does not allow; confine it (rho=0 keeps it to nodes) or use another oracle"
        )


class OracleRun:
    """The state of a run: τ, θ's centre, the best so far, and what was spent on it."""

    def __init__(
        self,
        solver: Any,
        dual: Dual,
        oracle: Oracle[Any],
        loop: Loop,
        start: Array | None,
        inner: Interior | None = None,
    ) -> None:
        _refuse_masked(dual, oracle)
        self.solver, self.oracle, self.margin = solver, oracle, is_margin(dual)
        if self.margin:  # begins at the observed outcomes, where θ = 0
            _refuse_minimiser(dual.batch, oracle)
            inner = Interior(np.array(dual.batch.target), dual.entropy, 0)
        elif inner is None:
            begun = loop.state is not None  # what a file goes on with is not late
            late = (lambda: False) if begun else loop.late
            inner = interior(dual.batch, oracle, dual.entropy, late=late)
        self.inner, self.dual = inner, replace(dual, entropy=inner.entropy)  # no unused views
        self.start = inner.tau if start is None else inner.pull(dual.batch.vector(start, "start"))
        self.iterate = Iterate(self.dual, self.start, inner.tau)
        self.share = 0.0 if self.dual.entropy.flat else MIX  # no logarithm of nothing
        self.centre: Centre | None = None
        self.best = Best(last=solver.keep == "last")
        self.number, self.calls, self.asking, self.bytes = 0, 0, 0.0, 0

    def hold(self, centre: Centre | None) -> None:
        """Step by the regulariser that holds θ near the centre, if there is one."""
        self.centre = centre
        if centre is not None:
            self.iterate.regularise(centre.moved(self.dual.regulariser))

    def ask(self, asked: Callable[[Array], Answers], score: Array, calls: int) -> Answers:
        """Return the answers to a question of so many calls, and count it."""
        began = clock()
        answers = asked(score)
        self.asking, self.calls = self.asking + clock() - began, self.calls + calls
        return answers

    def said(self, found: Reply) -> Found:
        """Return the best so far, this round's among it."""
        self.best.take(found, self.iterate.x.tau)
        return self.found()

    def found(self) -> Found:
        """Return the best so far."""
        best, inner = self.best, self.inner
        gap = max(best.primal + best.dual, 0.0) if inner.withheld is None else np.inf
        told = self.oracle.polytope, str(self.dual.entropy.bound), inner.withheld, inner.unused
        proof = Certificate(gap, best.slack, best.dual, *told)
        return Found(
            best.theta, proof, best.tau, best.at, self.number, self.calls, len(self.dual.batch),
            asking=self.asking, bytes=self.bytes,
        )  # fmt: skip

    def end(self, loop: Loop, said: Found, why: str) -> Found:
        """End a run; what ran out counts only if the tolerance is not met."""
        return loop.end(said, "" if said.certificate.relative <= loop.tol else why)

    def tree(self) -> Tree:
        spent = self.number, self.calls, self.asking, self.bytes
        held = None if self.centre is None else self.centre.tree()
        return spent, self.best.tree(), held, self.iterate.tree()

    def recall(self, tree: Tree) -> None:
        """Stand where another run of the same problem stood."""
        spent, best, held, point = tree
        self.number, self.calls, self.asking, self.bytes = spent
        self.best.recall(best)
        if self.centre is not None:
            self.centre.recall(held)
            self.hold(self.centre)
        self.iterate.recall(point)

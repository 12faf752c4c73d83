"""What runs of Frank-Wolfe and BCFW share: settings, a round's certificate, and the best so far."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import partial
from time import perf_counter as clock
from typing import Any, Literal, get_args

import numpy as np

from mlestruct.digest import digest
from mlestruct.dual import MIX, Certificate, Dual, Interior, interior, refuse_below
from mlestruct.errors import counting_from, refuse_removed
from mlestruct.learning.iterate import Iterate, Tangent, plain
from mlestruct.learning.loop import Found, Loop, Told
from mlestruct.learning.steering import Centre
from mlestruct.native._door import reach_vertices
from mlestruct.oracle import Answers, Oracle, perturbable
from mlestruct.oracle.wrappers import name_of
from mlestruct.structures.base import Array, as_count, as_numbers
from mlestruct.structures.batch import Batch, spans
from mlestruct.trees import Tree

DIGITS = 1e-13  # of log Z: what floats may have lost
ALONG = (0.25, 0.5, 0.75, 1.0)  # of the way from τ to a vertex
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
    oracle, or by sums over all outcomes where that is less, with the tangent ``at`` a point, and
    is at least ``reached``, by τ itself.
    """

    tangent: Tangent
    vertices: Array
    objective: float
    primal: float
    reached: float
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
    reached = reached_by(iterate, tangent)
    lag, own = dual.regulariser.bracket(theta, x.r), float(weight @ (upper - here + tangent.spread))
    gap, slack, at = own + lag, float(weight @ (upper - best)), tangent.at
    if sums is not None:
        scores = dual.scores(theta)
        log_z, top = sums(batch, scores)[:2]
        there = tangent.energy + batch.totals((scores - batch.bias) * x.tau)
        summed = float(weight @ (log_z + DIGITS * (1.0 + np.abs(log_z)) - there))
        if summed < own:
            own, slack, at = summed, 0.0, top
    objective = dual.regulariser.conj(x.r) - float(weight @ energy_of(dual, tangent))
    total = float(weight @ mass)
    return Reply(tangent, vertices, objective, own + reached, reached, at, slack, gap, total, lag)


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

    A run ends with the weights that it began with if its own are proven to be worse: the first θ(τ)
    are long steps along a gradient. The oracle is asked about these ``first`` weights only once
    others may be worse, then once per distinct question. P at the best weights is at least
    ``least``; at the first ones it is at least ``reached``, and at most ``bound``.
    """

    def __init__(self, iterate: Iterate, share: float, *, last: bool) -> None:
        dual, self.last = iterate.dual, last
        self.theta = self.at = self.tau = np.zeros(0)
        self.primal, self.slack, self.dual, self.least = np.inf, 0.0, np.inf, -np.inf
        self.bound, self.bound_slack, self.asked = np.inf, 0.0, False
        self.unsure = dual.features.d > 0 and not is_margin(dual) and not last
        if self.unsure:
            theta = dual.regulariser.weights(np.zeros(dual.features.d))
            self.first = first = iterate.tangent(share, theta)
            self.here = dual.batch.totals(first.score * iterate.x.tau)
            self.reached = reached_by(iterate, first)

    def take(self, found: Reply, tau: Array) -> None:
        """Keep what is better in a round. Where no bound is known (P = ∞), its weights are."""
        if self.last or found.primal <= self.primal:
            self.theta, self.at = found.tangent.theta, found.at
            self.primal, self.slack = found.primal, found.slack
        if found.objective < self.dual:
            self.tau, self.dual = tau.copy(), found.objective

    def compare(
        self, dual: Dual, tau: Array, found: Reply, oracle: Oracle[Any], most: float
    ) -> int:
        """After a round, look whether its weights may be worse than the first ones.

        Return how many questions were asked about these, ``most`` at most.
        """
        if not self.unsure or self.theta is not found.tangent.theta:
            return 0
        self.unsure, self.least = not self.primal <= self.reached, -np.inf
        if self.unsure:
            self.least = at_least(dual, tau, found)
        due = self.least > self.reached and not self.asked
        return self._ask(dual, oracle, most) if due else 0

    def _ask(self, dual: Dual, oracle: Oracle[Any], most: float) -> int:
        """Ask for the best vertices at the first weights, once where examples ask the same."""
        batch, score = dual.batch, self.first.score
        alike = np.arange(len(batch))
        for _, members in batch.groups():
            rows = batch.rows(score, members)
            alike[members] = members[0] if (rows == rows[0]).all() else members
        chosen, place = np.unique(alike, return_inverse=True)
        if len(chosen) > most:
            return 0
        self.asked, part = True, batch.select(chosen)
        with counting_from(chosen.tolist()):
            vertices, upper = oracle.many(part, score[spans(batch.offsets, chosen)])
        upper, vertices = upper[place], vertices[spans(part.offsets, place)]
        refuse_below(batch, upper, self.here, "the first point")
        self.bound = self.reached + float(batch.weight @ (upper - self.here + self.first.spread))
        self.bound_slack = float(batch.weight @ (upper - batch.totals(score * vertices)))
        return len(chosen)

    def tree(self) -> Tree:
        return tuple(getattr(self, name) for name in BEST)

    def recall(self, tree: Tree) -> None:
        for name, value in zip(BEST, tree, strict=True):
            setattr(self, name, value)


BEST = (
    "theta", "at", "tau", "primal", "slack", "dual", "least", "unsure",
    "bound", "bound_slack", "asked",
)  # fmt: skip


def reached_by(iterate: Iterate, tangent: Tangent) -> float:
    """Compute a lower bound on P at a tangent's weights: what τ reaches.

    It is not the gap less D: where a column is a Unix time R*(r) may be 1e17, and P is lost in it.
    """
    dual, theta = iterate.dual, tangent.theta
    linear = float(theta @ iterate.x.r)
    return (
        dual.regulariser.value(theta) - linear + float(dual.batch.weight @ energy_of(dual, tangent))
    )


def energy_of(dual: Dual, tangent: Tangent) -> Array:
    """Return H(τ) + ⟨bias, τ⟩ + constant of every example."""
    known = dual.batch.constant
    return tangent.energy if known is None else tangent.energy + known


def shorter(iterate: Iterate, theta: Array) -> float:
    """Return Newton's share of the first weights, by the curvature of independent parts.

    The first θ(τ) is a long step along a gradient. What is asked at all of it proves so little that
    a run which is cut would end with the weights that it began with.
    """
    dual, tau = iterate.dual, iterate.x.tau
    spread = dual.features.potentials(theta) ** 2 * np.maximum(tau * (1.0 - tau), 0.0)
    bend = float(dual.weigh(spread).sum()) + float(dual.regulariser.lam @ theta**2)
    return float(np.clip(theta @ iterate.x.r / max(bend, 1e-300), 0.0, 1.0))


def at_least(dual: Dual, tau: Array, found: Reply) -> float:
    """Compute a lower bound on P at the weights that were asked about.

    It is what τ reaches, or a point between τ and the example's vertex, whichever reaches more.
    """
    batch, entropy, step = dual.batch, dual.entropy, found.vertices - tau
    slope, here = batch.totals(dual.scores(found.tangent.theta) * step), entropy.each(tau)
    gains = [entropy.each(tau + share * step) - here + share * slope for share in ALONG]
    gain = np.maximum(np.max(gains, axis=0), 0.0)
    return found.reached + float(batch.weight @ gain)


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
        # At its middle the examples of a structure ask the same.
        middle = self.iterate if start is None else Iterate(self.dual, inner.tau, inner.tau)
        self.best = Best(middle, self.share, last=solver.keep == "last")
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
        tau, left = self.iterate.x.tau, self.solver.calls
        self.best.take(found, tau)
        left, began = np.inf if left is None else left - self.calls, clock()
        self.calls += self.best.compare(self.dual, tau, found, self.oracle, left)
        self.asking += clock() - began
        return self.found()

    def found(self) -> Found:
        """Return the best so far."""
        best = self.best
        return Found(
            best.theta, self._certificate(best.primal, best.slack), best.tau, best.at, self.number,
            self.calls, len(self.dual.batch), asking=self.asking, bytes=self.bytes,
        )  # fmt: skip

    def _certificate(self, primal: float, slack: float) -> Certificate:
        inner, objective = self.inner, self.best.dual
        gap = max(primal + objective, 0.0) if inner.withheld is None else np.inf
        told = self.oracle.polytope, str(self.dual.entropy.bound), inner.withheld, inner.unused
        return Certificate(gap, slack, objective, *told)

    def end(self, loop: Loop, said: Found, why: str) -> Found:
        """End a run; with the first weights if it is cut short and they are proven better."""
        said = self.instead(said) if why and not said.certificate.relative <= loop.tol else said
        return loop.end(said, "" if said.certificate.relative <= loop.tol else why)

    def instead(self, said: Found) -> Found:
        best = self.best
        if not best.least > best.bound:
            return said
        proof = self._certificate(best.bound, best.bound_slack)
        return replace(said, certificate=proof, theta=best.first.theta, at=best.first.at)

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

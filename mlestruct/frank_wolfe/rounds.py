"""Rounds: one parallel oracle call per example at a common θ, then sequential exact block steps.

What a round asks and its answers prove comes first; then the best proof so far, and the runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from time import perf_counter as clock
from typing import Any

import numpy as np

from mlestruct.checkpoint import Loop, never
from mlestruct.digest import digest
from mlestruct.drive import OwnRounds, Progress
from mlestruct.dual import MIX, Certificate, Dual, Interior, interior, refuse_below
from mlestruct.engine import engine_of
from mlestruct.errors import counting_from
from mlestruct.frank_wolfe import flat
from mlestruct.frank_wolfe.active_set import Iterate, Tangent, Widths, capacity, footprint, plain
from mlestruct.frank_wolfe.centre import Centre
from mlestruct.frank_wolfe.settings import FrankWolfe, Step, Sums
from mlestruct.frank_wolfe.sharded_oracle import RemoteOracle, ShardedOracle
from mlestruct.frank_wolfe.sharing import LAST, MORE, Sharing
from mlestruct.frank_wolfe.smoothing import Smoothing, tries
from mlestruct.native._door import (
    StepLine,
    StepTurn,
    reach_vertices,
    scale_atoms,
    search_line,
    step_among,
    step_plainly,
    step_quadratically,
    step_towards,
)
from mlestruct.oracle import Answers, Oracle, perturbable
from mlestruct.oracle.wrappers import name_of
from mlestruct.structures.base import Array, Ints
from mlestruct.structures.batch import Batch, spans
from mlestruct.trees import Tree

DIGITS = 1e-13  # of log Z: what floats may have lost
ALONG = (0.25, 0.5, 0.75, 1.0)  # of the way from τ to a vertex


@dataclass(frozen=True)
class Reply:
    """What was asked in a round, and what its answers prove."""

    tangent: Tangent
    vertices: Array
    proof: Certificate  # of this round alone
    gap: float  # its gap, withheld or not
    at: Array  # where the tangent touches that proves ``primal``
    primal: float  # P there, by the oracle, or by sums over all outcomes where that is less
    mass: float  # the vertices' Σ|a|·view
    lag: float  # the part of the gap that is there because θ is not ∇R*(r)


def summed(found: Reply, iterate: Iterate, sums: Sums) -> Reply:
    """The round with log Z itself for a bound where that is better.

    Maximised over all that the structure declares, it bounds what any solver for a part of it can
    reach. The tangent at its τ says the same, so the certificate can be found again.
    """
    dual, tangent, tau = iterate.dual, found.tangent, iterate.x.tau
    scores = dual.scores(tangent.theta)
    log_z, at = sums(dual.batch, scores)[:2]
    reach = tangent.energy + dual.batch.totals((scores - dual.batch.bias) * tau)
    lost = DIGITS * (1.0 + np.abs(log_z))
    own = float(dual.batch.weight @ (log_z + lost - reach))
    if not own + found.lag < found.gap:
        return found
    proof = found.proof if found.proof.withheld else replace(found.proof, gap=own + found.lag)
    primal = own + reached_by(iterate, tangent)
    return replace(found, proof=replace(proof, slack=0.0), at=at, primal=primal)


def reached_by(iterate: Iterate, tangent: Tangent) -> float:
    """P without the oracle's part of the gap: what τ reaches, which P is never below.

    Not that gap less D: where a column is a Unix time R*(r) may be 1e17, and P is lost in it.
    """
    dual = iterate.dual
    energy = float(dual.batch.weight @ _energy(dual, tangent))
    linear = float(tangent.theta @ iterate.x.r)
    return dual.regulariser.value(tangent.theta) - linear + energy


def _energy(dual: Dual, tangent: Tangent) -> Array:
    known = dual.batch.constant
    return tangent.energy if known is None else tangent.energy + known


def certified(
    iterate: Iterate, tangent: Tangent, answers: Answers, inner: Interior, polytope: str
) -> Reply:
    """A round's certificate, by the answers to its tangent's scores."""
    dual, upper = iterate.dual, answers[1]
    vertices = plain(answers[0])
    batch, weight = dual.batch, dual.batch.weight
    out = np.empty((3, len(batch)))
    reach_vertices(iterate.p, tangent.score, vertices, iterate.x.tau, out)
    best, here, mass = out
    refuse_below(batch, upper, here, "the current point")
    if batch.target is not None:
        seen, mend = batch.observed(tangent.score), "; where that breaks its constraints, mend it"
        refuse_below(batch, upper, seen, "the observed outcome", mend)
    own = float(weight @ (upper - here + tangent.spread))
    lag = dual.regulariser.bracket(tangent.theta, iterate.x.r)
    gap, energy = own + lag, _energy(dual, tangent)
    objective = dual.regulariser.conj(iterate.x.r) - float(weight @ energy)
    known = objective, polytope, str(dual.entropy.bound), inner.withheld, inner.unused
    shown = gap if inner.withheld is None else float("inf")
    proof = Certificate(shown, float(weight @ (upper - best)), *known)
    primal = own + reached_by(iterate, tangent)
    return Reply(tangent, vertices, proof, gap, tangent.at, primal, float(weight @ mass), lag)


def at_least(iterate: Iterate, found: Reply) -> float:
    """Compute a lower bound on P at the weights that were asked about.

    It is what τ reaches, or a point between τ and the example's vertex, whichever reaches more.
    """
    dual, tau = iterate.dual, iterate.x.tau
    batch, entropy, step = dual.batch, dual.entropy, found.vertices - tau
    slope, here = batch.totals(dual.scores(found.tangent.theta) * step), entropy.each(tau)
    gains = [entropy.each(tau + share * step) - here + share * slope for share in ALONG]
    gain = np.maximum(np.max(gains, axis=0), 0.0)
    return reached_by(iterate, found.tangent) + float(batch.weight @ gain)


class Start:
    """The weights to begin with, which a fit ends with if its own are proven to be worse.

    The first θ(τ) are long steps along a gradient. The oracle is asked about the weights to begin
    with only once other weights may be worse, then once per distinct question.
    """

    def __init__(self, dual: Dual, inner: Interior, oracle: Oracle[Any]) -> None:
        self.dual, self.inner, self.oracle = dual, inner, oracle
        self.theta = dual.regulariser.weights(np.zeros(dual.features.d))
        self.primal, self.slack, self.calls = np.inf, 0.0, 0
        self.unsure = dual.features.d > 0 and not is_margin(dual)

    @cached_property
    def _asked(self) -> tuple[Iterate, Tangent]:
        iterate = Iterate.start(self.dual, self.inner.tau, self.inner.tau, active=False)
        return iterate, iterate.tangent(0.0 if self.dual.entropy.flat else MIX, self.theta)

    def compare(self, best: Best, iterate: Iterate, found: Reply, calls: int | None) -> None:
        """After the weights of a round became the best: whether they may be worse than these.

        ``calls`` are left to ask about it, if they are limited.
        """
        if best.last or not self.unsure or best.theta is not found.tangent.theta:
            return
        reached = reached_by(*self._asked)
        self.unsure = not best.primal <= reached
        best.least = at_least(iterate, found) if self.unsure else -np.inf
        if best.least > reached and not self.calls:
            self._ask(np.inf if calls is None else calls)

    def _ask(self, most: float) -> None:
        """Ask for the best vertices at these weights, once where examples ask the same."""
        (iterate, tangent), batch = self._asked, self.dual.batch
        first = np.arange(len(batch))
        for _, members in batch.groups():
            rows = batch.rows(tangent.score, members)
            first[members] = members[0] if (rows == rows[0]).all() else members
        chosen, place = np.unique(first, return_inverse=True)
        if len(chosen) > most:
            return
        part = batch.select(chosen)
        with counting_from(chosen.tolist()):
            vertices, upper = self.oracle.many(part, tangent.score[spans(batch.offsets, chosen)])
        vertices = vertices[spans(part.offsets, place)]
        answers = vertices, upper[place]
        found = certified(iterate, tangent, answers, self.inner, self.oracle.polytope)
        self.primal, self.slack, self.calls = found.primal, found.proof.slack, len(chosen)

    def instead(self, said: Progress, best: Best) -> Progress | None:
        """The round by these weights, where those that it has are proven to be worse."""
        if best.last or not best.least > self.primal:
            return None
        proof = replace(said.certificate, slack=self.slack)
        if proof.withheld is None:
            proof = replace(proof, gap=max(self.primal + best.dual, 0.0))
        return replace(said, certificate=proof, theta=self.theta, at=self.inner.tau)

    def tree(self) -> Tree:
        return self.primal, self.slack, self.calls, self.unsure

    def recall(self, tree: Tree) -> None:
        self.primal, self.slack, self.calls, self.unsure = tree


def is_margin(dual: Dual) -> bool:
    """No entropy, and outcomes to be told from the others."""
    return dual.entropy.flat and dual.batch.target is not None


def _refuse_minimiser(batch: Batch[Any], oracle: Any) -> None:
    """Of a loss the least is no loss, that of the observed outcome: no bound would be broken."""
    from mlestruct.oracle.solver import tells_best_from_worst

    for m in range(len(batch)):
        with counting_from(m):
            one = batch.select([m])
            if tells_best_from_worst(oracle, one, one.bias):
                return


def refuse_masked(dual: Dual, oracle: Oracle[Any]) -> None:
    mask = perturbable(oracle, dual.batch)
    if mask is None:
        return
    wrong = np.flatnonzero(dual.entropy.perturbs() & ~mask)
    if len(wrong):
        k = int(wrong[0])
        m = int(dual.batch.owner[k])
        raise ValueError(
            f"example {m}: the entropy perturbs coordinate {k - dual.batch.offsets[m]}, which this "
            "oracle does not allow; confine it (rho=0 keeps it to nodes) or use another oracle"
        )


FREE = ("workers", "engine", "checkpoint")  # settings that change no bit


def named(
    solver: Any, dual: Dual, oracle: Oracle[Any], start: Array | None, more: dict[str, Any]
) -> dict[str, Any]:
    """What a run is of, and its settings, for its checkpoint.

    Within another loop the start follows from the runs before, whose τ are not kept.
    """
    given = "" if isinstance(solver.checkpoint, Loop) else digest(start)
    own = {one.name: getattr(solver, one.name) for one in fields(solver) if one.name not in FREE}
    return {**dual.named(), "oracle": name_of(oracle), "start": given, **more, **own}


@dataclass
class Best:
    """The two sides of a certificate, each the least so far: what is printed never rises.

    For any weights θ, any point ``at`` and any τ of the polytope, gap = P(θ, at) + D(τ) with

        P = R(θ) − ⟨θ, φ⟩ + Σ w [max ⟨Φθ + bias + ∇H(at), s⟩ + H(at) − ⟨∇H(at), at⟩],
        D = R*(r(τ)) − Σ w [H(τ) + ⟨bias, τ⟩].

    −P never exceeds the optimum and D is never below it, whichever rounds they come from. Kept are
    the weights of the least P, where their tangent lies, and the τ of the least D.
    """

    theta: Array = field(default_factory=partial(np.zeros, 0))
    at: Array = field(default_factory=partial(np.zeros, 0))
    tau: Array = field(default_factory=partial(np.zeros, 0))
    primal: float = np.inf
    slack: float = 0.0
    dual: float = np.inf
    least: float = -np.inf
    """P at θ itself is no less."""
    last: bool = False
    """The last weights are taken, whether better or not."""

    def take(
        self, proof: Certificate, primal: float, theta: Array, at: Array, tau: Array
    ) -> Certificate:
        """The certificate of the best so far, after a round's own, of which P is ``primal``.

        ``tau`` is copied. Where no bound is known (P = ∞), the last weights are the best.
        """
        objective = proof.objective
        if self.last or primal <= self.primal:
            self.theta, self.at, self.primal, self.slack = theta, at, primal, proof.slack
        if objective < self.dual:
            self.tau, self.dual = tau.copy(), objective
        if proof.withheld is None:
            proof = replace(proof, gap=max(self.primal + self.dual, 0.0))
        return replace(proof, slack=self.slack, objective=self.dual)

    def tree(self) -> Tree:
        numbers = self.primal, self.slack, self.dual, self.least, self.last
        return self.theta, self.at, self.tau, *numbers


FLOOR_SHARE, LEAST_FLOOR = 1e-3, 1e-9  # the interior point keeps this share of δ as its weight
WORTH = 0.25  # of the new vertices' gain: a corrective pass that gains less is its round's last
# Without entropy θ(τ) leaps from round to round. Max-margin asks between it and the best θ so far.
BETWEEN = 0.5
CORRECTIVE = 8  # passes at most, unless it is set
FEWEST = 16  # atoms an example that memory must have room for, else plain steps do better
SUMMED = 3  # rounds between bounds by exact sums, where there are such
CHECKED = 25  # rounds between recomputations of τ and r from scratch


def method(
    solver: FrankWolfe,
    dual: Dual,
    oracle: Oracle[Any],
    start: Array | None,
    sums: Sums | None,
    inner: Interior | None,
) -> OwnRounds:
    """Frank-Wolfe on a dual objective, as a method for the loop.

    Corrective passes repeat slopes at τ, which say little where views are shares of views. Where
    sums prove the bound τ need not be that good.
    """
    refuse_masked(dual, oracle)

    def rounds(loop: Loop) -> Iterator[Progress]:
        counted, shares = solver, bool((dual.entropy.mixed.a < 0).any())
        if solver.corrective is None:
            few = shares or sums is not None
            counted = replace(solver, corrective=0 if few else CORRECTIVE)
        engine = engine_of(solver.engine, solver.workers)
        remote = RemoteOracle(engine, oracle)
        late = loop.late if loop.tree is None else never  # what a file goes on with was begun
        run = _Run(counted, dual, remote, start, late, inner)
        with closing(ShardedOracle(engine, dual.batch, oracle, solver.shards)) as asked:
            if loop.tree is not None:
                run.go_on(loop.tree, asked)
            while True:
                loop.save(partial(run.where, asked))
                found = run.ask(asked, sums)
                yield run.progress(found)
                run.move(found)

    known = {"sums": sums is not None}
    setting = partial(named, solver, dual, oracle, start, known)
    return OwnRounds("frank_wolfe", rounds, setting, dual.batch.size)


def take(
    solver: FrankWolfe,
    step: Step,
    number: int,
    iterate: Iterate,
    vertices: Array,
    margin: bool,
    sharing: Sharing | None,
) -> None:
    """One round's steps towards these vertices."""
    dual = iterate.dual
    order, moments = np.arange(len(dual.batch)), plain(dual.features.each(vertices))
    iterate.make_room(vertices, moments)
    warm = number < solver.warm and not margin and step in ("pairwise", "block")
    if warm or step in ("batch", "batch_fixed"):
        delta, most = vertices - iterate.x.tau, 0.9 if warm else 1.0 - 1e-9
        gamma = 2.0 / (number + 3.0)
        if step != "batch_fixed":
            change = iterate.x.r - iterate.dual.residual(vertices)
            gamma = _along(iterate, delta, change, most)
        iterate.x.tau[:] += gamma * delta
        if iterate.atoms is not None:
            scale_atoms(iterate.p, iterate.atoms, vertices, moments, number, gamma)
        iterate.synchronise()
    elif step == "pairwise":
        more = 0 if sharing is None else MORE
        gained = _towards(iterate, order, vertices, moments, number, more)
        if sharing is not None:

            def shared(order: Ints, found: Array) -> float:
                moments = plain(dual.features.each(found))
                iterate.make_room(found, moments)
                return _towards(iterate, order, found, moments, number, more)

            sharing.take(iterate, vertices, gained, shared)
        count, least = solver.corrective or 0, WORTH * gained
        atoms: Any = iterate.atoms
        given = len(order), order, number, iterate.floor, more
        if dual.entropy.flat and dual.regulariser.plain:
            gram = iterate.gram = flat.gram_of(atoms, iterate.gram)
            turn = StepTurn(*given, flat.MORE * count, flat.WORTH * gained)
            step_quadratically(iterate.at, atoms, gram, turn)
        else:
            step_among(iterate.at, atoms, StepTurn(*given, count, least))
    else:
        step_plainly(iterate.at, len(order), order, vertices, moments, -1.0)


def _along(iterate: Iterate, delta: Array, change: Array, most: float) -> float:
    dual, p, x = iterate.dual, iterate.p, iterate.x
    linear, quadratic = -float(dual.batch.bias @ dual.weigh(delta)), 0.0
    if p.ridge:
        linear -= float(x.theta @ change)
        quadratic = float((change**2 / iterate.regulariser.lam).sum())
    line, d = dual.entropy.line(x.tau, delta), len(change)
    moving = np.flatnonzero((line.a != 0) & (line.dt != 0))
    eights = -(-len(moving) // 8)
    terms = np.zeros((3, 8 * eights))
    for row, values in zip(terms, (line.a, line.t, line.dt), strict=True):
        row[: len(moving)] = values[moving]
    along = StepLine(
        linear, quadratic, 1.0, p.ridge, d, x.r, p.terms, d, np.arange(d), change, eights, *terms
    )
    return search_line(along, most)


def _towards(
    iterate: Iterate, order: Ints, vertices: Array, moments: Array, number: int, more: int
) -> float:
    """These blocks' vertices become atoms and are stepped to; returns what that gains."""
    turn, atoms = StepTurn(len(order), order, number, iterate.floor, more, 1, 0.0), iterate.atoms
    assert atoms is not None
    return step_towards(iterate.at, atoms, turn, vertices, moments)


class RunState:
    """The state of any run: τ, θ's centre, the best proof so far, and what was spent on it."""

    def __init__(
        self,
        solver: Any,
        dual: Dual,
        oracle: Any,
        start: Array | None,
        late: Callable[[], bool] = never,
        known: Interior | None = None,
    ) -> None:
        self.solver, self.polytope, self.margin = solver, oracle.polytope, is_margin(dual)
        if self.margin:  # begins at the observed outcomes, where θ = 0
            _refuse_minimiser(dual.batch, oracle)
            self.inner = Interior(np.array(dual.batch.target), dual.entropy, 0)
        else:
            self.inner = known or interior(dual.batch, oracle, dual.entropy, late=late)
        self.dual = replace(dual, entropy=self.inner.entropy)  # no views that no answer uses
        self.start = self.inner.tau if start is None else self.inner.pull(start)
        self.iterate = Iterate.start(self.dual, self.start, self.inner.tau, active=False)
        self.centre: Centre | None = None
        self.best = Best(last=solver.keep == "last")
        self.first = Start(self.dual, self.inner, oracle)
        self.number, self.calls, self.asking, self.bytes = 0, 0, 0.0, 0

    def hold(self) -> None:
        """Step by the regulariser that holds θ near its centre, if there is one."""
        if self.centre is not None:
            self.iterate.regularise(self.centre.moved(self.dual.regulariser))

    def tree(self) -> Tree:
        spent = self.number, self.calls, self.asking, self.bytes
        held = None if self.centre is None else self.centre.tree()
        return spent, self.best.tree(), self.first.tree(), held, self.iterate.tree()

    def recall(self, tree: Tree) -> None:
        spent, best, first, held, point = tree
        self.number, self.calls, self.asking, self.bytes = spent
        self.best = Best(*best)
        self.first.recall(first)
        if self.centre is not None:
            self.centre.recall(held)
            self.hold()
        self.iterate.recall(point)

    def progress(self, found: Reply) -> Progress:
        """The best so far, this round's among it."""
        given = found.proof, found.primal, found.tangent.theta, found.at, self.iterate.x.tau
        proof, before, began = self.best.take(*given), self.first.calls, clock()
        left = None if self.solver.calls is None else self.solver.calls - self.calls
        self.first.compare(self.best, self.iterate, found, left)
        self.asking += clock() - began
        self.calls += self.first.calls - before
        return self.said(proof)

    def said(self, proof: Certificate) -> Progress:
        best = self.best
        said = Progress(
            self.number, self.calls, len(self.dual.batch), proof, best.theta, best.tau, best.at,
            asking=self.asking, bytes=self.bytes,
        )  # fmt: skip
        return replace(said, instead=self.first.instead(said, best))


class _Run(RunState):
    """What rounds hold besides: the atoms' kind, where to ask next, others' answers."""

    def __init__(self, solver: FrankWolfe, dual: Dual, *given: Any) -> None:
        super().__init__(solver, dual, *given)
        self.vertex_first = self.margin and given[1] is None  # which becomes an atom
        self.smoothing, self.tried = Smoothing(), tries(self.dual.entropy)
        self.step: Step = solver.step
        self.sharing: Sharing | None = None
        if solver.centre and solver.step != "batch_fixed":
            r = np.zeros(dual.features.d) if given[1] is None else self.iterate.x.r
            at = dual.regulariser.weights(r)
            if self.margin:
                self.centre = Centre.of_margin(self.dual, at)
            else:
                self.centre = Centre.of(self.dual, at, self.start)
            self.hold()

    def where(self, asked: ShardedOracle) -> Tree:
        shared = None if self.sharing is None else self.sharing.tree()
        return self.tree(), self.smoothing.tree(), self.step, shared, asked.running.memory()

    def go_on(self, tree: Tree, asked: ShardedOracle) -> None:
        own, smoothing, self.step, shared, memory = tree
        self.smoothing = Smoothing(*smoothing)
        if shared is not None:
            self.sharing = Sharing.recalled(self.dual.batch, shared)
        self.recall(own)
        asked.running.remember(memory)

    def ask(self, asked: ShardedOracle, sums: Sums | None) -> Reply:
        """Every example's best vertex at θ and at a point near τ, and what that proves."""
        if self.number and self.number % CHECKED == 0:
            self.iterate.synchronise()
        theta = self.iterate.x.theta.copy()
        if self.margin and self.step == "pairwise" and self.number:
            theta = BETWEEN * self.best.theta + (1.0 - BETWEEN) * theta
        if self.number == 0 and self.centre is not None and not self.margin:
            theta *= self._shorter(theta)
        share = 0.0 if self.dual.entropy.flat else max(self.smoothing.share, MIX)
        tangent = self.iterate.tangent(share, theta)
        began = clock()
        answers = asked(tangent.score)
        self.asking, self.calls = self.asking + clock() - began, self.calls + len(self.dual.batch)
        if self.number == 0:
            self._plan(answers[0])
        found = certified(self.iterate, tangent, answers, self.inner, self.polytope)
        due = sums is not None and self.number % SUMMED == 0
        return summed(found, self.iterate, sums) if sums is not None and due else found

    def _shorter(self, theta: Array) -> float:
        """Newton's share of the first step, by the curvature of independent parts."""
        dual, tau = self.dual, self.iterate.x.tau
        spread = dual.features.potentials(theta) ** 2 * np.maximum(tau * (1.0 - tau), 0.0)
        bend = float(dual.weigh(spread).sum()) + float(dual.regulariser.lam @ theta**2)
        return float(np.clip(theta @ self.iterate.x.r / max(bend, 1e-300), 0.0, 1.0))

    def _plan(self, vertices: Array) -> None:
        """The kind of step, and what it will need, from the first vertices."""
        dual = self.dual
        widths = Widths.of(dual, vertices, dual.features.each(vertices))
        if self.step == "auto":
            self.step = "pairwise" if capacity(dual, widths) >= FEWEST else "block"
        active = self.step == "pairwise"
        self.bytes = footprint(dual, widths if active else None)
        if active:
            regulariser = self.iterate.regulariser
            self.iterate = Iterate.start(dual, self.start, self.inner.tau, active=True)
            self.iterate.regularise(regulariser)
            if self.vertex_first:
                each = plain(dual.features.each(self.start))
                self.iterate.make_room(self.start, each)
                atoms = self.iterate.atoms
                assert atoms is not None
                scale_atoms(self.iterate.p, atoms, plain(self.start), each, 0, 1.0)
            self.sharing = None if dual.entropy.flat else Sharing.of(dual.batch)
            if self.sharing is not None:
                self.bytes += 16 * LAST * dual.batch.size

    def move(self, found: Reply) -> None:
        """One round's steps; then θ's centre and δ follow."""
        iterate, number, entropic = self.iterate, self.number, not self.dual.entropy.flat
        if entropic:
            iterate.floor = max(FLOOR_SHARE * self.smoothing.share, LEAST_FLOOR)
        take(self.solver, self.step, number, iterate, found.vertices, self.margin, self.sharing)
        if self.centre is not None:
            theta, rest = iterate.x.theta.copy(), found.gap - found.lag
            if self.margin:
                self.centre.at = self.best.theta
            else:
                self.centre.follow(self.dual, theta, iterate.x.tau, found.lag, rest, number)
            self.hold()
        self.number += 1
        if self.step == "pairwise" and self.number >= self.solver.warm and entropic:
            objective = found.proof.objective
            self.smoothing.follow(found.gap, found.mass, objective, self.tried)

"""What a round asks and its answers prove, the best proof so far; where a run begins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from mlestruct.batch import Batch, spans
from mlestruct.checkpoint import Loop, never
from mlestruct.digest import digest
from mlestruct.dual import MIX, Certificate, Dual, Interior, interior, refuse_below
from mlestruct.errors import counting_from
from mlestruct.frank_wolfe.active_set import Iterate, Tangent
from mlestruct.frank_wolfe.settings import Sums
from mlestruct.frank_wolfe.slopes import reached
from mlestruct.method import Progress
from mlestruct.oracle import Oracle, perturbable
from mlestruct.oracle.wrappers import name_of
from mlestruct.structures.base import Array
from mlestruct.trees import Tree

DIGITS = 1e-13  # of log Z: what floats may have lost
BETWEEN = (0.25, 0.5, 0.75, 1.0)  # of the way from τ to a vertex


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
    iterate: Iterate,
    tangent: Tangent,
    vertices: Array,
    upper: Array,
    inner: Interior,
    polytope: str,
) -> Reply:
    """A round's certificate, by the answers to its tangent's scores."""
    dual = iterate.dual
    batch, weight = dual.batch, dual.batch.weight
    out = np.empty((3, len(batch)))
    reached(tangent.score, vertices, iterate.x.tau, iterate.p, out)
    best, here, mass = out
    refuse_below(batch, upper, here, "the current point")
    if batch.target is not None:
        seen, mend = batch.observed(tangent.score), "; where that breaks its constraints, mend it"
        refuse_below(batch, upper, seen, "the observed outcome", mend)
    own = float(weight @ (upper - here + tangent.spread))
    lag = dual.regulariser.bracket(tangent.theta, iterate.x.r)
    gap, energy = own + lag, _energy(dual, tangent)
    proof = Certificate(
        gap if inner.withheld is None else float("inf"),
        float(weight @ (upper - best)),
        dual.regulariser.conj(iterate.x.r) - float(weight @ energy),
        polytope,
        str(dual.entropy.bound),
        inner.withheld,
        inner.unused,
    )
    primal = own + reached_by(iterate, tangent)
    return Reply(tangent, vertices, proof, gap, tangent.at, primal, float(weight @ mass), lag)


def at_least(iterate: Iterate, found: Reply) -> float:
    """Compute a lower bound on P at the weights that were asked about.

    It is what τ reaches, or a point between τ and the example's vertex, whichever reaches more.
    """
    dual, tau = iterate.dual, iterate.x.tau
    batch, entropy, step = dual.batch, dual.entropy, found.vertices - tau
    slope, here = batch.totals(dual.scores(found.tangent.theta) * step), entropy.each(tau)
    gains = [entropy.each(tau + share * step) - here + share * slope for share in BETWEEN]
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
        given = iterate, tangent, vertices, upper[place], self.inner, self.oracle.polytope
        found = certified(*given)
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


def beginning(
    dual: Dual, oracle: Any, known: Interior | None = None, late: Callable[[], bool] = never
) -> tuple[Dual, Interior]:
    """The interior point to begin at, and the dual without views that no answer uses.

    It is asked for unless it is ``known``, until it is ``late``. Max-margin needs no interior: it
    begins at the observed outcomes, where θ = 0.
    """
    if is_margin(dual):
        assert dual.batch.target is not None
        _refuse_minimiser(dual.batch, oracle)
        inner = Interior(dual.batch.target.copy(), dual.entropy, 0)
    else:
        inner = known or interior(dual.batch, oracle, dual.entropy, late=late)
    return Dual(dual.batch, dual.features, inner.entropy, dual.regulariser), inner


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


def settings_of(solver: Any, without: tuple[str, ...]) -> dict[str, Any]:
    """A solver's settings but those that change no bit."""
    own = {field.name: getattr(solver, field.name) for field in fields(solver)}
    return {name: value for name, value in own.items() if name not in without}


def named(solver: Any, dual: Dual, oracle: Oracle[Any], start: Array | None) -> dict[str, Any]:
    """What a run is of, for its checkpoint.

    Within another loop the start follows from the runs before, whose τ are not kept.
    """
    given = "" if isinstance(solver.checkpoint, Loop) else digest(start)
    return {**dual.named(), "oracle": name_of(oracle), "start": given}


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

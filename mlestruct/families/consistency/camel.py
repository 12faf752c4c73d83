"""CAMEL: maximum entropy over consistent clusters, the separators' part by linearisation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple, dataclass, field, replace
from typing import Any, Literal

import numpy as np

from mlestruct import Batch, Certificate, Entropy, FrankWolfe, Regulariser, certificate
from mlestruct.engine import engine_of
from mlestruct.families.consistency.coupled import Coupled, mean_targets
from mlestruct.features import Features
from mlestruct.inference import Marginals
from mlestruct.inference.choose import Inference, Reweighted, Route, Search
from mlestruct.inference.predict import unproven
from mlestruct.inference.routine import Routine, routine
from mlestruct.learners.base import Learns, Start, check_problem, ridge_of
from mlestruct.learning.dual import Dual
from mlestruct.learning.loop import Found, Loop
from mlestruct.learning.minimise import likelihood, minimise
from mlestruct.oracle import Oracle, Validated, resolve
from mlestruct.oracle.registry import AnyOracle
from mlestruct.structures import Structure
from mlestruct.structures.base import Array
from mlestruct.structures.entropy import Counting, Rho, counting_numbers, in_words

ROUTES = ("auto", "direct", "frank_wolfe", "coupled")
CONSISTENT = 1e-9  # a disagreement of tables that certificates still accept
SMOOTHING = 1e-3  # share of uniform tables in the empirical start: log of unseen states is infinite


@dataclass(frozen=True)
class Linearisation:
    """One solved: the objective it reached, and the proof of that inner optimum.

    ``objective`` is H(τ) − R*(r), H with the separators' part; it never falls from one round to
    the next by more than the round's gap. ``moved`` is the largest change of the separators'
    slopes, 0 at a stationary point.
    """

    number: int
    objective: float
    certificate: Certificate
    theta: Array
    tau: Array
    multipliers: Array
    moved: float


@dataclass(frozen=True)
class Camel(Learns):
    """max H(τ) − R*(Σ w_m (φ_m − Φ_mᵀτ_m)) over consistent tables, by a convex problem a round.

    H has the counting numbers of ``rho`` (default 1, Bethe). What counts positively is kept; the
    rest, convex, is replaced by its tangent at the last round's τ, which is a bias on separators
    (CCCP). ``rounds=1`` from ``start`` ``"zero"`` is CAMEL(0); ``"empirical"`` starts at the
    tangent at the mean outcome. ``consistent=False`` lets every table go its own way, and a
    separator is then what the first table that holds it says. ``route``: ``direct`` runs messages
    inside L-BFGS over the weights where they serve, else ``coupled``, the dual over weights and
    multipliers, from piecewise weights on; ``frank_wolfe`` needs the oracle only; ``auto`` is that
    if you name an oracle, else ``direct``.
    """

    name: str = "camel"
    regulariser: float | Regulariser | None = 1.0
    """λ or a ridge; None asks for the observed moments exactly, which only the dual can."""
    rho: Rho = 1.0
    concave: Callable[[Array], Array] = lambda numbers: np.maximum(numbers, 0.0)
    """Counting numbers → the part of them that is kept; the rest must be ≤ 0."""
    start: Literal["zero", "empirical"] = "zero"
    rounds: int = 200
    tol: float = 1e-6
    """The change of the separators' slopes to stop at, or a gain that the round's gap hides."""
    consistent: bool = True
    oracle: AnyOracle = None
    route: Route | Literal["coupled"] = "auto"
    solver: FrankWolfe = field(default=FrankWolfe())

    def __post_init__(self) -> None:
        if self.route not in ROUTES:
            raise ValueError(f"route is one of {', '.join(ROUTES)}, not {self.route!r}")

    def entropy(self, batch: Batch[Any]) -> tuple[Entropy, Entropy]:
        """(the part that is kept, the part that is linearised)."""

        def left(structure: Structure) -> Array:
            numbers = counting_numbers(structure, self.rho)
            rest = numbers - self.concave(numbers)
            if (rest > 1e-12).any():
                raise ValueError(f"a counting number {rest.max():g} > 0 cannot be linearised")
            return np.asarray(rest)

        linear = Entropy.of(batch, Counting(left), allow_nonconvex=True)
        return Entropy.of(batch, self.kept), linear

    @property
    def inference(self) -> Inference:
        """The kept entropy's, its linear part made anew at an example's own marginals."""
        route: Route = "auto" if self.route == "coupled" else self.route
        if self.rounds == 1 and self.start == "zero":
            return Reweighted(self.kept, route)
        return Linearised(self, route)

    @property
    def kept(self) -> Counting:
        """The counting numbers that are not linearised."""
        return Counting(self._kept, f"the concave part of {in_words(self.rho)}")

    def _kept(self, structure: Structure) -> Array:
        return self.concave(counting_numbers(structure, self.rho))

    def dual(self, batch: Batch[Any], features: Features, at: Array | None = None) -> Dual:
        """One round's convex problem: the tangent ``at`` a point, or no separators at all."""
        check_problem(self.name, batch, features)
        assert batch.target is not None
        kept, linear = self.entropy(batch)
        bias, constant = batch.bias, -batch.totals(batch.bias * batch.target)
        if at is not None:
            slope = linear.grad(at)
            bias = bias + slope
            constant = constant + linear.each(at) - batch.totals(slope * at)
        shaped = replace(batch, bias=bias, constant=constant)
        ridge = ridge_of(1.0 if self.regulariser is None else self.regulariser, features.d)
        return Dual(shaped, features, replace(kept, batch=shaped), ridge)

    def each(self, batch: Batch[Any], features: Features) -> list[Linearisation]:
        """Every round of a fit that no checkpoint keeps."""
        rounds: list[Linearisation] = []
        loop = Loop(solver=self.solver)
        self._linearise(batch, features, loop, rounds)
        return rounds

    def run(self, batch: Batch[Any], features: Features, loop: Loop, start: Start) -> Found:
        """Solve one linearisation after the other, from the learner's own beginning.

        The objective is that of the whole with the sign of a dual (it falls). The last round is
        stationary, or ran out of ``rounds``.
        """
        return self._linearise(batch, features, loop, [])

    def _linearise(
        self, batch: Batch[Any], features: Features, loop: Loop, rounds: list[Linearisation]
    ) -> Found:
        linear, plain = self.entropy(batch)[1], self.dual(batch, features)
        number, at, before, last = 0, None, -np.inf, None
        if self.start == "empirical":
            at = (1 - SMOOTHING) * mean_targets(batch) + SMOOTHING * _uniform(batch)
        if loop.state is not None:
            number, at, before, (theta, delta, tau, proof, *rest) = loop.state
            last = Solved(theta, delta, tau, Certificate(*proof), *rest)
        oracle, loop.rounds = Validated(resolve(self.oracle, batch)), self.rounds - 1
        while True:
            last = self.solve(self.dual(batch, features, at), oracle, last, loop)
            slope = np.zeros(batch.size) if at is None else linear.grad(at)
            moved = float(np.abs(linear.grad(last.tau) - slope).max())
            objective = float(batch.weight @ linear.each(last.tau)) - plain.value(last.tau)
            gain, before, at = objective - before, objective, last.tau
            own = last.proof, last.theta, last.tau, last.delta
            rounds.append(Linearisation(number, objective, *own, moved))
            said = self._said(batch, last, number, objective, moved)
            # The tangent no longer moves, or the gain is within the proof's own gap.
            hidden = len(last.x) == 0 and gain <= last.proof.gap
            still = self.rounds == 1 or moved <= self.tol or hidden
            lacks = "" if last.proof.relative <= self.solver.tol else "proof"
            why = loop.over(said, lacks if still else "")
            if why or still:
                why = "" if still and not lacks else lacks or why if why == "rounds" else why
                return loop.end(said, why)
            loop.tell(said)
            number += 1
            loop.save((number, at, before, astuple(last)))

    def _said(
        self, batch: Batch[Any], found: Solved, number: int, objective: float, moved: float
    ) -> Found:
        proof, route = found.proof, "direct" if self.direct else "frank_wolfe"
        if self.rounds > 1:
            words = f"{proof.polytope} in this round; as a whole stationary to {moved:.1e}"
            bound = str(Entropy.of(batch, self.rho, allow_nonconvex=True).bound)
            proof = replace(proof, objective=-objective, polytope=words, bound=bound)
        tau, size, asking = found.tau, len(batch), found.asking
        asked = number, found.calls, size, route
        return Found(found.theta, proof, tau, tau, *asked, asking=asking)

    def solve(self, dual: Dual, oracle: Oracle[Any], last: Solved | None, loop: Loop) -> Solved:
        """One round's problem, from where the last one ended."""
        hard, none = self.regulariser is None, np.zeros(0)
        calls, asking = (0, 0.0) if last is None else (last.calls, last.asking)
        left: Any = {"solver": self.solver, "calls": loop.left(calls)}
        messages = self._messages(dual)
        if messages is not None or not self.direct:
            if messages is not None:
                engine = engine_of(self.solver.engine, self.solver.workers)
                problem = likelihood(dual, messages, engine, oracle)
                start = None if last is None else last.theta
                found = minimise(problem, Loop(loop, "direct", **left), start)
            elif hard or not self.consistent:
                what = "hard moments have" if hard else "tables without consistency have"
                raise ValueError(f"{what} no oracle; use route='direct'")
            else:
                start = None if last is None else last.tau
                found = self.solver.on(dual, oracle, Loop(loop, "frank_wolfe", **left), start)
            calls, asking = calls + found.calls, asking + found.asking
            return Solved(
                found.theta, none, found.tau.copy(), found.certificate, none, calls, asking
            )
        coupled, calls = Coupled(dual, self.consistent, not hard), calls + len(dual.batch)
        start = self._from_pieces(coupled, loop) if last is None else last.x
        x = coupled.solve(start, Loop(loop, "coupled", tol=self.solver.tol, rounds=2000))
        theta, delta, tau = x[: coupled.d], x[coupled.d :], coupled.tau(x)
        if hard or not self.consistent or coupled.violation(x) > CONSISTENT:
            proof, theta = _by_duality(coupled, x, tau), coupled.attained(theta)
        else:
            proof = certificate(dual, oracle, theta, tau)
        return Solved(theta, delta, tau, proof, x, calls + len(dual.batch))

    def _from_pieces(self, coupled: Coupled, loop: Loop) -> Array | None:
        """Piecewise weights, which cost little, and no multipliers yet."""
        if not self.consistent:
            return None
        pieces = Coupled(coupled.dual, False, coupled.ridge)
        apart = pieces.solve(None, Loop(loop, "pieces", tol=0.0, rounds=2000))
        return np.concatenate([apart, np.zeros(coupled.B.shape[0])])

    @property
    def direct(self) -> bool:
        """No oracle is asked while it learns."""
        return self.route in ("direct", "coupled") or (self.route == "auto" and self.oracle is None)

    def _messages(self, dual: Dual) -> Routine | None:
        if not self.direct or self.route == "coupled" or not self.consistent:
            return None
        return None if self.regulariser is None else routine(dual.entropy)


@dataclass(frozen=True)
class Solved:
    """A round's problem solved, and the calls of all rounds so far."""

    theta: Array
    delta: Array
    tau: Array
    proof: Certificate
    x: Array
    calls: int = 0
    asking: float = 0.0


def _by_duality(coupled: Coupled, x: Array, tau: Array) -> Certificate:
    """What the dual proves of itself: by its slope in θ where there is a λ, else by both values."""
    dual, violation = coupled.dual, coupled.violation(x)
    value, slope = coupled(x)
    short = slope[: coupled.d]
    if coupled.ridge:
        gap = coupled.gap(slope)
        polytope = "product of simplices"
    else:
        gap = abs(value - dual.energy(tau))
        polytope = f"tables with moments within {np.abs(short).max(initial=0.0):.1e}"
    loose = f"tables agree to {violation:.1e} only" if violation > CONSISTENT else None
    return Certificate(gap if loose is None else np.inf, 0.0, -value, polytope, "none", loose)


def _uniform(batch: Batch[Any]) -> Array:
    out = np.empty(batch.size)
    for structure, members in batch.groups():
        middle = structure.interior()
        if middle is None:
            raise ValueError("the empirical start needs structures without fixed coordinates")
        out[batch.index(members)] = np.tile(middle, len(members))
    return out


@dataclass(frozen=True)
class Linearised(Inference):
    """CAMEL at test time: the convex part of the entropy by its tangent at the last round's τ.

    Rounds begin without that part and end where its slopes stand still, as a fit's do. The
    surrogate of an example is then stationary, no maximum: nothing is proven.
    """

    learner: Camel
    route: Route = "auto"

    def marginals(
        self, batch: Batch[Any], scores: Array, oracle: AnyOracle = None, solver: Search = None
    ) -> Marginals:
        linear = self.learner.entropy(batch)[1]
        inside = Reweighted(self.learner.kept, self.route)
        slope, moved = np.zeros(batch.size), np.inf
        for _ in range(self.learner.rounds):
            tau = inside.marginals(batch, scores + slope, oracle, solver).tau
            before, slope = slope, linear.grad(tau)
            moved = float(np.abs(slope - before).max(initial=0.0))
            if moved <= self.learner.tol:
                break
        why = f"its entropy is linearised at its own marginals, stationary to {moved:.1e}"
        return unproven(tau, len(batch), why)

    def __str__(self) -> str:
        return "marginals of an entropy linearised at themselves (CAMEL)"


def camel(rho: Rho = None, **settings: Any) -> Camel:
    """Σ_m ⟨θ, φ_m⟩ − max [⟨Φθ, τ⟩ + H_Bethe(τ)] over consistent clusters, made stationary by CCCP.

    ``settings`` are those of :class:`Camel`; ``rho`` (default 1) are the counting numbers aimed at.
    """
    return Camel("camel", rho=1.0 if rho is None else rho, **settings)


def camel0(rho: Rho = None, **settings: Any) -> Camel:
    """Σ_m ⟨θ, φ_m⟩ − max [⟨Φθ, τ⟩ + Σ H(largest tables)] − R(θ) over consistent tables: convex."""
    return Camel("camel0", rho=1.0 if rho is None else rho, rounds=1, **settings)

"""CAMEL: maximum entropy over consistent clusters, the separators' part by linearisation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass, field, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from mlestruct.batch import Batch
from mlestruct.checkpoint import Loop, begin
from mlestruct.digest import digest
from mlestruct.dual import Certificate, Dual, certificate
from mlestruct.entropy import Entropy
from mlestruct.families.consistency.coupled import Coupled, mean_targets
from mlestruct.features import Features
from mlestruct.frank_wolfe import Cost, FrankWolfe, State, noted
from mlestruct.inference.choose import Inference, Reweighted, Route, Settled
from mlestruct.inference.predict import Marginals, unproven
from mlestruct.inference.routine import Routine, routine
from mlestruct.kernels import clock
from mlestruct.learners.convex import AnyOracle
from mlestruct.learners.model import Fits, Model, Runs
from mlestruct.learners.problem import check_problem, ridge_of
from mlestruct.oracle import Oracle, Validated, resolve
from mlestruct.regulariser import Regulariser
from mlestruct.reweighting import Counting, Rho, counting_numbers, in_words
from mlestruct.structures.base import Array, Structure
from mlestruct.train import Direct
from mlestruct.trees import Tree

ROUTES = ("auto", "direct", "frank_wolfe", "coupled")
CONSISTENT = 1e-9  # a disagreement of tables that certificates still accept
SMOOTHING = 1e-3  # share of uniform tables in the empirical start: log of unseen states is infinite


@dataclass(frozen=True)
class Round:
    """One linearisation solved: the objective it reached, and the proof of that inner optimum.

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
    done: bool
    short: str = ""


@dataclass(frozen=True)
class Camel(Fits):
    """max H(τ) − R*(Σ w_m (φ_m − Φ_mᵀτ_m)) over consistent tables, by a convex problem a round.

    H has the counting numbers of ``rho`` (default 1, Bethe). What counts positively is kept; the
    rest, convex, is replaced by its tangent at the last round's τ, which is a bias on separators
    (CCCP). ``rounds=1`` from ``start`` ``"zero"`` is CAMEL(0); ``"empirical"`` starts at the
    tangent at the mean outcome. ``consistent=False`` lets every table go its own way, and then
    ``split`` takes separators from both their ends, not from the first (with consistency they
    are one point). ``route``: ``direct`` runs messages inside L-BFGS over the weights where they
    serve, else ``coupled``, the dual over weights and multipliers, from piecewise weights on;
    ``frank_wolfe`` needs the oracle only; ``auto`` is that if you name an oracle, else ``direct``.
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
    split: bool = False
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

    def each(
        self, batch: Batch[Any], features: Features, loop: Loop | None = None
    ) -> Iterator[Round]:
        """Every round of the fit; the last is stationary, or ran out of ``rounds``."""
        loop = self._loop() if loop is None else loop
        linear = self.entropy(batch)[1]
        first, at, before, solution = 0, None, -np.inf, None
        if self.start == "empirical":
            at = (1 - SMOOTHING) * mean_targets(batch) + SMOOTHING * _uniform(batch)
        if loop.tree is not None:
            first, at, before, (theta, delta, tau, proof, x) = loop.tree
            solution = _Solution(theta, delta, tau, Certificate(*proof), x)
        plain = self.dual(batch, features)
        oracle = Validated(resolve(self.oracle, batch))

        def where() -> Tree:
            assert solution is not None
            return number + 1, at, before, astuple(solution)

        for number in range(first, self.rounds):
            solution = self._solve(self.dual(batch, features, at), oracle, solution, loop)
            tau, proof = solution.tau, solution.proof
            slope = np.zeros(batch.size) if at is None else linear.grad(at)
            moved = float(np.abs(linear.grad(tau) - slope).max())
            objective = float(batch.weight @ linear.each(tau)) - plain.value(tau)
            hidden = len(solution.x) == 0 and objective - before <= proof.gap
            still = moved <= self.tol or hidden
            late = loop.over(self.solver.seconds)
            done = still or late or number + 1 == self.rounds
            short = self._short(proof, still) if done else ""
            short = "seconds" if short and late else short
            found = solution.theta, tau, solution.delta
            yield Round(number, objective, proof, *found, moved, done, short)
            if done:
                return
            at, before = tau, objective
            loop.save(where)

    def _short(self, proof: Certificate, still: bool) -> str:
        """What the last round lacks: its own proof, or the standstill that several are to reach."""
        if not proof.relative <= self.solver.tol:
            return "proof"
        return "" if still or self.rounds == 1 else "rounds"

    def _loop(self) -> Loop:
        own = ("rho", "concave", "start", "rounds", "tol", "consistent", "split")
        setting = {name: digest(getattr(self, name)) for name in own}
        return begin(self.solver.checkpoint, self.name, lambda: setting)

    def _solve(
        self, dual: Dual, oracle: Oracle[Any], last: _Solution | None, loop: Loop
    ) -> _Solution:
        hard, none = self.regulariser is None, np.zeros(0)
        solver = replace(self.solver, checkpoint=loop)
        messages = self._messages(dual)
        if messages is not None:
            start = None if last is None else last.theta
            *_, state = Direct.of(solver).run(dual, oracle, messages, start)
            return _Solution(state.theta, none, state.tau, state.certificate, none)
        if not self._direct:
            if hard or not self.consistent:
                what = "hard moments have" if hard else "tables without consistency have"
                raise ValueError(f"{what} no oracle; use route='direct'")
            found = solver.solve(dual, oracle, None if last is None else last.tau)
            return _Solution(found.theta, none, found.tau.copy(), found.certificate, none)
        coupled = Coupled(dual, self.consistent, self.split, ridge=not hard)
        start = self._from_pieces(coupled, loop) if last is None else last.x
        x = coupled.solve(start, tol=self.solver.tol, keeps=loop)
        theta, delta, tau = x[: coupled.d], x[coupled.d :], coupled.tau(x)
        if hard or not self.consistent or coupled.violation(x) > CONSISTENT:
            proof = _by_duality(coupled, x, tau)
            return _Solution(coupled.attained(theta), delta, tau, proof, x)
        return _Solution(theta, delta, tau, certificate(dual, oracle, theta, tau), x)

    def _from_pieces(self, coupled: Coupled, loop: Loop) -> Array | None:
        """Piecewise weights, which cost little, and no multipliers yet."""
        if not self.consistent:
            return None
        apart = Coupled(coupled.dual, False, self.split, ridge=coupled.ridge).solve(keeps=loop)
        return np.concatenate([apart, np.zeros(coupled.B.shape[0])])

    @property
    def _direct(self) -> bool:
        return self.route in ("direct", "coupled") or (self.route == "auto" and self.oracle is None)

    def _messages(self, dual: Dual) -> Routine | None:
        if not self._direct or self.route == "coupled" or not self.consistent:
            return None
        return None if self.regulariser is None else routine(dual.entropy)

    def states(self, batch: Batch[Any], features: Features) -> Iterator[State]:
        """A state per round, its objective that of the whole with the sign of a dual (it falls)."""
        loop = self._loop()
        yield from noted(loop, partial(self._states, batch, features, loop))

    def _states(
        self, batch: Batch[Any], features: Features, loop: Loop, spent: float
    ) -> Iterator[State]:
        began, count = clock() - spent, len(batch)
        bound = str(Entropy.of(batch, self.rho, allow_nonconvex=True).bound)
        for one in self.each(batch, features, loop):
            proof = one.certificate
            if self.rounds > 1:
                words = f"{proof.polytope} in this round; as a whole stationary to {one.moved:.1e}"
                proof = replace(proof, objective=-one.objective, polytope=words, bound=bound)
            yield State(
                round=one.number,
                calls=(one.number + 1) * count,
                seconds=clock() - began,
                certificate=proof,
                theta=one.theta,
                tau=one.tau,
                at=one.tau,
                cost=Cost(self.rounds, count, 0.0),
                done=one.done,
                route="direct" if self._direct else "frank_wolfe",
                short=one.short,
            )

    def runs(self, batch: Batch[Any], features: Features) -> Runs:
        """Each from its own beginning."""

        def states(
            given: float | Regulariser | None, last: State | None, loop: Loop
        ) -> Iterator[State]:
            solver = replace(self.solver, checkpoint=loop)
            return replace(self, regulariser=given, solver=solver).states(batch, features)

        return Runs(self.name, self.solver.checkpoint, states, self.inference)

    def fit(self, batch: Batch[Any], features: Features) -> Model:
        """Rounds until the separators' slopes stay where they are."""
        return next(self.path(batch, features, [self.regulariser]))


@dataclass(frozen=True)
class _Solution:
    theta: Array
    delta: Array
    tau: Array
    proof: Certificate
    x: Array


def _by_duality(coupled: Coupled, x: Array, tau: Array) -> Certificate:
    """What the dual proves of itself: its slope in θ where λ bends it, else the two values."""
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
class Linearised(Settled):
    """CAMEL at test time: the convex part of the entropy by its tangent at the last round's τ.

    Rounds begin without that part and end where its slopes stand still, as a fit's do. The
    surrogate of an example is then stationary, no maximum: nothing is proven.
    """

    learner: Camel
    route: Route = "auto"

    def marginals(
        self,
        batch: Batch[Any],
        scores: Array,
        oracle: AnyOracle = None,
        solver: FrankWolfe | None = None,
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

"""The direct route: minimise the surrogate in θ by its marginals, then certify both ends.

What was reached is proven where the examples live: every shard proves its part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing
from dataclasses import asdict, astuple, dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cholesky

from mlestruct.checkpoint import Loop, Setting, never
from mlestruct.digest import digest
from mlestruct.drive import NONE, Progress, drive
from mlestruct.dual import Certificate, Dual
from mlestruct.engine import engine_of
from mlestruct.features import Features
from mlestruct.frank_wolfe import FrankWolfe
from mlestruct.inference.proof import infer, products
from mlestruct.inference.routine import Routine
from mlestruct.lbfgs import Descent, Step, next_step
from mlestruct.objectives import Head, Sum, Surrogate
from mlestruct.objectives.base import Share
from mlestruct.oracle import Oracle
from mlestruct.oracle.wrappers import name_of
from mlestruct.regulariser import Regulariser
from mlestruct.structures.base import Array, Ints
from mlestruct.structures.batch import Batch
from mlestruct.structures.entropy import Entropy
from mlestruct.train.descents import LEAST, columns, descend, memory, units
from mlestruct.trees import Tree

TURNS, LESS = 30, 0.95  # of the oracle, each of which leaves at most this of what moments lack


class Prove(NamedTuple):
    """Asks for a shard's part of the certificate at θ, and for its τ.

    ``enough`` is the gap per example at which no costlier proof is looked for. ``excess``, of
    every example's moments beyond those that make θ optimal, is first to be taken from τ, where
    each of them counts 1/``lam``.
    """

    theta: Array
    enough: float
    excess: Array | None
    lam: Array


class Proof(NamedTuple):
    """A shard's part of a certificate. ``missing`` is Σ w_m (φ_m − Φ_mᵀτ_m).

    ``moved``: odd sets kept τ from where inference had it.
    """

    part: Certificate
    missing: Array
    examples: int
    moved: bool
    tau: Array


class Proven(NamedTuple):
    """What a fit's end proves: its certificate, whether odd sets ``moved`` any τ, all shards' τ.

    ``left`` is what is left of the relative gap, where the certificate does not say; ``own`` is
    the learner's.
    """

    certificate: Certificate
    moved: bool
    tau: list[Array]
    left: float | None = None
    own: Any = None


@dataclass(frozen=True)
class Proving:
    """Proves what a routine finds on a shard's examples, the cheapest way first."""

    entropy: Entropy
    oracle: Oracle[Any]
    routine: Routine

    def of(self, batch: Batch[Any], members: Ints) -> Proving:
        """For some of the examples, which ``batch`` holds."""
        return replace(self, entropy=self.entropy.select(batch, members))

    def __call__(
        self, asked: Prove, batch: Batch[Any], heads: Mapping[str, Head], warm: Any
    ) -> Proof:
        """The examples' part of the certificate, by inference that starts from ``warm``."""
        features, entropy = heads["score"].features, self.entropy
        weighed, enough = features.potentials(asked.theta), asked.enough * len(batch)
        scores = weighed + batch.bias
        found = infer(batch, entropy, self.oracle, self.routine, scores, warm, enough)
        if asked.excess is not None and found.withheld is None:
            left = asked.excess * len(batch)
            tau = _balanced(batch, features, self.oracle, found.tau, left, asked.lam)
            value = entropy.each(tau) + batch.totals(scores * tau)
            found = found._replace(tau=tau, lower=np.minimum(value, found.upper))
        energy = found.lower - batch.totals(products(weighed, found.tau))
        if batch.constant is not None:
            energy = energy + batch.constant
        part = found.certificate(batch, -float(batch.weight @ energy), entropy.bound)
        missing = Dual(batch, features, entropy, Regulariser.of(0)).residual(found.tau)
        return Proof(part, missing, len(batch), found.moved, found.tau)


def _balanced(
    batch: Batch[Any], features: Features, oracle: Oracle[Any], tau: Array, left: Array, lam: Array
) -> Array:
    """τ moved along the oracle's answers until its moments lack nothing of what is ``left``.

    A column of 1e9 has them off by what no digit of log Z shows; that little of an answer costs
    τ nothing.
    """
    for _ in range(TURNS):
        vertex, _ = oracle.many(batch, features.potentials(left / lam))
        move = features.moments((vertex - tau) * batch.weights)
        size = float(move @ (move / lam))
        step = min(max(float(left @ (move / lam)) / size, 0.0), 1.0) if size > 0 else 0.0
        rest = left - step * move
        if not float(rest @ (rest / lam)) <= LESS * float(left @ (left / lam)):
            break
        tau, left = tau + step * (vertex - tau), rest
    return tau


def likelihood(dual: Dual, routine: Routine, oracle: Oracle[Any] | None = None) -> Share:
    """The surrogate likelihood of all examples as one; with an ``oracle`` it can be proven."""
    heads = {"score": Head(dual.features, dual.batch.bias)}
    proves = None if oracle is None else Proving(dual.entropy, oracle, routine)
    return Share.whole(Surrogate(routine), dual.batch, heads, proves)


def proven(
    running: Any,
    regulariser: Regulariser,
    theta: Array,
    enough: float,
    *,
    balance: bool = True,
    excess: Array | None = None,
) -> Proven:
    """What is proven at θ, and the τ of all shards.

    Every shard climbs its own ladder of proofs; ``enough`` is the gap per example above which the
    oracle is asked. Where most of the gap is the weights' own and more than that, as columns of
    1e9 have it, τ is balanced: what its moments have in ``excess``, per example, is taken from it,
    by ``TURNS`` questions to the oracle at most. Without ``balance``, as where a
    budget has stopped the weights on their way, it stays as it is.
    """
    asked = Prove(theta, enough, excess, regulariser.lam)
    first, *rest = running.round([asked] * len(running))
    proof, lack, count, moved = first.part, first.missing, first.examples, first.moved
    for one in rest:
        proof, lack, count = proof + one.part, lack + one.missing, count + one.examples
        moved |= one.moved
    kept = [one.tau for one in (first, *rest)]
    own = regulariser.bracket(theta, lack)
    objective = float(regulariser.conj(lack) + proof.objective)
    found = Proven(replace(proof, gap=proof.gap + own, objective=objective), moved, kept)
    worth = own > max(found.certificate.gap / 2, 2 * enough * count)
    if not balance or excess is not None or not (regulariser.plain and worth):
        return found
    excess = (lack - regulariser.grad(theta)) / count
    better = proven(running, regulariser, theta, enough, excess=excess)
    return min(found, better, key=lambda one: one.certificate.gap)


INNER = 1e-3  # inference may stop at this share of the outer relative gap
TIGHTER, FINEST = 0.03, 1e-9  # where a search fails inference gets finer by this, down to that
PROOF = 0.5  # of the tolerance: what inference may leave open before an oracle is asked
EXACTLY = FrankWolfe(tol=1e-6)
ESTIMATE = "an estimate until the last round"
PATIENCE, LONG = 30, 120  # rounds without a lower value: to the first proof, and the last
STILL = 1e-3  # of the tolerance is no fall
AGAIN = 0.1  # of the gap: if the weights' own part is more, a descent can still lower a proof


@dataclass
class _Phase:
    """What a fit knows beside its descent.

    ``coarse``: inference may be; ``cold``: how often a descent has begun anew, with inference that
    is cold from then on, ``taken`` steps ago. ``value`` is the start's; ``share`` of the tolerance
    is what the weights' own gap may take. Values fell last below ``low``, at round ``since``.
    """

    number: int = 0
    coarse: bool = False
    cold: int = 0
    taken: int = 0
    value: float = np.inf
    share: float = 1.0
    low: float = np.inf
    since: int = 0
    patience: int = PATIENCE

    def stuck(self, value: float, least: float) -> bool:
        """Values have not fallen by ``least`` for as many rounds as there is patience.

        Which then doubles. Of columns beyond all sizes the gap of the weights is rounding, times
        their squares.
        """
        if value < self.low - least:
            self.low, self.since = value, self.number
        if self.number - self.since < self.patience:
            return False
        self.since, self.patience = self.number, 2 * self.patience
        return True


@dataclass(frozen=True)
class Descending:
    """R(θ) + Σ over shards, by a descent that asks them: a method for the loop.

    ``descents()`` makes what makes descents, from weights or from where another stands. Where a
    search fails, inference gets finer, and another descent begins there; then, as long as that
    helps and ``restarts`` times at most, one whose inference begins anew at every evaluation: warm
    starts are what an objective jumps by. ``coarse``: the residual of inference at first.
    ``given`` are the weights to begin with, or makes them. The gap to
    stop by is Fenchel's for R. ``claim(step, gap, stalled)`` is a round's certificate, with
    inference stalled on so many examples; a last round is proven by ``proof``, if there is one,
    which is asked as :func:`mlestruct.train.direct.proven` is. ``learned(theta)`` is what weights
    say of inference.
    """

    shards: Callable[[], AbstractContextManager[Any]]
    regulariser: Regulariser
    examples: int
    claim: Callable[[Step, float, int], Certificate]
    descents: Callable[[], Callable[..., Descent]]
    tol: float
    coarse: float = 0.0
    restarts: int = 1
    setting: Callable[[], Setting] = dict
    size: int = 0
    given: Array | Callable[[], Array] | None = None
    name: str = "direct"
    proof: Callable[..., Proven] | None = proven
    learned: Callable[[Array], Tree] | None = None

    def start(self) -> Array:
        """The weights to begin with: the regulariser's optimum, where none are given."""
        if self.given is None:
            return self.regulariser.weights(np.zeros(len(self.regulariser)))
        return self.given() if callable(self.given) else self.given

    def rounds(self, loop: Loop) -> Iterator[Progress]:
        with self.shards() as running:
            total, now, since = Sum(running), _Phase(coarse=self.coarse > 0.0), None
            total.tol = self.coarse
            if loop.tree is None:
                theta = self.start()
            else:
                phase, total.tol, theta, since, memory = loop.tree
                now = _Phase(*phase)
                total.cold = now.cold > 0
                running.remember(memory)
            descents, late = self.descents(), never
            descent = descents(theta, since=since)

            def where() -> Tree:
                return astuple(now), total.tol, theta, within(), running.memory()

            while (step := next_step(descent, total, late)) is not None:
                theta, within, late = step.theta, step.where, loop.late
                said = self._progress(step, total, now)
                yield said
                if not step.moved:  # another descent from here
                    descent, within = descents(theta), lambda: None
                now.number, now.taken = now.number + 1, now.taken + step.moved
                loop.save(where)
            # Time ran out while a step was looked for: the last point stands.
            yield replace(said, round=now.number, calls=said.calls + self.examples)

    def _progress(self, step: Step, total: Sum, now: _Phase) -> Progress:
        if now.number == 0:
            now.value = step.value
        gap, size = self.regulariser.bracket(step.theta, -step.gradient), max(1.0, abs(step.value))
        met, coarse = gap <= self.tol * size, now.coarse
        least = max(STILL * self.tol, 1e-13) * size
        still = now.stuck(step.value, least) and step.moved and not met and self.proof is not None
        on = self._finer(met or still, step.moved, total, now)
        unsure = coarse and met and self.proof is not None  # a proof's inference is no coarser
        if coarse and not (now.coarse or unsure):
            gap = self.regulariser.bracket(step.theta, -total(step.theta)[1])
        if now.coarse:
            total.tol = min(total.tol, INNER * (gap / size))
        said = self._at(now, self.claim(step, gap, total.stalled), step.theta)
        learned = None if self.learned is None else self.learned(step.theta)
        left, over = 0.0 if still else gap / size / now.share, "" if on else "step"
        said = replace(said, learned=learned, left=left, over=over)
        if self.proof is None:
            return said
        return replace(said, prove=partial(self._prove, step, total, now, gap, still, unsure))

    def _finer(self, met: bool, moved: bool, total: Sum, now: _Phase) -> bool:
        """There is a way on: by a step, or from here by finer inference, or a cold one."""
        helped = now.cold == 0 or now.taken > 1
        if now.coarse and not (met or moved) and TIGHTER * total.tol >= FINEST:
            total.tol = TIGHTER * total.tol
        elif now.coarse and (met or not moved):
            now.coarse, total.tol = False, 0.0
        elif not (met or moved) and helped and now.cold < self.restarts:
            now.cold, now.taken, total.cold = now.cold + 1, 0, True
        else:
            return moved
        return True

    def _prove(
        self, step: Step, total: Sum, now: _Phase, gap: float, still: bool, unsure: bool, why: str
    ) -> Progress:
        """The last round, unless a smaller gap of the weights can lower the proof.

        Where inference was coarse so far, one is ``unsure`` of the gap: the proof may tell another.
        """
        assert self.proof is not None
        balance = why in ("", "step")
        proof = partial(self.proof, total.running, self.regulariser, balance=balance)
        enough = PROOF * self.tol / self.examples
        found = self._said(now, step.theta, proof(step.theta, enough * max(1.0, abs(step.value))))
        worse = not found.within(self.tol) and found.gap - found.certificate.objective > now.value
        if worse and self._no_better(total, step.theta):
            start = self.start()
            found = self._said(now, start, proof(start, enough * max(1.0, abs(now.value))))
        if why or found.within(self.tol):
            return found
        if unsure or (still and now.patience <= LONG):
            return replace(found, theta=step.theta, left=np.inf)
        if not still and gap > AGAIN * found.gap:
            now.share = AGAIN * now.share
            return replace(found, theta=step.theta, left=np.inf)
        return replace(found, over="proof")

    def _no_better(self, total: Sum, theta: Array) -> bool:
        """Whether the start is as good as these weights, both evaluated anew."""
        values = []
        for at in (self.start(), theta):
            total.forget()
            values.append(total(at)[0] + self.regulariser.value(at))
        return values[1] > values[0]

    def _said(self, now: _Phase, theta: Array, found: Proven) -> Progress:
        """The last round: weights, and what is proven of them."""
        tau = np.concatenate([NONE, *found.tau])
        said = self._at(now, found.certificate, theta)
        return replace(said, tau=tau, at=tau, cut=found.moved, left=found.left, own=found.own)

    def _at(self, now: _Phase, proof: Certificate, theta: Array) -> Progress:
        calls = (now.number + 1) * self.examples
        return Progress(now.number, calls, self.examples, proof, theta, route="direct")


def estimate(bound: str, step: Step, gap: float, stalled: int) -> Certificate:
    """What a round before the last may say; ``bound`` is what log Z is."""
    return Certificate(gap, 0.0, -step.value, "surrogate", bound, ESTIMATE)


def direct(
    dual: Dual,
    oracle: Oracle[Any],
    routine: Routine,
    solver: FrankWolfe = EXACTLY,
    start: Array | None = None,
) -> Iterator[Progress]:
    """Minimises R(θ) + Σ w_m [log Z(θ) − ⟨θ, φ_m⟩] through marginals, for every regulariser.

    Stops when the Fenchel gap of R, which bounds the error once inference has converged, is below
    ``tol`` relative. Rounds are estimates (with no τ) until the last, which carries the proof.
    Tolerance, limits, engine and checkpoint are ``solver``'s. Examples are evaluated in fixed
    shards on the engine: any gives the same bits.
    """
    engine = engine_of(solver.engine, solver.workers)

    def setting() -> dict[str, Any]:
        known = {"oracle": name_of(oracle), "routine": digest(routine), "start": digest(start)}
        return {**dual.named(), **known, **asdict(solver.budget)}

    method = Descending(
        shards=lambda: closing(engine.start(likelihood(dual, routine, oracle).split())),
        regulariser=dual.regulariser,
        examples=len(dual.batch),
        claim=partial(estimate, str(dual.entropy.bound)),
        coarse=routine.first,
        descents=partial(descents_of, dual, routine),
        tol=solver.tol,
        setting=setting,
        size=dual.batch.size,
        given=start,
    )
    return drive(method, solver.budget, solver.checkpoint)


def descents_of(dual: Dual, routine: Routine) -> Callable[..., Descent]:
    """What makes the descents of a dual problem, in units of its own."""
    ridge, scale = dual.regulariser, None
    factor = hessian_factor(dual, routine)
    if factor is None or not ridge.plain:
        scale = units(columns(dual.batch, dual.features), ridge.lam)
    kept = LEAST if routine.exact else memory(dual.batch.size, dual.features.d)
    return partial(descend, ridge, memory=kept, factor=factor, scale=scale)


def hessian_factor(dual: Dual, routine: Routine) -> Array | None:
    """Cholesky's factor of the Hessian at scores that are all alike, where it has a closed form."""
    if not hasattr(dual.features, "gram"):
        return None
    alike = routine.alike(dual.batch)
    if alike is None:
        return None
    hessian = dual.features.gram(*alike)
    hessian[np.diag_indices(len(hessian))] += dual.regulariser.lam
    try:
        return np.asarray(cholesky(hessian, lower=True))
    except LinAlgError:  # of columns beyond all sizes the penalty is rounding
        return None

"""A problem: R(θ) plus a sum over parts of the examples, evaluated and proven where these are.

A :class:`Part` is asked and changes nothing: its warm start is handed in and out. A
:class:`Problem` sums over parts, on any engine with the same bits, and holds how exact inference
is. Where labels are missing it is a :class:`Difference` of two: log Z, less log Z of what agrees
with what was seen.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from mlestruct.engine import Engine
from mlestruct.errors import counted_from, counting_from
from mlestruct.features import Features
from mlestruct.inference.proof import infer, products
from mlestruct.inference.routine import Routine
from mlestruct.learning.dual import Certificate
from mlestruct.learning.regulariser import Regulariser
from mlestruct.limits import OutOfTime
from mlestruct.oracle import Oracle
from mlestruct.storage.trees import Tree
from mlestruct.structures.base import Array, Ints
from mlestruct.structures.batch import Batch, spans
from mlestruct.structures.entropy import Entropy

SHARD, MOST = 200_000, 8  # coordinates that are worth a part of their own; never more than MOST
TURNS, LESS = 30, 0.95  # of the oracle, each of which leaves at most this of what moments lack
ESTIMATE = "an estimate until the last round"


class Values(NamedTuple):
    """Σ w_m ℓ_m, its gradient by each head's scores, and what the next call may start from.

    ``stalled`` counts the examples on which inference did not converge.
    """

    value: float
    gradient: Mapping[str, Array]
    tau: Array | None = None
    warm: Any = None
    stalled: int = 0


class Objective(Protocol):
    """A function of the scores that every head gives to a batch; weights w_m are its business.

    Interface: calling it with (batch, heads, warm, tol) → :class:`Values`, where ``heads`` maps a
    head's name to its scores (``score``: one per coordinate) and inference inside may stop at a
    relative error ``tol``. Where answers depend on ``warm``,
    ``pack(warm)`` is that as a tree of arrays, and ``unpack(batch, tree)`` the warm start again.
    """

    @abstractmethod
    def __call__(
        self, batch: Batch[Any], heads: Mapping[str, Array], warm: Any, tol: float
    ) -> Values: ...

    def pack(self, warm: Any) -> Tree:
        return None

    def unpack(self, batch: Batch[Any], tree: Tree) -> Any:
        return None


@dataclass(frozen=True)
class Surrogate:
    """Stands for minus the surrogate log-likelihood in the place of an objective."""

    routine: Routine


@dataclass(frozen=True)
class Head:
    """Features and a link: scores Φθ + bias, or their exponential, which stays positive."""

    features: Features
    bias: Array | float = 0.0
    exponential: bool = False

    def scores(self, theta: Array) -> Array:
        out = self.features.potentials(theta)
        out += self.bias
        return np.exp(out, out=out) if self.exponential else out

    def pull(self, scores: Array, gradient: Array) -> Array:
        """The gradient by θ from the one by scores."""
        return self.features.moments(gradient * scores if self.exponential else gradient)

    def select(self, members: Ints, entries: Ints) -> Head:
        bias = self.bias if np.ndim(self.bias) == 0 else np.asarray(self.bias)[entries]
        return Head(self.features.select(members), bias, self.exponential)


def places(heads: Mapping[str, Head]) -> dict[str, slice]:
    """Each head's part of θ, in the heads' order."""
    found, end = {}, 0
    for name, head in heads.items():
        found[name] = slice(end, end := end + head.features.d)
    return found


class Value(NamedTuple):
    """A part's value and gradient; the examples on which inference had not converged."""

    value: float
    gradient: Array
    stalled: int = 0


class Proof(NamedTuple):
    """A certificate at some θ, over all examples or those of a part, with the τ that it is of.

    ``moved``: odd sets kept τ from where inference had it. ``missing`` is Σ w_m (φ_m − Φ_mᵀτ_m).
    """

    certificate: Certificate
    tau: Array
    moved: bool
    missing: Array


@dataclass(frozen=True, eq=False, kw_only=True)
class Part:
    """Some examples, of which the first has the number ``first``, and a function of θ.

    Interface: ``evaluate(theta, tol, warm)`` → its :class:`Value`, by inference that may stop at a
    relative error ``tol``, and the next warm start; ``own(batch, members, entries)`` → the fields
    of some examples, whose coordinates are ``entries``. A warm start is a tree by ``pack``.
    """

    batch: Batch[Any]
    first: int = 0

    def evaluate(self, theta: Array, tol: float, warm: Any) -> tuple[Value, Any]:
        raise NotImplementedError

    def own(self, batch: Batch[Any], members: Ints, entries: Ints) -> dict[str, Any]:
        raise NotImplementedError

    def pack(self, warm: Any) -> Tree:
        return None

    def unpack(self, tree: Tree) -> Any:
        return None

    def halves(self, arguments: tuple[Any, ...]) -> list[tuple[Part, tuple[Any, ...]]]:
        """The two halves of the examples with what they are asked; a single one has none."""
        two = self.batch.shards(2) if len(self.batch) > 1 else []
        return [(self.select(one), self.asked(arguments, one)) for one in two]

    def asked(self, arguments: tuple[Any, ...], members: Ints) -> tuple[Any, ...]:
        """What some of the examples are asked when all are asked this."""
        return arguments

    def select(self, members: Ints) -> Part:
        """These examples alone."""
        batch, entries = self.batch.select(members), spans(self.batch.offsets, members)
        first, own = self.first + int(members[0]), self.own(batch, members, entries)
        return replace(self, batch=batch, first=first, **own)


@dataclass(frozen=True, eq=False, kw_only=True)
class ObjectivePart(Part):
    """An objective of the scores that heads give the examples."""

    objective: Objective
    heads: Mapping[str, Head]

    def own(self, batch: Batch[Any], members: Ints, entries: Ints) -> dict[str, Any]:
        return {"heads": {name: one.select(members, entries) for name, one in self.heads.items()}}

    def evaluate(self, theta: Array, tol: float, warm: Any) -> tuple[Value, Any]:
        place = places(self.heads)
        scores = {name: head.scores(theta[place[name]]) for name, head in self.heads.items()}
        with counting_from(self.first):
            found = self.objective(self.batch, scores, warm, tol)
        gradient = np.zeros(len(theta))
        for name, head in self.heads.items():
            gradient[place[name]] = head.pull(scores[name], found.gradient[name])
        return Value(found.value, gradient, found.stalled), found.warm

    def pack(self, warm: Any) -> Tree:
        return None if warm is None else self.objective.pack(warm)

    def unpack(self, tree: Tree) -> Any:
        return self.objective.unpack(self.batch, tree)


@dataclass(frozen=True, eq=False, kw_only=True)
class LikelihoodPart(Part):
    """Minus the surrogate log-likelihood: its gradient is τ − φ, exact once messages converge.

    With an ``entropy`` and an ``oracle`` what the routine finds can be proven. A dual's constant
    has taken off the observed outcome's share of the bias.
    """

    features: Features
    bias: Array
    routine: Routine
    entropy: Entropy | None = None
    oracle: Oracle[Any] | None = None

    def own(self, batch: Batch[Any], members: Ints, entries: Ints) -> dict[str, Any]:
        entropy = None if self.entropy is None else self.entropy.select(batch, members)
        features, bias = self.features.select(members), self.bias[entries]
        return {"features": features, "bias": bias, "entropy": entropy}

    def evaluate(self, theta: Array, tol: float, warm: Any) -> tuple[Value, Any]:
        batch, target = self.batch, self.batch.target
        assert target is not None
        scores = self.features.potentials(theta)
        scores += self.bias
        try:
            log_z, tau, warm = self.routine.coarser(tol).many(batch, scores, warm)
        except Exception as error:
            raise counted_from(error, self.first) from error.__cause__
        each = log_z - batch.observed(scores)
        if batch.constant is not None:
            each += batch.constant + batch.observed(batch.bias)
        slope = tau - target
        if (batch.weight != 1).any():
            slope *= batch.weights
        gradient = self.features.moments(slope)
        return Value(float(batch.weight @ each), gradient, self.routine.stalled(warm)), warm

    def prove(
        self, theta: Array, enough: float, excess: Array | None, lam: Array, warm: Any
    ) -> tuple[Proof, Any]:
        """The examples' part of the certificate at θ, by inference that starts from ``warm``.

        ``enough`` is the gap per example at which no costlier proof is looked for. ``excess``, of
        every example's moments beyond those that make θ optimal, is first taken from τ, where
        each of them counts 1/``lam``.
        """
        batch, features, entropy = self.batch, self.features, self.entropy
        assert entropy is not None
        assert self.oracle is not None
        with counting_from(self.first):
            weighed, enough = features.potentials(theta), enough * len(batch)
            scores = weighed + batch.bias
            found = infer(
                batch, entropy, self.oracle, self.routine, scores, warm=warm, enough=enough
            )
            if excess is not None and found.withheld is None:
                left = excess * len(batch)
                tau = _balanced(batch, features, self.oracle, found.tau, left, lam)
                value = entropy.each(tau) + batch.totals(scores * tau)
                found = found._replace(tau=tau, lower=np.minimum(value, found.upper))
        energy = found.lower - batch.totals(products(weighed, found.tau))
        if batch.constant is not None:
            energy = energy + batch.constant
        part = found.certificate(batch, -float(batch.weight @ energy), entropy.bound)
        assert batch.target is not None
        w = batch.weights  # observed moments are exact where features are
        lack = features.moments(batch.target * w) - features.moments(found.tau * w)
        return Proof(part, found.tau, found.moved, lack), warm

    def pack(self, warm: Any) -> Tree:
        return None if warm is None else self.routine.pack(warm)

    def unpack(self, tree: Tree) -> Any:
        return self.routine.unpack(self.batch, tree)


@dataclass(frozen=True, eq=False, kw_only=True)
class Difference(Part):
    """One part's value less another's at the same θ, of the same examples."""

    more: Part
    less: Part

    def own(self, batch: Batch[Any], members: Ints, entries: Ints) -> dict[str, Any]:
        return {"more": self.more.select(members), "less": self.less.select(members)}

    def evaluate(self, theta: Array, tol: float, warm: Any) -> tuple[Value, Any]:
        own, other = (None, None) if warm is None else warm
        more, own = self.more.evaluate(theta, tol, own)
        less, other = self.less.evaluate(theta, tol, other)
        slope, stalled = more.gradient - less.gradient, more.stalled + less.stalled
        return Value(more.value - less.value, slope, stalled), (own, other)

    def pack(self, warm: Any) -> Tree:
        return None if warm is None else (self.more.pack(warm[0]), self.less.pack(warm[1]))

    def unpack(self, tree: Tree) -> Any:
        pairs = zip((self.more, self.less), tree, strict=True)
        return tuple(None if one is None else part.unpack(one) for part, one in pairs)


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


class Problem:
    """R(θ) + Σ over parts, with what inference on these parts starts from.

    ``tol`` is the error at which inference may stop; while it is ``coarse`` that gets finer with
    the gap, and where a search fails it is 0. Where one fails then, evaluations are ``cold``, at
    most ``restarts`` times begun anew: every answer is a first call's, so that what depends on warm
    starts, by which an objective may jump, is a function again. ``others`` are the parts of θ that
    score nothing, by name: they are what is learned of inference.
    """

    provable = False
    late: Callable[[], bool] | None = None

    def __init__(
        self,
        part: Part,
        regulariser: Regulariser,
        engine: Engine,
        steps: Callable[..., Any],
        coarse: float = 0.0,
        restarts: int = 0,
    ) -> None:
        count = int(np.clip(part.batch.size // SHARD, 1, MOST))  # whatever works on the parts
        parts = [part]
        if count > 1:
            parts = [part.select(one) for one in part.batch.shards(count)]
        self.regulariser, self.steps, self.restarts = regulariser, steps, restarts
        self.examples, self.count = len(part.batch), len(parts)
        self.running = engine.open(parts)
        self.close, self.others = self.running.close, dict[str, slice]()
        self.tol, self.coarse, self.cold, self.taken = coarse, coarse > 0.0, 0, 0
        self.stalled = 0

    def value_and_gradient(self, theta: Array) -> tuple[float, Array]:
        """Σ over parts and its gradient: R is the descent's. Where it is late there is none."""
        if self.late is not None and self.late():
            raise OutOfTime
        if self.cold:
            self.forget()
        first, *rest = self.running.ask("evaluate", [(theta, self.tol)] * self.count)
        value, gradient, self.stalled = first
        for more, slope, stalled in rest:
            value += more
            gradient += slope
            self.stalled += stalled
        return value, gradient

    def forget(self) -> None:
        """The parts' next answers are those of a first call."""
        self.running.remember([None] * self.count)

    def colder(self) -> bool:
        """Evaluate cold from now on, or once more so, unless the last time did not help."""
        helped = self.cold == 0 or self.taken > 1
        if helped and self.cold < self.restarts:
            self.cold, self.taken = self.cold + 1, 0
            return True
        return False

    def claim(self, value: float, gap: float) -> Certificate:
        """What a round says of which nothing is proven."""
        raise NotImplementedError

    def prove(self, theta: Array, enough: float, *, balance: bool) -> Proof:
        """Prove how far θ is from the optimum; ``enough`` is the gap per example to stop at."""
        raise NotImplementedError

    def memory(self) -> Tree:
        return self.tol, self.coarse, self.cold, self.taken, self.running.memory()

    def remember(self, tree: Tree) -> None:
        self.tol, self.coarse, self.cold, self.taken, warm = tree
        self.running.remember(warm)


class SurrogateProblem(Problem):
    """Minus a surrogate likelihood, of which any θ can be proven; log Z is what ``bound`` says."""

    provable = True
    bound = ""

    def claim(self, value: float, gap: float) -> Certificate:
        return Certificate(gap, 0.0, -value, "surrogate", self.bound, ESTIMATE)

    def prove(
        self, theta: Array, enough: float, *, balance: bool, excess: Array | None = None
    ) -> Proof:
        """What is proven at θ; ``enough`` is the gap per example above which oracles are asked.

        Every part climbs its own ladder of proofs. Where most of the gap is the weights' own and
        more than that, as columns of 1e9 have it, τ is balanced: what its moments have in
        ``excess``, per example, is taken from it, by ``TURNS`` questions to the oracle at most.
        Without ``balance``, as where a budget has stopped the weights on their way, it stays.
        """
        ridge = self.regulariser
        parts = self.running.ask("prove", [(theta, enough, excess, ridge.lam)] * self.count)
        proof, lack = parts[0].certificate, parts[0].missing
        for one in parts[1:]:
            proof, lack = proof + one.certificate, lack + one.missing
        own = ridge.bracket(theta, lack)
        objective = float(ridge.conj(lack) + proof.objective)
        proof = replace(proof, gap=proof.gap + own, objective=objective)
        tau = np.concatenate([one.tau for one in parts])
        found = Proof(proof, tau, any(one.moved for one in parts), lack)
        worth = own > max(proof.gap / 2, 2 * enough * self.examples)
        if not balance or excess is not None or not (ridge.plain and worth):
            return found
        excess = (lack - ridge.grad(theta)) / self.examples
        better = self.prove(theta, enough, balance=balance, excess=excess)
        return min(found, better, key=lambda one: one.certificate.gap)

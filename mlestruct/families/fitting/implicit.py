"""Implicit fitting: weights, and entropies, for which convex inference predicts well."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any

import numpy as np

from mlestruct import Batch, Entropy, FrankWolfe, Regulariser
from mlestruct.families.fitting.condensed import Condensed, Optima, recalled
from mlestruct.families.fitting.losses import Loss, ObservedTables, named, where_seen
from mlestruct.features import Features
from mlestruct.inference import Marginals
from mlestruct.inference.choose import Inference, Search
from mlestruct.inference.predict import unproven
from mlestruct.inference.sum_product import SumProduct
from mlestruct.learners.primal import Heads, Primal, pseudo_likelihood, refuse, scored
from mlestruct.learning.problem import Head, Objective, Surrogate, Values
from mlestruct.oracle.registry import AnyOracle
from mlestruct.storage.trees import Tree
from mlestruct.structures import FactorGraph
from mlestruct.structures.base import Array, as_count
from mlestruct.structures.entropy import Counting, Rho, in_words
from mlestruct.structures.graph import only_graphs

NEAR = 1e-4  # relative gap, and moves of log-beliefs, of the likelihood that fits start from


def coefficients(node: float, factor: float = 1.0) -> Counting:
    """The entropy Σ node·H(b_i) + Σ factor·H(b_α), concave on every graph."""

    def numbers(graph: FactorGraph) -> Array:
        return np.repeat([node, factor], [graph.n_nodes, graph.n_factors])

    return Counting(numbers, f"{node:g} on nodes and {factor:g} on factors")


def implicit(
    rho: Rho = None,
    oracle: Any = None,
    route: str = "auto",
    loss: str | Loss = "ucl",
    entropy: Callable[[Batch[Any]], Features] | None = None,
    early: int | None = None,
    **settings: Any,
) -> Primal:
    """Σ_m w_m L(argmax ⟨Φ_mθ, b⟩ + H_ρ(b)) + R(θ), differentiated where inference has converged.

    ``loss`` is one of :mod:`.losses`, or its name; ``rho`` as anywhere, or
    :func:`coefficients`. ``entropy`` turns a batch into features of log w, and the entropy's
    coefficients w = ρ's · exp(Ψω) are fitted too: θ is then (weights, ω). Fits start from the
    convex surrogate likelihood (pseudo-likelihood where labels are missing), or with ``begin=None``
    from 0. ``early`` cuts inference short after so many majorising steps (the thesis's
    algorithm 1), in the fit and in predictions; ``settings`` are those of :class:`Primal`.
    """
    refuse("implicit", route, oracle=oracle)
    if early is not None:
        early = as_count(early, "early", least=1)
    objective = Implicit(named(loss), rho, Condensed(early=early))

    def heads(batch: Batch[Any], features: Features) -> dict[str, Head]:
        if entropy is None:
            return scored(batch, features)
        base = objective.inference.weights(batch, rho)
        if not (base > 0).all():
            raise ValueError(f"rho={rho!r} has counts that are not positive: log w has no start")
        return {**scored(batch, features), "weight": Head(entropy(batch), np.log(base), True)}

    def doubt(stalled: int) -> str:
        why = f"; inference stalled on {stalled} examples" if stalled else ""
        return f"the loss is not convex in θ: a stationary point at best{why}"

    words = ("local polytope", "none (a loss of beliefs)")
    own = {
        "doubt": doubt,
        "begin": surrogate_start(rho, settings, heads),
        "heads": where_seen(objective.loss, heads),
        "inference": Minimised(rho, entropy, early=early),
        "partly": "seen",
    }
    return Primal("implicit", lambda batch: objective, *words, **{**own, **settings})


@dataclass(frozen=True)
class Minimised(Inference):
    """Beliefs that minimise the fitted free energy, entropies as learned."""

    rho: Rho = None
    entropy: Callable[[Batch[Any]], Features] | None = None
    learned: Mapping[str, Array] | None = None
    early: int | None = None

    def marginals(
        self, batch: Batch[Any], scores: Array, oracle: AnyOracle = None, solver: Search = None
    ) -> Marginals:
        inference = Condensed(early=self.early)
        weight = inference.weights(batch, self.rho)
        if self.entropy is not None:
            if self.learned is None:
                raise ValueError("the weights of these entropies were not learned yet")
            weight = weight * np.exp(self.entropy(batch).potentials(self.learned["weight"]))
        found = inference.minimise(batch, scores, weight)
        failed = inference.failed(found)
        if failed.any():
            m = int(np.argmax(failed))
            raise ValueError(f"example {m}: its beliefs are no optimum; set infer= to others")
        return unproven(found.tau, len(batch), "beliefs of a fitted free energy bound nothing")

    def recall(self, learned: Tree) -> Minimised:
        """With the weights of entropies."""
        return self if learned is None else replace(self, learned=dict(learned))

    def __str__(self) -> str:
        cut = "" if self.early is None else f", after {self.early} majorising steps"
        return f"beliefs that minimise the fitted free energy{cut}"


def surrogate_start(
    rho: Rho, settings: Mapping[str, Any], heads: Heads
) -> Callable[[Batch[Any], Features], Array]:
    """A convex fit's weights under every head of scores, 0 under one of entropies."""
    given = settings.get("regulariser", 1.0)

    def begin(batch: Batch[Any], features: Features) -> Array:
        ridge = _first(given, features.d) if isinstance(given, Regulariser) else given
        fit = _convex(batch, rho)(regulariser=ridge, solver=FrankWolfe(tol=NEAR))
        theta = fit.fit(batch, features).theta
        parts = heads(batch, features).items()
        return np.concatenate(
            [np.zeros(head.features.d) if name == "weight" else theta for name, head in parts]
        )

    return begin


def _convex(batch: Batch[Any], rho: Rho) -> Callable[..., Primal]:
    """The surrogate likelihood through messages; pseudo-likelihood where labels are missing."""
    assert batch.target is not None
    seen = (batch.rows(batch.target, members) for _, members in batch.groups())
    kinds = (structure for structure, _ in batch.groups())
    if not all(kind.contains(rows).all() for kind, rows in zip(kinds, seen, strict=True)):
        return pseudo_likelihood
    return partial(convex_likelihood, rho)


def convex_likelihood(rho: Rho = None, **settings: Any) -> Primal:
    """Σ_m [⟨θ, φ_m⟩ − log Z_ρ(θ, x_m)] − R(θ) by messages: no oracle, no proof."""

    def objective(batch: Batch[Any]) -> Surrogate:
        messages = SumProduct.serve(Entropy.of(batch, rho))
        if messages is None:
            only_graphs(batch.structures, "a loss of beliefs")
            kinds = ", ".join(sorted({type(s).__name__ for s in batch.structures}))
            raise ValueError(
                f"fits start from a convex likelihood of free labelled graphs, and {in_words(rho)} "
                f"leaves none on {kinds}; pass begin=None"
            )
        return Surrogate(messages.coarser(NEAR))

    words = ("local polytope", "the entropy's")
    return Primal("convex_likelihood", objective, *words, **settings)


def _first(regulariser: Regulariser, d: int) -> Regulariser:
    return Regulariser(*(getattr(regulariser, f.name)[:d] for f in fields(Regulariser)))


@dataclass
class Warm:
    """What is observed, and the last beliefs: where the next inference starts."""

    units: ObservedTables
    optima: Optima | None = None


@dataclass(frozen=True)
class Implicit(Objective):
    """Σ_m w_m L(b_m, outcome m) with b = argmin Σ w b log b − ⟨score, b⟩ over the local polytope.

    Heads are ``score``, and ``weight`` where the coefficients w are learned too (an exponential
    link keeps them positive); else w are the counting numbers of ``rho``. The gradient is exact at
    the optimum: one linear solve per example (:func:`Condensed.respond`). Of beliefs that are cut
    short it is the same expression, as in the thesis, and no derivative.
    """

    loss: Loss
    rho: Rho = None
    inference: Condensed = field(default_factory=Condensed)

    def __call__(
        self, batch: Batch[Any], heads: Mapping[str, Array], warm: Any, tol: float
    ) -> Values:
        warm = Warm(self.loss.units(batch)) if warm is None else warm
        weight = heads["weight"] if "weight" in heads else self.inference.weights(batch, self.rho)
        optima = self.inference.minimise(batch, heads["score"], weight, warm.optima)
        value, slope = self.loss(optima.tau, warm.units)
        failed = self.inference.failed(optima)
        value = np.inf if failed.any() else value  # no line search is to go there
        m = self.inference.respond(batch, weight + optima.slack, optima.tau, slope)
        gradient = {"score": -m}
        if "weight" in heads:
            gradient["weight"] = m * (np.log(optima.tau) + 1.0)
        return Values(value, gradient, optima.tau, Warm(warm.units, optima), int(failed.sum()))

    def pack(self, warm: Warm) -> Tree:
        return None if warm.optima is None else tuple(warm.optima)

    def unpack(self, batch: Batch[Any], tree: Tree) -> Warm:
        return Warm(self.loss.units(batch), recalled(batch, tree))

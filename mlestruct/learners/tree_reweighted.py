"""Tree-reweighted surrogate likelihood: by its dual with features, in closed form without."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mlestruct.features import Features
from mlestruct.inference import marginals
from mlestruct.learners.base import Start, Wraps
from mlestruct.learners.convex import Learner, mle_struct
from mlestruct.learning.loop import Found, Loop
from mlestruct.storage.digest import digest
from mlestruct.structures import FactorGraph
from mlestruct.structures.base import Array, as_numbers
from mlestruct.structures.batch import Batch
from mlestruct.structures.entropy import Rho, counting_numbers
from mlestruct.structures.spanning_trees import heaviest_tree

INNER = 0.3  # of the tolerance is a fit's under one ρ; the rest is left for what ρ may still gain
KEPT = 0.05  # of the uniform trees in every ρ: messages divide by ρ, and 0 would drop an edge
TREES = "local polytope and all mixtures of spanning trees"


def trw(rho: Rho = None, **settings: Any) -> Learner:
    """Σ_m [⟨θ, φ_m⟩ − B_ρ(θ, x_m)] − R(θ), B_ρ the tree-reweighted bound on log Z.

    ``rho`` is a number, one per edge, or a name; the default is every edge's share of the uniform
    spanning trees, 1 on forests, where the bound is exact. With penalty λ_n‖θ‖² on a mean
    over M samples, ``regulariser`` is 2Mλ_n.
    """
    return replace(mle_struct(rho, **settings), name="trw")


def trw_tightest(rho: Rho = None, rounds: int = 5, **settings: Any) -> Tightened:
    """:func:`trw` with the ρ that lowers the bound most, found between ``rounds`` of fitting."""
    if rho is not None:
        raise ValueError(f"the search for ρ starts from uniform trees, not from rho={rho!r}")
    return Tightened(replace(mle_struct(**settings), name="trw_tightest"), rounds)


Weights = dict[FactorGraph, Array]


@dataclass(frozen=True)
class Tightened(Wraps):
    """max over θ and ρ of Σ_m [⟨θ, φ_m⟩ − B_ρ(θ, x_m)] − R(θ): a fit, a better ρ, and again.

    ∂B/∂ρ_e = −I_e, so a Frank-Wolfe step goes towards the heaviest spanning tree under the edges'
    mutual information; it is shortened until the proven bound on Σ w_m log Z falls. B is convex
    in (θ, ρ) together, so a round's gap plus Σ_e I_e (tree_e − ρ_e) bounds the error of both.
    Examples with equal structures share their ρ.
    """

    learner: Learner
    rounds: int = 5
    steps: int = 3
    """Steps of ρ between two fits."""

    def run(self, batch: Batch[Any], features: Features, loop: Loop, start: Start) -> Found:
        """A fit under some ρ, then a better ρ, from uniform trees on.

        The certificates are about all θ and all ρ; the last has a gap within the solver's ``tol``,
        if it can.
        """
        if self._alone:
            _ = self.learner.solver.engine  # which a BCFW refuses: marginals are no single steps
        loop.rounds = self.rounds
        uniform = {s: counting_numbers(s, "trees")[s.n_nodes :] for s in batch.structures}
        number, shares, begin, calls, asking = loop.state or (0, None, None, 0, 0.0)
        rho = uniform if shares is None else dict(zip(batch.structures, shares, strict=True))
        while True:
            loop.save((number, [rho[s] for s in batch.structures], begin, calls, asking))
            learner = self.under_rho(rho)
            inside = Loop(loop, "fit", solver=learner.solver, calls=loop.left(calls))
            found = learner.run(batch, features, inside, begin)
            direct = learner.messages(learner.dual(batch, features)) is not None
            begin = found.theta if direct else found.tau.copy()
            calls, asking = calls + found.calls, asking + found.asking
            trees, proof = _best_trees(batch, found.tau), found.certificate
            left = sum(float(pull @ (tree - rho[s])) for s, (pull, tree) in trees.items())
            proof = replace(proof, gap=proof.gap + left, polytope=TREES)
            learned = {digest(s): numbers for s, numbers in rho.items()}
            said = replace(
                found, round=number, calls=calls, asking=asking, certificate=proof, learned=learned
            )
            why = loop.over(said)
            if why or proof.relative <= loop.tol:
                return loop.end(said, "" if proof.relative <= loop.tol else why)
            loop.tell(said)
            scores = features.potentials(found.theta) + batch.bias
            rho = self.tightened(batch, scores, rho, uniform, loop)
            number += 1

    def tightened(
        self, batch: Batch[FactorGraph], scores: Array, rho: Weights, uniform: Weights, loop: Loop
    ) -> Weights:
        """A ρ with a smaller bound on Σ w_m log Z at these scores, where there is one in time."""
        tau, bound = self._infer(batch, scores, rho, loop)
        for _ in range(self.steps):
            trees, gamma = _best_trees(batch, tau), 0.5
            while gamma > 1e-3 and not loop.late():
                moved = {
                    s: rho[s] + gamma * ((1 - KEPT) * tree + KEPT * uniform[s] - rho[s])
                    for s, (_, tree) in trees.items()
                }
                there, reached = self._infer(batch, scores, moved, loop)
                if reached < bound:
                    rho, tau, bound = moved, there, reached
                    break
                gamma /= 2
            else:
                break
        return rho

    @property
    def _alone(self) -> bool:
        """Whether marginals are found by Frank-Wolfe, too."""
        return self.learner.oracle is not None or self.learner.route == "frank_wolfe"

    def under_rho(self, rho: Weights) -> Learner:
        """The learner at this ρ."""
        solver = replace(self.learner.solver, tol=INNER * self.learner.solver.tol)
        surrogate = mle_struct(rho.__getitem__).surrogate
        return replace(self.learner, surrogate=surrogate, solver=solver)

    def _infer(
        self, batch: Batch[Any], scores: Array, rho: Weights, loop: Loop
    ) -> tuple[Array, float]:
        learner, solver = self.under_rho(rho), None
        if self._alone:
            solver = replace(learner.solver, checkpoint=loop)
        found = marginals(batch, scores, learner.oracle, rho=rho.__getitem__, solver=solver)
        return found.tau, float(batch.weight @ found.upper)


def _best_trees(batch: Batch[FactorGraph], tau: Array) -> dict[FactorGraph, tuple[Array, Array]]:
    """Σ w_m I_e(τ_m) of every edge, and the spanning tree where that is most, per structure."""
    found = {}
    for graph, members in batch.groups():
        first = graph.node_start[-1]
        share = [
            w * t * _ratio(graph, t)
            for w, t in zip(batch.weight[members], batch.rows(tau, members), strict=True)
        ]
        pull = np.add.reduceat(np.sum(share, axis=0)[first:], graph.table_start[:-1] - first)
        edges = graph.scope.reshape(-1, 2)
        found[graph] = (pull, heaviest_tree(graph.n_nodes, edges, pull))
    return found


def _ratio(graph: FactorGraph, tau: Array) -> Array:
    """log τ_s on nodes, log τ_α − Σ log τ_s on factors."""
    log: Array = np.log(np.maximum(tau, 1e-300))
    entry, node, _ = graph.below
    return log - np.bincount(entry, weights=log[node], minlength=graph.size)


@dataclass(frozen=True)
class Matched:
    """Scores whose surrogate marginals are ``mean``, up to a constant per table."""

    theta: Array
    mean: Array
    rho: Array
    log_likelihood: float
    """⟨θ, mean⟩ − B(θ) per sample; B(θ) is 0."""


def match_moments(
    graph: FactorGraph, mean: ArrayLike, rho: Rho = None, smoothing: float = 0.0
) -> Matched:
    """θ_s = (c_s + Σ_α c_α) log μ_s and θ_α = c_α log(μ_α / Π μ_s), c the counting numbers of ρ.

    The optimum without features or penalty; of every ρ that is a number c_s + Σ_α c_α is 1.

    ``mean`` is a mean of outcomes, or marginals; ``smoothing`` ε replaces it by
    (1−ε)·mean + ε·uniform, and an entry 0 needs it. Where the entropy is not concave (ρ = 1 on
    several cycles) the marginals are only a stationary point of the surrogate.
    """
    mean = as_numbers(mean, "moments")
    if mean.shape != (graph.size,) or not graph.contains(mean, 1e-8):
        raise ValueError("the moments are no point of the graph's local polytope")
    if not 0 <= as_numbers(smoothing, "smoothing") <= 1:
        raise ValueError(f"smoothing is {smoothing}; it must be in 0..1")
    sizes = np.bincount(graph.table_of).astype(float)
    mean = (1 - smoothing) * mean + smoothing / sizes[graph.table_of]
    if (mean <= 0).any():
        k = int(np.argmin(mean))
        raise ValueError(f"coordinate {k} has moment {mean[k]:g}: its score is −∞; use smoothing")
    counts = counting_numbers(graph, rho)
    weight, factors = counts[: graph.n_nodes].copy(), counts[graph.n_nodes :]
    np.add.at(weight, graph.scope, np.repeat(factors, np.diff(graph.scope_start)))
    sizes = np.concatenate([graph.cards, np.diff(graph.table_start)])
    theta = _ratio(graph, mean) * np.repeat(np.concatenate([weight, factors]), sizes)
    return Matched(theta, mean, factors, float(theta @ mean))

"""Intervals for the exact log Z and the exact likelihood, wherever a theorem gives them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import xlogy

from mlestruct.inference.decoding import decode
from mlestruct.inference.predict import Marginals
from mlestruct.inference.routine import routine
from mlestruct.oracle.registry import AnyOracle
from mlestruct.structures import BipartiteMatching, FactorGraph, Matching
from mlestruct.structures.base import Array, Ints, Structure, as_numbers
from mlestruct.structures.batch import Batch
from mlestruct.structures.entropy import Entropy


@dataclass(frozen=True)
class ProvenInterval:
    """lower ≤ the exact value ≤ upper, per example or for a sum; ±inf where no theorem helps."""

    lower: Array
    upper: Array
    why: str

    def __and__(self, other: ProvenInterval) -> ProvenInterval:
        """What both prove; ends that rounding has crossed are put in order."""
        why = self.why if self.why == other.why else f"{self.why}; {other.why}"
        low = np.maximum(self.lower, other.lower)
        high = np.minimum(self.upper, other.upper)
        return ProvenInterval(np.minimum(low, high), np.maximum(low, high), why)


def log_z_interval(found: Marginals) -> ProvenInterval:
    """What surrogate marginals prove about the exact log Z: only what their ``bound`` is.

    The surrogate's own optimum lies in [lower, upper] by its certificate. An upper surrogate puts
    log Z below its upper end, a lower one above its lower end, an exact one inside; a surrogate
    without a theorem proves nothing, however close it may be.
    """
    none = np.full(len(found.lower), np.inf)
    exact = found.certificate.bound.startswith("exact")  # log Z is, however τ was found
    kind = "exact" if exact else found.bound.kind
    lower = found.lower if kind in ("exact", "lower") else -none
    upper = found.upper if kind in ("exact", "upper") else none
    return ProvenInterval(lower.copy(), upper.copy(), str(found.bound))


def outcome_interval(
    batch: Batch[Any], scores: ArrayLike, oracle: AnyOracle = None
) -> ProvenInterval:
    """log Z ≥ the score of any outcome: the best one that is found where answers are fractions.

    −inf where that is no outcome that the structure allows. One oracle call each.
    """
    lower = decode(batch, scores, oracle).scores.copy()
    return ProvenInterval(lower, np.full(len(batch), np.inf), "the score of one outcome")


def permanent_interval(batch: Batch[Any], bethe: Marginals) -> ProvenInterval:
    """log Z of perfect matchings of two sides of n is at most Bethe's value + (n/2) log 2.

    ``bethe`` are the marginals at ρ = 1. Anari and Rezaei (2019, FOCS, theorem 1: a permanent is
    at most √2ⁿ times its Bethe permanent); nothing of other structures.
    """
    size = np.array([_side(structure) for structure in batch.structures])[batch.which]
    upper = np.where(size > 0, bethe.upper + size / 2.0 * np.log(2.0), np.inf)
    return ProvenInterval(np.full(len(batch), -np.inf), upper, "Bethe's permanent times √2ⁿ")


def _side(structure: Structure) -> int:
    perfect = isinstance(structure, BipartiteMatching) and structure.kind == "perfect"
    return structure.shape[0] if perfect else 0


def product_interval(graph: FactorGraph, score: ArrayLike, nodes: ArrayLike) -> ProvenInterval:
    """log Z ≥ ⟨score, E_q v⟩ + Σ H(q_i) for every product of distributions q: mean field.

    ``nodes`` holds the node tables one after the other, such as the node part of any τ; each is
    normalised here. O(size · order). Valid on any graph, at any q, converged or not.
    """
    q = as_numbers(nodes, "nodes").reshape(-1)[: graph.node_start[-1]]
    if q.shape != (graph.node_start[-1],) or not (np.isfinite(q) & (q >= 0)).all():
        raise ValueError(f"a product needs {graph.node_start[-1]} probabilities ≥ 0")
    mass = np.add.reduceat(q, graph.node_start[:-1])
    if (mass <= 0).any():
        raise ValueError(f"variable {int((mass <= 0).argmax())} has no probability")
    q = q / np.repeat(mass, graph.cards)
    tau = _product(graph, q)
    values = np.where(graph.closed(), -np.inf, as_numbers(score, "scores"))
    energy = float(np.where(tau > 0, values, 0.0) @ np.where(tau > 0, tau, 1.0))
    lower = energy - float(xlogy(q, q).sum())
    return ProvenInterval(np.array([lower]), np.array([np.inf]), "mean field: Gibbs's inequality")


def _product(graph: FactorGraph, q: Array) -> Array:
    entry, node, _ = graph.below
    tau = np.concatenate([q, np.ones(graph.size - len(q))])
    np.multiply.at(tau, entry, q[node])
    return tau


def halves_interval(matching: Matching, score: ArrayLike, side: ArrayLike) -> ProvenInterval:
    """log Z of a complete graph ≥ log Z of its pairs between two halves ≥ their Bethe value.

    ``side`` puts each node into half 0 or 1, as many into each. Valid for any halves; a good pair
    of them lies across the likely pairs, see :func:`halves`. At best about (n/2) log 2 below.
    """
    values, place = as_numbers(score, "scores"), as_numbers(side, "side")
    left, right = np.flatnonzero(place == 0), np.flatnonzero(place == 1)
    if not (matching.graph.complete and len(left) == len(right) == matching.n_nodes / 2):
        raise ValueError(
            f"halves of {len(left)} and {len(right)} nodes for a matching of {matching.n_nodes}; "
            "expected a complete graph and two equal halves"
        )
    a, b = np.meshgrid(left, right, indexing="ij")
    table = values[matching.graph.place(np.minimum(a, b).ravel(), np.maximum(a, b).ravel())]
    lower = np.array([bethe_value(BipartiteMatching(len(left)), table)])
    return ProvenInterval(lower, np.full(1, np.inf), "Bethe on the pairs between two halves")


TURNS, GAIN = 30, 1e-5  # at most, and what one of them has to gain per node


def bethe_value(structure: Structure, score: Array) -> float:
    """Bethe's value of a perfect matching, nearly its maximum: at a point that fits every degree.

    The convex part of its entropy is taken by its tangent, which leaves a problem of ρ = ½. For
    one number of one matching: ρ = 1 itself has messages, which are long to compile.
    """
    batch = Batch.of(structure, count=1)
    entropy, found = Entropy.of(batch, 1.0), routine(Entropy.of(batch, 0.5))
    assert found is not None
    scaling, warm, slope = found.over("degrees").coarser(GAIN), None, np.zeros(batch.size)
    reached = before = -np.inf
    for _ in range(TURNS):
        _, tau, warm = scaling.many(batch, score + slope, warm)
        reached = max(before, float(entropy.each(tau)[0] + score @ tau))
        if reached - before <= GAIN * batch.size**0.5:
            break
        before, slope = reached, -np.log(np.maximum(1.0 - tau, 1e-16))
    return reached


def halves(n: int, tau: Array, partner: Ints) -> Ints:
    """0 or 1 for every node of a complete graph: partners apart, and likely pairs where it goes."""
    low, high = np.triu_indices(n, 1)
    table = np.zeros((n, n))
    table[low, high] = table[high, low] = tau
    sign, pull = np.zeros(n), np.zeros(n)
    for u in np.flatnonzero(np.arange(n) < partner):
        v = partner[u]
        sign[u] = -1.0 if pull[u] > pull[v] else 1.0
        sign[v] = -sign[u]
        pull += sign[u] * (table[u] - table[v])
    return (sign > 0).astype(np.int64)

"""Beliefs that minimise Σ w b log b − ⟨score, b⟩ over the local polytope, and how they move."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlestruct import Batch, Entropy, FactorGraph
from mlestruct.families.fitting.condensed.frame import frame
from mlestruct.inference.routine import Beliefs, Routine
from mlestruct.native._door import CondensedExamples, descend_condensed, respond_condensed
from mlestruct.structures.base import Array, Ints
from mlestruct.structures.entropy import Rho, counting_numbers
from mlestruct.structures.graph import only_graphs
from mlestruct.trees import Tree, like

LANES = 8  # examples of one graph that are solved side by side
STEPS = 150
STALLED = 1e-6  # of a value's size: what is missing is more where inference has failed

EARLY, MAJORISE, NEWTON, FOLLOW = -1, 0, 1, 2  # where an example begins


class Optima(NamedTuple):
    """Beliefs, what each example's value lacks at most in units of its size, slacks of entries.

    Slacks are 0 but where the path of interior points led to the optimum: there F has −μ log b
    beside it, whose curvature (w + z)/b is that of the beliefs' derivatives.
    """

    tau: Array
    gap: Array
    slack: Array

    @property
    def stalled(self) -> NDArray[np.bool_]:
        """Examples whose beliefs are no optimum: nothing that is computed from them holds."""
        return np.asarray(~(self.gap <= STALLED))


@dataclass(frozen=True)
class Condensed:
    """Majorisation, then Newton's method, or interior points where it fails, by condensed systems.

    Factors of any order and cards. ``weight`` per coordinate: positive on factors; negative on
    variables as far as the whole stays convex on the local polytope. ``tol`` is the largest
    relative change of Newton's last step; what is missing is bounded by duality. Linear systems
    are solved by sparse factors, or by conjugate gradients where those cost too much. ``early``
    stops after so many majorising steps from uniform tables, the thesis's algorithm 1 cut short.
    """

    tol: float = 1e-9
    steps: int = STEPS
    early: int | None = None

    def weights(self, batch: Batch[FactorGraph], rho: Rho) -> Array:
        """The counting numbers of ρ as a weight per coordinate."""
        only_graphs(batch.structures, "implicit fitting")
        each = [counting_numbers(s, rho)[s.table_of] for s in batch.structures]
        return np.concatenate([each[k] for k in batch.which])

    def minimise(
        self, batch: Batch[FactorGraph], score: Array, weight: Array, start: Optima | None = None
    ) -> Optima:
        """From uniform tables, or from the optima of nearby scores."""
        score, weight = batch.vector(score, "scores"), batch.vector(weight, "weights")
        start = start if self.early is None else None
        tau, slack = np.empty(batch.size), np.empty(batch.size)
        gap = np.full(len(batch), np.inf)
        for graph, members in _together(batch, start):
            where, compiled = batch.index(members), frame(graph)
            eta, w = batch.rows(score, members), batch.rows(weight, members)
            _refuse(graph, w)
            b, z, phase = _begin(graph, batch, members, start)
            short, steps = gap[members], self.steps
            if self.early is not None:
                steps, phase = self.early, np.full(len(members), EARLY)
            examples = CondensedExamples(b.shape[0], b.shape[1], eta, w, b, z, phase, short)
            descend_condensed(compiled, examples, steps, self.tol)
            tau[where], slack[where], gap[members] = b.reshape(-1), z.reshape(-1), short
        return Optima(tau, gap, slack)

    def failed(self, optima: Optima) -> NDArray[np.bool_]:
        """Examples whose beliefs are not what was asked for; those cut short on purpose are."""
        return optima.stalled & (self.early is None)

    def respond(self, batch: Batch[FactorGraph], weight: Array, tau: Array, slope: Array) -> Array:
        """−∂L/∂score at an optimum, ``slope`` being b·∂L/∂b."""
        out, weight = np.empty(batch.size), batch.vector(weight, "weights")
        tau, slope = batch.vector(tau, "tau"), batch.vector(slope, "slopes")
        for graph, members in _together(batch):
            found = np.empty((len(members), graph.size))
            w, b, towards = (batch.rows(part, members) for part in (weight, tau, slope))
            respond_condensed(frame(graph), len(members), w, b, towards, found)
            out[batch.index(members)] = found.reshape(-1)
        return out


@dataclass(frozen=True)
class Newton(Routine):
    """The surrogate log Z of ρ's entropy and its maximiser, in the place of messages.

    A few linear systems per example where messages take many sweeps. log Z is +∞ where beliefs
    are no optimum, so that no line search goes there.
    """

    rho: Rho = None
    inference: Condensed = field(default_factory=Condensed)

    @classmethod
    def serve(cls, entropy: Entropy) -> Newton | None:
        """Free labelled graphs whose factors count, with a concave entropy."""
        graphs = entropy.batch.structures
        free = all(isinstance(g, FactorGraph) and (g.fixed < 0).all() for g in graphs)
        if not free or not entropy.concave or entropy.temperature != 1:
            return None
        parts = zip(graphs, entropy.counting, strict=True)
        positive = all((counts[g.n_nodes :] > 0).all() for g, counts in parts)
        return cls(entropy.rho) if positive else None

    def many(self, batch: Batch[FactorGraph], scores: Array, warm: Any = None) -> Beliefs:
        scores = batch.vector(scores, "scores")
        weight = self.inference.weights(batch, self.rho)
        found = self.inference.minimise(batch, scores, weight, warm)
        inside = scores * found.tau - weight * found.tau * np.log(found.tau)
        log_z = np.where(found.stalled, np.inf, batch.totals(inside))
        return Beliefs(log_z, found.tau, found)

    def pack(self, warm: Optima) -> Tree:
        return tuple(warm)

    def unpack(self, batch: Batch[Any], tree: Tree) -> Optima:
        return recalled(batch, tree)


def recalled(batch: Batch[Any], tree: Tree) -> Optima:
    """The optima of a batch, from a tree."""
    none = np.empty(batch.size)
    return Optima(*like(tree, (none, np.empty(len(batch)), none)))


def _together(batch: Batch[Any], start: Optima | None = None) -> Iterator[tuple[Any, Ints]]:
    """A few examples of one graph; those that need interior points wait for none but each other."""
    slow = np.zeros(len(batch), dtype=bool)
    if start is not None:
        slow = np.maximum.reduceat(start.slack, batch.offsets[:-1]) > 0
    for structure, members in batch.groups():
        for some in (members[slow[members]], members[~slow[members]]):
            for first in range(0, len(some), LANES):
                yield structure, some[first : first + LANES]


def _begin(
    graph: FactorGraph, batch: Batch[Any], members: Ints, start: Optima | None
) -> tuple[Array, Array, Ints]:
    """Beliefs, slacks and phases: uniform tables, the last optima, or interior points again."""
    shape = len(members), graph.size
    if start is None or start.stalled[members].any():
        interior = graph.interior()
        assert interior is not None
        return np.tile(interior, (shape[0], 1)), np.zeros(shape), np.full(shape[0], MAJORISE)
    slack = batch.rows(start.slack, members)
    phase = np.where(slack.any(axis=1), FOLLOW, NEWTON)
    return batch.rows(start.tau, members).copy(), slack.copy(), phase


def _refuse(graph: FactorGraph, weight: Array) -> None:
    first = int(graph.node_start[-1])
    if not (weight[:, first:] > 0).all():
        m, k = (int(one[0]) for one in np.nonzero(~(weight[:, first:] > 0)))
        raise ValueError(
            f"a table entry of factor {graph.table_of[first + k] - graph.n_nodes} has weight "
            f"{weight[m, first + k]:g}; entropies of factors need positive weights"
        )

"""Contrastive free energies: what k steps of relaxation gain when they start at the data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from mlestruct import Batch, FactorGraph
from mlestruct.families.contrastive.belief_optimisation import (
    CLIP,
    STEPS,
    TOL,
    Couplings,
    couplings,
    descend,
    logits,
    tables,
)
from mlestruct.inference.mean_field import compiled, uniform
from mlestruct.inference.routine import Routine
from mlestruct.learning.problem import Objective, Values
from mlestruct.native._door import MessageExamples, relax_products
from mlestruct.storage.trees import Tree
from mlestruct.structures.base import Array


class BeforeAfter(NamedTuple):
    """Where a relaxation began and ended: F_0 and F_k per example, the moments' τ at both."""

    start: Array
    end: Array
    data: Array
    tau: Array
    warm: Any = None


class EnergySteps(Protocol):
    """k steps that never raise a free energy F(τ) ≥ min F, from the batch's target.

    Interface: calling it with (batch, scores, warm) → :class:`BeforeAfter`; ``exact`` tells whether
    its end is a minimum, so that the ends' dependence on the scores does not count. Where ``warm``
    is to go into checkpoints it has ``pack(warm)`` → a tree and ``unpack(batch, tree)``, too.
    """

    @property
    def exact(self) -> bool: ...

    def __call__(self, batch: Batch[Any], scores: Array, warm: Any) -> BeforeAfter: ...


@dataclass(frozen=True)
class Contrastive(Objective):
    """CF = Σ w_m (F_0 − F_k) ≥ 0, with the gradient of k steps held fixed: τ_k − τ_0.

    F_0 is taken at the data, hidden variables relaxed given what was seen, and F_k after k steps
    from there with everything free. A variable is hidden where its table in the batch's target is
    no vertex. Until the relaxation has converged the gradient ignores how its end moves with the
    weights: it is then not the gradient of CF.
    """

    relaxation: EnergySteps

    def __call__(
        self, batch: Batch[Any], heads: Mapping[str, Array], warm: Any, tol: float
    ) -> Values:
        if batch.target is None:
            raise ValueError("a contrastive free energy starts at the data; the batch has none")
        found = self.relaxation(batch, heads["score"], warm)
        gradient = (found.tau - found.data) * batch.weights
        value = float(batch.weight @ (found.start - found.end))
        return Values(value, {"score": gradient}, found.tau, found.warm)

    def pack(self, warm: Any) -> Tree:
        return self.relaxation.pack(warm) if hasattr(self.relaxation, "pack") else None

    def unpack(self, batch: Batch[Any], tree: Tree) -> Any:
        return self.relaxation.unpack(batch, tree)  # type: ignore[attr-defined]


def seen(graph: FactorGraph, rows: Array) -> Any:
    """(examples × variables): whether a variable's table in each row of targets is a vertex."""
    hits = rows[:, : graph.node_start[-1]] == 1
    return np.add.reduceat(hits.astype(np.int64), graph.node_start[:-1], axis=1) == 1


def clamped(batch: Batch[Any]) -> Batch[Any] | None:
    """The examples with all seen labels held fixed; None where no label is hidden."""
    assert batch.target is not None
    hidden = False
    for structure, members in batch.groups():
        rows = batch.rows(batch.target, members)
        if isinstance(structure, FactorGraph):
            hidden |= not seen(structure, rows).all()
        elif not structure.contains(rows).all() or not np.isin(rows, (0, 1)).all():
            kind = type(structure).__name__
            raise ValueError(f"only labelled graphs may have hidden variables, not a {kind}")
    if not hidden:
        return None
    graphs = []
    for m in range(len(batch)):
        graph, target = batch.structure(m), batch.target[batch.coordinates(m)]
        known = seen(graph, target[None])[0]
        graphs.append(graph.clamp(np.where(known, graph.decode(target), -1)))
    return Batch.of(graphs, weight=batch.weight, bias=batch.bias)


@dataclass(frozen=True)
class Limit:
    """F_0 − F_∞ with F_∞ = −log Z, and F_0 = −log Z(clamped) where labels are hidden.

    ``messages`` makes the routine for a batch: mean field gives ML-MF, belief propagation ML-BP.
    Started anywhere, so with cycles it may end above F_0 and CF may be negative.
    """

    messages: Callable[[Batch[Any]], Routine]
    exact: bool = True

    def __call__(self, batch: Batch[Any], scores: Array, warm: Any) -> BeforeAfter:
        assert batch.target is not None
        if warm is None:
            held = clamped(batch)
            warm = self.messages(batch), held, None if held is None else self.messages(held)
        routine, held, given = warm
        end, tau, _ = routine.many(batch, scores)
        start, data = batch.totals(scores * batch.target), batch.target
        if held is not None:
            start, data, _ = given.many(held, scores)
        return BeforeAfter(-np.asarray(start), -end, data, tau, warm)


@dataclass(frozen=True)
class BetheSteps:
    """Binary pairwise graphs: marginals start at |y − ε|, for at 0 and 1 logits are infinite.

    Moments of the data are those of y itself. ``tol`` ends a relaxation early, once no slope by a
    logit is larger. Steps are down the slopes by marginals, or ``by="logits"``, as the paper's,
    which leave 0 and 1 slowly. O(k · edges).
    """

    steps: int = 10
    epsilon: float = 1e-4
    tol: float = 1e-6
    exact: bool = False
    by: Literal["marginals", "logits"] = "marginals"

    def __post_init__(self) -> None:
        if self.by not in ("marginals", "logits"):
            raise ValueError(f"steps are by marginals or logits, not by {self.by!r}")

    def __call__(
        self, batch: Batch[FactorGraph], scores: Array, warm: Couplings | None
    ) -> BeforeAfter:
        assert batch.target is not None
        graph = couplings(batch) if warm is None else warm
        y, z = batch.target[graph.place], batch.target[graph.place - 1]
        known, clamped = (y == 1) | (z == 1), graph.fixed >= 0
        state = np.where(clamped, graph.fixed, np.where(known, y, 0.5))
        a = logits(np.clip(state, self.epsilon, 1 - self.epsilon))
        sharp = CLIP * np.sign(state - 0.5)
        data = batch.target
        if not (known | clamped).all():
            held = known | clamped
            a = descend(graph, scores, a, held, STEPS, TOL).a
            data = tables(graph, scores, np.where(held, sharp, a))
        plain = self.by == "logits"
        found = descend(graph, scores, a, clamped, self.steps, self.tol, plain)
        tau = tables(graph, scores, np.where(clamped, sharp, found.a))
        return BeforeAfter(found.before, found.after, data, tau, graph)


@dataclass(frozen=True)
class MeanFieldSteps:
    """Any labelled graph without forbidden entries, from q = y: no smoothing is needed.

    All nodes move together, a share a of the way to their best responses. Each example has its own
    a: halved, and the sweep taken again, where F would rise, and growing by a tenth, to at most 1,
    otherwise. O(Σ table sizes · order) per sweep.
    """

    steps: int = 10
    exact: bool = False

    def __call__(self, batch: Batch[FactorGraph], scores: Array, warm: Any) -> BeforeAfter:
        assert batch.target is not None
        data, tau = batch.target.copy(), np.empty(batch.size)
        start, end = np.empty(len(batch)), np.empty(len(batch))
        for graph, members in batch.groups():
            rows, part = batch.rows(batch.target, members), np.empty((2, len(members)))
            known = seen(graph, rows)
            told = np.pad(known, [(0, 0), (0, graph.n_factors)])[:, graph.table_of]
            data[batch.index(members)] = np.where(told, rows, uniform(graph)).ravel()
            examples = MessageExamples(len(members), len(scores), batch.offsets[members], scores)
            relax_products(compiled(graph), examples, known, self.steps, data, tau, part)
            start[members], end[members] = part
        return BeforeAfter(start, end, data, tau)

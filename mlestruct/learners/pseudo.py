"""Pseudo-likelihood: every variable given its neighbours' observed states; convex, no inference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mlestruct.batch import Batch
from mlestruct.features import Features
from mlestruct.learners.primal import Primal, refuse, scored
from mlestruct.objectives import Head
from mlestruct.objectives.base import Objective, Values
from mlestruct.reweighting import Rho
from mlestruct.structures.base import Array, Ints
from mlestruct.structures.graph import FactorGraph, only_graphs


class Conditionals(NamedTuple):
    """Scores of all states of the kept variables given the others: G @ scores."""

    G: sp.csr_array
    start: Ints
    table: Ints
    """Every state's place among the kept variables."""
    weight: Array
    observed: Array
    closed: NDArray[np.bool_]
    """Coordinates that the structures forbid."""


@dataclass(frozen=True)
class PseudoLikelihood(Objective):
    """−Σ_m w_m Σ_i log p(y_i | the rest) for labelled graphs with factors of any order.

    A variable is unobserved where its table in the batch's target is no vertex; terms that hold
    an unobserved variable are omitted. O(Σ table sizes · order) once, then O(Σ degree · states).
    """

    exact_gradient: bool = True

    def __call__(
        self, batch: Batch[Any], heads: Mapping[str, Array], warm: Any, tol: float
    ) -> Values:
        parts: Conditionals = conditionals(batch) if warm is None else warm
        score = np.where(parts.closed, -np.inf, heads["score"])
        given = parts.G @ score
        if not len(given):
            return Values(0.0, {"score": np.zeros(batch.size)}, None, parts)
        top = np.maximum.reduceat(given, parts.start)
        p = np.exp(given - top[parts.table])
        total = np.add.reduceat(p, parts.start)
        reached = given[parts.observed > 0]
        value = float(parts.weight[parts.start] @ (top + np.log(total) - reached))
        slope = parts.weight * (p / total[parts.table] - parts.observed)
        return Values(value, {"score": parts.G.T @ slope}, None, parts)


def conditionals(batch: Batch[Any]) -> Conditionals:
    """Which coordinates add up to each state's score, given the observed states around it."""
    assert batch.target is not None
    only_graphs(batch.structures, "pseudo-likelihood")
    rows, columns, states = [], [], []
    closed = np.zeros(batch.size, dtype=bool)
    for structure, members in batch.groups():
        for m in members:
            part, first = batch.coordinates(int(m)), batch.offsets[m]
            at, node, kept = _of(structure, batch.target[part])
            rows.append(first + node)
            columns.append(first + at)
            states.append(first + kept)
            closed[part] = structure.fixed == 0
    own = np.sort(np.concatenate(states))
    place = np.full(batch.size, -1)
    place[own] = np.arange(len(own))
    where = (place[np.concatenate(rows)], np.concatenate(columns))
    G = sp.csr_array((np.ones(len(where[0])), where), shape=(len(own), batch.size))
    start, table = _tables(batch, own)
    weight, nodes = batch.weights[own], batch.counts
    weight = weight if nodes is None else weight * nodes[own]
    return Conditionals(G, start, table, weight, batch.target[own], closed)


def _of(graph: FactorGraph, target: Array) -> tuple[Ints, Ints, Ints]:
    """(coordinate, state whose score it adds to) pairs, and the states of the kept variables."""
    first, n = int(graph.node_start[-1]), graph.n_nodes
    sure = np.bincount(graph.table_of[:first], weights=target[:first] == 1, minlength=n) == 1
    entry, node, slot = graph.below
    arity = np.diff(graph.scope_start)
    seen = np.bincount(np.repeat(np.arange(len(arity)), arity), ~sure[graph.scope], len(arity)) == 0
    kept = sure.copy()
    kept[graph.scope[np.repeat(~seen, arity)]] = False
    wrong = (target[node] != 1).astype(float)
    others = np.bincount(entry, weights=wrong, minlength=graph.size)[entry] - wrong
    use = (others == 0) & kept[graph.scope[slot]]
    own = np.flatnonzero(kept[graph.table_of[:first]])
    return np.concatenate([own, entry[use]]), np.concatenate([own, node[use]]), own


def _tables(batch: Batch[Any], own: Ints) -> tuple[Ints, Ints]:
    """Where each variable's states begin among ``own``, and the variable of each state."""
    if not len(own):
        return own, own
    table = np.concatenate([batch.structure(m).table_of for m in range(len(batch))])
    new = (np.diff(batch.owner[own]) != 0) | (np.diff(table[own]) != 0)
    start = np.flatnonzero(np.r_[True, new])
    return start, np.cumsum(np.r_[False, new])


def _heads(batch: Batch[Any], features: Features) -> dict[str, Head]:
    """Scores, where there is a term to learn from."""
    only_graphs(batch.structures, "pseudo-likelihood")
    assert batch.target is not None
    targets = (batch.target[batch.coordinates(m)] for m in range(len(batch)))
    if not any(len(_of(batch.structure(m), one)[2]) for m, one in enumerate(targets)):
        raise ValueError(
            "no label was seen together with those of all its neighbours, which is what "
            "pseudo-likelihood learns from: use mle_struct, or leave out what was not "
            "seen (unseen='left_out', where labels are missing)"
        )
    return scored(batch, features)


def pseudo_likelihood(
    rho: Rho = None, oracle: Any = None, route: str = "auto", **settings: Any
) -> Primal:
    """Σ_m Σ_i log p(y_i | the rest; θ) − R(θ): consistent where the model is true, and fast.

    Where ties are strong the weights lean on neighbours' labels, which a prediction does not have,
    and ``predict`` by ``map`` may smooth away more than it should, without a warning: compare with
    ``decision="expected"``, or learn by ``mle_struct`` or ``piecewise``.
    It asks no oracle and has no entropy, so it refuses both; ``settings`` are those of
    :class:`Primal`. Where labels are missing, terms of a variable that was not seen or is next to
    one are left out.
    """
    refuse("pseudo_likelihood", route, rho=rho, oracle=oracle)
    words = ("pseudo-likelihood", "not used")
    ends: dict[str, Any] = {"heads": _heads, "partly": "seen", "dear": False, **settings}
    return Primal("pseudo_likelihood", lambda batch: PseudoLikelihood(), *words, **ends)

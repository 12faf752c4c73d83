"""Pseudo-likelihood: no inference at all, and convex, but every label must see its neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mlestruct.batch import Batch
from mlestruct.learners.primal import Primal, refuse
from mlestruct.objectives.pseudo_likelihood import PseudoLikelihood
from mlestruct.reweighting import Rho
from mlestruct.structures import FactorGraph


def pseudo_likelihood(
    rho: Rho = None, oracle: Any = None, route: str = "auto", **settings: Any
) -> Primal:
    """Σ_m Σ_i log p(y_i | the rest; θ) − R(θ): consistent where the model is true, and fast.

    It asks no oracle and has no entropy, so it refuses both; ``settings`` are those of
    :class:`Primal`. Labels may be missing: see ``partly_observed``.
    """
    refuse("pseudo_likelihood", route, rho=rho, oracle=oracle)
    words = ("pseudo-likelihood", "not used")
    return Primal("pseudo_likelihood", lambda batch: PseudoLikelihood(), *words, **settings)


def partly_observed(
    graphs: FactorGraph | Sequence[FactorGraph], outcomes: Sequence[ArrayLike]
) -> Batch[FactorGraph]:
    """A batch whose outcomes have −1 where a label is missing; those tables are 0 in its target.

    Pseudo-likelihood omits every term that holds an unobserved variable; contrastive free
    energies relax it given what was seen.
    """
    states = [np.asarray(outcome) for outcome in outcomes]
    batch = Batch.of(graphs, [np.maximum(one, 0) for one in states])
    target = batch.target
    assert target is not None
    for m, one in enumerate(states):
        graph, part = batch.structure(m), batch.coordinates(m)
        entry, _, slot = graph.below
        hidden = one < 0
        if (one < -1).any():
            raise ValueError(f"example {m}: a state is at least 0, or −1 where it is missing")
        gone = np.zeros(graph.size, dtype=bool)
        gone[: graph.node_start[-1]] = np.repeat(hidden, graph.cards)
        gone[entry[hidden[graph.scope[slot]]]] = True
        target[part] = np.where(gone, 0.0, target[part])
    return batch

"""From a batch and its features to a problem that intervals can be computed for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mlestruct.batch import Batch
from mlestruct.entropy import Entropy
from mlestruct.features import Features
from mlestruct.inference.exact import exact, outcomes
from mlestruct.inference.routine import routine
from mlestruct.reweighting import Rho
from mlestruct.statistics.affordability import MOST, ROOM, total
from mlestruct.statistics.interval import SEARCH, Problem, refusal
from mlestruct.statistics.likelihood import Infer, Likelihood
from mlestruct.statistics.listing import Listed
from mlestruct.statistics.mixtures import Mixtures
from mlestruct.structures import Matching
from mlestruct.structures.base import Array, Ints

PATIENCE = 60.0  # seconds that the exact variance of all scores may take, the search included
QUESTIONS = 10_000  # that finding all answers of a solver of one's own may take
LARGEST = 2_000  # parts of a structure whose marginals are mixtures of an oracle's answers
SMALL, FEW = 8, 105  # nodes and matchings of general graphs that are mixed, as all are listed


def problem(
    batch: Batch[Any],
    features: Features,
    rho: Rho = None,
    *,
    summed: bool = False,
    oracle: Any = None,
    unit: Ints | None = None,
    unit_name: str = "examples",
) -> Problem | str:
    """The likelihood of ``rho``'s surrogate, or (``summed``) the exact one; or why there is none.

    An ``oracle`` of your own may rule outcomes out that the structure allows, so the surrogate is
    that over its answers' hull then. ``unit`` numbers the independent unit of every example, from 0
    (default: each is one).
    """
    d, unit = features.d, np.arange(len(batch)) if unit is None else unit
    if d > MOST or d * d * len(batch) > ROOM:
        room = int(min(MOST, (ROOM / len(batch)) ** 0.5))
        return f"{d} weights are too many to tell apart one by one: {room} at most, of so many data"
    own = likelihood_of(batch, features, rho, summed=summed, oracle=oracle)
    itself = "the weights of the model itself"
    exactly = summed or Entropy.of(batch, rho).bound.kind == "exact"
    if own is not None and exactly:
        return Problem(own, own, unit, unit_name, itself)
    about = "this surrogate's limit: what it would learn from unlimited data, not the true weights"
    if own is not None:
        cost = SEARCH * 2.0 * d * total(batch)
        sums = Likelihood(batch, features, _sums) if cost <= PATIENCE else None
        return Problem(own, sums, unit, unit_name, about)
    if max(structure.size for structure in batch.structures) > LARGEST:
        return f"more than {LARGEST} parts are too many to take slopes of by asking a solver alone"
    model = Likelihood(batch, features, Mixtures(oracle, rho))
    if exactly and (oracle is None or isinstance(oracle, str)):
        return Problem(model, model, unit, unit_name, itself)
    asked = Problem(model, None, unit, unit_name, about)
    if (asked.units == 1 or asked.clustered) and (why := refusal(asked)) is not None:
        return why  # whether all answers can be listed or not: the solver is not asked for them
    answers = Listed.of(batch, oracle, QUESTIONS)
    if answers is None:
        return asked
    model = Likelihood(batch, features, Mixtures(oracle, rho, answers))
    return replace(asked, model=model, exact=Likelihood(batch, features, answers))


def likelihood_of(
    batch: Batch[Any],
    features: Features,
    rho: Rho = None,
    *,
    summed: bool = False,
    oracle: Any = None,
) -> Likelihood | None:
    """By exact sums, or by the routine of ``rho``'s entropy; None where Frank-Wolfe alone serves.

    So it does where an ``oracle`` of your own may have another polytope.
    """
    if summed:
        return Likelihood(batch, features, _sums)
    if oracle is not None and not isinstance(oracle, str):
        return None
    entropy = Entropy.of(batch, rho)
    infer = _mixed(batch, rho) or inference(entropy)
    if infer is None and entropy.bound.kind == "exact" and np.isfinite(total(batch)):
        infer = _sums
    return None if infer is None else Likelihood(batch, features, infer)


def _mixed(batch: Batch[Any], rho: Rho) -> Infer | None:
    """Mixtures of all matchings of small general graphs: quicker than prices of odd sets."""
    answers = {}
    for structure in batch.structures:
        general = isinstance(structure, Matching) and structure.graph.sides is None
        if not general or structure.n_nodes > SMALL or (structure.fixed >= 0).any():
            return None
        answers[structure] = outcomes(structure).astype(float)
        if not 0 < len(answers[structure]) <= FEW:
            return None
    return Mixtures(None, rho, Listed(answers))


def inference(entropy: Entropy) -> Infer | None:
    """The routine of this entropy on any batch of the same structures; None: Frank-Wolfe alone."""
    found = routine(entropy)
    if found is None:
        return None

    def infer(batch: Batch[Any], scores: Array) -> tuple[Array, Array]:
        beliefs = found.many(batch, scores)
        return beliefs.log_z, beliefs.tau

    return infer


def _sums(batch: Batch[Any], scores: Array) -> tuple[Array, Array]:
    found = exact(batch, scores)
    return found.log_z, found.tau

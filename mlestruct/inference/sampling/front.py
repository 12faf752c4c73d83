"""Samples of any structure, by the most faithful sampler that its kind has."""

from __future__ import annotations

from functools import singledispatch

import numpy as np

from mlestruct.inference.exact.common import MEMORY
from mlestruct.inference.exact.treewidth import estimate
from mlestruct.inference.sampling.common import Samples
from mlestruct.inference.sampling.direct import sample
from mlestruct.inference.sampling.gibbs import gibbs
from mlestruct.inference.sampling.perturbed import perturb_and_map
from mlestruct.inference.sampling.swaps import sample_matchings
from mlestruct.oracle.registry import AnyOracle
from mlestruct.structures import BipartiteMatching, FactorGraph, Matching, Paths
from mlestruct.structures.base import Array, Structure


def sampler(
    structure: Structure,
    score: Array,
    count: int,
    rng: np.random.Generator,
    oracle: AnyOracle = None,
) -> Samples:
    """Exact draws where the structure has them, else a Markov chain, else perturbations.

    With an oracle of your own (not the library's, by name) it is perturbations of its problem:
    other samplers know only the structure, not what the oracle adds to it.
    """
    draw = own.dispatch(type(structure))
    by_name = oracle is None or isinstance(oracle, str)
    if by_name and draw is not perturb_and_map:
        return draw(structure, score, count, rng)
    return perturb_and_map(structure, score, count, rng, oracle=oracle)


own = singledispatch(perturb_and_map)
"""The structure's best sampler. Register your own kind of structure here."""


@own.register
def _(structure: Paths, score: Array, count: int, rng: np.random.Generator) -> Samples:
    return sample(structure, score, count, rng)


@own.register
def _(structure: FactorGraph, score: Array, count: int, rng: np.random.Generator) -> Samples:
    if structure.is_forest or estimate(structure).gib <= MEMORY:
        return sample(structure, score, count, rng)
    return gibbs(structure, score, count, rng)


@own.register(BipartiteMatching)
@own.register(Matching)
def _(
    structure: BipartiteMatching | Matching, score: Array, count: int, rng: np.random.Generator
) -> Samples:
    return sample_matchings(structure, score, count, rng)

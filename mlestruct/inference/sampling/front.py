"""Samples of any structure by the most faithful sampler that its kind has, or perturbed."""

from __future__ import annotations

from functools import singledispatch

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mlestruct.batch import Batch
from mlestruct.inference.exact.common import MEMORY
from mlestruct.inference.exact.treewidth import estimate
from mlestruct.inference.sampling.direct import Samples, as_draws, sample
from mlestruct.inference.sampling.gibbs import gibbs
from mlestruct.inference.sampling.swaps import sample_matchings
from mlestruct.inference.scores import as_scores
from mlestruct.oracle import Validated, perturbable, resolve
from mlestruct.oracle.registry import AnyOracle
from mlestruct.structures import BipartiteMatching, FactorGraph, Matching, Paths
from mlestruct.structures.base import Array, Structure


def perturb_and_map(
    structure: Structure,
    score: ArrayLike,
    count: int,
    rng: np.random.Generator,
    *,
    oracle: AnyOracle = None,
) -> Samples:
    """APPROXIMATE samples: the oracle's answers to scores plus independent Gumbel noise.

    Exact only where every outcome has a noise of its own (one variable, no factors; independent
    variables). Elsewhere the law is another one (Papandreou and Yuille, ICCV 2011), and a relaxed
    oracle's fractional answers are decoded. Noise goes to the states of variables in labelled
    graphs, to all coordinates elsewhere, and only where the oracle accepts any score. One oracle
    call a sample, all in one batch.
    """
    values, count = as_scores(structure, score), as_draws(count, structure)
    batch = Batch.of(structure, count=count)
    asked = resolve(oracle, batch)
    noisy = np.tile(perturbed(structure), count)
    mask = perturbable(asked, batch)
    noisy &= True if mask is None else mask
    noise = np.where(noisy, rng.gumbel(size=batch.size), 0.0)
    vertices, _ = Validated(asked).many(batch, np.tile(values, count) + noise)
    rows = vertices.reshape(count, -1)
    whole = np.array([structure.encode(structure.decode(row)) for row in rows])
    how = f"perturb-and-MAP over the {asked.polytope}: an approximation, not the model's own law"
    return Samples(structure, whole, False, how)


def perturbed(structure: Structure) -> NDArray[np.bool_]:
    """The coordinates that get noise."""
    if isinstance(structure, FactorGraph):
        return np.asarray(structure.table_of < structure.n_nodes)
    return np.ones(structure.size, dtype=bool)


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


own.register(Paths, sample)
own.register(BipartiteMatching, sample_matchings)
own.register(Matching, sample_matchings)


@own.register
def _(structure: FactorGraph, score: Array, count: int, rng: np.random.Generator) -> Samples:
    if structure.is_forest or estimate(structure).gib <= MEMORY:
        return sample(structure, score, count, rng)
    return gibbs(structure, score, count, rng)

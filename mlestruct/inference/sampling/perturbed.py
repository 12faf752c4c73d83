"""Samples by solving perturbed problems: any oracle gives them, no theorem says how close."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mlestruct.batch import Batch
from mlestruct.inference.sampling.common import Samples, as_draws
from mlestruct.inference.scores import as_scores
from mlestruct.oracle import Validated, perturbable, resolve
from mlestruct.oracle.registry import AnyOracle
from mlestruct.structures import FactorGraph
from mlestruct.structures.base import Structure


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

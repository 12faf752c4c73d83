"""Contrastive divergence: k sweeps of coloured block Gibbs sampling from the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np

from mlestruct import Batch, FactorGraph
from mlestruct.families.contrastive.objectives.base import BeforeAfter, clamped
from mlestruct.inference.sampling.gibbs import Chain
from mlestruct.structures.base import Array, kept

CLAMPED = 20  # sweeps of hidden variables given what was seen


@dataclass(frozen=True)
class GibbsSteps:
    """CD-k: τ_k is the mean of ``chains`` labellings, k sweeps from the data.

    No free energy is known of samples: F_0 and F_k are mean energies alone, which may rise.
    Noise depends on ``seed`` and the scores only. Where forbidden configurations part the
    labellings, chains stay on their side.
    """

    steps: int = 1
    chains: int = 10
    seed: int = 0
    exact: bool = False

    def __call__(self, batch: Batch[FactorGraph], scores: Array, warm: Any) -> BeforeAfter:
        assert batch.target is not None
        held = clamped(batch) if warm is None else warm[0]
        rng = np.random.default_rng([self.seed, crc32(scores.tobytes())])
        data, tau = np.empty(batch.size), np.empty(batch.size)
        for m in range(len(batch)):
            here = batch.coordinates(m)
            free, score = _chain(batch.structure(m)), scores[here]
            if held is None:
                data[here] = batch.target[here]
                begin = np.tile(free.graph.decode(data[here]), (self.chains, 1))
            else:
                given = _chain(held.structure(m))
                drawn = [given.begin(score, None, rng) for _ in range(self.chains)]
                begin = given.run(score, np.array(drawn), CLAMPED, rng)
                data[here] = given.mean(begin)
            tau[here] = free.mean(free.run(score, begin, self.steps, rng))
        start, end = -batch.totals(scores * data), -batch.totals(scores * tau)
        return BeforeAfter(start, end, data, tau, (held,))


@kept
def _chain(graph: FactorGraph) -> Chain:
    return Chain.of(graph)

"""CF_k-MF and CD-k: k sweeps of mean field, or of Gibbs sampling, from the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np

from mlestruct import Batch, FactorGraph
from mlestruct.families.contrastive.objectives.base import BeforeAfter, clamped, seen
from mlestruct.inference.mean_field import compiled, uniform
from mlestruct.inference.sampling import labelled, random_labelling, swept
from mlestruct.native._door import MessageExamples, SeenNodes, relax_products
from mlestruct.structures.base import Array


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
            full, even = compiled(graph), uniform(graph)
            known = seen(graph, batch.rows(batch.target, members))
            part = np.empty((2, len(members)))
            examples = MessageExamples(len(members), len(scores), batch.offsets[members], scores)
            nodes = SeenNodes(len(members), graph.n_nodes, graph.size, known, even)
            relax_products(full, examples, nodes, self.steps, data, tau, part)
            start[members], end[members] = part
        return BeforeAfter(start, end, data, tau)


HELD = 20  # sweeps of hidden variables given what was seen


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
            free, score = batch.structure(m), scores[here]
            if held is None:
                data[here] = batch.target[here]
                begin = np.tile(free.decode(data[here]), (self.chains, 1))
            else:
                given = held.structure(m)
                drawn = [random_labelling(given, score, rng) for _ in range(self.chains)]
                begin = swept(given, score, np.array(drawn), HELD, rng)
                data[here] = labelled(given, begin).mean(axis=0)
            tau[here] = labelled(free, swept(free, score, begin, self.steps, rng)).mean(axis=0)
        start, end = -batch.totals(scores * data), -batch.totals(scores * tau)
        return BeforeAfter(start, end, data, tau, (held,))

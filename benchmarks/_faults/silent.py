"""Random problems whose answers may be wrong without a word: decoded, warm, in other units."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator

import numpy as np

import mlestruct as ms
from mlestruct.inference import decode
from mlestruct.inference.routine import routine
from mlestruct.structures.entropy import Entropy

NAT = 1e-3  # of a nat or a probability: an answer that much further off, unflagged, is silent


def decoded(seed: int) -> Iterator[str]:
    """Best labellings of frustrated graphs at scores of any size, against lists of all."""
    rng = np.random.default_rng(seed)
    graph = _graph(rng)
    score = 10.0 ** rng.uniform(-3, 6) * rng.normal(size=graph.size)
    score[: graph.node_start[-1]] *= rng.choice([0.0, 1e-6, 0.02, 1.0])
    if rng.random() < 0.2:
        score = np.round(score, -int(np.floor(np.log10(np.abs(score).max()))))  # ties
    found = decode(ms.Batch.of(graph, count=1), score)
    states = itertools.product(*(range(k) for k in graph.cards))
    best = max(float(score @ graph.encode(list(s))) for s in states)
    own = float(score @ graph.encode(found.outcomes[0]))
    if abs(own - found.scores[0]) > min(NAT, 1e-9 * (1.0 + abs(own))):
        yield f"decoded {seed}: says {found.scores[0]}, its outcome scores {own}"
    if found.upper[0] < best - min(NAT, 1e-9 * (1.0 + abs(best))):
        yield f"decoded {seed}: bound {found.upper[0]} below the best score {best}"
    if found.proven[0] and own < best - NAT:
        yield f"decoded {seed}: {own} is called best, which is {best}"


def warmed(seed: int) -> Iterator[str]:
    """Moving scores: a warm answer is the cold one, and its point is worth what it says."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 6))
    kinds = ("perfect", "partial")
    structure = (
        ms.BipartiteMatching(n, n, kind=str(rng.choice(kinds)))
        if rng.random() < 0.5
        else ms.Matching(2 * (n // 2 + 1), kind=str(rng.choice(kinds)))
    )
    batch, rho = ms.Batch.of(structure, count=1), float(rng.choice([0.5, 0.75, 0.95, 1.0]))
    entropy = Entropy.of(batch, rho)
    serves, warm = routine(entropy), None
    assert serves is not None
    for _ in range(4):
        score = 10.0 ** rng.uniform(-3, 2) * rng.normal(size=batch.size)
        went, cold = serves.many(batch, score, warm), serves.many(batch, score)
        worth = entropy.each(went.tau) + batch.totals(score * went.tau)
        for what, value in (("cold", cold.log_z[0]), ("own point", worth[0])):
            if abs(went.log_z[0] - value) > NAT:
                yield f"warmed {seed}: {went.log_z[0]} where its {what} has {value}"
        warm = went.warm


def rescaled(seed: int) -> Iterator[str]:
    """A column in other units: the same predictions, or a warning."""
    rng = np.random.default_rng(seed)
    units = np.array([1.0, 10.0 ** rng.uniform(-8, 8), 10.0 ** rng.uniform(-2, 2)])
    if rng.random() < 0.5:
        X = [rng.normal(size=(4, 4, 3)) for _ in range(5)]
        make, y = ms.MatchingModel, [rng.permutation(4) for _ in X]
    else:
        X = [rng.normal(size=(5, 3)) for _ in range(6)]
        make, y = ms.SequenceModel, [(x[:, 0] + rng.normal(size=5) > 0).astype(int) for x in X]
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        found = [
            np.concatenate(
                [
                    np.ravel(part)
                    for part in make(penalty="standardised", tol=1e-9)
                    .fit([x * scale for x in X], y)
                    .predict_marginals([x * scale for x in X])
                ]
            )
            for scale in (np.ones(3), units)
        ]
    off = float(np.abs(found[0] - found[1]).max())
    if off > NAT and not heard:
        yield f"rescaled {seed}: marginals differ by {off:.2g} in units {units}"


def _graph(rng: np.random.Generator) -> ms.FactorGraph:
    n = int(rng.integers(3, 7))
    edges = [[i, j] for i in range(n) for j in range(i) if rng.random() < 0.8] or [[0, 1]]
    cards = [2] * n if rng.random() < 0.5 else rng.integers(2, 4, size=n).tolist()
    return ms.FactorGraph(cards, edges)

"""What exact sums cost beside what is expected of them: where a learner by them is advised.

One inference of all examples (log Z and marginals), per example, in processor seconds; expected is
:func:`mlestruct.statistics.affordability.seconds`, which decides. A row is met within a factor of
four: where sums are called affordable they then are, and nobody is told that they are not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import mlestruct as ms
from benchmarks._clock import least
from mlestruct.inference.exact import exact
from mlestruct.statistics.affordability import seconds

Row = dict[str, Any]
WITHIN = 4.0


def run(quick: bool) -> Iterator[Row]:
    """Matchings of both kinds, and graphs that are eliminated."""
    for n in (8, 12) if quick else (4, 6, 8, 10, 12):
        for kind in ("perfect", "partial"):
            yield measured(f"bipartite {n}x{n}, {kind}", ms.BipartiteMatching(n, kind=kind))
    yield measured("bipartite 8x30, one-sided", ms.BipartiteMatching(8, 30, "one_sided"))
    for n in (10, 16) if quick else (8, 10, 12, 14, 16):
        yield measured(f"general, {n} nodes", ms.Matching(n))
    for side, states in ((6, 2), (10, 2), (6, 3), (5, 5)):
        yield measured(f"grid {side}x{side}, {states} states", ms.grid(side, side, states))
    chain = ms.FactorGraph([9] * 30, [(i, i + 1) for i in range(29)])
    yield measured("chain of 30, 9 states", chain)


def measured(name: str, structure: Any) -> Row:
    """One kind of example, twenty at a time."""
    batch = ms.Batch.of(structure, count=20)
    scores = np.random.default_rng(0).standard_normal(batch.size)
    taken = least(lambda: exact(batch, scores), 3) / len(batch)
    expected = seconds(structure)
    ratio = expected / taken
    return {
        "benchmark": "exact_sums",
        "workload": name,
        "quantity": "CPU ms per example",
        "ours": 1e3 * taken,
        "peer": 1e3 * expected,
        "peer_name": "expected",
        "ratio": ratio,
        "target": f"ratio within {WITHIN:g}",
        "met": bool(1 / WITHIN <= ratio <= WITHIN),
    }

"""Decoding relaxed answers exactly: what whole answers pay for it, and what fractions get for it.

Whole answers (matchings, attractive grids): CPU seconds of ``decode`` over those of its oracle and
of making outcomes. Fractions (spin glasses, random graphs of three states): the share proven
best, how far a reported score is from its outcome's own, CPU seconds an example, and how many
answers and bounds change when another thread keeps the interpreter busy: budgets are counted, not
timed.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import mlestruct as ms
from benchmarks._clock import least
from mlestruct.inference.decoding import decode
from mlestruct.oracle import Validated, resolve
from mlestruct.structures import FactorGraph

Row = dict[str, Any]
SLOWER, REPEATS = 1.05, 50
EFFORTS = (0.02, 2.0)
Problem = tuple[str, ms.Batch[Any], np.ndarray]


def run(quick: bool) -> Iterator[Row]:
    """One row for each kind of whole answers, four for each kind of fractions and effort."""
    rng, count = np.random.default_rng(0), 5 if quick else 20
    for name, batch, scores in whole(rng, 20 * count):
        ours = least(lambda b=batch, s=scores: decode(b, s), REPEATS)
        peer = least(lambda b=batch, s=scores: alone(b, s), REPEATS)
        yield {**row(name, "CPU s", ours, f"at most {SLOWER:g}", ours <= SLOWER * peer),
               "peer": peer, "peer_name": "oracle and outcomes", "ratio": ours / peer}  # fmt: skip
    for name, batch, scores in fractions(rng, count):
        efforts = EFFORTS[-1:] if name.startswith("spin") else EFFORTS
        for effort in efforts:
            yield from told(f"{name}, effort {effort:g}", batch, scores, effort)


def alone(batch: ms.Batch[Any], scores: np.ndarray) -> list[Any]:
    """An oracle's answers as outcomes, and nothing else."""
    vertices, _ = Validated(resolve(None, batch)).many(batch, scores)
    parts = range(len(batch))
    return [batch.structure(m).decode(vertices[batch.coordinates(m)]) for m in parts]


def whole(rng: np.random.Generator, count: int) -> Iterator[Problem]:
    """Answers that are outcomes as they come."""
    batch = ms.Batch.of(ms.BipartiteMatching(12), count=count)
    yield f"{count} matchings, 12 × 12", batch, rng.normal(size=batch.size)
    graph = ms.grid(12, 12)
    batch = ms.Batch.of(graph, count=count)
    scores = rng.normal(size=batch.size)
    attract = np.tile([0.5, 0.0, 0.0, 0.5], graph.n_factors)
    for m in range(count):
        scores[batch.coordinates(m)][graph.node_start[-1] :] = attract
    yield f"{count} attractive grids, 12 × 12", batch, scores


def fractions(rng: np.random.Generator, count: int) -> Iterator[Problem]:
    """Relaxations that answer with halves: narrow graphs, and wide ones."""
    batch = ms.Batch.of(ms.grid(10, 10), count=count)
    yield f"spin glasses, {count} of 10 × 10", batch, 2.0 * rng.normal(size=batch.size)
    pairs = [(i, j) for i in range(40) for j in range(i) if rng.random() < 0.15]
    batch = ms.Batch.of(FactorGraph([3] * 40, pairs), count=max(count // 5, 1))
    name = f"{len(batch)} random graphs, {len(pairs)} edges"
    yield name, batch, 2.0 * rng.normal(size=batch.size)


def told(name: str, batch: ms.Batch[Any], scores: np.ndarray, effort: float) -> Iterator[Row]:
    """What is known of the answers, and whether a busy interpreter changes any."""
    found = decode(batch, scores, effort=effort)
    with busy():
        again = decode(batch, scores, effort=effort)
    own = [
        scores[batch.coordinates(m)] @ batch.structure(m).encode(outcome)
        for m, outcome in enumerate(found.outcomes)
    ]
    off, changed = float(np.abs(own - found.scores).max()), different(found, again)
    share, narrow = float(found.proven.mean()), name.startswith("spin")
    yield row(name, "proven best", share, "all" if narrow else "", share == 1.0 or not narrow)
    yield row(name, "score off its outcome's own", off, "at most 1e-9", off <= 1e-9)
    yield row(name, "answers another clock changes", changed, "0", changed == 0)
    each = least(lambda: decode(batch, scores, effort=effort), 1) / len(batch)
    yield row(name, "CPU s an example", each, "", True)


def different(one: Any, other: Any) -> int:
    """Outcomes, scores or bounds that are not the same, bit for bit."""
    same = [np.array_equal(a, b) for a, b in zip(one.outcomes, other.outcomes, strict=True)]
    return int(
        (~(np.array(same) & (one.scores == other.scores) & (one.upper == other.upper))).sum()
    )


@contextmanager
def busy() -> Iterator[None]:
    """Another thread that computes without a pause."""
    ended = threading.Event()

    def work() -> None:
        while not ended.is_set():
            sum(range(1000))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def row(workload: str, quantity: str, ours: float, target: str, met: bool) -> Row:
    """One line of the table."""
    known = {"workload": workload, "quantity": quantity, "ours": ours, "target": target, "met": met}
    return {"benchmark": "decoding", **known}

"""Many small examples, end to end in a process of its own: generated, stored, fitted, measured."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import mlestruct as ms
from benchmarks._peak import peak
from mlestruct.data import Stored
from mlestruct.engine import Serial
from mlestruct.learners.streamed import streamed
from mlestruct.oracle import resolve
from mlestruct.structures.base import Structure

# Fixed before the first run: outcomes are the best of true scores plus Gumbel noise.
LENGTH, STATES, NODE_FEATURES = 8, 3, 5
SIDE, PAIR_FEATURES = 8, 4
BLOCK, TOL = 10_000, 1e-3


def chain(shape: tuple[int, ...]) -> Structure:
    return ms.chain(shape[0], STATES)


def matching(shape: tuple[int, ...]) -> Structure:
    return ms.BipartiteMatching(shape[0])


def examples(kind: str, count: int) -> Iterator[tuple[Any, Any]]:
    """(features, outcome), one after the other; a block of them exists at a time."""
    rng = np.random.default_rng(0)
    shape = (LENGTH, NODE_FEATURES) if kind == "chains" else (SIDE, SIDE, PAIR_FEATURES)
    structure = chain(shape[:1]) if kind == "chains" else matching(shape[:2])
    theta: Any = None
    for first in range(0, count, BLOCK):
        some = min(BLOCK, count - first)
        X = rng.standard_normal((some, *shape)).astype(np.float32)
        batch = ms.Batch.of(structure, count=some)
        rows = X.reshape(-1, shape[-1])
        features = (ms.Tied if kind == "chains" else ms.Dense).of(batch, rows)
        theta = rng.standard_normal(features.d) if theta is None else theta
        scores = features.potentials(theta) + rng.gumbel(size=batch.size)
        best, _ = resolve(None, batch).many(batch, scores)
        for m in range(some):
            yield X[m], structure.decode(best[batch.coordinates(m)])


class Clocked:
    """The serial engine, and the processor's seconds of every round."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def start(self, makers: Any) -> Any:
        running = Serial().start(makers)
        whole = running.round

        def clocked(questions: Any) -> Any:
            start = time.process_time()
            answers = whole(questions)
            self.seconds.append(time.process_time() - start)
            return answers

        running.round = clocked
        return running


def measured(kind: str, count: int) -> dict[str, Any]:
    """One end-to-end run."""
    clock = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        structure, features = (chain, ms.Tied.of) if kind == "chains" else (matching, ms.Dense.of)
        stored = Stored.write(
            Path(folder) / "shards", examples(kind, count), structure, features, BLOCK
        )
        written, engine = time.process_time() - clock, Clocked()
        bytes_ = sum(file.stat().st_size for file in stored.folder.iterdir())
        learner = ms.mle_struct(regulariser=1.0, solver=ms.FrankWolfe(tol=TOL, engine=engine))
        *_, last = streamed(learner, stored.sources())
    return {
        "written": written,
        "pass": float(np.median(engine.seconds[2:-1])),  # no survey, nothing compiled, no proof
        "passes": len(engine.seconds),
        "proof": engine.seconds[-1],
        "whole": time.process_time() - clock,
        "gap": last.certificate.relative,
        "disk": bytes_,
        "peak": 1e9 * peak(),
    }


if __name__ == "__main__":
    print(json.dumps(measured(sys.argv[1], int(sys.argv[2]))))

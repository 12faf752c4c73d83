"""What a checkpoint costs: the share of a fit's time that writing takes, at the default rhythm.

Seconds of the clock, the disk's included; the file's size; and how many rounds a kill would cost.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import mlestruct as ms
from mlestruct.checkpoint import Writer
from mlestruct.features import Tied
from mlestruct.inference import best

Row = dict[str, Any]
SHARE, BRIEF = 0.1, 0.5  # of the time; of a fit of a second or two


@dataclass
class Spent:
    """Seconds in ``Writer.write``, and the bytes of the largest file."""

    seconds: list[float] = field(default_factory=list)
    size: int = 0

    def watching(self, write: Callable[[Writer], None]) -> Callable[[Writer], None]:
        def written(writer: Writer) -> None:
            began = time.perf_counter()
            write(writer)
            self.seconds.append(time.perf_counter() - began)
            self.size = max(self.size, writer.path.stat().st_size)

        return written


def run(quick: bool) -> Iterator[Row]:
    """Four rows a workload: share of time, size, rounds a write, seconds a round."""
    small = 10 if quick else 1
    matchings, grids, chains = 100 // small, 20 // small, 4000 // small
    problem = _matchings(matchings, 60)
    yield from _rows(f"Frank-Wolfe, {matchings} matchings n=60", "frank_wolfe", 0.5, problem)
    yield from _rows(f"messages, {grids} grids 30 x 30", "direct", 0.5, _grids(grids, 30))
    yield from _rows(f"chains, {chains} of 20, 9 labels", "direct", None, _chains(chains))


def _rows(workload: str, route: Any, rho: Any, problem: tuple[ms.Batch[Any], Any]) -> Iterator[Row]:
    ms.mle_struct(rho, route=route).fit(*_few(problem))  # compiled
    spent, write = Spent(), Writer.write
    with TemporaryDirectory(dir=Path.cwd()) as folder:
        Writer.write = spent.watching(write)  # type: ignore[method-assign]
        try:
            solver = ms.FrankWolfe(tol=1e-6, rounds=60, checkpoint=Path(folder) / "fit")
            began = time.perf_counter()
            model = ms.mle_struct(rho, route=route, solver=solver).fit(*problem)
            whole = time.perf_counter() - began
        finally:
            Writer.write = write  # type: ignore[method-assign]
    share, most = sum(spent.seconds) / whole, SHARE if whole > 5 else BRIEF
    yield _row(workload, "share of time writing", share, f"<= {most}", share <= most)
    yield _row(workload, "MB of the file", spent.size / 1e6)
    yield _row(workload, "rounds a write", len(model.history) / len(spent.seconds))
    yield _row(workload, "seconds a round", whole / len(model.history))


def _few(problem: tuple[ms.Batch[Any], Any]) -> tuple[ms.Batch[Any], Any]:
    batch, features = problem
    return batch.select([0, 1]), features.select(np.array([0, 1]))


def _matchings(count: int, n: int) -> tuple[ms.Batch[Any], Any]:
    return _drawn(ms.Batch.of(ms.BipartiteMatching(n), count=count))


def _grids(count: int, side: int) -> tuple[ms.Batch[Any], Any]:
    return _drawn(ms.Batch.of(ms.grid(side, side), count=count))


def _drawn(blind: ms.Batch[Any]) -> tuple[ms.Batch[Any], Any]:
    rng = np.random.default_rng(0)
    matrix = rng.standard_normal((blind.size, 6))
    noisy = matrix @ rng.standard_normal(6) + rng.gumbel(size=blind.size)
    outcomes, *_ = best(blind, noisy)
    batch = ms.Batch.of([blind.structure(m) for m in range(len(blind))], outcomes)
    return batch, ms.Dense.of(batch, matrix)


def _chains(count: int) -> tuple[ms.Batch[Any], Any]:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 9, (count, 20))
    X = [rng.standard_normal((20, 60)) + row[:, None] / 9 for row in y]
    batch = ms.Batch.of(ms.chain(20, 9), list(y))
    return batch, Tied.of(batch, X)


def _row(
    workload: str, quantity: str, ours: float, target: str | None = None, met: bool | None = None
) -> Row:
    row = {"workload": workload, "quantity": quantity, "ours": ours, "target": target, "met": met}
    return {"benchmark": "checkpoints", **row}

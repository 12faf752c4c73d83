"""Two workers against one, what an engine costs per round, and data that memory does not hold.

*speed-up* is (caller's + busiest worker's processor time) of one worker over that of two: what idle
cores would show. *wall* is the clock's word in the same runs, to be read with the load beside it.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.frank_wolfe import Timed, bipartite, general, grids
from mlestruct.dual import Dual
from mlestruct.engine import Dask, Engine, Processes, Serial
from mlestruct.frank_wolfe import FrankWolfe
from mlestruct.inference.routine import routine
from mlestruct.method import Progress
from mlestruct.oracle import resolve
from mlestruct.train.direct import direct

Row = dict[str, Any]
Fit = Callable[[Engine], Progress]
LEAST = 1.7  # two workers against one
THETA = 100_000  # floats of θ where rounds without work are measured


def row(workload: str, quantity: str, ours: float, **rest: Any) -> Row:
    """One line of the table."""
    return {
        "benchmark": "scaling",
        "workload": workload,
        "quantity": quantity,
        "ours": float(ours),
        **rest,
    }


@dataclass(frozen=True)
class Taken:
    """A fit's hash, its seconds by the clock, and by processors on the longest way."""

    result: str
    wall: float
    path: float


class Measured:
    """An engine whose running shards can be looked at from outside."""

    def __init__(self, engine: Processes | Dask) -> None:
        self.engine = engine
        self.pids: list[int] = []

    def start(self, makers: Any) -> Any:
        running = self.engine.start(makers)
        if isinstance(self.engine, Dask):
            self.pids = list(self.engine.client.run(os.getpid).values())
        else:
            self.pids = [place.host.pid for place in running.places]
        return running

    def busy(self) -> dict[int, float]:
        """Seconds each worker has had a processor."""
        return {pid: _processor(pid) for pid in self.pids}


def _processor(pid: int) -> float:
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9


def oracle_route(dual: Dual, oracle: Any, rounds: int) -> Fit:
    """Rounds of Frank-Wolfe: the calls go out, the steps stay with the caller."""
    return lambda engine: FrankWolfe(tol=0.0, rounds=rounds, engine=engine).solve(
        dual, resolve(oracle, dual.batch)
    )


def direct_route(dual: Dual, rounds: int) -> Fit:
    """Iterations of L-BFGS through marginals, and the certificate."""
    messages = routine(dual.entropy)
    assert messages is not None

    def fit(engine: Engine) -> Progress:
        *_, last = direct(
            dual,
            resolve(None, dual.batch),
            messages,
            FrankWolfe(tol=0.0, rounds=rounds, engine=engine),
        )
        return last

    return fit


def taken(fit: Fit, engine: Measured) -> Taken:
    """After a first run that starts workers and compiles, one that is measured."""
    fit(engine)
    before, own, clock = engine.busy(), time.process_time(), time.perf_counter()
    state = fit(engine)
    wall, own = time.perf_counter() - clock, time.process_time() - own
    busiest = max(after - before.get(pid, 0.0) for pid, after in engine.busy().items())
    known = hashlib.sha256(state.theta.tobytes() + state.tau.tobytes())
    return Taken(known.hexdigest()[:12], wall, own + busiest)


def two_against_one(workload: str, fit: Fit, repeats: int) -> Iterator[Row]:
    """Alternated runs on both engines; the least of each counts."""
    makes: dict[str, Callable[[int], Processes | Dask]] = {
        "processes": lambda workers: Processes(workers=workers),
        "dask": lambda workers: Dask(workers=workers),
    }
    hashes = set()
    for name, make in makes.items():
        runs: dict[int, list[Taken]] = {1: [], 2: []}
        for _ in range(repeats):
            for workers, found in runs.items():
                engine = make(workers)
                found.append(taken(fit, Measured(engine)))
                engine.close()
        hashes |= {one.result for found in runs.values() for one in found}
        one, two = (min(one.path for one in runs[k]) for k in (1, 2))
        yield row(
            workload, f"speed-up, {name}", one / two, peer=one, peer_name="s of one worker",
            target=f"≥ {LEAST}", met=one / two >= LEAST,
        )  # fmt: skip
        one, two = (min(one.wall for one in runs[k]) for k in (1, 2))
        load = f"s; load {os.getloadavg()[0]:.1f}"
        yield row(workload, f"wall speed-up, {name}", one / two, peer=one, peer_name=load)
    yield row(workload, "different results", len(hashes), target="= 1", met=len(hashes) == 1)


class Nothing:
    """A shard that answers at once, as much as it is asked."""

    def __call__(self, question: Any) -> Any:
        return question[:1000]

    def memory(self) -> None:
        return None

    def remember(self, tree: None) -> None:
        pass


def overhead(name: str, engine: Processes | Dask, rounds: int = 200) -> Row:
    """Milliseconds of a round without work, the median by the clock."""
    theta, seconds = np.zeros(THETA), []
    with closing(engine.start([Nothing] * 8)) as running:
        for _ in range(rounds):
            start = time.perf_counter()
            running.round([theta] * 8)
            seconds.append(time.perf_counter() - start)
    engine.close()
    return row(
        f"8 shards without work, θ of {THETA:,}", f"ms per round, {name}, 2 workers",
        1e3 * float(np.median(seconds)), peer_name=f"load {os.getloadavg()[0]:.1f}",
    )  # fmt: skip


def million(kind: str, counts: tuple[int, ...]) -> Iterator[Row]:
    """What one more example costs per pass, from one size to the next, and the peak of memory."""
    found = []
    for count in counts:
        command = [sys.executable, "-m", "benchmarks._million", kind, str(count)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found.append(json.loads(done.stdout))
        one, workload = found[-1], f"{count:,} stored {kind}"
        yield row(workload, "s of a pass", one["pass"])
        yield row(workload, "s of the whole: written, fitted, proven", one["whole"])
        yield row(workload, "passes", one["passes"])
        yield row(workload, "relative gap", one["gap"], target="≤ 0.001", met=one["gap"] <= 1e-3)
        yield row(workload, "MB of memory at the peak", one["peak"] / 1e6)
        yield row(workload, "MB on disk", one["disk"] / 1e6)
    ends = zip(counts, counts[1:], found, found[1:], strict=False)
    marginal = [(two["pass"] - one["pass"]) / (n - m) for m, n, one, two in ends]
    each = [found[0]["pass"] / counts[0], *marginal]
    spread = max(each) / min(each) - 1.0
    for count, seconds in zip(counts, each, strict=True):
        yield row(
            f"up to {count:,} stored {kind}", "µs of one more example per pass", 1e6 * seconds
        )
    yield row(
        f"{counts[0]:,} to {counts[-1]:,} stored {kind}", "spread of these", spread,
        target="≤ 0.2", met=spread <= 0.2,
    )  # fmt: skip


def growth(rounds: int = 10) -> Iterator[Row]:
    """µs per example and round of both routes, and of the oracle alone, as each size is doubled."""
    sizes = [(200, 10, 10), (800, 10, 10), (3200, 10, 10), (200, 20, 10), (200, 40, 10)]
    for count, n, d in [*sizes, (200, 10, 40), (200, 10, 160)]:
        dual = bipartite(0, 1.0, n, count, d)
        oracle = Timed(resolve(None, dual.batch), 0.0)
        routes = {
            "direct": direct_route(dual, rounds),
            "by oracle": oracle_route(dual, oracle, rounds),
        }
        for name, fit in routes.items():
            fit(Serial())
            oracle.calls, oracle.seconds, start = 0, 0.0, time.process_time()
            fit(Serial())
            each = 1e6 * (time.process_time() - start) / (count * (rounds + 1))
            workload = f"{count} assignments n={n}, d={d}"
            yield row(workload, f"µs per example and round, {name}", each)
        yield row(workload, "of it in the oracle", 1e6 * oracle.seconds / oracle.calls)


def run(quick: bool) -> Iterator[Row]:
    """Quick: smaller examples, fewer of them, and each engine once."""
    yield from growth()
    for kind in ("chains", "matchings"):
        yield from million(kind, (10_000, 40_000) if quick else (10_000, 100_000, 1_000_000))
    for name, engine in (("processes", Processes(workers=2)), ("dask", Dask(workers=2))):
        yield overhead(name, engine)
    few, side, repeats = (60, 40, 1) if quick else (100, 100, 2)
    fit = direct_route(grids(0, side, few, 10, 5), 10 if quick else 3)
    yield from two_against_one(f"{few} grids {side}×{side}, direct", fit, repeats)
    count, n = (40, 100) if quick else (200, 100)
    fit = direct_route(bipartite(0, 1.0, n, count, 10), 20)
    yield from two_against_one(f"{count} assignments n={n}, direct", fit, repeats)
    n = 40 if quick else 100
    dual = general(0, n, count, 10)
    for name, oracle, rounds in (("networkx", "networkx_matching", 1), ("our blossom", None, 20)):
        fit, often = oracle_route(dual, oracle, rounds), 1 if oracle else repeats
        yield from two_against_one(f"{count} matchings n={n}, {name}", fit, often)

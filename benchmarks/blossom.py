"""The blossom kernel against rustworkx, networkx and LEMON on complete graphs, in one run.

Ours is the whole call: checks, search, duals and the recomputed weight. A peer is timed without
building its graph and without a proof. Every answer is compared with the peer's weight.
"""

import importlib
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from mlestruct_oracles.blossom import perfect_matching, prove
from mlestruct_oracles.blossom_sparse import perfect_matching_priced

QUESTIONS, LEVELS = 14, 5
TARGETS = {300: 30.0, 1000: 50.0, 2400: 100.0}  # times faster than rustworkx
LEMON_TARGET = 5.0

LEMON_DRIVER = r"""
#include <chrono>
#include <cstdio>
#include <vector>
#include <lemon/matching.h>
#include <lemon/smart_graph.h>
int main(int, char **args) {
  long n = atol(args[2]);
  std::vector<double> w(n * n);
  FILE *file = fopen(args[1], "rb");
  if (!file || fread(w.data(), 8, n * n, file) != size_t(n * n)) return 1;
  lemon::SmartGraph graph;
  lemon::SmartGraph::EdgeMap<double> weight(graph);
  for (long i = 0; i < n; ++i) graph.addNode();
  for (long i = 0; i < n; ++i)
    for (long j = i + 1; j < n; ++j)
      weight[graph.addEdge(graph.nodeFromId(i), graph.nodeFromId(j))] = w[i * n + j];
  auto start = std::chrono::steady_clock::now();
  lemon::MaxWeightedPerfectMatching<lemon::SmartGraph, lemon::SmartGraph::EdgeMap<double>>
      solver(graph, weight);
  if (!solver.run()) return 2;
  std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  printf("%.9f %.17g\n", seconds.count(), solver.matchingWeight());
}
"""


def one_hot(n: int, seed: int) -> np.ndarray:
    """The answers of n students to 14 questions with 5 levels, one column per answer."""
    answers = np.random.default_rng(seed).integers(0, LEVELS, (n, QUESTIONS))
    hot = np.zeros((n, QUESTIONS * LEVELS))
    hot[np.arange(n)[:, None], answers + LEVELS * np.arange(QUESTIONS)] = 1.0
    return hot


def ordinal_table(seed: int) -> np.ndarray:
    """Minus the absolute difference of each question's levels: whole numbers, many ties."""
    level = np.arange(LEVELS)
    return np.kron(np.eye(QUESTIONS), -np.abs(level[:, None] - level).astype(float))


def learned_table(seed: int) -> np.ndarray:
    """One symmetric table of weights per question, as a fitted model has: no ties."""
    table = np.zeros((QUESTIONS * LEVELS,) * 2)
    rng = np.random.default_rng(seed + 1)
    for first in range(0, len(table), LEVELS):
        block = rng.normal(scale=0.25, size=(LEVELS, LEVELS))
        table[first : first + LEVELS, first : first + LEVELS] = block + block.T
    return table


WORKLOADS = {"14 ordinal questions (ties)": ordinal_table, "learned weights": learned_table}


def scores(n: int, table: np.ndarray, seed: int) -> np.ndarray:
    hot = one_hot(n, seed)
    weights = hot @ table @ hot.T
    return (weights + weights.T) / 2


def median_seconds(call: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """The median time of some calls after one that may compile, and an answer."""
    answer = call()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return float(np.median(seconds)), answer


def by_rustworkx(
    weights: np.ndarray, clock: Callable[[], float] = time.perf_counter
) -> tuple[float, float]:
    """Seconds and weight; it takes integers only, so reals are scaled to below 2**50."""
    rustworkx = importlib.import_module("rustworkx")
    n = len(weights)
    whole = np.array_equal(weights, np.rint(weights))
    scale = 1.0 if whole else 2.0 ** (49 - np.ceil(np.log2(np.abs(weights).max())))
    u, v = np.triu_indices(n, 1)
    graph = rustworkx.PyGraph()
    graph.add_nodes_from(range(n))
    units = np.rint(weights[u, v] * scale).astype(int).tolist()
    graph.add_edges_from(list(zip(u.tolist(), v.tolist(), units, strict=True)))
    start = clock()
    pairs = rustworkx.max_weight_matching(
        graph, max_cardinality=True, weight_fn=int, verify_optimum=False
    )
    return clock() - start, sum(float(weights[a, b]) for a, b in pairs)


def by_networkx(weights: np.ndarray) -> tuple[float, float]:
    networkx = importlib.import_module("networkx")
    graph = networkx.from_numpy_array(np.triu(weights - weights.min() + 1.0, 1))
    start = time.perf_counter()
    pairs = networkx.max_weight_matching(graph, maxcardinality=True)
    return time.perf_counter() - start, sum(float(weights[a, b]) for a, b in pairs)


def by_lemon(weights: np.ndarray) -> tuple[float, float]:
    """Compiled where g++ finds LEMON (Debian: liblemon-dev), and thrown away afterwards."""
    if shutil.which("g++") is None:
        raise ImportError("no g++")
    with tempfile.TemporaryDirectory() as folder:
        source, program, data = (Path(folder) / name for name in ("a.cc", "a.out", "weights"))
        source.write_text(LEMON_DRIVER)
        build = ["g++", "-O3", "-w", source, "-o", program]
        for library in ("-llemon", "-lemon"):  # Debian's name, LEMON's own
            if subprocess.run([*build, library], capture_output=True).returncode == 0:
                break
        else:
            raise ImportError("g++ finds no LEMON")
        weights.tofile(data)
        call = [program, data, str(len(weights))]
        printed = subprocess.run(call, capture_output=True, check=True, text=True).stdout
    seconds, weight = map(float, printed.split())
    return seconds, weight


PEERS = {"rustworkx": by_rustworkx, "LEMON": by_lemon, "networkx": by_networkx}
NETWORKX_LARGEST = 300  # minutes beyond


def row(workload: str, quantity: str, ours: float, **rest: Any) -> dict[str, Any]:
    """One line of the report; the ratio says how many times better ours is."""
    peer, target = rest.get("peer"), rest.get("target")
    ratio = None if peer is None else peer / ours
    return {
        "benchmark": "blossom",
        "workload": workload,
        "quantity": quantity,
        "ours": ours,
        "peer": peer,
        "peer_name": rest.get("peer_name"),
        "ratio": ratio,
        "target": target,
        "met": None if target is None or ratio is None else ratio >= target,
    }


def against_peers(name: str, weights: np.ndarray, absent: set[str]) -> Iterator[dict[str, Any]]:
    n = len(weights)
    workload = f"{name}, n={n}"
    seconds, matching = median_seconds(lambda: perfect_matching(weights), 5)
    bound = 1e-12 * n * np.abs(weights).max()
    assert prove(weights, matching) <= bound, "the duals do not prove the answer"
    for peer, solve in PEERS.items():
        if peer in absent or (peer == "networkx" and n > NETWORKX_LARGEST):
            continue
        try:
            peer_seconds, weight = solve(weights)
        except ImportError as error:
            absent.add(peer)
            print(f"blossom: {peer} skipped: {error}", file=sys.stderr)
            continue
        assert abs(weight - matching.weight) <= max(bound, 1e-9), f"{peer}: {weight}"
        target = {"rustworkx": TARGETS[n], "LEMON": LEMON_TARGET}.get(peer)
        against = {"peer": peer_seconds, "peer_name": peer, "target": target}
        yield row(workload, "seconds", seconds, **against)


def against_cold(name: str, weights: np.ndarray) -> Iterator[dict[str, Any]]:
    """A warm start after one per cent of noise against a cold one."""
    n = len(weights)
    noise = np.random.default_rng(1).normal(scale=0.01 * weights.std(), size=(n, n))
    new = weights + (noise + noise.T) / 2**0.5
    old = perfect_matching(weights)
    warm, _ = median_seconds(lambda: perfect_matching(new, warm=old), 5)
    cold, _ = median_seconds(lambda: perfect_matching(new), 5)
    workload = f"{name}, n={n}, 1 % noise"
    yield row(workload, "seconds, warm", warm, peer=cold, peer_name="own cold start")


def by_pricing(name: str, table: np.ndarray, n: int) -> Iterator[dict[str, Any]]:
    """A complete graph that is never held; its gap is certified."""
    left, right = one_hot(n, 0) @ table, one_hot(n, 0).T
    start = time.perf_counter()
    matching = perfect_matching_priced(n, lambda first, last: left[first:last] @ right)
    yield row(f"{name}, n={n}, priced", "seconds", time.perf_counter() - start)
    yield row(f"{name}, n={n}, priced", "certified gap", matching.gap)


def run(quick: bool) -> Iterable[dict[str, Any]]:
    """Yield a row per workload, size and peer; quick leaves out the minutes of n = 2,400."""
    absent: set[str] = set()
    for n in (300, 1000) if quick else (300, 1000, 2400):
        for name, table in WORKLOADS.items():
            weights = scores(n, table(0), seed=0)
            yield from against_peers(name, weights, absent)
            yield from against_cold(name, weights)
    for name, table in WORKLOADS.items():
        yield from by_pricing(name, table(0), 2000 if quick else 12_000)


if __name__ == "__main__":
    for result in run("--quick" in sys.argv):
        print(result)

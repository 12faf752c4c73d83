"""The blossom kernel against rustworkx, networkx and LEMON, in one run.

On complete graphs and on sparse ones. Ours is the whole call: checks, search, duals and the
recomputed weight. A peer is timed without building its graph and without a proof. Every answer is
compared with the peer's weight.
"""

import importlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from mlestruct_oracles.blossom import (
    perfect_matching,
    perfect_matching_sparse,
)
from scipy.spatial import Delaunay

QUESTIONS, LEVELS = 14, 5
TARGETS = {300: 30.0, 1000: 50.0, 2400: 100.0}  # times faster than rustworkx
LEMON_TARGET = 5.0

LEMON_DRIVER = r"""
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>
#include <lemon/matching.h>
#include <lemon/smart_graph.h>
static double seconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec + 1e-9 * now.tv_nsec;
}
int main(int, char **args) {
  size_t n = atol(args[2]), m = atol(args[3]);
  std::vector<long> ends(2 * m);
  std::vector<double> w(m);
  FILE *file = fopen(args[1], "rb");
  if (!file || fread(ends.data(), 8, 2 * m, file) != 2 * m || fread(w.data(), 8, m, file) != m)
    return 1;
  lemon::SmartGraph graph;
  lemon::SmartGraph::EdgeMap<double> weight(graph);
  for (size_t i = 0; i < n; ++i) graph.addNode();
  for (size_t k = 0; k < m; ++k)
    weight[graph.addEdge(graph.nodeFromId(ends[2 * k]), graph.nodeFromId(ends[2 * k + 1]))] = w[k];
  double least = 1e300, value = 0.0;
  for (int repeat = 0; repeat < 3; ++repeat) {
    double start = seconds();
    lemon::MaxWeightedPerfectMatching<lemon::SmartGraph, lemon::SmartGraph::EdgeMap<double>>
        solver(graph, weight);
    if (!solver.run()) return 2;
    if (seconds() - start < least) least = seconds() - start;
    value = solver.matchingWeight();
  }
  printf("%.9f %.17g\n", least, value);
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
        start = time.process_time()
        call()
        seconds.append(time.process_time() - start)
    return float(np.median(seconds)), answer


def by_rustworkx(
    weights: np.ndarray, clock: Callable[[], float] = time.process_time
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
    start = time.process_time()
    pairs = networkx.max_weight_matching(graph, maxcardinality=True)
    return time.process_time() - start, sum(float(weights[a, b]) for a, b in pairs)


def by_lemon(weights: np.ndarray) -> tuple[float, float]:
    ends = np.stack(np.triu_indices(len(weights), 1), axis=1)
    return by_lemon_sparse(len(weights), ends, weights[ends[:, 0], ends[:, 1]])


def by_lemon_sparse(n: int, ends: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    """The least processor seconds of three runs, and the weight.

    Compiled where g++ finds LEMON, and thrown away afterwards; LEMON_FLAGS says where it is, if not
    where Debian's liblemon-dev puts it: ``-Isource source/lemon/base.cc``.
    """
    if shutil.which("g++") is None:
        raise ImportError("no g++")
    with tempfile.TemporaryDirectory() as folder:
        source, program, data = (Path(folder) / name for name in ("a.cc", "a.out", "edges"))
        source.write_text(LEMON_DRIVER)
        build = ["g++", "-O3", "-w", source, "-o", program]
        own = os.environ.get("LEMON_FLAGS")
        for flags in [own.split()] if own else (["-llemon"], ["-lemon"]):
            if subprocess.run([*build, *flags], capture_output=True).returncode == 0:
                break
        else:
            raise ImportError("g++ finds no LEMON")
        data.write_bytes(ends.astype(np.int64).tobytes() + weights.astype(float).tobytes())
        call = [program, data, str(n), str(len(weights))]
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
    assert matching.gap <= bound, "the duals do not prove the answer"
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


def joined_pairings(n: int, degree: int, rng: np.random.Generator) -> np.ndarray:
    """The edges of so many random perfect matchings: almost regular, and one is perfect."""
    pairs = [np.sort(rng.permutation(n).reshape(-1, 2), axis=1) for _ in range(degree)]
    return np.unique(np.concatenate(pairs), axis=0)


def triangulation(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The edges of a Delaunay triangulation of random points, and their lengths."""
    points = rng.random((n, 2))
    corners = Delaunay(points).simplices.astype(np.int64)
    edges = np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [0, 2]]])
    edges = np.unique(np.sort(edges, axis=1), axis=0)
    return edges, np.linalg.norm(points[edges[:, 0]] - points[edges[:, 1]], axis=1)


def sparse_graphs(n: int) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(n)
    for degree in (4, 10):
        edges = joined_pairings(n, degree, rng)
        yield f"{degree}-regular", edges, rng.random(len(edges))
    edges, lengths = triangulation(n, rng)
    yield "Delaunay, shortest", edges, -lengths
    yield "Delaunay, random", edges, rng.random(len(edges))


def of_sparse(n: int, absent: set[str]) -> Iterator[dict[str, Any]]:
    """Processor seconds of the whole call against LEMON's search, and the proven gap."""
    for name, edges, weights in sparse_graphs(n):
        spent = []
        for _ in range(4):
            start = time.thread_time()
            matching = perfect_matching_sparse(n, edges, weights)
            spent.append(time.thread_time() - start)
        against: dict[str, Any] = {}
        try:
            peer, weight = by_lemon_sparse(n, edges, weights)
            assert abs(weight - matching.weight) <= 1e-9 * n, f"LEMON: {weight}"
            against = {"peer": peer, "peer_name": "LEMON", "target": 1.0}
        except ImportError as error:
            if "LEMON" not in absent:
                print(f"blossom: LEMON skipped: {error}", file=sys.stderr)
            absent.add("LEMON")
        workload = f"{name}, n={n}"
        yield row(workload, "CPU seconds", min(spent[1:]), **against)
        yield row(workload, "proven gap", matching.gap)


def run(quick: bool) -> Iterable[dict[str, Any]]:
    """Yield a row per workload, size and peer; quick leaves out the minutes of n = 2,400."""
    absent: set[str] = set()
    for n in (300, 1000) if quick else (300, 1000, 2400):
        for name, table in WORKLOADS.items():
            weights = scores(n, table(0), seed=0)
            yield from against_peers(name, weights, absent)
    for n in (1000, 10_000) if quick else (1000, 10_000, 100_000):
        yield from of_sparse(n, absent)


if __name__ == "__main__":
    for result in run("--quick" in sys.argv):
        print(result)

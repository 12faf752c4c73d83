"""How time grows: exponents of every oracle and inference by coordinates, of learners by examples.

A power law is fitted to the CPU time of three sizes, the least of a few calls each. ``target`` is
the stated cost (docs/complexity.md) with ``ROOM`` for what is constant, for caches and for noise;
where the stated cost is a worst case, what is measured is usually less. Learners run for ``ROUNDS``
rounds or until they have converged.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from mlestruct.batch import Batch
from mlestruct.entropy import Entropy
from mlestruct.features import Tied
from mlestruct.frank_wolfe import FrankWolfe
from mlestruct.inference.exact import exact_log_z
from mlestruct.inference.routine import routine
from mlestruct.learners import LEARNERS, perceptron
from mlestruct.oracle import load
from mlestruct.structures import (
    BipartiteMatching,
    BMatching,
    Custom,
    Flow,
    Ising,
    Matching,
    Paths,
    chain,
    grid,
)

ROOM, ROUNDS = 0.3, 12
Row = dict[str, Any]
Make = Callable[[int], Any]


def layered(side: int) -> list[tuple[int, int]]:
    """Arcs of ``side`` layers of eight nodes, each to all of the next, and a way in and out."""
    inner = [
        (8 * k + i, 8 * k + 8 + j) for k in range(side - 1) for i in range(8) for j in range(8)
    ]
    last = 8 * side
    ways = [(last, i) for i in range(8)] + [(last - 8 + i, last + 1) for i in range(8)]
    return inner + ways


def paths(side: int) -> Paths:
    return Paths(layered(side), 8 * side, 8 * side + 1)


def flow(side: int) -> Flow:
    return Flow(layered(side), {8 * side: (0, 4), 8 * side + 1: (-4, 0)})


def planar(side: int) -> Ising:
    return Ising(side * side, grid(side, side).scope.reshape(-1, 2))


def groups(side: int) -> Custom:
    return Custom(5 * side, exactly_one=[range(5 * k, 5 * k + 5) for k in range(side)])


# name: (structure of a size, sizes, stated exponent by coordinates or None)
ORACLES: dict[str, tuple[Make, tuple[int, int, int], float | None]] = {
    "assignment": (BipartiteMatching, (40, 80, 160), 1.5),
    "b_matching": (lambda n: BMatching(n, capacity=2), (10, 20, 40), 3.0),
    "blossom": (Matching, (50, 100, 200), 1.5),
    "cp_sat": (lambda n: grid(n, n, 3), (3, 4, 6), None),
    "graph_cut": (lambda n: grid(n, n), (20, 40, 80), None),
    "linear_program": (lambda n: grid(n, n, 3), (4, 8, 16), None),
    "min_cost_flow": (flow, (20, 40, 80), 3.0),
    "networkx_matching": (Matching, (12, 24, 48), 1.5),
    "planar_ising": (planar, (6, 12, 24), 3.0),
    "qpbo": (lambda n: grid(n, n), (20, 40, 80), None),
    "shortest_path": (paths, (50, 200, 800), 1.0),
    "simplices": (groups, (100, 400, 1600), 1.0),
    "trw_s": (lambda n: grid(n, n, 4), (10, 20, 40), None),
    "viterbi": (lambda n: chain(n, 10), (50, 200, 800), 1.0),
}
INFERENCE: dict[str, tuple[Make, tuple[int, int, int], float | None, float]] = {
    "forward-backward": (lambda n: chain(n, 10), (50, 200, 800), 1.0, 1.0),
    "path sums": (paths, (50, 200, 800), 1.0, 1.0),
    "sum-product, TRW grid": (lambda n: grid(n, n, 3), (8, 16, 32), None, 1.0),
    "scaling, bipartite ρ=½": (BipartiteMatching, (30, 60, 120), 0.5, 1.5),
    "matching messages, bipartite ρ=1": (BipartiteMatching, (30, 60, 120), 1.0, 1.0),
    "scaling, general ρ=½": (Matching, (50, 100, 200), 0.5, 1.0),
}


def run(quick: bool) -> Iterator[Row]:
    """Everything; quick: learners by examples only, and no oracle that takes a second."""
    for name, (make, sizes, stated) in ORACLES.items():
        if not (quick and name in ("cp_sat", "linear_program", "networkx_matching")):
            kind = "attractive" if name == "graph_cut" else "any"
            yield fitted(f"oracle {name}, {kind} score", asking(name, make), sizes, stated)
    for name, (make, sizes, rho, stated) in INFERENCE.items():
        yield fitted(f"inference {name}", inferring(make, rho), sizes, stated)
    yield fitted("exact log Z, binary grids, by side", sides, (6, 9, 12), None)
    for name in LEARNERS:
        yield fitted(f"learner {name}, by examples", learning(name), (20, 80, 320), 1.0)
        if not quick:
            by_features = learning(name, examples=80)
            yield fitted(f"learner {name}, by features", by_features, (20, 80, 320), 1.0)


def fitted(
    name: str, timed: Callable[[int], tuple[float, float]], sizes: Any, stated: float | None
) -> Row:
    """The slope of log seconds over log size."""
    size, seconds = np.log([timed(n) for n in sizes]).T
    slope = float(np.polyfit(size, seconds, 1)[0])
    return {
        "benchmark": "growth",
        "workload": name,
        "quantity": f"exponent; {1e3 * np.exp(seconds[-1]):.3g} ms at {np.exp(size[-1]):.0f}",
        "ours": slope,
        "target": None if stated is None else f"≤ {stated:g} + {ROOM:g}",
        "met": None if stated is None else bool(slope <= stated + ROOM),
    }


def least(call: Callable[[], Any], enough: float = 0.05) -> float:
    """The least CPU time of calls that take ``enough`` together, three at least, one to warm up."""
    call()
    taken: list[float] = []
    while len(taken) < 3 or (sum(taken) < enough and len(taken) < 100):
        clock = time.process_time()
        call()
        taken.append(time.process_time() - clock)
    return max(min(taken), 1e-7)


def asking(name: str, make: Make) -> Callable[[int], tuple[float, float]]:
    def timed(n: int) -> tuple[float, float]:
        structure = make(n)
        batch = Batch.of(structure, count=1)
        scores = np.random.default_rng(n).standard_normal(batch.size)
        if name == "graph_cut":
            pairs = scores[structure.node_start[-1] :].reshape(-1, 2, 2)
            pairs[:] = np.abs(pairs) * np.array([[1.0, -1.0], [-1.0, 1.0]])
        return structure.size, least(lambda: load(name).many(batch, scores))

    return timed


def inferring(make: Make, rho: float | None) -> Callable[[int], tuple[float, float]]:
    def timed(n: int) -> tuple[float, float]:
        batch = Batch.of(make(n), count=1)
        scores = np.random.default_rng(n).standard_normal(batch.size)
        messages = routine(Entropy.of(batch, rho))
        assert messages is not None
        return batch.size, least(lambda: messages.many(batch, scores))

    return timed


def sides(n: int) -> tuple[float, float]:
    """Exponential in the side: the exponent grows with it."""
    structure = grid(n, n)
    scores = np.random.default_rng(n).standard_normal(structure.size)
    return n, least(lambda: exact_log_z(structure, scores))


def learning(name: str, examples: int = 0) -> Callable[[int], tuple[float, float]]:
    """Seconds of a brief fit on chains of eight binary variables."""

    def timed(n: int) -> tuple[float, float]:
        count, p = (examples, n) if examples else (n, 20)
        rng, structure = np.random.default_rng(0), chain(8, 2)
        batch = Batch.of(structure, list(rng.integers(0, 2, (count, 8))))
        features = Tied.of(batch, rng.standard_normal((count * 8, p)))

        def fit() -> Any:
            if name == "perceptron":
                return perceptron(epochs=ROUNDS).fit(batch, features)
            solver = FrankWolfe(tol=0.0, rounds=ROUNDS)
            return LEARNERS[name](regulariser=1.0, solver=solver).fit(batch, features)

        return n, least(fit)

    return timed

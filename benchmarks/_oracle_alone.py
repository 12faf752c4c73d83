"""Learning with nothing but an oracle: one workload by one method, in a process of its own.

``python _oracle_alone.py WORKLOAD METHOD`` prints, for certified relative gaps of 1e-1, 1e-2 and
1e-3, calls per example, CPU seconds, and those of them in the solver. It runs with whatever
``mlestruct`` and ``benchmarks`` are first on the path, so that an older checkout can be measured.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import mlestruct as ms
from benchmarks import frank_wolfe as made
from benchmarks._follow import follow
from mlestruct.oracle import Counted, resolve

LEVELS = (1e-1, 1e-2, 1e-3)
MOST = 400  # rounds, or passes


class Work(NamedTuple):
    """Examples, their solver (None: the library's), λ, ρ and the rounds at most."""

    batch: Any
    features: Any
    solver: Callable[..., Any] | None = None
    alpha: float = 1.0
    rho: float | None = None


def of(dual: Any, alpha: float = 1.0, rho: float | None = None) -> Work:
    """A workload of the other benchmark."""
    return Work(dual.batch, dual.features, None, alpha, rho)


def knapsack(items: int, count: int = 60) -> Work:
    """Sizes up to 29, half of them fit; five features an item."""
    rng = np.random.default_rng(0)
    sizes = rng.integers(5, 30, items).tolist()
    room = sum(sizes) // 2

    def best(score: Any) -> Any:
        value, taken = np.zeros(room + 1), np.zeros((items, room + 1), dtype=bool)
        for item, size in enumerate(sizes):
            more = value[: room + 1 - size] + score[item]
            taken[item, size:] = more > value[size:]
            value = np.concatenate([value[:size], np.maximum(value[size:], more)])
        chosen, left = np.zeros(items), int(np.argmax(value))
        for item in reversed(range(items)):
            if taken[item, left]:
                chosen[item], left = 1.0, left - sizes[item]
        return chosen

    return observed(ms.Custom(items), best, count, 5, rng)


def tour(cities: int, count: int = 10) -> Work:
    """Tours by the dynamic program of Held and Karp; four features a road."""
    rng, full = np.random.default_rng(0), 1 << (cities - 1)
    roads = [(i, j) for i in range(cities) for j in range(i + 1, cities)]
    road = np.zeros((cities, cities), dtype=int)
    for number, (i, j) in enumerate(roads):
        road[i, j] = road[j, i] = number
    sets = np.arange(full)
    size = np.array([bin(one).count("1") for one in sets])

    def best(score: Any) -> Any:
        worth, last = score[road], cities - 1
        between = worth[1:, 1:].copy()
        np.fill_diagonal(between, -np.inf)
        value, came = np.full((full, last), -np.inf), np.zeros((full, last), dtype=int)
        value[1 << np.arange(last), np.arange(last)] = worth[0, 1:]
        for visited in range(1, last):
            here = sets[size == visited]
            steps = value[here][:, :, None] + between
            before, reached = steps.argmax(axis=1), steps.max(axis=1)
            for j in range(last):
                free = (here >> j & 1) == 0
                value[here[free] | 1 << j, j] = reached[free, j]
                came[here[free] | 1 << j, j] = before[free, j]
        out, left = np.zeros(len(roads)), full - 1
        j = int(np.argmax(value[left] + worth[0, 1:]))
        out[road[0, j + 1]] = 1.0
        while left != 1 << j:
            i = came[left, j]
            out[road[i + 1, j + 1]] = 1.0
            left, j = left ^ 1 << j, i
        out[road[0, j + 1]] = 1.0
        return out

    return observed(ms.Custom(len(roads)), best, count, 4, rng)


def observed(structure: Any, best: Any, count: int, p: int, rng: Any) -> Work:
    """Outcomes are best for normal weights of normal features, plus Gumbel."""
    X, theta = rng.standard_normal((count, structure.size, p)), rng.standard_normal(p)
    outcomes = [best(x @ theta + rng.gumbel(size=structure.size)) for x in X]
    batch = ms.Batch.of(structure, outcomes)
    return Work(batch, ms.Dense.of(batch, X.reshape(-1, p)), best)


def alignment(declared: bool, count: int = 20) -> Work:
    """Two sequences of lengths that differ, aligned by one's own program; four features a move."""
    rng, solvers, paths = np.random.default_rng(3), {}, []
    for n, m in ((12, 12), (10, 14), (9, 11)):
        moves = [
            (i * (m + 1) + j, (i + a) * (m + 1) + j + b)
            for i in range(n + 1)
            for j in range(m + 1)
            for a, b in ((1, 0), (0, 1), (1, 1))
            if i + a <= n and j + b <= m
        ]
        paths.append(ms.Paths(moves, 0, (n + 1) * (m + 1) - 1))
        solvers[len(moves)] = moves

    def best(score: Any) -> Any:
        moves = solvers[len(score)]
        value, came = [-1e300] * (moves[-1][1] + 1), [0] * (moves[-1][1] + 1)
        value[0] = 0.0
        for number, ((tail, head), worth) in enumerate(zip(moves, score.tolist(), strict=True)):
            if value[tail] + worth > value[head]:
                value[head], came[head] = value[tail] + worth, number
        out, node = np.zeros(len(moves)), moves[-1][1]
        while node:
            out[came[node]], node = 1.0, moves[came[node]][0]
        return out

    theta = np.array([1.0, -1.0, 0.7, -0.3])
    structures = [paths[k % 3] for k in range(count)]
    X = [rng.standard_normal((one.size, 4)) for one in structures]
    chosen = [best(x @ theta + rng.gumbel(size=len(x))) for x in X]
    if declared:
        outcomes = [one.decode(v) for one, v in zip(structures, chosen, strict=True)]
        batch = ms.Batch.of(structures, outcomes)
    else:
        blind = {one.size: ms.Custom(one.size) for one in paths}
        batch = ms.Batch.of([blind[one.size] for one in structures], chosen)
    return Work(batch, ms.Dense.of(batch, np.concatenate(X)), best)


WORK: dict[str, Callable[[], Work]] = {
    "12 grids 12×12, α = .1": lambda: of(made.grids(0, 12, 12, 3), 0.1),
    "12 grids 12×12, α = .01": lambda: of(made.grids(0, 12, 12, 3), 0.01),
    "12 grids 12×12, α = 1": lambda: of(made.grids(0, 12, 12, 3)),
    "20 grids 20×20, α = 1": lambda: of(made.grids(0, 20, 20, 3)),
    "chains 20 × 10 states, M = 50": lambda: of(made.chains(0)),
    "bipartite n=30, peaked": lambda: of(made.bipartite(0, 1.0), 1.0, 0.5),
    "bipartite n=30, diffuse": lambda: of(made.bipartite(0, 0.13), 1.0, 0.5),
    "general n=20": lambda: of(made.general(0), 1.0, 0.5),
    "knapsack of 12, own solver": lambda: knapsack(12),
    "knapsack of 30, own solver": lambda: knapsack(30),
    "TSP of 12 cities, Held-Karp": lambda: tour(12),
    "alignment, own program, blind": lambda: alignment(False),
    "the same, declared as Paths": lambda: alignment(True),
}
DIRECT = tuple(WORK)[:8]  # those with messages of the library's own
MARGIN = (  # those learned by max-margin too
    "12 grids 12×12, α = .1",
    "chains 20 × 10 states, M = 50",
    "bipartite n=30, peaked",
    "knapsack of 30, own solver",
    "TSP of 12 cities, Held-Karp",
)


def run(work: Work, method: str, rounds: int, tol: float, timed: Any, told: Any) -> Any:
    """The last round of a fit that tells of all, every question to the solver timed."""
    settings: dict[str, Any] = {"oracle": timed, "route": "frank_wolfe"}
    if method == "direct":
        settings, tol, rounds = {}, 1e-4, 1000
    solver = ms.FrankWolfe(tol=tol, rounds=rounds, shards=1)
    if method == "bcfw":
        solver = ms.BCFW(tol=tol, rounds=rounds)
    if method.startswith("margin"):
        solver = ms.FrankWolfe(tol=tol, rounds=rounds, shards=1, centre=method == "margin")
        margin = ms.ssvm(regulariser=work.alpha, solver=solver, oracle=timed)
        return follow(margin, work.batch, work.features, told)
    learner = ms.mle_struct(work.rho, regulariser=work.alpha, solver=solver, **settings)
    return follow(learner, work.batch, work.features, told)


def measured(name: str, method: str, rounds: int) -> dict[str, Any]:
    """Level → (calls per example, CPU seconds, of these in the solver); what it ended at."""
    work = WORK[name]()
    run(work, method, 2, 0.0, _timed(work), lambda state: None)  # kernels are loaded or compiled
    timed, reached, began = _timed(work), {}, time.process_time()

    def told(state: Any) -> None:
        spent = time.process_time() - began
        for level in (1e-4,) if method == "direct" else LEVELS:
            if state.certificate.relative <= level and str(level) not in reached:
                reached[str(level)] = state.calls / len(work.batch), spent, timed.seconds

    state = run(work, method, rounds, LEVELS[-1], timed, told)
    spent = time.process_time() - began
    ended = state.certificate.relative, state.calls / len(work.batch), spent, timed.seconds
    return {"reached": reached, "ended": ended}


class Timed(Counted):
    """The processor's seconds in a solver; what is checked of its answers is the library's time.

    The same for every checkout, and asked for twice a round: the processor's clock is slow.
    """

    def many(self, batch: Any, scores: Any) -> Any:
        start = time.process_time()
        answers = self.oracle.many(batch, scores)
        self.seconds += time.process_time() - start
        return answers


def _timed(work: Work) -> Any:
    return Timed(resolve(work.solver, work.batch))


if __name__ == "__main__":
    print(json.dumps(measured(sys.argv[1], sys.argv[2], int(sys.argv[3]))))

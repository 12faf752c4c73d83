"""The Frank-Wolfe core against plain block Frank-Wolfe with exact line search, in one run.

Calls are oracle calls, one per example. *sub* is the true error relative to an optimum found
without Frank-Wolfe (scaling and L-BFGS); *gap* the certificate, relative to the objective. Where
plain Frank-Wolfe does not get there, its budget stands in for its calls: a lower bound.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment, minimize

from mlestruct.features import Dense, Tied
from mlestruct.learning.dual import Dual
from mlestruct.learning.frank_wolfe import FrankWolfe
from mlestruct.learning.regulariser import Regulariser
from mlestruct.oracle import Counted, resolve
from mlestruct.structures import BipartiteMatching, Matching, chain, grid
from mlestruct.structures.base import Array
from mlestruct.structures.batch import Batch
from mlestruct.structures.entropy import Entropy

BUDGET = 128_640  # calls at which plain Frank-Wolfe is stopped on bipartite matchings
Row = dict[str, Any]


def bipartite(seed: int, spread: float, n: int = 30, count: int = 50, d: int = 60) -> Dual:
    """Features spread · N(0, 1), weights N(0, 1) / spread; outcomes: best plus Gumbel."""
    rng = np.random.default_rng(seed)
    X = spread * rng.standard_normal((count, n, n, d))
    theta = rng.standard_normal(d) / spread
    tables = (x @ theta + rng.gumbel(size=(n, n)) for x in X)
    outcomes = [linear_sum_assignment(table, maximize=True)[1] for table in tables]
    return _dual(Batch.of(BipartiteMatching(n), outcomes), X, 0.5)


def general(seed: int, n: int = 20, count: int = 20, d: int = 60) -> Dual:
    """Perfect matchings of a complete graph, generated as the bipartite ones."""
    rng = np.random.default_rng(seed)
    structure = Matching(n)
    X = rng.standard_normal((count, structure.size, d))
    theta = rng.standard_normal(d)
    empty = Batch.of(structure, count=count)
    scores = (X @ theta + rng.gumbel(size=(count, structure.size))).ravel()
    found, _ = resolve(None, empty).many(empty, scores)
    outcomes = [structure.decode(found[empty.coordinates(m)]) for m in range(count)]
    return _dual(Batch.of(structure, outcomes), X, 0.5)


def grids(seed: int, side: int = 10, count: int = 20, p: int = 10, sweeps: int = 30) -> Dual:
    """Binary grids, p node features, a weight per pair of states; Gibbs samples."""
    rng = np.random.default_rng(seed)
    structure = grid(side, side)
    nodes = rng.standard_normal((count, side, side, p))
    field, agree = nodes @ rng.standard_normal(p) / 2, 0.5
    y = rng.integers(0, 2, (count, side, side))
    black = np.indices((side, side)).sum(axis=0) % 2 == 0
    for _ in range(sweeps):
        for half in (black, ~black):
            sign = np.pad(2.0 * y - 1.0, ((0, 0), (1, 1), (1, 1)))
            near = sign[:, :-2, 1:-1] + sign[:, 2:, 1:-1] + sign[:, 1:-1, :-2] + sign[:, 1:-1, 2:]
            odds = 1.0 / (1.0 + np.exp(-field - agree * near))
            y = np.where(half, rng.random(y.shape) < odds, y)
    batch = Batch.of(structure, list(y.reshape(count, -1)))
    features = Tied.of(batch, nodes.reshape(-1, p))
    entropy = Entropy.of(batch)
    return Dual(batch, features, entropy, Regulariser.of(features.d, 1.0))


def _dual(batch: Batch[Any], X: Array, rho: float) -> Dual:
    d = X.shape[-1]
    features = Dense.of(batch, X.reshape(-1, d))
    return Dual(batch, features, Entropy.of(batch, rho), Regulariser.of(d, 1.0))


def optimum(dual: Dual, n: int) -> float:
    """The bipartite optimum at ρ = ½, λ = 1 without Frank-Wolfe: L-BFGS, Σ log Z by scaling."""
    count, matrix = len(dual.batch), dual.features.matrix  # type: ignore[attr-defined]
    left = np.ones((count, n))

    def loss(theta: Array) -> tuple[float, Array]:
        nonlocal left
        scores = (matrix @ theta).reshape(count, n, n)
        top = scores.max(axis=(1, 2))
        table = np.exp(scores - top[:, None, None])
        for _ in range(2000):
            right = 1.0 / np.einsum("mij,mi->mj", table, left)
            sums = np.einsum("mij,mj->mi", table, right) * left
            left = left / sums
            if np.abs(sums - 1.0).max() < 1e-10:
                break
        right = 1.0 / np.einsum("mij,mi->mj", table, left)
        log_z = n * top.sum() - np.log(left).sum() - np.log(right).sum()
        tau = table * left[:, :, None] * right[:, None, :]
        value = log_z + 0.5 * theta @ theta - dual.observed @ theta
        return float(value), theta + tau.ravel() @ matrix - dual.observed

    start = np.zeros(dual.features.d)
    return -float(minimize(loss, start, jac=True, method="L-BFGS-B", options={"ftol": 1e-14}).fun)


@dataclass
class Trace:
    """When a run first reached each accuracy, in calls; and where the time went."""

    sub: dict[float, int]
    gap: dict[float, int]
    calls: int
    core: float  # seconds outside the oracle per second in it


def trace(
    dual: Dual,
    best: float | None,
    stop: Callable[[Trace], bool],
    calls: int,
    *,
    slow: float = 0.0,
    given: Any = None,
    **options: Any,
) -> Trace:
    """Run until ``stop`` or out of calls; the clock is the processor's: neighbours don't count."""
    oracle = Timed(resolve(given, dual.batch), slow)
    seen = Trace({}, {}, 0, 0.0)
    began = time.process_time()

    def told(state: Any) -> bool:
        proof = state.certificate
        seen.calls = state.calls
        for level in (1e-1, 1e-2, 1e-3):
            if proof.relative <= level:
                seen.gap.setdefault(level, state.calls)
            if best is not None and proof.objective - best <= level * abs(best):
                seen.sub.setdefault(level, state.calls)
        return stop(seen)

    solver = FrankWolfe(tol=0.0, rounds=calls, calls=calls, shards=1, **options)
    if hasattr(solver, "limits"):
        solver.solve(dual, oracle, told=told)
    else:  # an earlier checkout
        any(map(told, solver.run(dual, oracle)))
    seen.core = (time.process_time() - began - oracle.seconds) / oracle.seconds
    return seen


class Timed(Counted):
    """Counts processor time, and works ``slow`` seconds more on every example."""

    def __init__(self, oracle: Any, slow: float) -> None:
        super().__init__(oracle)
        self.slow = slow

    def many(self, batch: Batch[Any], scores: Array) -> tuple[Array, Array]:
        start = time.process_time()
        answers = self.oracle.many(batch, scores)
        if self.slow:
            until = time.process_time() + self.slow * len(batch)
            while time.process_time() < until:
                pass
        self.seconds += time.process_time() - start
        self.calls += len(batch)
        return answers


def row(
    workload: str,
    quantity: str,
    ours: float,
    peer: float | None = None,
    peer_name: str = "plain block Frank-Wolfe",
    most: float | None = None,
    limit: float | None = None,
) -> Row:
    """``most``: the largest allowed ours / peer; ``limit``: the largest allowed ours."""
    ratio = None if peer is None else ours / peer
    target, met = None, None
    if most is not None and ratio is not None:
        target, met = f"ratio ≤ {most:g}", bool(ratio <= most)
    if limit is not None:
        target, met = f"< {limit:g}", bool(ours < limit)
    return {
        "benchmark": "frank_wolfe",
        "workload": workload,
        "quantity": quantity,
        "ours": float(ours),
        "peer": peer,
        "peer_name": peer_name if peer is not None else None,
        "ratio": ratio,
        "target": target,
        "met": met,
    }


def _median(values: Iterable[float | None]) -> float:
    return float(np.median([np.inf if v is None else v for v in values]))  # None: never reached


def against_plain(
    workload: str,
    duals: list[Dual],
    bests: list[float | None],
    level: float,
    budget: int,
    most: float | None,
    limit: float | None = None,
) -> Iterator[Row]:
    """Calls to a true error (where the optimum is known) or gap, and to gap 1e-3."""
    known = bests[0] is not None
    kind = "sub" if known else "gap"
    last = 1e-3 if limit is not None else level
    cap = int(limit or budget)
    pairs = list(zip(duals, bests, strict=True))
    ours = [
        trace(dual, best, lambda t: last in t.gap and level in getattr(t, kind), cap)
        for dual, best in pairs
    ]
    plain = [
        trace(dual, best, lambda t: level in getattr(t, kind), budget, step="block", centre=False)
        for dual, best in pairs
    ]
    reached = [getattr(t, kind).get(level) for t in plain]
    short = sum(value is None for value in reached)
    name = "plain block Frank-Wolfe"
    name += f" (≥: {short} of {len(plain)} not there)" if short else ""
    yield row(
        workload,
        f"calls to {kind} {level:g}",
        _median(getattr(t, kind).get(level) for t in ours),
        _median(budget if value is None else value for value in reached),
        name,
        most,
    )
    if limit is not None:
        yield row(
            workload, "calls to gap 0.001", _median(t.gap.get(1e-3) for t in ours), limit=limit
        )


def overhead(workload: str, dual: Dual, solver: Any, name: str, calls: int) -> Iterator[Row]:
    """The core's time in times of the oracle's, and of a call of 1 ms more."""

    def never(_: Trace) -> bool:
        return False

    trace(dual, None, never, 600)  # compiles
    for text, slow, limit in (("defaults", 0.0, None), ("defaults, oracle + 1 ms", 1e-3, 0.1)):
        few = calls // 4 if slow else calls
        share = trace(dual, None, never, few, slow=slow, given=solver)
        yield row(workload, f"core time / {name} time, {text}", share.core, limit=limit)


def scipys(score: Any) -> Any:
    """n = 30; our own kernel takes a third of its time, which would make the core look slow."""
    return linear_sum_assignment(score.reshape(30, 30), maximize=True)[1]


def chains(seed: int, count: int = 50, length: int = 20, states: int = 10, p: int = 10) -> Dual:
    """Random labels, tied features."""
    rng, structure = np.random.default_rng(seed), chain(length, states)
    batch = Batch.of(structure, list(rng.integers(0, states, (count, length))))
    features = Tied.of(batch, rng.standard_normal((count * length, p)))
    return Dual(batch, features, Entropy.of(batch), Regulariser.of(features.d, 1.0))


def run(quick: bool) -> Iterator[Row]:
    """Ten seeds; quick: two, and plain Frank-Wolfe stopped as soon as the target is decided."""
    seeds = range(2 if quick else 10)
    for name, spread, most, limit in (("", 1.0, 0.4, 35_000.0), (", diffuse", 0.13, None, None)):
        if quick and limit is None:
            continue
        duals = [bipartite(seed, spread) for seed in seeds]
        bests: list[float | None] = [optimum(dual, 30) for dual in duals]
        budget = BUDGET // 4 if quick else BUDGET
        workload = f"bipartite n=30, M=50, d=60{name}"
        yield from against_plain(workload, duals, bests, 1e-3, budget, most, limit)
    few = seeds[: 1 if quick else 5]
    for workload, make, budget, most in (
        ("general matching n=20, M=20, d=60", general, 17_500, 0.35),
        ("10×10 grids, M=20", grids, 130_000, 0.1),
    ):
        duals = [make(seed) for seed in few]
        budget = min(budget, 50_000) if quick else budget
        yield from against_plain(workload, duals, [None] * len(duals), 1e-2, budget, most)
    yield from overheads(4_000 if quick else 40_000)


def overheads(calls: int) -> Iterator[Row]:
    """Every structure with its own oracle; matchings with scipy's."""
    matching = "bipartite n=30, M=50, d=60"
    yield from overhead(matching, bipartite(0, 1.0), scipys, "scipy's", calls)
    for workload, dual, name in (
        ("general matching n=20, M=20, d=60", general(0), "blossom's"),
        ("10×10 grids, M=20", grids(0), "QPBO's"),
        ("chains of 20 × 10 states, M=50", chains(0), "Viterbi's"),
    ):
        yield from overhead(workload, dual, None, name, calls)

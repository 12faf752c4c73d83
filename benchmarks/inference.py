"""Message passing on factor graphs: speed, strong grids, a learned grid model.

Peers' messages per second are stored numbers of an earlier run beside ours, not of this one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import mlestruct as ms
from benchmarks._clock import least
from mlestruct.inference.sum_product import SumProduct
from mlestruct.structures.entropy import Entropy

Row = dict[str, Any]

# Messages per second are variable-factor edges × sweeps over the CPU time of the whole call.
SWEEPS = 1000
LIBDAI = {None: 2.1, 1.0: 4.9}  # millions; TRW and BP
WANTED = {2: 120.0, 5: 25.0, 10: 15.0, 21: 8.0}  # millions, by states

# Strong grids, fixed before their first run and not changed since: 10×10, spins ±1, fields
# uniform in ±FIELD, couplings uniform in ±J, numpy default_rng(seed), fields drawn first.
STRONG_J = (2.0, 4.0, 8.0)
FIELD = 0.5
STRONG_SEEDS = (101, 102, 103, 104, 105)
CERTIFIED = 1e-6


def run(quick: bool) -> Iterator[Row]:
    """Every part; ``quick`` leaves out large grids and most files."""
    sides = [(20, states) for states in WANTED]
    sides = sides if quick else [(10, 2), (100, 2), *sides, (50, 5), (50, 21)]
    for side, states in sides:
        for rho in (None, 1.0):
            yield speed(side, states, rho)
    for strength in STRONG_J:
        yield strong(strength)
    yield learned()


def row(workload: str, quantity: str, ours: float, **rest: Any) -> Row:
    """One line of the table."""
    return {
        "benchmark": "inference",
        "workload": workload,
        "quantity": quantity,
        "ours": ours,
        **rest,
    }


def speed(side: int, states: int, rho: float | None) -> Row:
    """A fixed number of sweeps over one grid, tables, repair and damping included: none is enough,
    so messages are damped from the fortieth sweep on.
    """
    graph = ms.grid(side, side, states)
    batch = ms.Batch.of(graph, count=1)
    scores = 0.3 * np.random.default_rng(0).standard_normal(batch.size)
    entropy = Entropy.of(batch, rho, allow_nonconvex=True)
    routine = SumProduct.of(entropy, residual=-1.0, sweeps=SWEEPS, takeover=False)
    taken = least(lambda: routine.many(batch, scores), 3)
    ours = 2 * graph.n_factors * SWEEPS / taken / 1e6
    target, peer = WANTED[states], LIBDAI[rho] if states == 2 else None
    return row(
        f"grid {side}x{side}, {states} states, {'BP' if rho == 1 else 'TRW'}",
        "million messages/s",
        ours,
        peer=peer,
        peer_name=None if peer is None else "libDAI (stored)",
        ratio=None if peer is None else ours / peer,
        target=f">= {target:g}",
        met=ours >= target,
    )


def strong(strength: float) -> Row:
    """The worst certified relative gap over the seeds."""
    graph, worst = ms.grid(10, 10), 0.0
    for seed in STRONG_SEEDS:
        rng = np.random.default_rng(seed)
        field = rng.uniform(-FIELD, FIELD, graph.n_nodes)
        coupling = rng.uniform(-strength, strength, graph.n_factors)
        nodes = np.stack([-field, field], axis=1).ravel()
        edges = np.stack([coupling, -coupling, -coupling, coupling], axis=1).ravel()
        batch = ms.Batch.of(graph, count=1)
        found = ms.marginals(batch, np.concatenate([nodes, edges]))
        worst = max(worst, found.certificate.relative)
    name = f"strong 10x10, J={strength:g}, {len(STRONG_SEEDS)} seeds"
    target = f"<= {CERTIFIED:g}"
    return row(name, "worst relative gap, TRW", worst, target=target, met=worst <= CERTIFIED)


def learned() -> Row:
    """20 grids of 20×20 with tied features, to a certified relative gap of 1e-6."""
    rng = np.random.default_rng(0)
    X, w = rng.standard_normal((20, 400, 5)), rng.standard_normal(5)
    labels = [(x @ w + rng.standard_normal(400) > 0).astype(int) for x in X]
    batch = ms.Batch.of(ms.grid(20, 20), labels)
    features = ms.Tied.of(batch, X.reshape(-1, 5))
    learner = ms.mle_struct(regulariser=1.0, solver=ms.FrankWolfe(tol=1e-6))
    taken = least(lambda: learner.fit(batch, features), 3)
    gap = learner.fit(batch, features).certificate.relative
    return row(
        f"learning 20x20, M=20, certified {gap:.1e}",
        "CPU s",
        taken,
        target="gap <= 1e-6",
        met=gap <= 1e-6,
    )

"""Random problems small enough to list every outcome, and what listing says of the answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.special import logsumexp

import mlestruct as ms
from mlestruct.errors import Infeasible
from mlestruct.inference import best
from mlestruct.inference.bounds import log_z_interval
from mlestruct.oracle import HULL, Validated, resolve
from mlestruct.structures import Structure
from mlestruct.structures.base import Array
from mlestruct.testing import vertices

TOL = 1e-6  # relative: what rounding and an oracle's own tolerance may explain
STEPS = ("pairwise", "block")


def faults(seed: int) -> list[str]:
    """What is wrong with the answers to one random problem; nothing if all is right."""
    rng = np.random.default_rng(seed)
    structure = drawn(rng)
    listed = vertices(structure)
    score = rng.choice([0.3, 1.0, 5.0]) * rng.standard_normal(structure.size)
    name = f"seed {seed}, {type(structure).__name__}"
    if len(listed) == 0:
        return [f"{name}: {why}" for why in _impossible(structure, score)]
    checks = (_best, _exact, _marginals, _learning)
    return [f"{name}: {why}" for check in checks for why in check(structure, listed, score, rng)]


def drawn(rng: np.random.Generator) -> Structure:
    """A structure of up to some hundred outcomes; now and then one without any."""
    make = (_bipartite, _general, _labelled, _paths, _custom)[rng.integers(5)]
    return make(rng)


def _bipartite(rng: np.random.Generator) -> Structure:
    kind = ("perfect", "one_sided", "partial")[rng.integers(3)]
    rows = int(rng.integers(2, 5))
    columns = rows if kind == "perfect" else rows + int(rng.integers(2))
    shut = np.argwhere(rng.random((rows, columns)) < 0.2).tolist()
    return ms.BipartiteMatching(rows, columns, kind, forbidden=shut)


def _general(rng: np.random.Generator) -> Structure:
    n = int(rng.choice([4, 5, 6]))
    pairs = np.stack(np.triu_indices(n, 1), axis=1)
    edges = pairs[np.sort(rng.permutation(len(pairs))[: int(rng.integers(3, 11))])]
    return ms.Matching(n, edges, ("perfect", "partial")[rng.integers(2)])


def _labelled(rng: np.random.Generator) -> Structure:
    chosen = rng.integers(4)
    if chosen == 0:
        return ms.chain(int(rng.integers(1, 5)), int(rng.integers(2, 4)))
    if chosen == 1:
        return ms.grid(2, int(rng.integers(2, 4)))
    if chosen == 2:
        parents = [(int(rng.integers(i)), i) for i in range(1, 5)]
        return ms.tree(parents, rng.integers(1, 4, 5))
    return ms.FactorGraph([2, 2, 3], [(0, 1, 2), (0, 1)])


def _paths(rng: np.random.Generator) -> Structure:
    n = int(rng.integers(3, 6))
    arcs = [(i, j) for i in range(n) for j in range(i + 1, n) if rng.random() < 0.7]
    return ms.Paths([*arcs, (0, n - 1)], 0, n - 1)


def _custom(rng: np.random.Generator) -> Structure:
    size = int(rng.integers(2, 7))
    cut = int(rng.integers(1, size + 1))
    return ms.Custom(size, exactly_one=[range(cut)])


def _oracle(structure: Structure) -> str | None:
    return "simplices" if isinstance(structure, ms.Custom) else None


def _impossible(structure: Structure, score: Array) -> Iterator[str]:
    for ask in (best, ms.marginals):
        try:
            ask(ms.Batch.of(structure), score, _oracle(structure))
        except Infeasible:
            continue
        yield f"{ask.__name__} answers although there is no outcome"


def _best(
    structure: Structure, listed: Array, score: Array, rng: np.random.Generator
) -> Iterator[str]:
    """The best outcome is, its bound holds, and a relaxation's bound holds too."""
    batch, top = ms.Batch.of(structure), float((listed @ score).max())
    oracle = resolve(_oracle(structure), batch)
    _, reached, upper = best(batch, score, _oracle(structure))
    near = TOL * (1.0 + abs(top))
    if upper[0] < top - near:
        yield f"the best score is {top}, bounded by {upper[0]}"
    if oracle.polytope == HULL and abs(reached[0] - top) > near:
        yield f"the best score is {top}, the answer's {reached[0]}"


def _exact(
    structure: Structure, listed: Array, score: Array, rng: np.random.Generator
) -> Iterator[str]:
    """Exact inference is exact."""
    if isinstance(structure, ms.Custom):
        return
    found, total = ms.exact(structure, score), listed @ score
    tau = np.exp(total - logsumexp(total)) @ listed
    if abs(found.log_z - logsumexp(total)) > TOL * (1.0 + abs(found.log_z)):
        yield f"log Z is {logsumexp(total)}, not {found.log_z}"
    if np.abs(found.tau - tau).max() > TOL:
        yield f"probabilities are off by {np.abs(found.tau - tau).max()}"


def _marginals(
    structure: Structure, listed: Array, score: Array, rng: np.random.Generator
) -> Iterator[str]:
    """Surrogate marginals are feasible, and what they claim of log Z is so."""
    found = ms.marginals(ms.Batch.of(structure), score, _oracle(structure))
    log_z = float(logsumexp(listed @ score))
    near = TOL * (1.0 + abs(log_z))
    inside = log_z_interval(found)
    if not structure.contains(found.tau, 1e-6):
        yield "marginals leave the polytope"
    if not inside.lower[0] - near <= log_z <= inside.upper[0] + near:
        yield f"log Z is {log_z}, outside [{inside.lower[0]}, {inside.upper[0]}]: {inside.why}"


def _learning(
    structure: Structure, listed: Array, score: Array, rng: np.random.Generator
) -> Iterator[str]:
    """Every interval [objective − gap, objective] of every step rule holds the one optimum."""
    outcomes = [structure.decode(listed[k]) for k in rng.integers(len(listed), size=3)]
    batch: ms.Batch[Any] = ms.Batch.of(structure, outcomes)
    features = ms.Dense.of(batch, rng.standard_normal((batch.size, 2)))
    dual = ms.mle_struct(regulariser=float(rng.choice([0.1, 1.0]))).dual(batch, features)
    oracle = Validated(resolve(_oracle(structure), batch))
    lowest, highest = np.inf, -np.inf
    for step in STEPS:
        said: list[Any] = []
        ms.FrankWolfe(tol=1e-6, rounds=15, step=step).solve(dual, oracle, told=said.append)
        for proof in (state.certificate for state in said):
            lowest = min(lowest, proof.objective)
            highest = max(highest, proof.objective - proof.gap)
    if highest > lowest + TOL * (1.0 + abs(lowest)):
        yield f"certificates contradict each other: {highest} ≤ optimum ≤ {lowest}"

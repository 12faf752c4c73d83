"""Spanning trees counted, and the ρ with which they bound log Z best."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mlestruct.structures.base import Array, Ints
from mlestruct.structures.graph_edges import checked_edges
from mlestruct.structures.spanning_trees import heaviest_tree

MODEL_STEPS = 2000
Solve = Callable[[Array], tuple[float, Array, Array]]


def count_spanning_trees(n: int, edges: ArrayLike) -> int:
    """The exact number of spanning trees (Kirchhoff; whole-number elimination, O(n³))."""
    pairs = checked_edges(n, edges)
    rows = [[0] * n for _ in range(n)]
    for i, j in pairs.tolist():
        rows[i][i] += 1
        rows[j][j] += 1
        rows[i][j] -= 1
        rows[j][i] -= 1
    return _determinant([row[1:] for row in rows[1:]])


def _determinant(rows: list[list[int]]) -> int:
    """Bareiss: every division is exact."""
    previous = 1
    for k in range(len(rows) - 1):
        if rows[k][k] == 0:
            return 0  # a Laplacian's leading minor vanishes only when the graph is disconnected
        for i in range(k + 1, len(rows)):
            for j in range(k + 1, len(rows)):
                rows[i][j] = (rows[i][j] * rows[k][k] - rows[i][k] * rows[k][j]) // previous
        previous = rows[k][k]
    return rows[-1][-1] if rows else 1


@dataclass(frozen=True)
class Appearance:
    """Weights ρ, the bound they give, and how much any other ρ could lower it."""

    rho: Array
    log_z: float
    gap: float


def tightest_appearance(
    n: int, edges: ArrayLike, solve: Solve, *, tol: float = 1e-9, rounds: int = 50
) -> Appearance:
    """The ρ of the spanning-tree polytope with the least TRW bound.

    ``solve(rho)`` returns log Z_ρ, minus its gradient (I_e at the maximiser) and its Hessian.
    Newton: each round's quadratic model is minimised by pairwise Frank-Wolfe over maximum spanning
    trees, then a step towards that minimum; about ten calls of ``solve`` in all.
    """
    pairs = checked_edges(n, edges)
    trees, weight = _cover_by_trees(n, pairs)
    rho = weight @ trees
    value, information, curvature = solve(rho)
    gap = np.inf
    for _ in range(rounds):
        gap = float(information @ (heaviest_tree(n, pairs, information) - rho))
        if gap <= tol:
            break
        trees, weight, aim = _model_minimum(
            n, pairs, trees, weight, information, curvature, 1e-3 * min(gap, 1.0)
        )
        gamma = _trusted(rho, aim @ trees)
        while gamma > 1e-9:
            mixed = (1 - gamma) * weight + gamma * aim
            there, moved, bent = solve(mixed @ trees)
            if there <= value + 1e-13 * abs(value):
                break
            gamma /= 2
        else:
            break
        weight, value, information, curvature = mixed, there, moved, bent
        trees, weight = trees[weight > 0], weight[weight > 0]
        rho = weight @ trees
    return Appearance(rho, value, gap)


def _trusted(rho: Array, aim: Array) -> float:
    """No ρ_e falls below a fifth at once: I_e rises steeply there, which the model cannot see."""
    falling = aim < 0.2 * rho
    return float((0.8 * rho[falling] / (rho - aim)[falling]).min(initial=1.0))


def _model_minimum(
    n: int,
    pairs: Ints,
    trees: Array,
    weight: Array,
    information: Array,
    curvature: Array,
    tol: float,
) -> tuple[Array, Array, Array]:
    """Trees, the old weights over them, and those that minimise −I·d + ½ dᵀQd: pairwise steps."""
    aim, start = weight.copy(), weight @ trees
    pull, rho = information.copy(), start.copy()
    for _ in range(MODEL_STEPS):
        best = heaviest_tree(n, pairs, pull)
        if float(pull @ (best - rho)) <= tol:
            break
        known = np.flatnonzero((trees == best).all(axis=1))
        if len(known) == 0:
            trees = np.vstack([trees, best])
            weight, aim = np.append(weight, 0.0), np.append(aim, 0.0)
            known = np.array([len(trees) - 1])
        away = int(np.where(aim > 0, trees @ pull, np.inf).argmin())
        direction = best - trees[away]
        stiff = float(direction @ curvature @ direction)
        wanted = float(pull @ direction)
        gamma = min(float(aim[away]), wanted / stiff if stiff > 0 else np.inf)
        aim[known[0]] += gamma
        aim[away] = aim[away] - gamma if gamma < aim[away] else 0.0
        rho = rho + gamma * direction
        pull = information - curvature @ (rho - start)
    return trees, weight, aim


def _cover_by_trees(n: int, pairs: Ints) -> tuple[Array, Array]:
    """Spanning forests that together use every edge, equally weighted."""
    used = np.zeros(len(pairs))
    trees: list[Array] = []
    while not trees or (used == 0).any():
        trees.append(heaviest_tree(n, pairs, -used))
        used += trees[-1]
    return np.unique(trees, axis=0), np.full(len(np.unique(trees, axis=0)), 1 / len(trees))

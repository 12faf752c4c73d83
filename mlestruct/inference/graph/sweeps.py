"""Schedules, damping and stopping of sum-product, whatever kernel moves a node."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mlestruct.inference.graph.rows import copy, largest
from mlestruct.kernels import kernel
from mlestruct.structures.base import Array

SEQUENTIAL, FLOODING, RESIDUAL = 0, 1, 2
PATIENCE = 40  # sweeps in which the residual must halve, or messages are damped more
IDLE = 0.1  # residual schedule: nodes with pending changes below this share of the largest wait
RANGE, CLIP = 150.0, 500.0  # logs of the widest table and of the rarest belief kept linear


class Sent(NamedTuple):
    """Messages and beliefs as logarithms, and their exponentials where a kernel uses them."""

    message: Array
    belief: Array
    linear: Array
    chance: Array


def move(i, score, damping, sent, read, gauge, table, kind):
    """Messages into node i from ``read``, its log-belief into ``sent``; how far that moved.

    Compiled for the type of ``kind``: each kernel's module registers its own.
    """
    raise NotImplementedError


@kernel
def _repeat(sent, read):
    copy(sent.message, read.message)
    copy(sent.belief, read.belief)
    copy(sent.linear, read.linear)
    copy(sent.chance, read.chance)


@kernel(error_model="numpy")
def run(score, schedule, damping, tol, sweeps, sent, gauge, table, kind):
    """Sweeps until no log-belief moves by more than ``tol``; returns (sweeps, last residual).

    ν_αi = log Σ_{x_α∖i} exp(η_α/c_α + Σ_{j≠i} λ_αj),  log b_i = (η_i + Σ c_α ν_αi) / (c_i + Σ c_α),
    λ_αi = log b_i − ν_αi: for c_i ≥ 0 each node's update is a block step on the convex dual.
    """
    n = len(kind.whole)
    read = sent
    if schedule == FLOODING:
        read = Sent(
            np.empty(len(sent.message)),
            np.empty(len(sent.belief)),
            np.empty(len(sent.linear)),
            np.empty(len(sent.chance)),
        )
        _repeat(sent, read)
    pending, waiting = np.empty(n), 0.0
    pending[:] = np.inf
    best, since, residual = np.inf, 0, np.inf
    for sweep in range(sweeps):
        residual, threshold = 0.0, waiting
        for t in range(n):
            i = t if sweep % 2 == 0 else n - 1 - t
            if schedule == RESIDUAL and pending[i] < IDLE * threshold:
                continue
            moved = move(i, score, damping, sent, read, gauge, table, kind)
            residual = max(residual, moved)
            if schedule == RESIDUAL:
                pending[i] = 0.0
                for p in range(kind.near_start[i], kind.near_start[i + 1]):
                    pending[kind.near[p]] = max(pending[kind.near[p]], moved)
        if schedule == RESIDUAL:
            waiting = largest(pending)
            residual = max(residual, waiting)
        if residual <= tol:
            return sweep + 1, residual
        if schedule == FLOODING:
            _repeat(sent, read)
        since += 1
        if residual < 0.5 * best:
            best, since = residual, 0
        elif since >= PATIENCE:
            damping, best, since = min(0.5 + 0.5 * damping, 0.9), residual, 0
    return sweeps, residual

"""log Z of perfect matchings by annealed importance sampling, with an interval from repeated runs.

Neal (2001, Statistics and Computing 11): from a uniform matching, whose count is known, scores are
turned on step by step; a chain moves between steps, and the products of the steps' ratios are
unbiased for Z / count. Runs are independent, so that their spread is an honest error. A move takes
two pairs and draws one of their three pairings by its conditional probability (heat bath).
"""

from __future__ import annotations

from math import lgamma, log
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from mlestruct.kernels import kernel
from mlestruct.structures.base import Array, Ints
from mlestruct.structures.bipartite import BipartiteMatching
from mlestruct.structures.matching import Matching

RUNS = 24
STEPS, MORE = 400, 4  # temperatures to begin with, and by what they grow
MOVES = 60_000_000  # of all runs together, after which the spread is what it is
CALM = 0.25  # standard deviation of a run's log ratio that is calm enough


class Annealed(NamedTuple):
    """An estimate of log Z, and its 95 % interval by the spread of independent runs."""

    log_z: float
    low: float
    high: float
    runs: int
    steps: int


def annealed(
    structure: Matching | BipartiteMatching, score: Array, rng: np.random.Generator
) -> Annealed:
    """For perfect matchings of complete graphs, bipartite or not; O(steps · nodes) a run.

    Steps grow until the runs agree, or until a fixed number of moves is spent.
    """
    table, count = _table(structure, np.asarray(score, dtype=float))
    n, steps = len(table), STEPS
    spread = float(np.std(score)) if len(score) > 1 else 0.0
    while True:
        ladder = _ladder(steps, spread)
        found = np.array([_run(table, ladder, _start(structure, rng), rng) for _ in range(RUNS)])
        if found.std(ddof=1) <= CALM or MORE * steps * n * RUNS > MOVES:
            return _interval(count, found, steps)
        steps *= MORE


def _interval(count: float, runs: Array, steps: int) -> Annealed:
    """The mean of the ratios; and of logs, half a variance up, where that is wider.

    Logs of ratios are nearly normal, and the largest ratio alone would decide a mean of few: so
    the upper end is also that of a normal law's mean, with the error of its variance.
    """
    top = runs.max()
    ratio = np.exp(runs - top)
    mean, size = float(ratio.mean()), len(runs)
    middle = top + log(mean)
    reach = float(stdtrit(size - 1, 0.975))
    direct = reach * float(ratio.std(ddof=1)) / (mean * np.sqrt(size))
    variance = float(runs.var(ddof=1))
    normal = float(runs.mean()) + variance / 2
    error = reach * np.sqrt(variance / size + variance**2 / (2.0 * (size - 1)))
    low = min(middle - direct, normal - error)
    high = max(middle + direct, normal + error)
    ends = float(count + low), float(count + high)
    return Annealed(float(count + middle), *ends, size, steps)


def _ladder(steps: int, spread: float) -> Array:
    """From 0 to 1, denser near 0 the more scores differ: there most of the order arises."""
    steep = np.log1p(3.0 * spread)
    k = np.linspace(0.0, 1.0, steps + 1)
    return k if steep < 1e-6 else np.expm1(steep * k) / np.expm1(steep)


def _table(structure: Matching | BipartiteMatching, score: Array) -> tuple[Array, float]:
    """Scores of all pairs of nodes, −inf where there is none, and log of how many matchings."""
    whole = isinstance(structure, BipartiteMatching) or structure.graph.complete
    if structure.kind != "perfect" or not whole or (structure.fixed >= 0).any():
        raise ValueError("evidence by annealing is for perfect matchings of complete graphs")
    if isinstance(structure, BipartiteMatching):
        n = structure.rows
        table = np.full((2 * n, 2 * n), -np.inf)
        table[:n, n:] = score.reshape(structure.shape)
        return np.maximum(table, table.T), lgamma(n + 1)
    n = structure.n_nodes
    table = np.full((n, n), -np.inf)
    low, high = structure.ends.T
    table[low, high] = score
    count = lgamma(n + 1) - n / 2 * log(2.0) - lgamma(n / 2 + 1)
    return np.maximum(table, table.T), count


def _start(structure: Matching | BipartiteMatching, rng: np.random.Generator) -> Ints:
    """A uniform matching, as (pairs × 2) nodes."""
    if isinstance(structure, BipartiteMatching):
        n = structure.rows
        return np.stack([np.arange(n), n + rng.permutation(n)], axis=1)
    return rng.permutation(structure.n_nodes).reshape(-1, 2)


@kernel
def _run(table: Array, ladder: Array, pairs: Ints, rng: np.random.Generator) -> float:
    count, found, total = len(pairs), 0.0, 0.0
    for i in range(count):
        total += table[pairs[i, 0], pairs[i, 1]]
    chance = np.empty(3)
    for k in range(1, len(ladder)):
        found += (ladder[k] - ladder[k - 1]) * total
        for _ in range(count if count > 1 else 0):
            i = int(rng.random() * count)
            j = int(rng.random() * (count - 1))
            j += j >= i
            a, b, c, d = pairs[i, 0], pairs[i, 1], pairs[j, 0], pairs[j, 1]
            here = table[a, b] + table[c, d]
            first, second = table[a, c] + table[b, d], table[a, d] + table[b, c]
            top = max(here, first, second)
            chance[0] = np.exp(ladder[k] * (here - top))
            chance[1] = np.exp(ladder[k] * (first - top))
            chance[2] = np.exp(ladder[k] * (second - top))
            left = rng.random() * chance.sum()
            if left < chance[0]:
                continue
            if left < chance[0] + chance[1]:
                pairs[i, 1], pairs[j, 0], pairs[j, 1] = c, b, d
                total += first - here
            else:
                pairs[i, 1], pairs[j, 0], pairs[j, 1] = d, b, c
                total += second - here
    return found

"""log Z by annealed importance sampling, with an interval from repeated runs.

Neal (2001, Statistics and Computing 11): from a uniform outcome, of which the count is known,
scores are turned on step by step; a chain moves between steps, and the products of the steps'
ratios are unbiased for Z / count. Runs are independent, so that their spread is an honest error.
Perfect matchings take two pairs and draw one of their three pairings by its conditional
probability; in partial ones an edge comes, goes or slides; labels are redrawn one after the other.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import singledispatch
from math import lgamma, log
from time import perf_counter as clock
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp, stdtrit

from mlestruct.inference.sampling import addresses, exchanged, swept
from mlestruct.limits import late
from mlestruct.native._door import anneal_pairs
from mlestruct.structures.base import Array, Ints, Structure, as_numbers
from mlestruct.structures.graph import FactorGraph
from mlestruct.structures.matching import BipartiteMatching, Matching

RUNS = 24
STEPS, MORE = 400, 4  # temperatures to begin with, and by what they grow
MOVES = 250_000_000  # of two pairs, in all runs together, after which the spread is what it is
DEAR = 4.0  # what a move of partial matchings or of labels costs beside one of two pairs
SWEEPS = 2  # of small moves a step, in partial matchings
CALM = 0.25  # standard deviation of a run's log ratio that is calm enough


class Annealed(NamedTuple):
    """An estimate of log Z, and its 95 % interval by the spread of independent runs."""

    log_z: float
    low: float
    high: float
    runs: int
    steps: int


class Ready(NamedTuple):
    """A structure made ready: log of how many outcomes there are, and the moves of a step.

    ``run(ladder, rng)`` → the log ratio of one run, or of RUNS runs together.
    """

    log_count: float
    moves: float
    run: Callable[[Array, np.random.Generator], Array | float]

    def runs(self, ladder: Array, rng: np.random.Generator) -> Array:
        """The log ratios of independent runs: RUNS, or at least two where time runs out."""
        found = np.atleast_1d(self.run(ladder, rng))
        while len(found) < 2 or (len(found) < RUNS and not late()):
            found = np.append(found, self.run(ladder, rng))
        return found


def annealed(structure: Structure, score: Array, rng: np.random.Generator) -> Annealed:
    """For matchings in which every pair is allowed, and graphs in which every labelling is.

    Steps grow until the runs agree, until a fixed number of moves is spent, or until a limit of
    time is near; O(nodes) a step. Where that is reached before, nothing is known but a guess.
    """
    score = as_numbers(score, "scores", structure.size)
    moved, steps = ready(structure, score), STEPS
    spread = float(np.std(score)) if len(score) > 1 else 0.0
    if late():  # what it takes to say anything, and no interval of it
        rough = _interval(moved.log_count, moved.runs(_ladder(1, spread), rng), 1)
        return rough._replace(low=-np.inf, high=np.inf)
    kept = None
    while True:
        began, found = clock(), moved.runs(_ladder(steps, spread), rng)
        if len(found) < RUNS and kept is not None:  # fewer of a longer ladder than of the last
            return _interval(moved.log_count, kept, steps // MORE)
        spent = MORE * steps * moved.moves * RUNS > MOVES
        if spent or found.std(ddof=1) <= CALM or late(MORE * (clock() - began)):
            return _interval(moved.log_count, found, steps)
        kept, steps = found, steps * MORE


def ready(structure: Structure, score: Array) -> Ready:
    """What annealing needs of this structure; a ValueError where it does not serve."""
    if (structure.fixed >= 0).any() or not np.isfinite(score).all():
        raise ValueError("evidence by annealing is for structures in which nothing is fixed")
    return _ready(structure, score)


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


@singledispatch
def _ready(structure: Structure, score: Array) -> Ready:
    raise ValueError(f"there is no annealing for a {type(structure).__name__}")


@_ready.register
def _(structure: BipartiteMatching, score: Array) -> Ready:
    rows, columns = structure.shape
    if structure.kind == "partial":
        sizes = range(min(rows, columns) + 1)
        ways = [log_choose(rows, k) + log_choose(columns, k) + lgamma(k + 1) for k in sizes]
        return _partial(structure, score, ways)
    n = max(rows, columns)  # rows that are none take the columns that are left
    table = np.full((2 * n, 2 * n), -np.inf)
    table[:n, n:] = 0.0
    table[:rows, n : n + columns] = score.reshape(rows, columns)
    count = lgamma(n + 1) - lgamma(n - min(rows, columns) + 1)

    def start(rng: np.random.Generator) -> Ints:
        return np.stack([np.arange(n), n + rng.permutation(n)], axis=1)

    return _perfect(np.maximum(table, table.T), count, start)


@_ready.register
def _(structure: Matching, score: Array) -> Ready:
    n = structure.n_nodes
    if not structure.graph.complete:
        raise ValueError("evidence by annealing is for matchings of complete graphs")
    if structure.kind == "partial":
        ways = [log_choose(n, 2 * k) + log_pairings(2 * k) for k in range(n // 2 + 1)]
        return _partial(structure, score, ways)
    table = np.full((n, n), -np.inf)
    low, high = structure.ends.T
    table[low, high] = score

    def start(rng: np.random.Generator) -> Ints:
        return rng.permutation(n).reshape(-1, 2)

    return _perfect(np.maximum(table, table.T), log_pairings(n), start)


@_ready.register
def _(structure: FactorGraph, score: Array) -> Ready:
    """From independent uniform labels, each redrawn given its neighbours at every step."""
    if structure.closed().any():
        raise ValueError("evidence by annealing is for graphs that forbid no labelling")
    cards = np.asarray(structure.cards)

    def run(ladder: Array, rng: np.random.Generator) -> Array:
        states = rng.integers(0, cards, (RUNS, len(cards)))
        found = np.zeros(RUNS)
        for before, here in itertools.pairwise(ladder):
            if late():  # steps may be of any length; the last one is long then
                return found + (1.0 - before) * (structure.labelled(states) @ score)
            found += (here - before) * (structure.labelled(states) @ score)
            states = swept(structure, here * score, states, 1, rng)
        return found

    return Ready(float(np.log(cards).sum()), DEAR * len(cards), run)


def _perfect(table: Array, count: float, start: Callable[[np.random.Generator], Ints]) -> Ready:
    def run(ladder: Array, rng: np.random.Generator) -> float:
        pairs, n = start(rng), len(table)
        return anneal_pairs(n, table, len(ladder), ladder, len(pairs), pairs, addresses(rng))

    return Ready(count, float(len(table)), run)


def _partial(structure: BipartiteMatching | Matching, score: Array, ways: Sequence[float]) -> Ready:
    """``ways[k]`` is log of how many matchings have k pairs."""
    total = float(logsumexp(ways))
    chance = np.exp(np.array(ways) - total)

    def run(ladder: Array, rng: np.random.Generator) -> float:
        vertex, found = _some(structure, int(rng.choice(len(ways), p=chance)), rng), 0.0
        for before, here in itertools.pairwise(ladder):
            found += (here - before) * float(score @ vertex)
            vertex = exchanged(structure, here * score, vertex, (1, 0, SWEEPS), rng)[0]
        return found

    return Ready(total, DEAR * SWEEPS * structure.n_nodes, run)


def _some(structure: BipartiteMatching | Matching, k: int, rng: np.random.Generator) -> Array:
    """A uniform matching of k pairs."""
    vertex = np.zeros(structure.size)
    if isinstance(structure, BipartiteMatching):
        rows, columns = structure.shape
        vertex[rng.permutation(rows)[:k] * columns + rng.permutation(columns)[:k]] = 1.0
    else:
        pairs = np.sort(rng.permutation(structure.n_nodes)[: 2 * k].reshape(-1, 2), axis=1)
        vertex[structure.graph.index(pairs)] = 1.0
    return vertex


def log_choose(n: int, k: int) -> float:
    """log of n over k."""
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


def log_pairings(n: int) -> float:
    """log of the ways to pair n people: (n − 1)!!."""
    return lgamma(n + 1) - n / 2 * log(2.0) - lgamma(n / 2 + 1)

"""Marginals of every structure at every size and spread of scores: time, width, whether proven.

A row is a structure with its ρ at one size. ``ours`` is the worst of its spreads: CPU time over its
line, which is ten times that of spread 1, but at least 20 ms and 20 µs an edge. ``target`` says
where it is over the line, and where an example is not proven to a thousandth of a nat, with how
many nats are open. Every cell ends: after ``LIMIT`` seconds by max_seconds=.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

import mlestruct as ms
from mlestruct.errors import ConvergenceWarning

Row = dict[str, Any]
Cell = tuple[Any, np.ndarray]  # a structure, and its scores at spread 1
Kind = tuple[str, Callable[[int, np.random.Generator], Cell], tuple[int, ...], tuple[Any, ...]]

SPREADS = (1, 3, 10, 20, 40, 100)
LIMIT = 10.0  # seconds a cell
TIMES, LEAST, EDGE = 10.0, 0.02, 20e-6  # the line: of spread 1; and in seconds, in all and an edge
PROVEN = 1e-3  # nats


def scored(make: Callable[[int], Any], n: int, rng: np.random.Generator) -> Cell:
    """A structure of this size, every score for itself."""
    structure = make(n)
    return structure, rng.standard_normal(structure.size)


def answers(n: int, rng: np.random.Generator) -> Cell:
    """All pairs of people with five questions: a pair's score is that of its answers."""
    structure, codes = ms.Matching(n), rng.integers(0, 4, (n, 5))
    u, v = structure.ends.T
    tables = rng.standard_normal((5, 4, 4)) / np.sqrt(5)
    return structure, sum((t + t.T)[codes[u, q], codes[v, q]] for q, t in enumerate(tables))


def linked(candidates: int, n: int, rng: np.random.Generator) -> Cell:
    """Two files of n records: a likely partner for half of them, other candidates unlikely."""
    u = np.repeat(np.arange(n), candidates - 1)
    others = np.stack([u, n + rng.integers(0, n, len(u))], axis=1)
    true = np.arange(0, n, 2)[:, None] + [0, n]
    pairs = np.unique(np.concatenate([true, others]), axis=0)
    likely = (pairs[:, 1] == pairs[:, 0] + n) & (pairs[:, 0] % 2 == 0)
    score = np.where(likely, 1.0, -0.5) + 0.3 * rng.standard_normal(len(pairs))
    return ms.Matching(2 * n, pairs, "partial"), score


def tracked(n: int, rng: np.random.Generator) -> Cell:
    """Objects of two frames, linked where they are near, by how near they are."""
    here = rng.random((n, 2))
    there = here + 0.3 / np.sqrt(n) * rng.standard_normal((n, 2))
    apart = np.linalg.norm(here[:, None] - there[None], axis=2) * np.sqrt(n)
    u, v = np.nonzero(apart < 1.5)
    return ms.Matching(2 * n, np.stack([u, n + v], axis=1), "partial"), 1.0 - apart[u, v] ** 2


def coupled(make: Callable[..., Any], kind: str, n: int, rng: np.random.Generator) -> Cell:
    """Couplings of equal labels that attract, or are frustrated, beside fields of a third."""
    graph = make(n)
    first, strength = graph.node_start[-1], rng.standard_normal(graph.n_factors)
    strength = np.abs(strength) if kind == "attractive" else strength
    tables = np.outer(strength, np.eye(int(graph.cards[0]))).ravel()
    return graph, np.concatenate([0.3 * rng.standard_normal(first), tables])


def scattered(n: int) -> Any:
    """A random graph with four neighbours on average."""
    pairs = np.random.default_rng(n).integers(0, n, (2 * n, 2))
    return ms.FactorGraph([2] * n, np.unique(np.sort(pairs[pairs[:, 0] != pairs[:, 1]]), axis=0))


def skipping(n: int) -> Any:
    """A chain with steps over one."""
    steps = [(i, i + 1) for i in range(n - 1)] + [(i, i + 2) for i in range(0, n - 2, 3)]
    return ms.FactorGraph([3] * n, steps)


def ladder(n: int) -> Any:
    """Paths through a directed graph, one or two nodes a step."""
    return ms.Paths([(i, j) for i in range(n) for j in (i + 1, i + 2) if j < n], 0, n - 1)


def groups(n: int) -> Any:
    """One of four in each group, which a function of a user's own picks."""
    return ms.Custom(4 * n, exactly_one=np.arange(4 * n).reshape(n, 4).tolist())


def picked(score: np.ndarray) -> np.ndarray:
    """The best of every group."""
    return np.eye(4)[np.asarray(score).reshape(-1, 4).argmax(axis=1)].ravel()


def kinds() -> Iterator[Kind]:
    """Every structure: its name, how it is made, its sizes, and the ρ that it takes."""
    halves, plain = (0.5, 0.75, 1.0), (None,)
    for kind, more in (("perfect", 0), ("one_sided", 5), ("partial", 0)):
        sides = partial(scored, lambda n, k=kind, m=more: ms.BipartiteMatching(n, n + m, k))
        yield f"{kind} bipartite", sides, (10, 50, 200), halves
    for kind in ("perfect", "partial"):
        whole = partial(scored, lambda n, k=kind: ms.Matching(n, kind=k))
        yield f"{kind} K_n", whole, (10, 40, 120), halves
    yield "K_n by answers", answers, (40, 120, 400), halves
    yield "linkage, 2 candidates", partial(linked, 2), (100, 1000, 5000), halves
    yield "linkage, 8 candidates", partial(linked, 8), (100, 1000, 5000), halves
    yield "tracking", tracked, (30, 100, 300), halves
    both = partial(scored, lambda n: ms.BMatching.bipartite(n, 2 * n, row_capacity=2))
    yield "b-matching", both, (5, 10, 30), plain
    general = partial(scored, lambda n: ms.BMatching(n, capacity=2))
    yield "general b-matching", general, (6, 12, 24), plain
    yield "chain, 5 labels", partial(scored, lambda n: ms.chain(n, 5)), (10, 100, 1000), plain
    yield "paths", partial(scored, ladder), (10, 100, 1000), plain
    yield "plaquettes", partial(scored, lambda n: ms.plaquettes(n, n)), (3, 4, 5), plain
    yield "own solver", partial(scored, groups), (2, 10, 30), plain
    for kind in ("attractive", "frustrated"):
        for k in (2, 5):
            grids = partial(coupled, lambda n, k=k: ms.grid(n, n, k), kind)
            yield f"{kind} grid, {k} labels", grids, (5, 10, 20), (None, 0.5)
        yield f"{kind} random graph", partial(coupled, scattered, kind), (10, 30, 100), plain
        yield f"{kind} skip chain", partial(coupled, skipping, kind), (20, 100, 500), plain


def run(quick: bool) -> Iterator[Row]:
    """A row for every structure, ρ and size; ``quick`` leaves out the largest."""
    for name, make, sizes, rhos in kinds():
        for rho in rhos:
            for n in sizes[: len(sizes) - quick]:
                yield row(name, rho, n, make(n, np.random.default_rng(n)))


def row(name: str, rho: float | None, n: int, given: Cell) -> Row:
    """The worst spread of one structure, and what is said of all."""
    structure, score = given
    edges = getattr(structure, "n_factors", structure.size)
    batch = ms.Batch.of(structure, count=1)
    oracle = picked if name == "own solver" else None
    cell(batch, score, rho, oracle)  # what is kept of a structure is made
    line, worst, told = 0.0, 0.0, []
    for spread in SPREADS:
        taken, width = cell(batch, spread * score, rho, oracle)
        line = line or max(TIMES * taken, LEAST, EDGE * edges)
        worst = max(worst, taken / line)
        if taken > line or not width <= PROVEN:
            told.append(f"{spread}: {1e3 * taken:.0f} ms, {width:.1g} nats")
    return {
        "benchmark": "map",
        "workload": f"{name}, {n}" + ("" if rho is None else f", rho={rho:g}"),
        "quantity": "worst CPU time over its line",
        "ours": worst,
        "target": "; ".join(told) or "<= 1",
        "met": worst <= 1.0,
    }


def cell(batch: Any, scores: np.ndarray, rho: float | None, oracle: Any) -> tuple[float, float]:
    """CPU seconds and the interval's width of one inference."""
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            found = ms.marginals(batch, scores, oracle, rho=rho, max_seconds=LIMIT)
        except TimeoutError:
            return time.process_time() - began, np.inf
    return time.process_time() - began, float((found.upper - found.lower)[0])

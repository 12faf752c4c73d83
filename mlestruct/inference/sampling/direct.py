"""Independent exact samples where the distribution factorises into conditionals."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike

from mlestruct.batch import Batch
from mlestruct.errors import Infeasible
from mlestruct.inference.exact.common import MEMORY
from mlestruct.inference.exact.elimination import sample_states
from mlestruct.inference.exact.paths import graph_of
from mlestruct.inference.scores import as_scores
from mlestruct.native._door import draw_paths
from mlestruct.structures import FactorGraph, Paths
from mlestruct.structures.base import Array, Ints, Structure, as_count, refuse_made


@dataclass(frozen=True)
class Samples:
    """0/1 vertices of one structure, one per row.

    ``exact``: independent draws of exp⟨score, v⟩ / Z. Otherwise ``how`` says what they are: a
    Markov chain of that law (dependent, and started somewhere), or an approximation.
    """

    structure: Structure
    vertices: Array
    exact: bool
    how: str

    def __len__(self) -> int:
        return len(self.vertices)

    @property
    def tau(self) -> Array:
        """The mean: an estimate of every coordinate's probability."""
        return self.vertices.mean(axis=0)

    def outcomes(self) -> list[Any]:
        """The samples decoded."""
        return [self.structure.decode(v) for v in self.vertices]


def addresses(rng: np.random.Generator) -> Ints:
    """Where kernels find a generator, for as long as it lives: its state and two functions.

    A kernel that decides as it goes how many numbers it takes draws them one by one.
    """
    interface = rng.bit_generator.ctypes  # its ``cffi`` takes a millisecond to make
    functions = interface.next_double, interface.next_uint32
    found = [ctypes.c_ssize_t.from_buffer(function).value for function in functions]
    return np.array([interface.state_address, *found], dtype=np.int64)


def as_draws(count: Any, problem: Batch[Any] | Structure) -> int:
    """How many samples of each, at least one, where all their vertices fit into memory."""
    count = as_count(count, "count", least=1)
    refuse_made(count * problem.size, f"count={count}")
    return count


@overload
def sample(
    problem: Batch[Any],
    scores: ArrayLike,
    count: int,
    rng: np.random.Generator,
    *,
    memory: float = ...,
) -> list[Samples]: ...


@overload
def sample(
    problem: Structure,
    scores: ArrayLike,
    count: int,
    rng: np.random.Generator,
    *,
    memory: float = ...,
) -> Samples: ...


def sample(
    problem: Batch[Any] | Structure,
    scores: ArrayLike,
    count: int,
    rng: np.random.Generator,
    *,
    memory: float = MEMORY,
) -> list[Samples] | Samples:
    """``count`` independent exact outcomes of one structure, or of every example of a batch.

    Labelled graphs: sums forwards, draws backwards; O(table sizes + samples · variables · states),
    forests in linear time, others as their width allows (see :func:`exact`). DAG paths: O(arcs)
    and a draw per step. Other structures have no exact sampler here and are refused.

    >>> sample(FactorGraph([2], []), [0.0, 9e9], 2, np.random.default_rng(0)).vertices.tolist()
    [[0.0, 1.0], [0.0, 1.0]]
    """
    values, count = as_scores(problem, scores), as_draws(count, problem)
    if isinstance(problem, Structure):
        return _samples(problem, draw(problem, values[None], count, rng, memory)[0])
    found: list[Samples | None] = [None] * len(problem)
    for structure, members in problem.groups():
        drawn = draw(structure, problem.rows(values, members), count, rng, memory)
        for m, vertices in zip(members, drawn, strict=True):
            found[m] = _samples(structure, vertices)
    return [part for part in found if part is not None]


def _samples(structure: Structure, vertices: Array) -> Samples:
    return Samples(structure, vertices, True, "independent exact samples")


@singledispatch
def draw(
    structure: Structure, scores: Array, count: int, rng: np.random.Generator, memory: float
) -> Array:
    """(rows, count, size) vertices. Register your own kind of structure here."""
    raise ValueError(
        f"a {type(structure).__name__} has no exact sampler: "
        "use sample_matchings (Markov chains) or perturb_and_map (an approximation)"
    )


@draw.register
def _(
    structure: FactorGraph, scores: Array, count: int, rng: np.random.Generator, memory: float
) -> Array:
    return labelled(structure, sample_states(structure, scores, count, rng, memory))


def labelled(graph: FactorGraph, states: Ints) -> Array:
    """Vertices of labellings along the last axis. O(size · order) each."""
    flat = states.reshape(-1, graph.n_nodes)
    vertices = np.zeros((len(flat), graph.size))
    row = np.arange(len(flat))[:, None]
    vertices[row, graph.node_start[:-1] + flat] = 1.0
    if graph.n_factors:
        steps = graph.strides * flat[:, graph.scope]
        within = np.add.reduceat(steps, graph.scope_start[:-1], axis=1)
        vertices[row, graph.table_start[:-1] + within] = 1.0
    return vertices.reshape(*states.shape[:-1], graph.size)


@draw.register
def _(
    structure: Paths, scores: Array, count: int, rng: np.random.Generator, memory: float
) -> Array:
    arcs, order = structure.arcs, structure.usable
    leaving = np.concatenate(
        [[0], np.cumsum(np.bincount(arcs[order, 0], minlength=structure.n_nodes))]
    )
    by_tail = order[np.argsort(arcs[order, 0], kind="stable")]
    vertices = np.zeros((len(scores), count, structure.size))
    graph, random = graph_of(structure), addresses(rng)
    for row, out in zip(scores, vertices, strict=True):
        if not draw_paths(graph, by_tail, leaving, row, random, count, out):
            raise Infeasible(structure.impossible() or "no path has a finite score")
    return vertices

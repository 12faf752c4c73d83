"""Exact labelled graphs of small width: sum variables out one by one, then walk back.

Summing variable v out of the tables that hold it leaves a message over its neighbours S, and
p(v | S) = table / message. Those conditionals are numbers in [0, 1], so that everything on the
way back (marginals, samples) is free of logarithms, divisions and underflow.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mlestruct.errors import Infeasible
from mlestruct.inference.exact.common import MEMORY
from mlestruct.inference.exact.treewidth import Clique, EliminationPlan, plan
from mlestruct.structures.base import Array, Ints
from mlestruct.structures.graph import FactorGraph

CHUNK = 1 / 32  # GiB


class Eliminated(NamedTuple):
    """log Z per example, and p(variable | given) per clique: axes (example, variable, given…)."""

    log_z: Array
    conditionals: list[Array]


def eliminate(graph: FactorGraph, scores: Array, memory: float = MEMORY) -> Eliminated:
    """log Z for every row of ``scores``, and all conditionals. O(Σ table sizes) a row.

    Refuses with width, GiB and seconds what needs more than ``memory``.
    """
    todo = affordable(graph, memory)
    closed = graph.closed()
    values = np.where(closed, -np.inf, scores) if closed.any() else scores
    log_z = values[:, todo.certain].sum(axis=1)
    messages: dict[int, Array] = {}
    conditionals: list[Array] = []
    for i, clique in enumerate(todo.cliques):
        table = _gather(todo, clique, values, messages)
        message = _sum_out(table)
        if clique.parent < 0:
            log_z = log_z + message
        else:
            messages[i] = message
        conditionals.append(table)
    if np.isneginf(log_z).any():
        why = graph.impossible() or "no labelling has a finite score"
        raise Infeasible(f"example {int(np.isneginf(log_z).argmax())}: {why}")
    return Eliminated(log_z, conditionals)


def affordable(graph: FactorGraph, memory: float) -> EliminationPlan:
    """The plan, or a ValueError that says what it would have needed."""
    found = plan(graph)
    cost = found.estimate
    if not cost.complete or cost.gib > memory:
        raise ValueError(
            f"exact inference on this graph has {cost}; the limit is memory={memory:g} GiB: "
            f"raise it, or use marginals() for a surrogate with a certificate"
        )
    return found


def marginals(graph: FactorGraph, scores: Array, memory: float = MEMORY) -> tuple[Array, Array]:
    """log Z and all node and factor tables, for every row of ``scores``."""
    found = affordable(graph, memory)
    log_z, tau = np.empty(len(scores)), np.zeros_like(scores)
    for rows in _shares(found, len(scores)):
        log_z[rows], joint = eliminate(graph, scores[rows], memory)
        _walk_back(found, joint, tau[rows])
    return log_z, tau


def best_states(graph: FactorGraph, scores: Array, memory: float = MEMORY) -> Ints:
    """The best labelling for every row of ``scores``: maxima in the place of sums."""
    todo = affordable(graph, memory)
    closed = graph.closed()
    values = np.where(closed, -np.inf, scores) if closed.any() else scores
    messages: dict[int, Array] = {}
    choices = []
    for i, clique in enumerate(todo.cliques):
        table = _gather(todo, clique, values, messages)
        choices.append(table.argmax(axis=1))
        if clique.parent >= 0:
            messages[i] = table.max(axis=1)
    chosen = np.zeros((len(todo.states), len(scores)), dtype=np.int64)
    row = np.arange(len(scores))
    for clique, choice in zip(todo.cliques[::-1], choices[::-1], strict=True):
        chosen[clique.variable] = choice[(row, *(chosen[v] for v in clique.given))]
    return np.stack([alive[chosen[v]] for v, alive in enumerate(todo.states)], axis=1)


def _shares(found: EliminationPlan, count: int) -> list[slice]:
    """Examples that are worked on together: tables of a size that caches like."""
    step = max(1, int(CHUNK / max(found.estimate.gib, 1e-9)))
    return [slice(start, start + step) for start in range(0, count, step)]


def sample_states(
    graph: FactorGraph,
    scores: Array,
    count: int,
    rng: np.random.Generator,
    memory: float = MEMORY,
) -> Ints:
    """``count`` independent exact labellings per row of ``scores``: (rows, count, variables)."""
    found = affordable(graph, memory)
    chosen = np.empty((len(scores), count, graph.n_nodes), dtype=np.int64)
    for rows in _shares(found, len(scores)):
        _, conditionals = eliminate(graph, scores[rows], memory)
        chosen[rows] = _draw(found, conditionals, len(scores[rows]), count, rng)
    return chosen


def _draw(
    found: EliminationPlan,
    conditionals: list[Array],
    rows: int,
    count: int,
    rng: np.random.Generator,
) -> Ints:
    chosen = np.zeros((len(found.states), rows, count), dtype=np.int64)
    row = np.arange(rows)[:, None]
    for clique, conditional in zip(found.cliques[::-1], conditionals[::-1], strict=True):
        given = tuple(chosen[v] for v in clique.given)
        p = conditional[(row, slice(None), *given)] if given else conditional[:, None, :]
        ladder = np.cumsum(p, axis=-1)
        draw = rng.random((rows, count, 1)) * ladder[..., -1:]
        chosen[clique.variable] = (draw >= ladder[..., :-1]).sum(axis=-1)
    states = np.stack([alive[chosen[v]] for v, alive in enumerate(found.states)])
    return np.asarray(states.transpose(1, 2, 0))


def _gather(
    todo: EliminationPlan, clique: Clique, values: Array, messages: dict[int, Array]
) -> Array:
    """Scores and messages of a clique as one table, the smallest products first."""
    axes = (clique.variable, *clique.given)
    parts = [values[:, part.place] for part in clique.tables]
    for child in clique.children:
        message, given = messages.pop(child), todo.cliques[child].given
        sizes = dict(zip(given, message.shape[1:], strict=True))
        parts.append(message.reshape(len(values), *(sizes.get(v, 1) for v in axes)))
    parts.sort(key=lambda part: -_outermost(part.shape[1:]))
    table = parts[0]
    for part in parts[1:]:  # axes of length one grow only when a part needs them
        table = table + part
    full = (len(values), *(len(todo.states[v]) for v in axes))
    return table if table.shape == full else np.broadcast_to(table, full).copy()


def _outermost(shape: tuple[int, ...]) -> int:
    """The first axis after the variable's own that a table really has."""
    return next((k for k in range(1, len(shape)) if shape[k] > 1), len(shape))


def _sum_out(table: Array) -> Array:
    """The message over the other axes; the table becomes p(variable | others) in place."""
    top = table.max(axis=1, keepdims=True)
    top[np.isneginf(top)] = 0.0
    table -= top
    np.exp(table, out=table)
    mass = table.sum(axis=1, keepdims=True)
    table /= np.where(mass > 0, mass, 1.0)
    with np.errstate(divide="ignore"):
        return np.asarray((np.log(mass) + top)[:, 0])


def _walk_back(found: EliminationPlan, joint: list[Array], tau: Array) -> None:
    """Conditionals become joint tables in place, from the last summed to the first."""
    tau[:, found.certain] = 1.0
    for i in range(len(found.cliques) - 1, -1, -1):
        clique = found.cliques[i]
        if clique.parent >= 0:
            above = found.cliques[clique.parent]
            kept = _marginal(joint[clique.parent], (above.variable, *above.given), clique.given)
            joint[i] *= kept[:, None]
        _scatter(joint[i], clique, tau)


def _marginal(joint: Array, axes: tuple[int, ...], kept: tuple[int, ...]) -> Array:
    drop = tuple(1 + k for k, v in enumerate(axes) if v not in kept)
    return np.asarray(joint.sum(axis=drop)) if drop else joint


def _scatter(joint: Array, clique: Clique, tau: Array) -> None:
    """Marginal tables of a clique, the widest first: what none needs any more is summed away."""
    axes: tuple[int, ...] = (clique.variable, *clique.given)
    whole = axes
    for table in sorted(clique.tables, key=lambda table: _outermost(table.place.shape)):
        needed = whole[:1] + whole[_outermost(table.place.shape) :]
        if len(needed) < len(axes):
            joint, axes = _marginal(joint, axes, needed), needed
        kept = _marginal(joint, axes, table.scope)
        tau[:, table.place.ravel()] = kept.reshape(len(joint), -1)

"""Exact log Z and marginals of small problems, by listing outcomes or summing over subsets."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mlestruct.errors import Infeasible
from mlestruct.structures import BipartiteMatching, FactorGraph, Matching
from mlestruct.structures.base import Array, Ints, Structure

LARGEST = 1 << 24  # numbers in one table
DIMENSIONS = 32  # NumPy's, before 2.0


@dataclass(frozen=True)
class Exact:
    """log Σ exp⟨score, v⟩ over all outcomes v, and E[v] under the distribution it normalises."""

    log_z: float
    tau: Array


def exact(structure: Structure, score: ArrayLike) -> Exact:
    """Exact inference, or a ValueError that says how large it would be.

    Factor graphs: one table of ∏K numbers. Bipartite matchings: O(2^columns · pairs), the smaller
    side as columns. Other structures: their outcomes are listed, where they can be.

    >>> exact(FactorGraph([2], []), [0.0, 0.0]).tau.tolist()
    [0.5, 0.5]
    """
    values = np.asarray(score, dtype=float).reshape(-1)
    if values.shape != (structure.size,):
        raise ValueError(f"score has {len(values)} entries for {structure.size} coordinates")
    values = np.where(structure.fixed == 0, -np.inf, values)
    if isinstance(structure, FactorGraph):
        return _normalised(structure, joint_scores(structure, values))
    if isinstance(structure, BipartiteMatching) and (structure.fixed < 1).all():
        return _bipartite(structure, values.reshape(structure.shape))
    listed = outcomes(structure)
    total = _scores_of(listed, values)
    top = total.max()
    p = np.exp(total - top)
    return Exact(float(top + np.log(p.sum())), p @ listed / p.sum())


def outcomes(structure: Structure) -> Array:
    """Every vertex that respects the fixed coordinates, one per row, in lexicographic order."""
    if isinstance(structure, FactorGraph):
        rows = _labellings(structure)
    elif isinstance(structure, BipartiteMatching):
        rows = _bipartite_outcomes(structure)
    elif isinstance(structure, Matching):
        rows = matchings(structure.n_nodes, structure.ends, perfect=structure.kind == "perfect")
    else:
        raise ValueError(f"outcomes of a {type(structure).__name__} cannot be listed")
    return rows[structure.contains(rows)]


def joint_scores(graph: FactorGraph, score: ArrayLike) -> Array:
    """The score of every labelling, as a table with one axis per variable."""
    values = np.asarray(score, dtype=float)
    _refuse_large(float(np.prod(graph.cards.astype(float))), "labellings")
    if graph.n_nodes > DIMENSIONS:
        raise ValueError(f"a table over {graph.n_nodes} variables has too many axes for NumPy")
    joint = np.zeros(tuple(graph.cards))
    for scope, entries in _tables(graph):
        joint += _spread_table(values[entries], scope, graph.cards)
    return joint


def _tables(graph: FactorGraph) -> list[tuple[list[int], slice]]:
    nodes = [
        ([i], slice(int(graph.node_start[i]), int(graph.node_start[i + 1])))
        for i in range(graph.n_nodes)
    ]
    factors = [
        (
            graph.scope[graph.scope_start[f] : graph.scope_start[f + 1]].tolist(),
            slice(int(graph.table_start[f]), int(graph.table_start[f + 1])),
        )
        for f in range(graph.n_factors)
    ]
    return nodes + factors


def _spread_table(table: Array, scope: list[int], cards: Ints) -> Array:
    """A factor's table with its axes in variable order and length 1 elsewhere."""
    shape = np.ones(len(cards), dtype=np.int64)
    shape[scope] = cards[scope]
    return table.reshape(tuple(cards[scope])).transpose(np.argsort(scope)).reshape(tuple(shape))


def _normalised(graph: FactorGraph, joint: Array) -> Exact:
    top = joint.max()
    p = np.exp(joint - top)
    z = p.sum()
    tau = np.empty(graph.size)
    axes = np.arange(graph.n_nodes)
    for scope, entries in _tables(graph):
        kept = p.sum(axis=tuple(np.setdiff1d(axes, scope).tolist()))
        tau[entries] = kept.transpose(np.argsort(np.argsort(scope))).ravel() / z
    return Exact(float(top + np.log(z)), tau)


def _labellings(graph: FactorGraph) -> Array:
    count = float(np.prod(graph.cards.astype(float)))
    _refuse_large(count * graph.size, "entries of all labellings")
    states = np.stack(
        [axis.ravel() for axis in np.indices(tuple(graph.cards))]
        if graph.n_nodes
        else [np.zeros(0)],
        axis=1,
    )
    return np.array([graph.encode(row) for row in states]).reshape(-1, graph.size)


def _scores_of(listed: Array, values: Array) -> Array:
    finite = np.where(np.isneginf(values), 0.0, values)
    barred = listed @ np.isneginf(values) > 0
    return np.where(barred, -np.inf, listed @ finite)


def _bipartite(structure: BipartiteMatching, table: Array) -> Exact:
    """Forward and backward over rows; a state is the set of columns used so far."""
    if structure.kind != "one_sided" and table.shape[1] > table.shape[0]:
        swapped = _subsets(table.T, structure.kind)
        return Exact(swapped.log_z, swapped.tau.reshape(table.T.shape).T.ravel())
    return _subsets(table, structure.kind)


def _subsets(table: Array, kind: str) -> Exact:
    """All in logarithms: scores of any size."""
    rows, columns = table.shape
    _refuse_large(float(rows + 1) * 2.0**columns, "sets of columns")
    alone = 0.0 if kind == "partial" else -np.inf
    forward = np.full((rows + 1, 1 << columns), -np.inf)
    forward[0, 0] = 0.0
    backward = np.full_like(forward, -np.inf)
    backward[rows, -1 if kind == "perfect" else slice(None)] = 0.0
    halves = [(-1, 2, 1 << j) for j in range(columns)]
    for i in range(rows):
        forward[i + 1] = alone + forward[i]
        for j, half in enumerate(halves):
            new = forward[i + 1].reshape(half)
            new[:, 1] = np.logaddexp(new[:, 1], table[i, j] + forward[i].reshape(half)[:, 0])
    for i in reversed(range(rows)):
        backward[i] = alone + backward[i + 1]
        for j, half in enumerate(halves):
            new = backward[i].reshape(half)
            new[:, 0] = np.logaddexp(new[:, 0], table[i, j] + backward[i + 1].reshape(half)[:, 1])
    log_z = float(backward[0, 0])
    if log_z == -np.inf:
        raise Infeasible("no matching avoids the forbidden pairs")
    tau = np.empty((rows, columns))
    for i in range(rows):
        for j, half in enumerate(halves):
            before, after = forward[i].reshape(half)[:, 0], backward[i + 1].reshape(half)[:, 1]
            tau[i, j] = np.exp(table[i, j] + before + after - log_z).sum()
    return Exact(log_z, tau.ravel())


def count_matchings(structure: BipartiteMatching) -> int:
    """How many outcomes a bipartite structure without fixed pairs has."""
    rows, columns = structure.shape
    if (structure.fixed >= 0).any():
        return len(outcomes(structure))
    if structure.kind == "perfect":
        return math.factorial(rows)
    if structure.kind == "one_sided":
        return math.perm(columns, rows)
    return sum(math.comb(rows, k) * math.perm(columns, k) for k in range(min(rows, columns) + 1))


def _bipartite_outcomes(structure: BipartiteMatching) -> Array:
    rows, columns = structure.shape
    _refuse_large(
        float(count_matchings(BipartiteMatching(rows, columns, structure.kind))) * structure.size,
        "entries of all matchings",
    )
    found: list[Array] = []
    partner = np.full(rows, -1)

    def place(row: int) -> None:
        if row == rows:
            found.append(structure.encode(partner))
            return
        for column in range(-1 if structure.kind == "partial" else 0, columns):
            if column < 0 or column not in partner[:row]:
                partner[row] = column
                place(row + 1)
        partner[row] = -1

    place(0)
    return np.array(found)


def matchings(n: int, edges: ArrayLike, *, perfect: bool = True, limit: int = 1 << 18) -> Array:
    """All (perfect) matchings of a general graph as 0/1 rows over its edges.

    Stops with a ValueError beyond ``limit`` of them.

    >>> len(matchings(4, [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]))
    3
    """
    pairs = np.asarray(edges, dtype=np.int64).reshape(-1, 2)
    at: list[list[tuple[int, int]]] = [[] for _ in range(n)]
    for e, (i, j) in enumerate(pairs.tolist()):
        at[i].append((e, j))
        at[j].append((e, i))
    found: list[Any] = []
    chosen = np.zeros(len(pairs))
    taken = [False] * n

    def extend(node: int) -> None:
        while node < n and taken[node]:
            node += 1
        if node == n:
            if len(found) >= limit:
                raise ValueError(f"the graph has more than {limit} matchings; too many to list")
            found.append(chosen.copy())
            return
        taken[node] = True
        for e, other in at[node]:
            if not taken[other]:
                taken[other], chosen[e] = True, 1.0
                extend(node + 1)
                taken[other], chosen[e] = False, 0.0
        if not perfect:
            extend(node + 1)
        taken[node] = False

    extend(0)
    return np.array(found).reshape(-1, len(pairs))


def grid_by_rows(rows: int, columns: int, states: int, score: ArrayLike) -> Exact:
    """A grid in the layout of :func:`mlestruct.grid`, row by row: O(rows · states^(2·columns))."""
    _refuse_large(float(states) ** (2 * columns), "entries of a transfer matrix")
    values = np.asarray(score, dtype=float)
    n = rows * columns
    node = values[: n * states].reshape(rows, columns, states)
    pair = values[n * states :].reshape(-1, states, states)
    across = pair[: rows * (columns - 1)].reshape(rows, columns - 1, states, states)
    down = pair[rows * (columns - 1) :].reshape(rows - 1, columns, states, states)
    within = np.array([_row_scores(node[r], across[r]) for r in range(rows)])
    between = [_between_rows(down[r]) for r in range(rows - 1)]
    forward, backward = [within[0]], [np.zeros(len(within[0]))]
    for r in range(rows - 1):
        forward.append(_log_sum(forward[r][:, None] + between[r], 0) + within[r + 1])
    for r in reversed(range(rows - 1)):
        after = between[r] + (within[r + 1] + backward[0])[None, :]
        backward.insert(0, _log_sum(after, 1))
    log_z = float(_log_sum(forward[-1], 0))
    shape = (states,) * columns
    nodes, sides, falls = [], [], []
    for r in range(rows):
        p = np.exp(forward[r] + backward[r] - log_z).reshape(shape)
        nodes += [_keep(p, [c]) for c in range(columns)]
        sides += [_keep(p, [c, c + 1]) for c in range(columns - 1)]
        if r + 1 < rows:
            after = within[r + 1] + backward[r + 1]
            both = np.exp(forward[r][:, None] + between[r] + after[None, :] - log_z)
            falls += [_keep(both.reshape(shape + shape), [c, columns + c]) for c in range(columns)]
    return Exact(log_z, np.concatenate(nodes + sides + falls))


def _row_scores(node: Array, across: Array) -> Array:
    columns, states = node.shape
    graph = FactorGraph([states] * columns, [(c, c + 1) for c in range(columns - 1)])
    return joint_scores(graph, np.concatenate([node.ravel(), across.ravel()])).ravel()


def _between_rows(down: Array) -> Array:
    columns, states = down.shape[:2]
    out = np.zeros((states,) * (2 * columns))
    for c in range(columns):
        axes = [1] * (2 * columns)
        axes[c] = axes[columns + c] = states
        out += down[c].reshape(axes)
    return out.reshape(states**columns, -1)


def _keep(p: Array, axes: list[int]) -> Array:
    return np.asarray(p.sum(axis=tuple(a for a in range(p.ndim) if a not in axes))).ravel()


def _log_sum(values: Array, axis: int) -> Array:
    top = values.max(axis=axis, keepdims=True)
    return np.asarray(np.log(np.exp(values - top).sum(axis=axis)) + np.squeeze(top, axis=axis))


def _refuse_large(count: float, what: str) -> None:
    if count > LARGEST:
        raise ValueError(f"{count:.3g} {what}; exact inference stops at {LARGEST:.3g}")

"""Second moments of pair features, through how often answers meet."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from mlestruct.structures.base import Array, as_numbers, as_vector
from mlestruct.structures.complete_kernel import ROWS, meetings, row_sums, unfold

if TYPE_CHECKING:
    from mlestruct.features.pairs import Pairs

TABLES = 3000  # entries of all questions' tables, above which pairs of tables are not listed
EQUAL, ROOM = 8, 1 << 24  # parts that answers are counted in; numbers of all parts at most


def gram(pairs: Pairs, weight: Array, slack: Array) -> Array:
    """Σ_m weight_m Φ_mᵀ [I − Bᵀ(slack_m I + B Bᵀ)⁻¹ B] Φ_m, B the people's pairs.

    What is left of ΦᵀΦ once each person's sum is taken out: zero for combinations that are
    constant on perfect matchings (slack 0), and the Hessian of log Z at θ = 0 for the right
    weights. O(people · d²), no pair is visited but for the user's own planes.
    """
    slack = as_numbers(slack, "slack")
    weight = as_numbers(weight, "weight")
    out = np.zeros((pairs.d, pairs.d))
    for m, scale in enumerate(weight):
        n, rows = len(pairs.codes[m]), _row_sums(pairs, m)
        free = n - 2 + float(slack[m])  # (free·I + 11ᵀ)⁻¹ = (I − 11ᵀ/(free + n)) / free
        sums = rows.sum(axis=0)
        part = np.outer(sums, sums) / n**2  # what is left where free is 0: one pair alone
        if free > 0:
            part = (rows.T @ rows - np.outer(sums, sums) / (free + n)) / free
        out += scale * (_second(pairs, m) - part)
    return out


def _alone(pairs: Pairs, m: int) -> Array:
    """T_w[a_u, a_u]: what each person would be worth with a double, (people × d')."""
    diagonals = [np.pad(np.einsum("wkk->kw", q.tables), ((0, 1), (0, 0))) for q in pairs.questions]
    return pairs.looked_up(diagonals, pairs.codes[m])


def _row_sums(pairs: Pairs, m: int) -> Array:
    """BΦ: every person's sum over all partners, (people × d)."""
    at, _ = pairs.starts
    counts = pairs.one_hot[m].sum(axis=0)
    reached = [
        np.pad((q.tables @ counts[at[k] : at[k + 1]]).T, ((0, 1), (0, 0)))
        for k, q in enumerate(pairs.questions)
    ]
    n = len(pairs.codes[m])
    own = np.array([row_sums(plane, n) for plane in pairs.planes[m]]).reshape(-1, n)
    return np.hstack([pairs.looked_up(reached, pairs.codes[m]) - _alone(pairs, m), own.T])


def _second(pairs: Pairs, m: int) -> Array:
    """ΦᵀΦ, of tables through the counts N = UᵀU alone."""
    at, start = pairs.starts
    count, alone = pairs.one_hot[m].T @ pairs.one_hot[m], _alone(pairs, m)
    out = np.zeros((pairs.d, pairs.d))
    for k, q in enumerate(pairs.questions):
        across = count[:, at[k] : at[k + 1]]
        for j, other in enumerate(pairs.questions):
            part = across[at[j] : at[j + 1]]
            met = part @ q.tables @ part.T
            out[start[j] : start[j + 1], start[k] : start[k + 1]] = np.tensordot(
                other.tables, met, ((1, 2), (1, 2))
            )
    own = pairs.d - len(pairs.extra)
    out[:own, :own] = 0.5 * (out[:own, :own] - alone.T @ alone)
    for e, plane in enumerate(pairs.planes[m], start=own):
        out[e, :own] = out[:own, e] = pairs.met(pairs.together(m, plane))
        out[e, own:] = pairs.planes[m] @ plane
    return out


def weighted(pairs: Pairs, v: Array) -> tuple[Array, Array]:
    """ΦᵀVΦ and BVΦ of the one example there is, for a weight v per pair.

    A pass over people's pairs for each pair of questions: .4 s for 2,400 people, 14 questions.
    """
    v = as_vector(v, "v", int(pairs.offsets[-1]))
    if sum(len(q.levels) ** 2 for q in pairs.questions) > TABLES:
        columns = (v * pairs.potentials(unit) for unit in np.eye(pairs.d))
        n = len(pairs.codes[0])
        both = [(pairs.moments(column), row_sums(column, n)) for column in columns]
        return np.array([a for a, _ in both]), np.array([b for _, b in both]).T
    own, (at, _) = pairs.d - len(pairs.extra), pairs.starts
    second, sums = np.zeros((pairs.d, pairs.d)), np.zeros((len(pairs.codes[0]), pairs.d))
    second[:own, :own] = _met_twice(pairs, v)
    reached = _reached(pairs, v)
    parts = [reached[:, a:b] for a, b in pairwise(at)]
    sums[:, :own] = np.hstack([
        np.einsum("wuk,uk->uw", np.pad(q.tables, ((0, 0), (0, 1), (0, 0)))[:, codes], part)
        for q, codes, part in zip(pairs.questions, pairs.codes[0].T, parts, strict=True)
    ] or [np.empty((len(sums), 0))])  # fmt: skip
    for e, plane in enumerate(pairs.planes[0], start=own):
        second[e, :own] = second[:own, e] = pairs.met(pairs.together(0, v * plane))
        second[e, own:] = pairs.planes[0] @ (v * plane)
        sums[:, e] = row_sums(v * plane, len(sums))
    return second, sums


def _met_twice(pairs: Pairs, v: Array) -> Array:
    """Σ_pairs v T_w T_w' for all tables, through how often four answers meet."""
    first, start = pairs.starts
    size = np.diff(first)
    at = np.where(pairs.codes[0] < 0, first[-1], pairs.codes[0] + first[:-1])
    squares = np.concatenate([[0], np.cumsum(size**2)])
    n, entries = len(at), max(int(squares[-1]) ** 2, 1)
    before = np.append(0, np.cumsum(np.arange(n - 1, -1, -1)))  # pairs of the people before
    parts = max(min(EQUAL, n // ROWS, ROOM // entries), 1)
    cut = np.append(np.searchsorted(before, np.arange(parts) * before[-1] // parts), n)
    met = np.zeros((squares[-1],) * 2)
    for low, high in pairwise(cut.tolist()):
        part = np.zeros_like(met)
        meetings(v, at, first, squares, (low, high), part)
        met += part
    flat = [q.tables.reshape(len(q.tables), -1) for q in pairs.questions]
    out = np.zeros((start[-1],) * 2)
    for q, one in enumerate(flat):
        for r, other in enumerate(flat[q:], start=q):
            block = met[squares[q] : squares[q + 1], squares[r] : squares[r + 1]]
            out[start[q] : start[q + 1], start[r] : start[r + 1]] = one @ block @ other.T
    upper = np.triu(out)
    return upper + np.triu(out, 1).T


def _reached(pairs: Pairs, v: Array) -> Array:
    """Σ_v v_uv U_v: how much each person meets each answer, (people × levels)."""
    people = pairs.one_hot[0]
    n, out = len(people), np.zeros(people.shape)
    for first in range(0, n, ROWS):
        block = np.empty((min(ROWS, n - first), n - first))
        unfold(v, first, n, block)
        out[first : first + ROWS] += block @ people[first:]
        out[first:] += block.T @ people[first : first + ROWS]
    return out

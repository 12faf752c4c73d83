"""Dense shortest augmenting paths for assignments, started from the last prices.

Every row gets a column of its own, so that the sum of scores is greatest (after Jonker & Volgenant,
1987). Prices v ≥ 0 of columns and what they leave each row, u_i = max_j (score_ij − v_j), are the
duals: no matching beats Σu + Σv, whatever the prices are. The best one reaches it, since its rows
have their best columns and free columns cost nothing. Searches keep the first true; prices of
columns that would stay free are taken down by searches of their own, so the prices of any earlier
question are a start, and tables need not be square. Among columns equally near, free ones come
first: a search through tied scores would else visit every column that is taken before one of them.

Cost: each of at most n + m searches reads at most n rows of m entries, O((n + m) n m) from bad
prices and O(n² m) from none; after a small change few rows lose their column, and the rest is three
passes over the table. A copy of one table, its rows padded to whole eights: every row that a search
reaches is one loop of vectors, which ends with the next column.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mlestruct.kernels import kernel
from mlestruct.lanes import EIGHT, Row, most, nearest, rows
from mlestruct.structures.base import Array, Ints

NONE = -1
ROUNDING = 1e-14  # of the largest score: an edge this close to tight is tight
FINITE = 1.7e308
STALE = 8.0  # prices this many times the largest score would cost its last digits


class Search(NamedTuple):
    """Shortest paths from one row: columns not yet reached for good, and those that are.

    ``previous`` and ``places`` are whole numbers that vectors of floats can hold.
    """

    price: Array
    distance: Array
    taken: Array  # added to a distance: 0 where the column is free, else infinity
    previous: Array
    places: Array  # 0, 1, …
    reached: Ints
    reached_at: Array


@kernel
def solve_all(tables: Array, prices: Array, column: Ints, upper: Array) -> int:
    """Match every table; the first that has no matching comes back, or NONE.

    ``prices`` and ``column`` (NONE: unknown) hold where to start, and then the answer's.
    """
    _, n, m = tables.shape
    wide = (m + EIGHT - 1) // EIGHT * EIGHT
    table, price, row = np.full(n * wide, -np.inf), np.zeros(wide), np.empty(m, np.int64)
    far = np.full((3, wide), np.inf)  # what is beyond the last column stays so
    search = Search(
        far[0], far[1], far[2], np.empty(wide), np.arange(wide) * 1.0,
        np.empty(m, np.int64), np.empty(m),
    )  # fmt: skip
    waiting = np.empty(n, np.int64)
    for k in range(len(tables)):
        for i in range(n):
            for j in range(m):
                table[i * wide + j] = tables[k, i, j]
        for j in range(m):
            price[j] = prices[k, j]
        solved = solve(table, price, column[k], row, waiting, search)
        for j in range(m):
            prices[k, j] = price[j]
        upper[k] = bound(table, price, n)
        if not (solved and abs(upper[k]) < np.inf):
            return k
    return NONE


@kernel
def solve(
    table: Array, price: Array, column: Ints, row: Ints, waiting: Ints, search: Search
) -> bool:
    """Repair, then search. False where some row cannot get a column."""
    count = keep_tight(table, price, column, row, waiting)
    count = claim(table, price, column, row, waiting, count, search)
    for k in range(count):
        search.distance[:] = np.inf
        if not augment(table, price, column, row, waiting[k], waiting[k], 0.0, search):
            return False
    free_of_charge(table, price, column, row, search)
    return True


@rows(join=most)
def gains(score: Row, price: Row) -> Row:
    """The most that a column leaves of its score."""
    return score - price


@rows(join=most)
def sizes(score: Row) -> Row:
    """The largest |score| that is not infinite."""
    size = score.most(0.0 - score)
    return size.where_above(FINITE, 0.0, size)


@rows(join=nearest)
def choices(score: Row, price: Row, taken: Row, index: Row) -> tuple[Row, Row, Row, Row]:
    """Minus the most that a column leaves, any one, and one that is free."""
    cost = price - score
    return cost, index, cost + taken, index


@rows(join=nearest)
def relaxed(
    distance: Row, previous: Row, price: Row, score: Row, taken: Row, index: Row, start: Row, i: Row
) -> tuple[Row, ...]:
    """Paths through row i where they are shorter; the nearest column, and the nearest free one."""
    through = start + price - score
    fresh = distance.where_above(through, through, distance)
    by = distance.where_above(through, i, previous)
    return fresh, by, fresh, index, fresh + taken, index


@kernel(forceinline=True)
def relax_row(
    table: Array, i: int, start: float, name: int, search: Search
) -> tuple[float, float, float, float]:
    """:func:`relaxed` for row i of the table, which paths know by ``name``."""
    distance, previous, wide = search.distance, search.previous, search.distance.size
    return relaxed(
        wide >> 3, distance, 0, previous, 0, distance, 0, previous, 0,
        search.price, 0, table, i * wide, search.taken, 0, search.places, 0, start, 1.0 * name,
    )  # fmt: skip


@kernel
def bound(table: Array, price: Array, n: int) -> float:
    """Σu + Σv, with u made feasible here: no less than any matching's score. One scan."""
    total = 0.0
    for i in range(n):
        total += gains(price.size >> 3, table, i * price.size, price, 0)
    for j in range(price.size):
        total += price[j]
    return total


@kernel
def keep_tight(table: Array, price: Array, column: Ints, row: Ints, waiting: Ints) -> int:
    """Rows keep a column that is still the best they can have; how many wait for one."""
    wide, eights = price.size, price.size >> 3
    scale, row[:] = sizes(table.size >> 3, table, 0), NONE
    if price.max() > STALE * scale:
        price[:] = 0.0
        column[:] = NONE
    count = 0
    for i in range(column.size):
        j = column[i]
        best = gains(eights, table, i * wide, price, 0) if j != NONE else 0.0
        if j != NONE and table[i * wide + j] - price[j] >= best - ROUNDING * scale:
            row[j] = i
        else:
            column[i] = NONE
            waiting[count] = i
            count += 1
    return count


@kernel
def claim(
    table: Array, price: Array, column: Ints, row: Ints, waiting: Ints, count: int, search: Search
) -> int:
    """Rows take a free column that is their best, at what their second best leaves of it."""
    kept, wide, eights, taken = 0, price.size, price.size >> 3, search.taken
    for j in range(row.size):
        taken[j] = 0.0 if row[j] == NONE else np.inf
    for k in range(count):
        i = waiting[k]
        at = i * wide
        cost, _, free, place = choices(eights, table, at, price, 0, taken, 0, search.places, 0)
        j = int(place)
        if free > cost or j == NONE:
            waiting[kept] = i
            kept += 1
            continue
        row[j], column[i], taken[j] = i, j, np.inf
        before, price[j] = price[j], np.inf
        second = gains(eights, table, at, price, 0)
        price[j] = before + (-cost - second if second > -np.inf else 0.0)
    return kept


@kernel
def augment(
    table: Array, price: Array, column: Ints, row: Ints, i: int, name: int, start: float,
    search: Search,
) -> bool:  # fmt: skip
    """The shortest path from where distances start to a free column, and the prices on the way.

    Row i is the first, at distance ``start``, and ``name`` is what paths know it by.
    """
    count, wide = 0, price.size
    for j in range(row.size):
        search.price[j] = price[j]
        search.taken[j] = 0.0 if row[j] == NONE else np.inf
    near, place, free, end = relax_row(table, i, start, name, search)
    while near < np.inf and free != near:
        j = int(place)
        search.reached[count] = j
        search.reached_at[count] = near
        count += 1
        search.distance[j] = search.price[j] = np.inf
        i = row[j]
        near, place, free, end = relax_row(
            table, i, near + table[i * wide + j] - price[j], i, search
        )
    if not near < np.inf:
        return False
    for k in range(count):
        price[search.reached[k]] += near - search.reached_at[k]
    j, root = int(end), column.size
    while j != NONE:
        i = int(search.previous[j])
        row[j] = i
        if i == root:
            break
        j, column[i] = column[i], j
    return True


@kernel
def free_of_charge(table: Array, price: Array, column: Ints, row: Ints, search: Search) -> None:
    """Columns that stay free cost nothing: those at a price are searched for, as rows were.

    As if the free columns belonged to one more row without scores, whose gain is minus the level.
    """
    root, m, free = column.size, row.size, 0
    level = price[:m].min()
    for j in range(m):
        if row[j] == NONE and price[j] <= level:
            row[j], price[j] = root, np.inf
        free += row[j] == NONE
    for _ in range(free):
        for j in range(m):
            search.distance[j], search.previous[j] = price[j], root
        augment(table, price, column, row, 0, root, np.inf, search)  # a row without scores
        for j in range(m):
            if row[j] == root and price[j] < np.inf:
                level, price[j] = price[j], np.inf
    for j in range(m):
        price[j] = 0.0 if row[j] == root else max(price[j] - level, 0.0)

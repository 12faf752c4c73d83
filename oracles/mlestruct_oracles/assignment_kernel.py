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
passes over the table. O(n + m) memory.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mlestruct.kernels import kernel
from mlestruct.structures.base import Array, Ints
from mlestruct_oracles.blossom_rows import least, least_sum

NONE = -1
NO_NAN = {"nnan", "nsz"}  # what a vectorised maximum needs; infinities keep their meaning
ROUNDING = 1e-14  # of the largest score: an edge this close to tight is tight
CHUNK = 64  # columns looked through one by one for the nearest
STALE = 8.0  # prices this many times the largest score would cost its last digits


class Search(NamedTuple):
    """Shortest paths from one row: columns not yet reached for good, and those that are."""

    price: Array
    distance: Array
    taken: Array  # added to a distance: 0 where the column is free, else infinity
    previous: Ints
    reached: Ints
    reached_at: Array


@kernel(unrolled=True)
def solve_all(tables: Array, prices: Array, column: Ints, upper: Array) -> int:
    """Match every table; the first that has no matching comes back, or NONE.

    ``prices`` and ``column`` (NONE: unknown) hold where to start, and then the answer's.
    """
    _, n, m = tables.shape
    previous, reached = np.empty(m, np.int64), np.empty(m, np.int64)
    search = Search(np.empty(m), np.empty(m), np.empty(m), previous, reached, np.empty(m))
    row, waiting = np.empty(m, np.int64), np.empty(n, np.int64)
    for k in range(len(tables)):
        solved = solve(tables[k], prices[k], column[k], row, waiting, search)
        upper[k] = bound(tables[k], prices[k])
        if not (solved and abs(upper[k]) < np.inf):
            return k
    return NONE


@kernel
def solve(
    table: Array, price: Array, column: Ints, row: Ints, waiting: Ints, search: Search
) -> bool:
    """Repair, then search. False where some row cannot get a column."""
    count = keep_tight(table, price, column, row, waiting)
    count = claim(table, price, column, row, waiting, count)
    for k in range(count):
        i = waiting[k]
        for j in range(price.size):
            search.distance[j] = price[j] - table[i, j]
        search.previous[:] = i
        if not augment(table, price, column, row, search):
            return False
    free_of_charge(table, price, column, row, search)
    return True


@kernel(fastmath=NO_NAN)
def gain(scores: Array, price: Array) -> float:
    """max_j (score_j − price_j). Four quarters at a time, as ``least``."""
    q = scores.size // 4
    a = b = c = d = -np.inf
    for j in range(q):
        a, b = max(a, scores[j] - price[j]), max(b, scores[j + q] - price[j + q])
        c = max(c, scores[j + 2 * q] - price[j + 2 * q])
        d = max(d, scores[j + 3 * q] - price[j + 3 * q])
    for j in range(4 * q, scores.size):
        a = max(a, scores[j] - price[j])
    return max(max(a, b), max(c, d))


@kernel
def bound(table: Array, price: Array) -> float:
    """Σu + Σv, with u made feasible here: no less than any matching's score. One scan."""
    total = 0.0
    for i in range(len(table)):
        total += gain(table[i], price)
    for j in range(price.size):
        total += price[j]
    return total


@kernel(fastmath=NO_NAN)
def largest(table: Array) -> float:
    """The largest |score| that is not infinite."""
    most = 0.0
    for i in range(len(table)):
        for value in table[i]:
            size = abs(value)
            if size > most and size < np.inf:
                most = size
    return most


@kernel
def keep_tight(table: Array, price: Array, column: Ints, row: Ints, waiting: Ints) -> int:
    """Rows keep a column that is still the best they can have; how many wait for one."""
    scale, row[:] = largest(table), NONE
    if price.max() > STALE * scale:
        price[:] = 0.0
        column[:] = NONE
    count = 0
    for i in range(len(table)):
        j = column[i]
        if j != NONE and table[i, j] - price[j] >= gain(table[i], price) - ROUNDING * scale:
            row[j] = i
        else:
            column[i] = NONE
            waiting[count] = i
            count += 1
    return count


@kernel
def claim(table: Array, price: Array, column: Ints, row: Ints, waiting: Ints, count: int) -> int:
    """Rows take a free column that is their best, at what their second best leaves of it."""
    kept = 0
    for k in range(count):
        i = waiting[k]
        best = gain(table[i], price)
        j = 0
        while j < price.size and not (row[j] == NONE and table[i, j] - price[j] == best):
            j += 1
        if j == price.size:
            waiting[kept] = i
            kept += 1
            continue
        row[j], column[i] = i, j
        before, price[j] = price[j], np.inf
        second = gain(table[i], price)
        price[j] = before + (best - second if second > -np.inf else 0.0)
    return kept


@kernel(fastmath=NO_NAN)
def relax(scores: Array, start: float, i: int, search: Search) -> None:
    price, distance, previous = search.price, search.distance, search.previous
    for j in range(scores.size):
        through = start + price[j] - scores[j]
        if through < distance[j]:
            distance[j] = through
            previous[j] = i


@kernel
def first(values: Array, value: float) -> int:
    """The first place of the least value; some place where a value is not a number."""
    j = 0
    while j + CHUNK < values.size and least(values, j, j + CHUNK) > value:
        j += CHUNK
    while j < values.size - 1 and values[j] != value:
        j += 1
    return j


@kernel
def augment(table: Array, price: Array, column: Ints, row: Ints, search: Search) -> bool:
    """The shortest path from where distances start to a free column, and the prices on the way."""
    distance, taken, count = search.distance, search.taken, 0
    search.price[:] = price
    for j in range(price.size):
        taken[j] = 0.0 if row[j] == NONE else np.inf
    while True:
        nearest = least(distance, 0, price.size)
        if not nearest < np.inf:
            return False
        if least_sum(distance, taken, 0, price.size) == nearest:
            break
        j = first(distance, nearest)
        search.reached[count] = j
        search.reached_at[count] = nearest
        count += 1
        distance[j] = search.price[j] = np.inf
        i = row[j]
        relax(table[i], nearest + table[i, j] - price[j], i, search)
    j = 0
    while j < price.size - 1 and distance[j] + taken[j] != nearest:
        j += 1
    for k in range(count):
        price[search.reached[k]] += nearest - search.reached_at[k]
    root = len(table)
    while j != NONE:
        i = search.previous[j]
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
    root, level, free = len(table), price.min(), 0
    for j in range(price.size):
        if row[j] == NONE and price[j] <= level:
            row[j], price[j] = root, np.inf
        free += row[j] == NONE
    for _ in range(free):
        search.distance[:] = price
        search.previous[:] = root
        augment(table, price, column, row, search)
        for j in range(price.size):
            if row[j] == root and price[j] < np.inf:
                level, price[j] = price[j], np.inf
    for j in range(price.size):
        price[j] = 0.0 if row[j] == root else max(price[j] - level, 0.0)

"""The best mixture of known answers: Newton's steps on as few of them as have a say.

Wolfe's active sets (1976, Mathematical Programming 11), with Newton's steps in place of his affine
minimisers: a row maximises ⟨score, x⟩ + H(x) over the mixtures x of its atoms; an atom whose weight
a step would make negative leaves; when none is left to leave, the answer that gains most at the
gradient comes in. A maximum over its atoms has no gain among their affine combinations, so what
comes in is independent of them: a row never has more atoms than its hull has dimensions, and one.

H = −Σ a t log t + b s log s with t = x + c0 and s = 1 − x, over coordinates and mixed views alike
(``Views``). Answers are sparse rows of these (``Pool``); the first is a point in the interior, of
which every mixture keeps ``LEAST``: logarithms need it.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
from __future__ import annotations

from collections import namedtuple

import numpy as np

from mlestruct.kernels import kernel
from mlestruct.structures.base import Array, Ints

Views = namedtuple("Views", "a b c0")
Pool = namedtuple("Pool", "start place amount")
# x: the mixture; slope: of score and entropy; curve: minus the second slopes; away: a direction;
# N, step: the reduced Hessian, and Newton's step; gain: of every atom
Room = namedtuple("Room", "x slope curve away N step gain")

ENOUGH = 1e-8  # what an answer may still gain
LEAST = 1e-10  # of the interior point
NEWTON, HALVES = 100, 50  # steps at most between answers, and halvings of one step
TURNS = 20  # answers that come in for each that there is room for, at most
STILL = 1e-12  # of a height: Newton's decrement, squared, that is as good as none
EARLY = 0.01  # of what the last answer promised: a decrement that is enough to look for the next
BACK = 0.95  # of the way to a view of 0 that one step may go
SHARE = 0.1  # weight of a new atom, halved until it gains
ROUNDING = 1e-13  # of a height
DEPENDENT = 1e-12  # of a diagonal: a smaller pivot is one of dependent atoms
FLOOR = 1e-18  # of a view


@kernel
def climb(
    score: Array, views: Views, pool: Pool, atoms: Ints, weight: Array, live: Ints, x: Array,
    slope: Array,
) -> None:  # fmt: skip
    """Every row's best mixture of the pool: its ``live`` atoms and weights, x and the slope there.

    The first atom of every row is the interior point. What a row begins with need not be good.
    """
    most, size = atoms.shape[1], score.shape[1]
    N, step, gain = np.empty((most, most)), np.empty(most), np.empty(most)
    curve, away = np.empty(size), np.empty(size)
    for b in range(len(score)):
        room = Room(x[b], slope[b], curve, away, N, step, gain)
        live[b] = _best(score[b], views, pool, atoms[b], weight[b], live[b], room)


@kernel
def _best(score, views, pool, atoms, weight, live, room):
    """One row's; who is ``held`` back is the interior point, at its least weight."""
    held, promised = weight[0] <= LEAST, 0.0
    for _ in range(TURNS * len(atoms)):
        height = _mixed(score, views, pool, atoms, weight, live, room)
        for _ in range(NEWTON):
            rise, height, live, held = _newton(
                score, views, pool, atoms, weight, live, held, height, room
            )
            if rise <= max(STILL * (1.0 + abs(height)), EARLY * promised):
                break
        _slopes(score, views, room)
        best, gain = _priced(pool, atoms[int(held) : live], room)
        if gain > ENOUGH and live < len(atoms):
            promised = gain
            if best == 0:
                held = False
            else:
                live = _taken_in(best, score, views, pool, atoms, weight, live, height, room)
        elif promised > 0.0:
            promised = 0.0  # nothing is best before all that is in has come to rest
        else:
            break
    return live


@kernel
def _mixed(score, views, pool, atoms, weight, live, room):
    """x from its atoms, and its height."""
    total = 0.0
    for i in range(live):
        total += weight[i]
    room.x[:] = 0.0
    for i in range(live):
        weight[i] /= total
        _add(pool, atoms[i], weight[i], room.x)
    room.away[:] = 0.0
    return _height(score, views, room.x, room.away, 0.0)


@kernel
def _add(pool, row, factor, out):
    for e in range(pool.start[row], pool.start[row + 1]):
        out[pool.place[e]] += factor * pool.amount[e]


@kernel
def _dot(pool, row, values):
    total = 0.0
    for e in range(pool.start[row], pool.start[row + 1]):
        total += values[pool.place[e]] * pool.amount[e]
    return total


@kernel
def _height(score, views, x, away, step):
    """⟨score, ·⟩ + H at x + step · away."""
    a, b, c0, found = views.a, views.b, views.c0, 0.0
    for k in range(len(x)):
        here = x[k] + step * away[k]
        found += score[k] * here
        if a[k] != 0.0:
            t = max(here + c0[k], FLOOR)
            found -= a[k] * t * np.log(t)
        if b[k] != 0.0:
            s = max(1.0 - here, FLOOR)
            found -= b[k] * s * np.log(s)
    return found


@kernel
def _slopes(score, views, room):
    a, b, x, c0, slope, curve = views.a, views.b, room.x, views.c0, room.slope, room.curve
    for k in range(len(x)):
        slope[k], curve[k] = score[k], 0.0
        if a[k] != 0.0:
            t = max(x[k] + c0[k], FLOOR)
            slope[k] -= a[k] * (np.log(t) + 1.0)
            curve[k] += a[k] / t
        if b[k] != 0.0:
            s = max(1.0 - x[k], FLOOR)
            slope[k] += b[k] * (np.log(s) + 1.0)
            curve[k] += b[k] / s


@kernel
def _priced(pool, known, room):
    """The answer that gains most at the slope, of those that are not known; what it gains."""
    here, best, most = 0.0, -1, 0.0
    for k in range(len(room.x)):
        here += room.slope[k] * room.x[k]
    for row in range(len(pool.start) - 1):
        gain = _dot(pool, row, room.slope) - here
        if gain > most and not (known == row).any():
            best, most = row, gain
    return best, most


@kernel
def _taken_in(new, score, views, pool, atoms, weight, live, height, room):
    """A new atom, with the largest of some weights that makes the mixture better."""
    room.away[:] = -room.x
    _add(pool, new, 1.0, room.away)
    share = SHARE
    for _ in range(HALVES):
        if _height(score, views, room.x, room.away, share) > height:
            break
        share /= 2.0
    for i in range(live):
        weight[i] *= 1.0 - share
    weight[0] = max(weight[0], LEAST)
    atoms[live], weight[live] = new, share
    return live + 1


@kernel
def _newton(score, views, pool, atoms, weight, live, held, height, room):
    """One damped step; what it promises, the new height, and who is left.

    Weights move against that of the heaviest atom, so that their sum stays.
    """
    _slopes(score, views, room)
    first, pivot = int(held), int(held)
    for i in range(first, live):
        room.gain[i] = _dot(pool, atoms[i], room.slope)
        if weight[i] > weight[pivot]:
            pivot = i
    _reduced(pool, atoms, first, live, pivot, room)
    flat = _solve(first, live, pivot, live == len(atoms), room)
    step, rise, rest = room.step, 0.0, 0.0
    for i in range(first, live):
        if i != pivot:
            rise += step[i] * (room.gain[i] - room.gain[pivot])
            rest -= step[i]
    step[pivot] = rest
    if flat and rise < 0.0:
        step[first:live] *= -1.0
    room.away[:] = 0.0
    for i in range(first, live):
        _add(pool, atoms[i], step[i], room.away)
    most, leaver = _reach(first, live, weight, step, np.inf if flat else _far(views, room))
    rise = 0.0 if flat else rise
    size = most
    for _ in range(HALVES):
        there = _height(score, views, room.x, room.away, size)
        if there >= height + 1e-4 * size * rise - ROUNDING * (1.0 + abs(height)):
            break
        size /= 2.0
    else:
        return 0.0, height, live, held
    for i in range(first, live):
        weight[i] += size * step[i]
    for k in range(len(room.x)):
        room.x[k] += size * room.away[k]
    if leaver < 0 or size < most:
        return rise, there, live, held
    if leaver == 0:
        weight[0] = LEAST
        return np.inf, there, live, True
    live -= 1
    atoms[leaver], weight[leaver] = atoms[live], weight[live]
    return np.inf, there, live, held


@kernel
def _reduced(pool, atoms, first, live, pivot, room):
    """The Hessian in the weights of all atoms but the pivot, whose weight is what is left."""
    N, scaled = room.N, room.away
    for i in range(first, live):
        scaled[:] = 0.0
        for e in range(pool.start[atoms[i]], pool.start[atoms[i] + 1]):
            k = pool.place[e]
            scaled[k] = room.curve[k] * pool.amount[e]
        for j in range(first, i + 1):
            N[i, j] = _dot(pool, atoms[j], scaled)
            N[j, i] = N[i, j]
    for i in range(first, live):
        room.step[i] = N[i, pivot]
    whole = N[pivot, pivot]
    for i in range(first, live):
        for j in range(first, i + 1):
            N[i, j] += whole - room.step[i] - room.step[j]


@kernel(fastmath={"reassoc", "contract"})
def _inner(one, other):
    total = 0.0
    for c in range(len(one)):
        total += one[c] * other[c]
    return total


@kernel
def _solve(first, live, pivot, full, room):
    """Newton's step by Cholesky's factors, below the diagonal; the pivot's row is left out.

    Where no room is left as atoms depend on each other, it is a direction along which nothing
    curves, so that one of them leaves: then True.
    """
    N, step = room.N, room.step
    for i in range(first, live):
        row = N[i]
        if i == pivot:
            step[i], row[first:i], row[i] = 0.0, 0.0, 1.0
            continue
        for j in range(first, i):
            other = N[j]
            row[j] = (row[j] - _inner(row[first:j], other[first:j])) / other[j]
            if j == pivot:
                row[j] = 0.0
        rest = row[i] - _inner(row[first:i], row[first:i])
        least = DEPENDENT * abs(row[i])
        if full and rest <= least:
            step[first:i], step[i:live] = row[first:i], 0.0
            _back(first, i, N, step)
            step[i] = -1.0
            return True
        row[i] = np.sqrt(max(rest, least, 1e-300))
        step[i] = (room.gain[i] - room.gain[pivot] - _inner(row[first:i], step[first:i])) / row[i]
    _back(first, live, N, step)
    return False


@kernel
def _back(first, live, N, step):
    for i in range(live - 1, first - 1, -1):
        step[i] /= N[i, i]
        for j in range(first, i):
            step[j] -= N[i, j] * step[i]


@kernel
def _far(views, room):
    """How much of the step leaves every view a share of what it is; a whole one at most."""
    far, a, b, x, away = 1.0, views.a, views.b, room.x, room.away
    for k in range(len(x)):
        if a[k] != 0.0 and away[k] < 0.0:
            far = min(far, BACK * max(x[k] + views.c0[k], FLOOR) / -away[k])
        if b[k] != 0.0 and away[k] > 0.0:
            far = min(far, BACK * max(1.0 - x[k], FLOOR) / away[k])
    return far


@kernel
def _reach(first, live, weight, step, far):
    """How much of the step leaves every weight positive, and the atom that it takes out, or −1."""
    leaver = -1
    for i in range(first, live):
        least = LEAST if i == 0 else 0.0
        if step[i] < 0.0 and weight[i] - least <= far * -step[i]:
            far, leaver = max(weight[i] - least, 0.0) / -step[i], i
    return far, leaver

"""Corrective passes where only R* is curved: a block's weights on its vertices are a small QP.

Without entropy and under a ridge one pairwise step changes the other vertices' scores by rows of
their moments' Gram matrix. So after one scoring a block takes as many steps as it has vertices, of
O(vertices) each, and its point and the weights θ follow once.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np

from mlestruct.frank_wolfe.atoms import add_row, products
from mlestruct.frank_wolfe.slopes import refresh_weights
from mlestruct.kernels import kernel

MORE, WORTH = 8, 0.01  # passes for each corrective one, and what the last gains, as in rounds
ENOUGH = 0.1  # of a block's first difference of scores: a smaller one ends its steps

# product[m, i, j] = ⟨moments of slot i, those of slot j⟩ in the metric 1/λ, where both have ``tag``
Gram = namedtuple("Gram", "tag product")


def gram_of(atoms: Any, gram: Any = None) -> Any:
    """Room for the products of all vertices known, those of an earlier one kept."""
    blocks, most = len(atoms.known), int(atoms.known.max())
    have = 0 if gram is None else gram.tag.shape[1]
    if gram is not None and most <= have:
        return gram
    size = min(most + most // 2, atoms.cap)
    new = Gram(np.zeros((blocks, size), dtype=np.int64), np.zeros((blocks, size, size)))
    if gram is not None:
        new.tag[:, :have], new.product[:, :have, :have] = gram
    return new


@kernel
def quadratic_passes(count, least, order, now, p, x, atoms, gram, s):
    """At most ``count`` passes over all blocks' programs, while a pass gains ``least``."""
    for _ in range(count):
        decrease = 0.0
        for m in order:
            decrease += _solve(m, now, p, x, atoms, gram, s)
        if decrease < least:
            break


@kernel
def _solve(m, now, p, x, atoms, gram, s):
    known, weight, score, old = atoms.known[m], atoms.weight[m], s.score, s.up
    if known < 2:
        return 0.0
    here = p.column_start[m]
    wide = p.column_start[m + 1] - here
    column = p.column[here : here + wide]
    for slot in range(known):
        if gram.tag[m, slot] != atoms.tag[m, slot]:
            _relate(m, slot, column, p, atoms, gram, s)
    for j in range(wide):
        s.theta[j] = x.theta[column[j]]
    products(m, known, s.theta, here, atoms.moment, False, score)
    products(m, known, x.smooth, 0, atoms.vertex, True, score)
    old[:known] = weight[:known]
    decrease = _exchange(p.weight[m], known, score, weight, gram.product[m])
    s.change[:wide] = 0.0
    for slot in range(known):
        share = weight[slot] - old[slot]
        if share != 0.0:
            atoms.used[m, slot] = now
            add_row(m, slot, share, atoms.vertex, 0, x.tau)
            add_row(m, slot, share * p.weight[m], atoms.moment, here, s.change)
    touched = 0
    for j in range(wide):
        if s.change[j] != 0.0:
            x.r[column[j]] -= s.change[j]
            s.column[touched] = column[j]
            touched += 1
    refresh_weights(s.column, touched, p, x)
    return decrease


@kernel
def _exchange(scale, known, score, weight, product):
    """Pairwise steps of a block from the atom that a step loses least by, to the leading one."""
    decrease, first = 0.0, -1.0
    for _ in range(known):
        toward = np.argmax(score[:known])
        away, gain, spread = -1, 0.0, 0.0
        for slot in range(known):
            ahead = score[toward] - score[slot]
            if weight[slot] > 0.0 and ahead > 0.0:
                spread = max(spread, ahead)
                own, both = product[toward, toward] + product[slot, slot], product[toward, slot]
                curvature = own - 2.0 * both
                gamma = min(weight[slot], ahead / max(scale * curvature, 1e-300))
                promise = gamma * (ahead - 0.5 * gamma * scale * curvature)
                if promise > gain:
                    away, gain, step = slot, promise, gamma
        if first < 0.0:
            first = spread
        if away < 0 or spread <= ENOUGH * first:
            break
        weight[away] = 0.0 if step == weight[away] else weight[away] - step
        weight[toward] += step
        for slot in range(known):
            score[slot] -= scale * step * (product[toward, slot] - product[away, slot])
        decrease += scale * gain
    return decrease


@kernel
def _relate(m, slot, column, p, atoms, gram, s):
    """Products of one slot's moments with all of its block's, to the bit the same from either."""
    here, rows = p.column_start[m], atoms.moment
    s.change[: len(column)] = 0.0
    add_row(m, slot, 1.0, rows, here, s.change)
    gram.tag[m, slot] = atoms.tag[m, slot]
    for other in range(atoms.known[m]):
        start, total = rows.start[m] + other * rows.width[m], 0.0
        for e in range(rows.length[m, other]):
            j = rows.place[start + e] - here if len(rows.place) > 0 else e
            total += s.change[j] * rows.amount[start + e] / p.terms[0, column[j]]
        gram.product[m, slot, other] = gram.product[m, other, slot] = total

"""Scores of a block's known vertices, and what a pairwise step to or from one promises."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
from __future__ import annotations

from mlestruct.kernels import kernel

dot = kernel(fastmath={"reassoc", "contract"})


@dot
def products(m, known, values, first, rows, more, out):
    """⟨values, row⟩ of every slot, added to ``out`` or not; values begin at place ``first``."""
    place, amount, length = rows.place, rows.amount, rows.length[m]
    begin, width = rows.start[m], rows.width[m]
    for slot in range(known):
        start, count, total = begin + slot * width, length[slot], 0.0
        if len(place) == 0:
            own = amount[start : start + count]
            for j in range(count):
                total += values[j] * own[j]
        elif len(amount) == 0:
            for k in place[start : start + count]:
                total += values[k - first]
        else:
            for e in range(start, start + count):
                total += values[place[e] - first] * amount[e]
        out[slot] = out[slot] + total if more else total


@kernel
def _base_score(m, p, x, atoms, s):
    here, total = p.column_start[m], 0.0
    for j in range(p.column_start[m + 1] - here):
        total += s.theta[j] * atoms.base_moment[here + j]
    for k in range(p.offsets[m], p.offsets[m + 1]):
        total += (x.smooth[k] + x.rough[k]) * atoms.base[k]
    return total


@kernel
def score_atoms(m, fresh, loose, p, x, atoms, s):
    """Every atom's score ⟨Φθ + bias + ∇H(τ), atom − mean⟩ and what a step to or from it promises.

    That is score² / stiffness, or all its weight's worth where that is less: choosing by slope
    alone would forever chase coordinates of tiny probability. The stiffness may be a few passes
    old (a gather saved). Returns the base's score.
    """
    here, known = p.column_start[m], atoms.known[m]
    theta = s.theta[: p.column_start[m + 1] - here]
    for j in range(len(theta)):
        theta[j] = x.theta[p.column[here + j]]
    products(m, known, theta, here, atoms.moment, False, s.score)
    products(m, known, x.smooth, 0, atoms.vertex, True, s.score)
    if p.start[m] < p.start[m + 1]:
        products(m, known, x.rough, 0, atoms.vertex, True, s.score)
    if fresh:
        products(m, known, x.stiff, 0, atoms.vertex, False, atoms.stiff[m])
    score, weight, stiff = s.score, atoms.weight[m], atoms.stiff[m]
    mean, mass, base = 0.0, 0.0, 0.0
    if loose:
        base, mass = _base_score(m, p, x, atoms, s), atoms.rest[m]
        mean = base * mass
    for slot in range(known):
        mean += score[slot] * weight[slot]
        mass += weight[slot]
    mean /= max(mass, 1e-300)
    for slot in range(known):
        ahead = score[slot] - mean
        behind = max(-ahead, 0.0)
        curvature = stiff[slot] + 1e-12
        s.up[slot] = ahead * ahead / curvature if ahead > 0.0 else 0.0
        s.down[slot] = behind * min(weight[slot], behind / curvature)
    return base - mean

"""Scaling: node duals moved until every degree fits, then Newton where that creeps."""

from __future__ import annotations

import numpy as np

from mlestruct.inference.matching.kernels import MOST, absorb, entry, sums
from mlestruct.inference.matching.newton import DENSE, polish
from mlestruct.kernels import kernel

LEAST = 1e-300  # of a mass whose logarithm is taken
PATIENCE = 40  # sweeps; those that do not gain four digits in as many are left to Newton
LOST = 1e-16  # of a price, in every sum of them
STILL = 200  # sweeps without a tenth less, Newton's steps among them: more lead nowhere
WIDE, MILD, COOLING, BRIEF = 300.0, 100.0, 10.0, 100  # nats, nats, a factor, sweeps: see scale


@kernel
def scale(score, ptr, head, strict, component, c, rho, two_sided, x, cold, residual,
          sweeps, tau, report):  # fmt: skip
    """Scale until every degree fits to ``residual``; report = (residual, sweeps, largest τ,
    Newton steps, most turns of conjugate gradients in one).

    ρ > 0, if only a little, where nodes may stay single. A sweep moves a price by some nats where
    another has to move, too: prices of thousands would take as many, and end elsewhere first. So
    scores that are wide are cooled to: duals of scores so mild that nothing underflows, times what
    those were divided by, start the next, which are divided by less.
    """
    report[3:] = 0.0
    low, high = _range(score) if cold else (0.0, 0.0)
    if WIDE <= high - low < MOST:
        heat, cooler = (high - low) / MILD, np.empty_like(score)
        while heat > 1.0:
            for e in range(len(score)):
                cooler[e] = score[e] / heat
            _scale(cooler, ptr, head, strict, component, c, rho, two_sided, x, cold, 1e-2,
                   min(sweeps, BRIEF), tau, report)  # fmt: skip
            last, heat, cold = heat, max(heat / COOLING, 1.0), False
            for v in range(len(x)):
                x[v] *= last / heat
            if heat == 1.0:
                break
    _scale(score, ptr, head, strict, component, c, rho, two_sided, x, cold, residual,
           sweeps, tau, report)  # fmt: skip


@kernel
def _scale(score, ptr, head, strict, component, c, rho, two_sided, x, cold, residual,
           sweeps, tau, report):  # fmt: skip
    """Sweeps from prices at which no row of the kernel vanishes, and Newton where they creep.

    Two-sided graphs alternate; on others all nodes move at once, and each component's common
    factor by half: there scaling has the eigenvalue −1, and would oscillate for ever.
    """
    n = len(strict)
    tails, s, y, slope = np.empty(n, dtype=np.bool_), np.empty(n), np.empty(n), np.empty(n)
    move, last = np.empty(n), np.empty(n)
    common, total = np.empty(n), np.empty(n)  # by component
    omega, rate, exact = 1.0, 0.0, c == 0.0
    for u in range(n):
        tails[u], s[u], last[u] = ptr[u + 1] > ptr[u], 1.0, 0.0
        exact = exact and strict[u]
    if cold:
        _start(score, ptr, head, strict, two_sided, tails, x)
    cut = absorb(score, ptr, head, x, s, tau)
    worst, before, earlier, sweep = np.inf, np.inf, 1.0, 0
    least, since, taken = np.inf, 0, 0
    # Eliminations cost a handful of sweeps, conjugate gradients many more.
    patience = min(PATIENCE, 5 + n // 40) if two_sided and n <= DENSE else PATIENCE
    while sweep < sweeps:
        sweep += 1
        if two_sided:
            sums(ptr, head, tau, s, c, False, True, y, slope)
            heads = _step(strict, tails, False, exact, rho, x, s, y, slope)
            sums(ptr, head, tau, s, c, True, False, y, slope)
            worst = _step(strict, tails, True, exact, rho, x, s, y, slope)
            worst = worst if exact else max(worst, heads)
        else:
            sums(ptr, head, tau, s, c, True, True, y, slope)
            worst = _together(strict, component, rho, omega, x, s, y, slope, move, last,
                              common, total)  # fmt: skip
            omega, rate = _relax(worst, before, omega, rate)
        if not worst > residual:
            if not cut or (sweep == taken + 1 and not exact):
                break
            # Fitted is a kernel that was cut: prices of the scores' own lie further on.
            cut, taken, worst = absorb(score, ptr, head, x, s, tau), sweep, np.inf
        before = worst
        if worst < 0.9 * least:
            least, since = worst, sweep
        elif sweep - since >= STILL:
            break
        if sweep % patience == 0 and c >= 0.0:
            if worst > 1e-4 * earlier:
                worst, cut = polish(score, ptr, head, strict, c, rho, two_sided, x, s, tau, cut,
                                    residual, 50, report[3:])  # fmt: skip
                if worst <= residual and not cut:
                    break
                cut, taken = absorb(score, ptr, head, x, s, tau), sweep
            earlier = worst
        if _far(s):
            cut, taken = absorb(score, ptr, head, x, s, tau), sweep
    report[0], report[1], report[2] = worst, sweep, _finish(ptr, head, c, x, s, tau)


@kernel
def reachable(score, residual):
    """The residual, or what is left of a degree's digits where prices are as large as scores."""
    low, high = _range(score)
    return max(residual, LOST * max(-low, high))


@kernel
def _far(s):
    """Whether any factor is far from one; those near the end of all numbers are cut."""
    far = False
    for v in range(len(s)):
        if not 1e-60 < s[v] < 1e60:
            far = True
            s[v] = min(max(s[v], 1e-200), 1e200) if s[v] == s[v] else 1.0
    return far


@kernel
def _finish(ptr, head, c, x, s, tau):
    """The kernel becomes τ, the factors go into the duals; returns the largest τ."""
    largest = 0.0
    for u in range(len(ptr) - 1):
        for e in range(ptr[u], ptr[u + 1]):
            tau[e] = entry(tau[e] * s[u] * s[head[e]], c)
            largest = max(largest, tau[e])
    for v in range(len(x)):
        x[v] -= np.log(s[v])
        s[v] = 1.0
    return largest


@kernel
def _start(score, ptr, head, strict, two_sided, tails, x):
    """Duals at which no row of the kernel vanishes: the largest score at one is enough.

    Each end of an edge pays half its score, but the smaller of two sides all: the larger has room
    left, hence small duals, and sweeps move those by a fraction of a nat.
    """
    high = _range(score)[1]
    one, other = tails.sum(), (~tails).sum()
    part = 0.5 if not two_sided or one == other else (1.0 if one < other else 0.0)
    x[:] = 0.0
    for u in range(len(ptr) - 1):
        x[u] = part * high if ptr[u + 1] > ptr[u] else 0.0
    for v in head:
        x[v] = (1.0 - part) * high
    for v in range(len(x)):
        x[v] = x[v] if strict[v] else max(x[v], 0.0)


@kernel(fastmath={"nnan", "nsz", "reassoc"})
def _range(score):
    """The least and the largest score; they are finite, so that eight are compared at a time."""
    low, high = score[0], score[0]
    for e in range(len(score)):
        low, high = min(low, score[e]), max(high, score[e])
    return low, high


@kernel
def _newton(v, strict, rho, x, s, y, slope):
    """Newton's step of log s_v for log(Σ τ + slack) = 0, and the row's error."""
    if strict[v]:
        return _damped(y[v], slope[v])
    room = x[v] - np.log(s[v])
    slack = np.exp(-max(room, 0.0) / rho)
    step, error = _damped(min(max(y[v] + slack, LEAST), MOST), slope[v] + slack / rho)
    return min(step, room), error  # a slack is at most one, so x ≥ 0


@kernel
def _damped(mass, curvature):
    """Newton's step in the logarithm of a row's mass, and how far that is from one."""
    if mass <= 0.0:
        return 0.0, 1.0
    size = np.log(mass)
    step = -size * mass / max(curvature, 1e-3 * mass)
    limit = 1.0 + abs(size)
    return min(max(step, -limit), limit), abs(mass - 1.0)


@kernel
def _step(strict, tails, side, exact, rho, x, s, y, slope):
    """Move the nodes of one side, which share no edges, by Newton; the largest error before.

    ``exact``: sums are linear in s, and Newton's step is a division.
    """
    worst = 0.0
    for v in range(len(s)):
        if tails[v] == side and exact and y[v] > 0.0:
            worst = max(worst, abs(y[v] - 1.0))
            s[v] /= y[v]
        elif tails[v] == side:
            step, error = _newton(v, strict, rho, x, s, y, slope)
            worst = max(worst, error)
            s[v] *= np.exp(step)
    return worst


@kernel
def _together(strict, component, rho, omega, x, s, y, slope, move, last, common,
              total):  # fmt: skip
    """Move all nodes; a component's mean movement counts half. ω < 1 damps, ω > 1 has momentum."""
    worst = 0.0
    common[:] = 0.0
    total[:] = 0.0
    for v in range(len(s)):
        move[v], error = _newton(v, strict, rho, x, s, y, slope)
        worst = max(worst, error)
        common[component[v]] += slope[v] * move[v]
        total[component[v]] += slope[v]
    for v in range(len(s)):
        step = move[v]
        if omega >= 1.0 and total[component[v]] > 0.0:
            step -= 0.5 * common[component[v]] / total[component[v]]
        last[v] = omega * step + max(omega - 1.0, 0.0) * last[v]
        if not strict[v]:
            last[v] = min(last[v], x[v] - np.log(s[v]))
        s[v] *= np.exp(last[v])
    return worst


@kernel
def _relax(worst, before, omega, rate):
    """The next ω: Chebyshev's for a spectrum in [−rate, rate], once the rate shows; ½ if stuck.

    Scaling's eigenvalues on a dense graph come in near pairs ±σ, where this halves the sweeps.
    """
    if worst > 0.9 * before:
        return (0.5 if omega <= 1.0 else 1.0), 0.0
    if worst > 0.03:
        return 1.0, 0.0
    if rate == 0.0:
        # The first sweep of the asymptotic regime only measures.
        return 1.0, min(worst / before, 0.95)
    if omega == 1.0:
        rate = max(rate, min(worst / before, 0.95))
        return 1.0 / (1.0 - 0.5 * rate * rate), rate
    return 1.0 / (1.0 - 0.25 * rate * rate * omega), rate

"""Steps of all blocks together, by one γ: the first rounds' and the papers' batch steps."""

from __future__ import annotations

import numpy as np

from mlestruct.frank_wolfe.active_set import Iterate
from mlestruct.frank_wolfe.atoms import scaled_pass
from mlestruct.frank_wolfe.line_search import Line, search
from mlestruct.structures.base import Array


def joint_step(
    iterate: Iterate, vertices: Array, moments: Array, gamma: float | None, most: float, now: int
) -> None:
    """One step of all blocks by a common γ, exact unless given."""
    delta = vertices - iterate.x.tau
    if gamma is None:
        gamma = _search(iterate, delta, iterate.x.r - iterate.dual.residual(vertices), most)
    iterate.x.tau[:] += gamma * delta
    if iterate.atoms is not None:
        scaled_pass(vertices, moments, now, gamma, iterate.p, iterate.atoms)
    iterate.synchronise()


def _search(iterate: Iterate, delta: Array, change: Array, most: float) -> float:
    dual, p, x = iterate.dual, iterate.p, iterate.x
    linear, quadratic = -float(dual.batch.bias @ dual.weigh(delta)), 0.0
    if p.ridge:
        linear -= float(x.theta @ change)
        quadratic = float((change**2 / iterate.regulariser.lam).sum())
    line, d = dual.entropy.line(x.tau, delta), len(change)
    a, t, dt = line.a, line.t, line.dt
    moving = (a != 0) & (dt != 0)
    along = Line(
        linear, quadratic, x.r, change, np.arange(d), d, p.ridge, p.terms,
        1.0, a[moving], t[moving], dt[moving], int(moving.sum()),
    )  # fmt: skip
    return float(search(along, most)[0])

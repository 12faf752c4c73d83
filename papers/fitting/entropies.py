"""Binary digits at 50 % noise: given entropies, and the same with fitted coefficients.

``early`` asks whether fitted coefficients only repaired inference that was cut short: the thesis
says that its algorithm 1 needs 5 to 20 steps, which is not its optimum. ``settled`` has other
draws of the noise, the thesis's ink, other ridges and finer fits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

import mlestruct as ms
from mlestruct.families.fitting.implicit import coefficients
from mlestruct.features import per_table
from mlestruct.features.tied import Weighed
from mlestruct.learners import LEARNERS
from papers._run import Row, Setting
from papers.fitting.digits import FIRST, THESIS, both, inked, load
from papers.fitting.methods import (
    Array,
    Part,
    begun,
    budget,
    convex,
    convex_beliefs,
    implicit,
    weights,
)


def ones(batch: ms.Batch[Any]) -> Array:
    """A constant for every variable."""
    return np.ones((sum(batch.structure(m).n_nodes for m in range(len(batch))), 1))


def with_tables(batch: ms.Batch[Any]) -> Weighed:
    """One coefficient for variables, one for edges."""
    return per_table(batch, ones(batch))


def per_configuration(batch: ms.Batch[Any]) -> ms.Tied:
    """One for each of their states."""
    return ms.Tied.of(batch, ones(batch))


# coarser than in ``digits``: fitted coefficients make every inference several times dearer
FIT: dict[str, Any] = {"regulariser": 0.1, "solver": ms.FrankWolfe(tol=1e-4, rounds=60)}
EVEN = coefficients(1.0)
KINDS: dict[str, Callable[[ms.Batch[Any]], Any]] = {
    "as given": lambda batch: None,
    "per table": with_tables,
    "per configuration": per_configuration,
}
GIVEN = {"A": 0.01, "B": 0.1, "C": 1.0}
"""Coefficients of pixels, 1 on edges."""
RANDOM, STOPS = 5, (1, 2, 5, 10, 20)
"""r1 to r5: a uniform coefficient for every configuration, two of pixels and four of edges."""
AGAIN = 3  # draws of ``settled``
FINE = {"solver": ms.FrankWolfe(tol=1e-6, rounds=400)}
OTHERWISE: dict[str, dict[str, Any]] = {
    "as above": {},
    **{f"lambda {lam:g}": {"regulariser": lam} for lam in (1e-3, 1.0)},
    "finer": FINE,
    "finer, lambda 0.001": FINE | {"regulariser": 1e-3},
}


def entropies(setting: Setting) -> Iterator[Row]:
    """Implicit univariate likelihood from every start, fitted or not."""
    plain, how = both(load(setting), 50), budget(setting, FIT)
    for name, node in list(GIVEN.items())[: 1 if setting.quick else None]:
        rho = coefficients(node)
        likely = convex(plain[0], how, rho)
        for kind in KINDS:
            train, test = (with_entropy(part, kind) for part in plain)
            theta = implicit("ucl", train, likely, how, rho)
            yield row(name, kind, test, theta, rho)
    likely = convex(plain[0], how)
    for number in range(1, 1 + (1 if setting.quick else RANDOM)):
        yield from drawn(f"r{number}", number, plain, likely, how)


def with_entropy(part: Part, kind: str) -> Part:
    """Log-coefficients of their own."""
    return replace(part, entropy=KINDS[kind](part.batch))


def drawn(
    name: str, seed: int, plain: tuple[Part, Part], likely: Array, how: dict[str, Any]
) -> Iterator[Row]:
    """Held at their uniform draws, and fitted from there; weights start as A's likelihood has them.

    The ridge draws fitted logarithms to those of the draw.
    """
    train, test = (with_entropy(part, "per configuration") for part in plain)
    log = np.log(np.random.default_rng([2009, seed]).uniform(size=train.entropy.d))
    start, d = np.concatenate([likely, log]), len(likely)
    prior = np.concatenate([np.zeros(d), log])
    fixed = dict(enumerate(log.tolist(), d))
    for kind, more in (("as given", fixed), ("per configuration", {})):
        ridge = ms.Regulariser.of(len(start), how["regulariser"], prior=prior, fixed=more)
        learner: Any = LEARNERS["implicit"](
            EVEN, loss="ucl", entropy=lambda batch: train.entropy, **how | {"regulariser": ridge}
        )
        yield row(name, kind, test, begun(start, learner, train), EVEN)


def row(name: str, kind: str, test: Part, theta: Array, rho: Any) -> Row:
    used = weights(test, theta, rho)
    return {
        "start": name,
        "coefficients": kind,
        "error": test.errors(convex_beliefs(test, theta, rho)),
        "thesis": THESIS["ucl"][2] if (name, kind) == ("A", "as given") else None,
        "smallest": float(used.min()),
        "largest": float(used.max()),
    }


def early(setting: Setting) -> Iterator[Row]:
    """The same from A, inference after so many steps of algorithm 1, in fits and in tests."""
    plain, how = both(load(setting), 50), budget(setting, FIT)
    rho = coefficients(GIVEN["A"])
    likely = convex(plain[0], how, rho)
    for steps in STOPS[:1] if setting.quick else STOPS:
        for kind in ("as given", "per configuration"):
            train, test = (with_entropy(part, kind) for part in plain)
            theta = implicit("ucl", train, likely, how, rho, early=steps)
            cut = test.errors(convex_beliefs(test, theta, rho, steps))
            whole = test.errors(convex_beliefs(test, theta, rho))
            yield {"steps": steps, "coefficients": kind, "error": cut, "at the optimum": whole}


def settled(setting: Setting) -> Iterator[Row]:
    """What fitted coefficients gain from A: over draws, the thesis's ink, ridges and finer fits.

    Draws are for the fit that is everywhere else; other ridges and finer fits have the first.
    """
    images = [("digits", load(setting), 0), ("ink", inked(setting), FIRST)]
    for what, arrays, first in images[-1:] if setting.quick else images:
        for changed, more in list(OTHERWISE.items())[: 1 if setting.quick else None]:
            how = budget(setting, FIT | more)
            found: dict[str, list[float]] = {kind: [] for kind in KINDS}
            for draw in range(first, first + (1 if more or setting.quick else AGAIN)):
                for kind in KINDS:
                    name = f"settled, {what}, {changed}, draw {draw}, {kind}"
                    part = setting.once(name, partial(gained, arrays, draw, kind, how))
                    found[kind] += [] if part is None else [part["error"]]
            means = {kind: float(np.mean(some)) for kind, some in found.items() if some}
            if means:
                least = min(len(some) for some in found.values())
                spread = float(np.std(found["as given"], ddof=1 if least > 1 else 0))
                yield {"images": what, "fit": changed, "draws": least, **means, "spread": spread}


def gained(arrays: Any, draw: int, kind: str, how: dict[str, Any]) -> Row:
    """One of :func:`settled`'s errors."""
    plain, rho = both(arrays, 50, draw), coefficients(GIVEN["A"])
    train, test = (with_entropy(part, kind) for part in plain)
    theta = implicit("ucl", train, convex(plain[0], how, rho), how, rho)
    return {"error": test.errors(convex_beliefs(test, theta, rho))}

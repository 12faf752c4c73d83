"""Binary digits at 50 % noise: given entropies, and the same with fitted coefficients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

import mlestruct as ms
from mlestruct.families.fitting.implicit import coefficients
from mlestruct.features.per_table import PerTable
from papers._run import Row, Setting
from papers.fitting.digits import THESIS, both, load
from papers.fitting.methods import (
    Array,
    Part,
    budget,
    convex,
    convex_beliefs,
    implicit,
    weights,
)


def ones(batch: ms.Batch[Any]) -> Array:
    """A constant for every variable."""
    return np.ones((sum(batch.structure(m).n_nodes for m in range(len(batch))), 1))


def per_table(batch: ms.Batch[Any]) -> PerTable:
    """One coefficient for variables, one for edges."""
    return PerTable.of(batch, ones(batch))


def per_configuration(batch: ms.Batch[Any]) -> ms.Tied:
    """One for each of their states."""
    return ms.Tied.of(batch, ones(batch))


# coarser than in ``digits``: fitted coefficients make every inference several times dearer
FIT: dict[str, Any] = {"regulariser": 0.1, "solver": ms.FrankWolfe(tol=1e-4, rounds=60)}
KINDS: dict[str, Callable[[ms.Batch[Any]], Any]] = {
    "as given": lambda batch: None,
    "per table": per_table,
    "per configuration": per_configuration,
}
NODE, EDGE = np.exp(np.random.default_rng(2009).normal(size=2))
STARTS = {
    **{name: coefficients(w) for name, w in (("A", 0.01), ("B", 0.1), ("C", 1.0))},
    "random": coefficients(NODE, EDGE),
}


def with_entropy(part: Part, kind: str) -> Part:
    """Log-coefficients of their own."""
    return replace(part, entropy=KINDS[kind](part.batch))


def entropies(setting: Setting) -> Iterator[Row]:
    """Implicit univariate likelihood from every start, fitted or not."""
    plain, how = both(load(setting), 50), budget(setting, FIT)
    for name, rho in list(STARTS.items())[: 1 if setting.quick else None]:
        likely = convex(plain[0], how, rho)
        for kind in KINDS:
            train, test = (with_entropy(part, kind) for part in plain)
            theta = implicit("ucl", train, likely, how, rho)
            used = weights(test, theta, rho)
            yield {
                "start": name,
                "coefficients": kind,
                "error": test.errors(convex_beliefs(test, theta, rho)),
                "thesis": THESIS["ucl"][2] if (name, kind) == ("A", "as given") else None,
                "smallest": float(used.min()),
                "largest": float(used.max()),
            }

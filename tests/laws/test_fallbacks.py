"""No routine starts a fallback whose result is thrown away, however strong the couplings are."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.errors import ConvergenceWarning
from mlestruct.inference import marginals, sum_product
from mlestruct.oracle import Validated
from mlestruct.structures.batch import Batch

SPREADS = (1.0, 3.0, 10.0, 20.0)
KINDS = ("frustrated", "attractive", "tables")


def coupled(rng, shape, states, kind, spread):
    """A grid (two numbers) or a complete graph (one) with couplings of a size: (graph, scores)."""
    if len(shape) == 2:
        structure = ms.grid(*shape, states)
    else:
        nodes = range(shape[0])
        structure = ms.FactorGraph([states] * shape[0], [(u, v) for v in nodes for u in range(v)])
    first = structure.n_nodes * states
    score = rng.standard_normal(structure.size)
    if kind == "tables":
        score[first:] *= spread
    else:
        strength = spread * rng.standard_normal((structure.size - first) // states**2)
        strength = np.abs(strength) if kind == "attractive" else strength
        score[first:] = np.outer(strength, np.eye(states)).ravel()
    return structure, score


def record(monkeypatch, place, name):
    """(arguments, result) of every call of a function from here on."""
    kept, calls = getattr(place, name), []

    def recorded(*given):
        calls.append((given, kept(*given)))
        return calls[-1][1]

    monkeypatch.setattr(place, name, recorded)
    return calls


def check(monkeypatch, structure, score):
    """Newton's method settles graphs, so Frank-Wolfe is not asked; return how often it ran."""
    with monkeypatch.context() as watched, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        rose = record(watched, sum_product, "settle")
        asked = record(watched, Validated, "many")
        marginals(Batch.of(structure, count=1), score)
    for _, (_, _, _, lacks) in rose:
        assert lacks <= 1e-5
    assert len(asked) <= 2
    return len(rose)


def test_fallbacks_on_small_grids_count(monkeypatch):
    taken = 0
    for states, kind, seed, spread in (
        (2, "frustrated", 1, 10),
        (2, "attractive", 1, 10),
        (2, "tables", 5, 20),
        (3, "tables", 4, 20),
    ):
        rng = np.random.default_rng([seed, 5, 5, states, spread])
        taken += check(monkeypatch, *coupled(rng, (5, 5), states, kind, spread))
    assert taken > 0


@pytest.mark.nightly
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("shape", "states"),
    [((5, 5), 3), ((5, 5), 5), ((10, 10), 2), ((20, 20), 2), ((6,), 4), ((10,), 2)],
)
def test_fallbacks_count_at_every_spread(monkeypatch, shape, states, kind):
    for seed in range(5):
        for spread in SPREADS:
            rng = np.random.default_rng([seed, *shape, states, int(spread)])
            check(monkeypatch, *coupled(rng, shape, states, kind, spread))

"""No routine starts a fallback whose result is thrown away, however strong the couplings are."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.batch import Batch
from mlestruct.errors import ConvergenceWarning
from mlestruct.inference import marginals, predict
from mlestruct.inference.graph import convergent

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
    """What each fallback found is part of the answer; returns how many there were."""
    with monkeypatch.context() as watched, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        rose = record(watched, convergent, "ascend")
        searched = record(watched, predict, "_searched")
        found = marginals(Batch.of(structure, count=1), score)
    for (_, _, coefficient, own, start), (_, value) in rose:
        assert value >= convergent._value(own, coefficient, start)
    assert len(searched) <= 1
    for _, other in searched:
        assert found.lower[0] >= other.lower[0]
        assert found.upper[0] <= max(other.upper[0], found.lower[0])
        assert found.lower[0] == other.lower[0] or found.upper[0] == other.upper[0]
    return len(rose), len(searched)


def test_fallbacks_on_small_grids_count(monkeypatch):
    taken = np.zeros(2, dtype=int)
    for kind in KINDS:
        rng = np.random.default_rng([0, 5, 5, 2, 10])
        taken += check(monkeypatch, *coupled(rng, (5, 5), 2, kind, 10.0))
    assert (taken > 0).all()


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("shape", "states"),
    [((5, 5), 3), ((5, 5), 5), ((10, 10), 2), ((20, 20), 2), ((6,), 4), ((10,), 2)],
)
def test_fallbacks_count_at_every_spread(monkeypatch, shape, states, kind, seed):
    for spread in SPREADS:
        rng = np.random.default_rng([seed, *shape, states, int(spread)])
        check(monkeypatch, *coupled(rng, shape, states, kind, spread))

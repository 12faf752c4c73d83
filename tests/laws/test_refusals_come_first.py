"""What intervals, evidence and calibration refuse is refused before anything is solved."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import mlestruct as ms
from mlestruct import Batch
from mlestruct.inference.decoding import decode
from mlestruct.inference.routine import ROUTINES
from mlestruct.oracle import Validated

pytestmark = pytest.mark.filterwarnings("ignore::mlestruct.ConvergenceWarning")


class Calls:
    """How many solvers, routines and exact sums were asked while ``counting``."""

    def __init__(self) -> None:
        self.count, self.counting = 0, False

    def around(self, method: Any) -> Any:
        def counted(*given: Any, **named: Any) -> Any:
            self.count += self.counting
            return method(*given, **named)

        return counted


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    found = Calls()
    homes = {tuple(where.split(":")) for where, *_ in ROUTINES}
    for home, name in homes:
        routine = getattr(import_module(home), name)
        monkeypatch.setattr(routine, "many", found.around(routine.many))
    monkeypatch.setattr(Validated, "many", found.around(Validated.many))
    for module in ("statistics.interval", "statistics.evidence", "inference.exact"):
        home = import_module(f"mlestruct.{module}")
        name = "solve" if module.endswith(".exact") else "exact"
        monkeypatch.setattr(home, name, found.around(getattr(home, name)))
    annealing = import_module("mlestruct.statistics.annealing")
    monkeypatch.setattr(annealing, "_interval", found.around(annealing._interval))
    return found


def fitted(structure: Any, count: int, **settings: Any) -> tuple[Any, list[Any], list[Any]]:
    rng = np.random.default_rng(count)
    batch = Batch.of(structure, count=count)
    X = [rng.standard_normal((structure.size, 2)) for _ in range(count)]
    noisy = np.concatenate([x @ [1.0, -0.5] + rng.gumbel(size=len(x)) for x in X])
    y = decode(batch, noisy).outcomes
    own = {"tol": 0.1, "max_rounds": 2, "structure": structure}
    model = ms.StructuredModel(**own | settings)  # type: ignore[arg-type]
    return model.fit(X, y), X, y


def flow() -> ms.Flow:
    return ms.Flow([(0, 1), (0, 2), (1, 3), (2, 3), (1, 2)], {0: (0, 2), 3: (-2, 0)})


STRUCTURES: dict[str, Callable[[], Any]] = {
    "b-matching": lambda: ms.BMatching.bipartite(12, 12, 2, 2),
    "small b-matching": lambda: ms.BMatching.bipartite(2, 3, 2, 1),
    "general b-matching": lambda: ms.BMatching(7, capacity=2),
    "flow": flow,
    "perfect": lambda: ms.BipartiteMatching(4),
    "one-sided": lambda: ms.BipartiteMatching(3, 5, "one_sided"),
    "partial": lambda: ms.BipartiteMatching(4, 4, "partial"),
    "general": lambda: ms.Matching(6),
    "grid": lambda: ms.grid(3, 3),
    "Ising": lambda: ms.Ising(4, [(0, 1), (1, 2), (2, 3), (3, 0)]),
    "clusters": lambda: ms.ClusterGraph([2] * 3, [(0, 1), (1, 2)], [(0, 1, (1,))]),
}


def refused(calls: Calls, ask: Callable[[], Any]) -> bool:
    """Whether it was refused, and then without a single call."""
    calls.count, calls.counting = 0, True
    try:
        found = getattr(ask(), "refused", None)
    except ValueError as error:
        found = str(error)
    calls.counting = False
    assert found is None or calls.count == 0
    return found is not None


@pytest.mark.parametrize("name", STRUCTURES)
def test_one_example_of_a_surrogate_is_refused_at_once(name: str, calls: Calls) -> None:
    structure = STRUCTURES[name]()
    model, X, y = fitted(structure, 1)
    exact = name == "clusters"  # a junction tree: the likelihood itself, not a surrogate's
    assert refused(calls, lambda: model.intervals(X, y)) != exact


@pytest.mark.parametrize("name", STRUCTURES)
def test_two_cohorts_of_several_examples_are_refused_at_once(name: str, calls: Calls) -> None:
    model, X, y = fitted(STRUCTURES[name](), 4)
    assert refused(calls, lambda: model.intervals(X, y, cohort=[0, 0, 1, 1]))


ASKED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "margin learner": ({"learner": "ssvm"}, {}),
    "perceptron": ({"learner": "perceptron"}, {}),
    "level 0": ({}, {"level": 0.0}),
    "level 95": ({}, {"level": 95.0}),
    "reference": ({}, {"reference": "a"}),
    "cohorts that are too few": ({}, {"cohort": [0]}),
}


@pytest.mark.parametrize("why", ASKED)
@pytest.mark.parametrize("name", ["b-matching", "perfect", "general", "grid", "own"])
def test_settings_without_intervals_are_refused_at_once(name: str, why: str, calls: Calls) -> None:
    settings, asked = ASKED[why]
    if name == "own":
        settings = {**settings, "structure": None, "oracle": lambda s: s > 0}
    structure = STRUCTURES["grid" if name == "own" else name]()
    if name == "own":
        structure = ms.Custom(5)
        X = [np.random.default_rng(k).standard_normal((5, 2)) for k in range(6)]
        y = [(x[:, 0] > 0).astype(int) for x in X]
        model = ms.StructuredModel(tol=0.1, max_rounds=5, **settings).fit(X, y)
    else:
        model, X, y = fitted(structure, 6, **settings)
    assert refused(calls, lambda: model.intervals(X, y, **asked))


@pytest.mark.parametrize("count", [1, 6])
def test_weights_that_l1_chose_have_no_interval_at_once(count: int, calls: Calls) -> None:
    model, X, y = fitted(ms.chain(3, 2), count, l1=0.5)
    assert refused(calls, lambda: model.intervals(X, y))


@pytest.mark.parametrize("name", ["b-matching", "flow", "clusters"])
def test_evidence_that_nothing_gives_is_refused_at_once(name: str, calls: Calls) -> None:
    """Also beside examples of which sums would be quick."""
    model, X, y = fitted(STRUCTURES[name](), 2)
    quick = ms.chain(3, 2)
    model.structure = lambda x: quick if len(x) == quick.size else STRUCTURES[name]()
    both = [np.zeros((quick.size, 2)), *X], [[0, 1, 0], *y]
    assert refused(calls, lambda: model.evidence(*both))


def test_evidence_of_partial_labels_is_refused_at_once(calls: Calls) -> None:
    X, y = [np.zeros((ms.grid(18, 18).size, 1))], [[0] * 324]
    model = ms.StructuredModel(ms.grid(18, 18), tol=0.1, max_rounds=1).fit(X, y)
    assert refused(calls, lambda: model.evidence(X, [ms.Partial([0, *[-1] * 323])]))


@pytest.mark.parametrize("name", STRUCTURES)
def test_calibration_with_bad_bins_is_refused_at_once(name: str, calls: Calls) -> None:
    model, X, y = fitted(STRUCTURES[name](), 2)
    for bins in (0, -1, 1 << 40):
        assert refused(calls, lambda bins=bins: model.calibration(X, y, bins=bins))


def test_calibration_where_nothing_is_known_is_refused_at_once(calls: Calls) -> None:
    model, X, _ = fitted(ms.grid(3, 3), 2)
    unknown = [ms.Partial([-1] * 9)] * 2
    assert refused(calls, lambda: model.calibration(X, unknown))
    assert refused(calls, lambda: model.recalibrated(X, unknown))


def test_what_is_asked_of_an_evaluation_is_checked_at_once(calls: Calls) -> None:
    people = [{"id": i, "tidy": i % 3} for i in range(12)]
    pairs = [(i, i + 6) for i in range(6)]
    model = ms.RoommateModel(ordinal="tidy").fit(people, pairs)
    assert refused(calls, lambda: model.evaluate(people, pairs, top=(0,)))

"""The wrong-MRF experiments, briefly: Theorem 1 is never violated, and no surrogate beats Bayes."""

from __future__ import annotations

from collections.abc import Callable
from math import tanh

from papers._run import Row
from papers.wrong_mrf import METHODS, bound, crossed, graphs, surfaces

Printed = Callable[..., list[Row]]


def test_the_bound_holds(printed: Printed) -> None:
    found = printed(bound)
    assert {(row["ensemble"], row["alpha"]) for row in found} == {
        (ensemble, alpha) for ensemble in "AB" for alpha in (0.3, 0.6)
    }
    for row in found:
        assert row["violations"] == 0
        assert 0 < row["loss"] <= row["bound"]
        assert row["L"] > 0


def test_propagation_fails_where_coupling_is_strong_and_the_signal_weak(printed: Printed) -> None:
    found = {(row["ensemble"], row["beta"], row["alpha"]): row for row in printed(surfaces)}
    assert len(found) == 8
    for row in found.values():
        assert 0 < row["trw"] < row["independent"]
    assert found["B", 1.0, 0.3]["bp"] > found["B", 1.0, 0.3]["independent"]
    assert found["B", 0.2, 0.3]["bp"] < found["B", 0.2, 0.3]["trw"]


def test_only_the_truth_used_exactly_loses_nothing(printed: Printed) -> None:
    for row in printed(crossed):
        assert (row["exact predicts"] == 0) == (row["theta"] == "truth")
        assert all(row[f"{name} predicts"] > 0 for name in METHODS)


def test_errors_on_other_graphs(printed: Printed) -> None:
    found = printed(graphs)
    assert len({row["graph"] for row in found}) == 3
    for row in found:
        assert all(row[name] > 0 for name in METHODS)
        assert row["trw"] < row["independent"]
    for row in found:
        if row["graph"] == "cycle of 20":
            assert row["bp"] < 100 * (20 * tanh(row["beta"]) ** 19) ** 2

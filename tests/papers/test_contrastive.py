"""The contrastive free energies' experiments, briefly."""

from collections.abc import Callable
from math import comb
from pathlib import Path

import numpy as np
import pytest

from papers._run import Row
from papers.contrastive import (
    COLD,
    CURVE,
    FOLDS,
    GRADIENTS,
    METHODS,
    QUARTERS,
    STARTS,
    TABLE_1,
    TREE,
    cliques,
    curve,
    f1,
    hidden,
    mcnemar,
    others,
    seminar_gradients,
    seminar_sample,
    seminar_starts,
    seminars,
)

Printed = Callable[..., list[Row]]


def test_f1_and_curve_quickly(shared_data: Path, printed: Printed) -> None:
    rows = [*printed(f1, shared_data), *printed(curve, shared_data)]
    assert len(rows) == 2 * len(METHODS) + 2 * len(CURVE)
    assert all(0 <= row["F1 mean"] <= 100 for row in rows)
    assert all(row["training CPU s"] > 0 for row in rows)


def test_seminars_quickly(shared_data: Path, printed: Printed) -> None:
    rows = printed(seminars, shared_data)
    assert [row["method"] for row in rows[::2]] == list(TABLE_1)
    assert [row["cliques"] for row in rows] == [2, 4] * len(TABLE_1)
    for row in rows:
        assert row["folds"] == FOLDS
        if row["method"] in COLD:
            assert row[f"tokens only it / only {TREE} has right"] == "0 / 0"


def test_quarters_quickly(shared_data: Path, printed: Printed) -> None:
    rows = printed(seminar_sample, shared_data)
    assert {row["method"] for row in rows} == set(TABLE_1)
    assert all(row["folds"] == QUARTERS for row in rows)


def test_hidden_labels_quickly(printed: Printed) -> None:
    rows = printed(hidden)
    assert {"CF5-Bethe", "ML-BP"} <= {row["method"] for row in rows}
    assert all(0 <= row["test error %, all labels"] <= 100 for row in rows)
    likely = rows[0]  # its own coupling changes nothing
    assert (
        likely["test error %, all labels"] == likely["test error % at ML-BP's coupling, all labels"]
    )


def test_cliques_are_judged_where_they_learned_too(shared_data: Path, printed: Printed) -> None:
    rows = printed(cliques, shared_data)
    assert [row["cliques"] for row in rows] == [2, 4]
    assert all(row["F1, seen"] > row["F1, unseen"] for row in rows)


def test_the_rest_of_the_family_quickly(printed: Printed) -> None:
    rows = printed(others)
    assert rows[0]["from exact"] == 0
    assert all(0 <= row["from exact"] <= 1 and 0 <= row["test error %"] <= 100 for row in rows)
    assert {"CF10-Kikuchi", "contrastive divergence, 1"} <= {row["method"] for row in rows}


def test_starts_are_compared_by_one_likelihood(shared_data: Path, printed: Printed) -> None:
    rows = printed(seminar_starts, shared_data)
    assert [row["method"] for row in rows] == 2 * list(STARTS)
    assert all(row["minus log-likelihood"] > 0 for row in rows)


def test_a_gradient_has_a_price_for_every_method(shared_data: Path, printed: Printed) -> None:
    rows = printed(seminar_gradients, shared_data)
    assert [row["cliques"] for row in rows] == [2, 4]
    assert all(row[name] > 0 for row in rows for name in GRADIENTS)


def test_mcnemar_is_a_fair_coin(rng: np.random.Generator) -> None:
    truth, first, second = rng.integers(0, 2, (3, 60))
    found = mcnemar(truth, first, second)
    a = int(((first == truth) & (second != truth)).sum())
    b = int(((first != truth) & (second == truth)).sum())
    assert (found.only_first, found.only_second) == (a, b)
    tail = sum(comb(a + b, k) for k in range(min(a, b) + 1)) / 2 ** (a + b)
    assert found.p_value == pytest.approx(min(1.0, 2 * tail))
    assert mcnemar(truth, first, first).p_value == 1.0

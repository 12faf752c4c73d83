"""Losses on beliefs: values, slopes by finite differences, and what is not observed."""

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.families.fitting.losses import LOSSES, errors, factors, named, variables
from mlestruct.learners.primal import only_seen

GRAPH = ms.FactorGraph([2, 3, 1], [(0, 1), (1, 2)])


def beliefs(rng, batch):
    tau = rng.uniform(0.1, 1.0, batch.size)
    tables = np.concatenate([batch.structure(m).table_of + 100 * m for m in range(len(batch))])
    total = np.bincount(tables, weights=tau)
    return tau / total[tables]


@pytest.mark.parametrize("name", LOSSES)
def test_slopes_are_those_of_the_value(rng, name):
    batch = ms.Batch.of(GRAPH, [[0, 2, 0], [1, 1, 0]], weight=[0.5, 2.0])
    loss, tau = LOSSES[name], beliefs(rng, batch)
    units = loss.units(batch)
    _, slope = loss(tau, units)
    for k in range(batch.size):
        step = np.zeros(batch.size)
        step[k] = 1e-6
        change = (loss(tau + step, units)[0] - loss(tau - step, units)[0]) / 2e-6
        assert slope[k] == pytest.approx(tau[k] * change, abs=1e-8), k


def test_values_are_the_formulas():
    """−Σ log b(ŷ), Σ (Σ b² − 2 b(ŷ)), Σ σ(λ (max other − b(ŷ))), by hand."""
    batch = ms.Batch.of(GRAPH, [[0, 2, 0]])
    tau = np.array([0.7, 0.3, 0.2, 0.3, 0.5, 1.0, *np.full(6, 1 / 6), *np.full(3, 1 / 3)])
    units = variables(batch)
    assert LOSSES["ucl"](tau, units)[0] == pytest.approx(-np.log(0.7) - np.log(0.5))
    squares = 0.49 + 0.09 - 1.4 + 0.04 + 0.09 + 0.25 - 1.0 + 1.0 - 2.0
    assert LOSSES["uquad"](tau, units)[0] == pytest.approx(squares)
    smooth = sum(1 / (1 + np.exp(-5 * gap)) for gap in (0.3 - 0.7, 0.3 - 0.5))
    assert LOSSES["uclass"](tau, units)[0] == pytest.approx(smooth)
    assert LOSSES["ccl"](tau, factors(batch))[0] == pytest.approx(np.log(6) + np.log(3))


def test_unobserved_tables_are_left_out():
    batch = only_seen(ms.Batch.of(GRAPH, [ms.Partial([0, -1, 0]), [1, 2, 0]]))
    assert variables(batch).truth.tolist() == [0, 5, 15 + 1, 15 + 4, 15 + 5]
    assert len(factors(batch).truth) == 2
    assert (factors(batch).first >= 15).all()


def test_errors_count_ties_and_weights():
    batch = ms.Batch.of(GRAPH, [[0, 2, 0], [1, 1, 0]], weight=[1.0, 3.0])
    tau = np.tile(np.r_[0.6, 0.4, 0.2, 0.4, 0.4, 1.0, np.zeros(9)], 2)
    assert errors(tau, variables(batch)) == pytest.approx((1 + 3 + 3) / 12)


def test_misuse_is_named():
    with pytest.raises(ValueError, match="no loss named 'umax'"):
        named("umax")
    with pytest.raises(ValueError, match="labelled graphs, not BipartiteMatching"):
        variables(ms.Batch.of(ms.BipartiteMatching(2), [[0, 1]]))
    with pytest.raises(ValueError, match="observed outcomes"):
        variables(ms.Batch.of(GRAPH, count=1))

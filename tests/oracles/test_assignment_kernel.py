"""Shortest augmenting paths: scipy's values from any start, proved by their own prices."""

import threading

import numpy as np
import pytest
from mlestruct_oracles.assignment import Assignment
from mlestruct_oracles.native._door import assignment_solve
from scipy.optimize import linear_sum_assignment

from mlestruct.features import Dense
from mlestruct.learning.dual import Dual
from mlestruct.learning.frank_wolfe import FrankWolfe
from mlestruct.learning.regulariser import Regulariser
from mlestruct.oracle import Counted, Solver, Validated, memory, remember, resolve
from mlestruct.structures import BipartiteMatching, Custom
from mlestruct.structures.batch import Batch
from mlestruct.structures.entropy import Entropy
from tests.reference.descents import solved

NONE = -1
SHAPES = [(1, 1), (1, 4), (2, 2), (3, 5), (7, 7), (6, 13), (20, 20), (12, 40)]
COUNT = 3


def low_rank(rng, shape):
    count, n, m = shape
    return rng.standard_normal((count, n, 2)) @ rng.standard_normal((count, 2, m))


def integer_rank_one(rng, shape):
    count, n, m = shape
    return 1.0 * rng.integers(-3, 4, (count, n, 1)) * rng.integers(-3, 4, (count, 1, m))


def holes(rng, shape):
    table = rng.standard_normal(shape)
    table[rng.random(shape) < 0.4] = -np.inf
    n = np.arange(shape[1])
    table[:, n, n] = 0.0  # feasible
    return table


MAKERS = {
    "gaussian": lambda rng, shape: rng.standard_normal(shape),
    "low rank": low_rank,
    "integers of rank one": integer_rank_one,
    "two values": lambda rng, shape: 1.0 * rng.integers(0, 2, shape),
    "constant": lambda rng, shape: np.ones(shape),
    "sums of row and column": lambda rng, shape: (
        rng.standard_normal((*shape[:2], 1)) + rng.standard_normal((shape[0], 1, shape[2]))
    ),
    "nothing below zero": lambda rng, shape: np.maximum(rng.standard_normal(shape), 0.0),
    "forbidden pairs": holes,
    "huge": lambda rng, shape: 1e150 * rng.standard_normal(shape),
    "tiny": lambda rng, shape: 1e-150 * rng.standard_normal(shape),
}


def cold(shape):
    count, n, m = shape
    return np.zeros((count, m)), np.full((count, n), NONE)


def asked(tables, start):
    """Solve in place from ``start``; prices, columns and bounds, all of them checked."""
    upper = np.empty(len(tables))
    assert assignment_solve(*tables.shape, tables, *start, upper) == NONE
    for table, price, column, bound in zip(tables, *start, upper, strict=True):
        best = table[linear_sum_assignment(table, maximize=True)].sum()
        tol = 1e-13 * len(table) * np.abs(table[np.isfinite(table)]).max()
        rows = np.arange(len(table))
        left = (table - price).max(axis=1)
        assert len(set(column)) == len(table)
        assert table[rows, column].sum() == pytest.approx(best, rel=0, abs=tol)
        assert bound == pytest.approx(best, rel=0, abs=tol)
        assert left.sum() + price.sum() == pytest.approx(bound, rel=0, abs=tol)
        assert (price >= 0).all()  # dual feasibility: left covers every pair by construction
        assert (np.delete(price, column) == 0).all(), "a free column costs something"
        slack = left + price[column] - table[rows, column]
        assert np.abs(slack).max() <= tol, "a matched pair is not tight"
    return upper


@pytest.mark.parametrize("shape", SHAPES)
def test_any_question_from_any_answer(shape, rng):
    """Values, feasibility and complementary slackness, warm from unlike questions, and cold."""
    full = COUNT, *shape
    start = cold(full)
    for name in rng.permutation(list(MAKERS) * 3):
        tables = MAKERS[name](rng, full)
        asked(tables, start)
        asked(tables, cold(full))


@pytest.mark.parametrize(
    ("structure", "scale"),
    [
        (BipartiteMatching(8), 1.0),
        (BipartiteMatching(8, forbidden=[(0, 0), (3, 4)], required=[(1, 2)]), 1.0),
        (BipartiteMatching(5, 9, "one_sided", required=[(0, 8)]), 1e6),
        (BipartiteMatching(9, 5, "partial", required=[(7, 0)], forbidden=[(1, 1)]), 1e-6),
        (BipartiteMatching(5, 9, "partial"), 1.0),
    ],
)
def test_the_oracle_remembers_the_batch_and_no_other(structure, scale, rng):
    """Warm and cold reach the same score, whatever was asked before; copies start afresh."""
    batch = Batch.of(structure, count=4)
    oracle, other = Assignment(), Batch.of(structure, count=4)
    scores = scale * rng.standard_normal(batch.size)
    for _ in range(8):
        scores = scores + 0.1 * scale * rng.standard_normal(batch.size)
        vertices, upper = oracle.many(batch, scores)
        fresh, bound = Assignment().many(other, scores)
        assert structure.contains(vertices.reshape(4, -1)).all()
        np.testing.assert_allclose(batch.totals(vertices * scores), batch.totals(fresh * scores))
        np.testing.assert_allclose(upper, bound)
        np.testing.assert_allclose(upper, batch.totals(vertices * scores))
    assert list(oracle._last.starts) == [batch]
    del batch
    assert not oracle._last.starts


@pytest.mark.parametrize("wrap", [lambda oracle: oracle, lambda o: Validated(Counted(o))])
def test_memory_given_to_another_oracle_continues_its_answers(wrap, rng):
    """Among equally good matchings too; without it some answers differ, so the scores do tie."""
    structure = BipartiteMatching(6)
    questions = rng.integers(0, 2, (40, 8 * structure.size)).astype(float)
    batch, equal, cold = (Batch.of(structure, count=8) for _ in range(3))
    first, second, fresh = Assignment(), Assignment(), Assignment()
    assert memory(wrap(first), batch) is None
    for scores in questions[:20]:
        first.many(batch, scores)
    remember(wrap(second), equal, memory(wrap(first), batch))
    different = 0
    for scores in questions[20:]:
        vertices, upper = first.many(batch, scores)
        same, bound = second.many(equal, scores)
        assert vertices.tobytes() == same.tobytes()
        assert upper.tobytes() == bound.tobytes()
        different += (vertices != fresh.many(cold, scores)[0]).any()
    assert different > 0


def test_an_oracle_without_memory_has_none():
    oracle = Solver(lambda score: (score > 0).astype(float))
    assert memory(Validated(oracle), Batch.of(Custom(2))) is None
    remember(oracle, Batch.of(Custom(2)), None)


def tied(count=12, n=5):
    """Whole-number features: many matchings are equally good."""
    rng = np.random.default_rng(5)
    batch = Batch.of(BipartiteMatching(n), [rng.permutation(n) for _ in range(count)])
    features = Dense.of(batch, 1.0 * rng.integers(-1, 2, (batch.size, 3)))
    return Dual(batch, features, Entropy.of(batch, 0.5), Regulariser.of(3, 1.0))


@pytest.mark.parametrize("shards", [1, 8])
def test_tied_scores_give_the_same_bits_for_any_number_of_workers(shards):
    """And for a second run with an oracle that has been used."""
    dual = tied()
    oracle = resolve(None, dual.batch)
    runs = [
        solved(FrankWolfe(tol=0.0, rounds=30, shards=shards, workers=workers), dual, oracle)
        for workers in (1, 4, 1)
    ]
    for run in runs[1:]:
        for one, same in zip(runs[0], run, strict=True):
            assert one.certificate == same.certificate
            np.testing.assert_array_equal(one.theta, same.theta)


def test_threads_asking_of_one_batch_all_get_the_best(rng):
    batch = Batch.of(BipartiteMatching(15), count=20)
    oracle, failures = Assignment(), []
    questions = rng.standard_normal((4, batch.size))

    def ask(scores):
        best = Assignment().many(batch, scores)[1]
        for _ in range(20):
            if not np.allclose(oracle.many(batch, scores)[1], best):
                failures.append(scores)

    threads = [threading.Thread(target=ask, args=(scores,)) for scores in questions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures

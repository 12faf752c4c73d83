"""Any number of threads on one example gives the same bits, and a failure in one ends all."""

import threading

import numpy as np
import pytest

import mlestruct as ms
from mlestruct import blocks, data
from mlestruct.engine.local import Local
from mlestruct.inference import marginals
from mlestruct.inference.matching.graph import layout
from mlestruct.inference.matching.scaling import Scaling
from mlestruct.roommates import learning
from mlestruct.structures import definite
from mlestruct.threads import at_hand, each, sharing

COUNTS = (1, 2, 3, 5)


@pytest.fixture
def small(monkeypatch):
    """Blocks so small that graphs of a test have several."""
    monkeypatch.setattr(blocks, "SIZE", 300)
    monkeypatch.setattr(definite, "LARGE", 30)
    monkeypatch.setattr(definite, "WIDE", 16)
    monkeypatch.setattr(learning, "PART", 50)


def structures():
    """Names and structures that no other test has: layouts are kept, with their blocks."""
    return {
        "perfect": ms.Matching(58),
        "partial": ms.Matching(57, kind="partial"),
        "forbidden": ms.Matching(56, forbidden=[(0, k) for k in range(1, 30)]),
        "table": ms.BipartiteMatching(47),
        "one-sided": ms.BipartiteMatching(43, 49, kind="one_sided"),
        "partial table": ms.BipartiteMatching(44, 46, kind="partial"),
    }


def bits(found):
    return [np.asarray(one).tobytes() for one in found]


@pytest.mark.parametrize("name", structures())
@pytest.mark.parametrize("spread", [1.0, 40.0, 400.0])
def test_inference_has_the_same_bits(name, spread, small, rng):
    """Cold, warm and cut short; near what one block gives. Wide scores are cooled and polished."""
    structure = structures()[name]
    assert len(layout(structure).cut) > 2
    batch = ms.Batch.of(structure, count=2)
    scores = spread * rng.standard_normal(batch.size)

    def answers(count):
        with sharing(count):
            for routine in (Scaling(), Scaling(0.25), Scaling(sweeps=2)):
                cold = routine.many(batch, scores)
                warm = routine.many(batch, 1.01 * scores, cold.warm)
                for one in (cold, warm):
                    yield from (one.tau, one.log_z, one.warm[0].x, one.warm[0].mode)

    first, *others = (bits(answers(count)) for count in COUNTS)
    assert all(one == first for one in others)
    if spread == 1.0:
        found = Scaling().many(batch, scores)
        blocks.SIZE = 10**6
        whole = Scaling().many(ms.Batch.of(structures()[name], count=2), scores)
        np.testing.assert_allclose(found.tau, whole.tau, atol=1e-9)
        np.testing.assert_allclose(found.log_z, whole.log_z, atol=1e-9)


def test_room_mates_have_the_same_bits(small):
    """Weights, proof, intervals, next year's probabilities."""
    people, pairs, _ = data.roommates(70, 2, 3)
    now = {name: column[people["year"] == 1] for name, column in people.items()}
    then = {name: column[people["year"] == 2] for name, column in people.items()}

    def answers(count):
        model = ms.RoommateModel(cohort="year", ordinal="q*", alpha=10.0, workers=count)
        model.fit(now, pairs)
        found = model.probabilities(then)
        yield from (model.coef_, model.certificate_.gap, found["probability"], found["score"])
        yield [(c.estimate, c.low, c.high) for c in model.summary().contrasts]
        yield from model.evaluate(then, pairs).auc.values()

    first, *others = (bits(answers(count)) for count in COUNTS)
    assert all(one == first for one in others)


def test_fits_of_one_matching_have_the_same_bits(small, rng):
    """On the threads of the engine, of which one shard has all."""
    batch = ms.Batch.of(ms.Matching(54), [rng.permutation(54).reshape(-1, 2)])
    features = ms.Dense.of(batch, rng.standard_normal((batch.size, 4)))

    def answers(count):
        solver = ms.FrankWolfe(tol=1e-8, workers=count)
        model = ms.mle_struct(0.5, regulariser=0.1, solver=solver).fit(batch, features)
        with sharing(count):
            found = marginals(batch, features.potentials(model.theta))
        yield from (model.theta, model.certificate.gap, found.tau, found.upper)

    first, *others = (bits(answers(count)) for count in COUNTS)
    assert all(one == first for one in others)


def test_shards_divide_the_threads():
    """Two shards on five threads have two each; a piece of work has one, and none stays."""
    before = threading.active_count()
    local = Local([lambda _: (at_hand(), each(lambda _: at_hand(), range(3)))] * 2, 5)
    assert local.round([None, None]) == [(2, [1, 1, 1])] * 2
    local.close()
    with sharing(3), sharing(5):
        assert at_hand() == 3
        assert each(lambda k: k * k, range(20)) == [k * k for k in range(20)]
    assert at_hand() == 1
    assert threading.active_count() == before
    with pytest.raises(ValueError, match="workers is 0; it must be a whole number, at least 1"):
        ms.RoommateModel(workers=0).fit([], [])


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("error", [ArithmeticError, KeyboardInterrupt])
def test_the_first_error_reaches_the_caller(count, error):
    def fails(k):
        if k >= 4:
            raise error(f"piece {k}")
        return k

    before = threading.active_count()
    with pytest.raises(error, match="piece 4"), sharing(count):
        each(fails, range(30))
    assert threading.active_count() == before


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
def test_threads_that_wait_for_one_another_end_with_the_first(error):
    """Whoever waits at the board for a thread that fails goes home."""
    cut, came = np.array([0, 3, 6]), []

    def run(one):
        came.append(int(one.own[blocks.RANK]))
        if one.own[blocks.RANK] == 2:
            raise error
        while not blocks.broken(one):
            blocks.claim(one)

    with pytest.raises(error), sharing(3):
        blocks.run_in_blocks(run, cut, 6)
    assert sorted(came) == [0, 1, 2]


def test_factors_in_blocks_are_cholesky_s(small, rng):
    root = rng.standard_normal((70, 90))
    table, right = root @ root.T, rng.standard_normal((70, 5))
    lower = definite.factor(table.copy())
    np.testing.assert_allclose(np.tril(lower), np.linalg.cholesky(table), atol=1e-10)
    np.testing.assert_allclose(table @ definite.solve(lower, right), right, atol=1e-8)
    assert definite.factor(table - 80.0 * np.eye(70)) is None

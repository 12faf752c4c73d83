"""Answers shared: fewer calls, the same optimum, and never an outcome of another polytope."""

from itertools import product

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.features import Dense
from mlestruct.learning.checkpoints import Checkpoint
from mlestruct.learning.dual import Dual
from mlestruct.learning.frank_wolfe import FrankWolfe
from mlestruct.learning.regulariser import Regulariser
from mlestruct.learning.steering import Sharing
from mlestruct.oracle import Solver, Validated
from mlestruct.structures.batch import Batch
from mlestruct.structures.entropy import Entropy
from tests.frank_wolfe.test_core import Ended, cut


def knapsacks(seed, rooms, items=8, p=3):
    """One example per room: sets of items whose sizes fit; (dual, oracle, sizes, rooms)."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 9, items)
    sets = np.array(list(product((0.0, 1.0), repeat=items)))
    structures = [ms.Custom(items).carrying(room, tag=room) for room in rooms]

    def solve(score, instance):
        return sets[np.argmax(np.where(sets @ sizes <= instance, sets @ score, -np.inf))]

    X = rng.standard_normal((len(rooms), items, p))
    theta = rng.standard_normal(p)
    noisy = X @ theta + rng.gumbel(size=X.shape[:2])
    batch = Batch.of(structures, [solve(x, room) for x, room in zip(noisy, rooms, strict=True)])
    features = Dense.of(batch, X.reshape(-1, p))
    dual = Dual(batch, features, Entropy.of(batch), Regulariser.of(p, 1.0))
    return dual, Validated(Solver(solve)), sizes, np.asarray(rooms)


def test_the_optimum_is_the_same_in_fewer_calls(monkeypatch):
    calls = np.zeros((2, 4))
    for seed in range(4):
        dual, oracle, _, _ = knapsacks(seed, [30] * 12, items=12)
        ours = FrankWolfe(tol=1e-3).solve(dual, oracle)
        with monkeypatch.context() as without:
            without.setattr(Sharing, "of", lambda batch: None)
            alone = FrankWolfe(tol=1e-3).solve(dual, oracle)
        both = ours.certificate, alone.certificate
        assert max(one.relative for one in both) <= 1e-3
        assert abs(both[0].objective - both[1].objective) <= max(one.gap for one in both)
        calls[:, seed] = ours.calls, alone.calls
    assert (calls[0] <= calls[1]).all()
    assert calls[0].sum() <= 0.76 * calls[1].sum()


@pytest.mark.parametrize("seed", range(3))
def test_examples_of_other_data_share_nothing(seed):
    """A sack of 12 never gets what fits into one of 24, and its mean stays within its own."""
    dual, oracle, sizes, rooms = knapsacks(seed, [12, 24, 12, 24, 18])
    state = FrankWolfe(tol=1e-4).solve(dual, oracle)
    assert state.certificate.relative <= 1e-4
    filled = state.tau.reshape(len(rooms), -1) @ sizes
    assert (filled <= rooms + 1e-9).all()


@pytest.mark.parametrize("seed", range(5))
def test_the_best_answer_is_what_a_plain_search_finds(seed):
    rng = np.random.default_rng(seed)
    dual, *_ = knapsacks(seed, rng.choice([12, 24], 7))
    batch, sharing = dual.batch, Sharing.of(dual.batch)
    answers = [rng.integers(0, 2, batch.size).astype(float) for _ in range(3)]
    score, tau = rng.standard_normal(batch.size), rng.uniform(0.4, 0.6, batch.size)
    sharing.answers = answers
    found, lead = sharing.best(batch, score, tau)
    for m in range(len(batch)):
        part = batch.coordinates(m)
        kin = [k for k in range(len(batch)) if batch.which[k] == batch.which[m]]
        rows = np.array([one[batch.coordinates(k)] for one in answers for k in kin])
        worth = rows @ score[part] - tau[part] @ score[part]
        assert lead[m] == pytest.approx(worth.max())
        best = rows[np.argmax(worth)]
        assert (found[part] == best).all()


def test_a_run_goes_on_with_the_same_bits(tmp_path):
    dual, oracle, _, _ = knapsacks(0, [20] * 6)
    whole = FrankWolfe(tol=0.0, rounds=25).solve(dual, oracle)
    for ended in (7, 14, 21):
        path = Checkpoint(tmp_path / f"{ended}.ckpt", every=1)
        with pytest.raises(Ended):
            cut(FrankWolfe(tol=0.0, rounds=25, checkpoint=path), dual, oracle, ended)
        after = FrankWolfe(tol=0.0, rounds=25, checkpoint=path).solve(dual, oracle)
        assert (after.theta == whole.theta).all()
        assert (after.tau == whole.tau).all()
        assert after.certificate == whole.certificate

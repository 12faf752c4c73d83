"""Max-margin rounds: settled blocks, sparse moments, and the best weights so far."""

from collections import namedtuple
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from mlestruct.batch import Batch
from mlestruct.features import Tied
from mlestruct.frank_wolfe import FrankWolfe, active_set, flat, rounds
from mlestruct.frank_wolfe import atoms as sets
from mlestruct.learners import ssvm
from mlestruct.oracle import resolve
from mlestruct.structures import chain

TIGHT = FrankWolfe(tol=1e-7, rounds=400)


@pytest.fixture
def words(rng):
    """Chains of one-hot inputs: each touches few of the weights."""
    lengths = rng.integers(3, 7, 8)
    seen = [np.eye(12)[rng.integers(0, 12, n)] for n in lengths]
    labels = [(x.argmax(axis=1) + rng.integers(0, 2, len(x))) % 5 for x in seen]
    batch = Batch.of([chain(int(n), 5) for n in lengths], labels, weight=0.5 + rng.random(8))
    return batch, Tied.of(batch, seen)


def watched(monkeypatch, dual, count):
    """The iterate that a run of so many rounds leaves behind."""
    kept, step = [], rounds.take

    def keeping(solver, name, number, iterate, *rest):
        step(solver, name, number, iterate, *rest)
        kept[:] = [iterate]

    monkeypatch.setattr(rounds, "take", keeping)
    FrankWolfe(tol=0.0, rounds=count).solve(dual, resolve(None, dual.batch))
    return kept[0]


def atom_scores(dual, iterate, m):
    """⟨Φθ + bias, vertex⟩ of every known vertex of an example, and their weights."""
    score, own = dual.scores(dual.theta(iterate.x.tau)), iterate.atoms.vertex
    found = []
    for slot in range(iterate.atoms.known[m]):
        start = own.start[m] + slot * own.width[m]
        part = slice(start, start + own.length[m, slot])
        found.append(float(score[own.place[part]].sum()))  # vertices are ones
    return np.array(found), iterate.atoms.weight[m, : len(found)]


def test_settled_blocks_are_the_best_mixture_of_their_vertices(words, monkeypatch):
    """KKT of the restricted problem, from scores computed afresh; no array drifts on the way."""
    dual = ssvm(regulariser=0.5).dual(*words)
    iterate = watched(monkeypatch, dual, 12)
    dual = replace(dual, regulariser=iterate.regulariser)  # of the steps: θ is held
    p, x, atoms, s, order = iterate.p, iterate.x, iterate.atoms, iterate.s, np.arange(8)
    gram = flat.gram_of(atoms, iterate.gram)
    flat.quadratic_passes(3000, 1e-16, order, 99, p, x, atoms, gram, s)
    for m in order:
        score, weight = atom_scores(dual, iterate, m)
        assert (weight > 1e-9).sum() > 1 or m > 0
        np.testing.assert_allclose(score[weight > 1e-9], score.max(), atol=1e-6)
    tracked = x.tau.copy(), x.r.copy(), x.theta.copy()
    sets.rebuild(x.tau, p, atoms)
    fresh = x.tau, dual.residual(x.tau), dual.theta(x.tau)
    for old, new in zip(tracked, fresh, strict=True):
        np.testing.assert_allclose(old, new, atol=1e-9)


def test_sparse_moments_are_the_same_moments(words, monkeypatch):
    """Kept sparse or dense, a run ends at the same optimum, and both are met here."""
    values = []
    for share in (0.0, 1.0):
        monkeypatch.setattr(active_set, "SPARSE", share)
        dual = ssvm(regulariser=0.5).dual(*words)
        assert (len(watched(monkeypatch, dual, 3).atoms.moment.place) > 0) == (share == 1.0)
        monkeypatch.undo()
        monkeypatch.setattr(active_set, "SPARSE", share)
        values.append(TIGHT.solve(dual, resolve(None, dual.batch)).certificate)
    first, second = values
    assert abs(first.objective - second.objective) <= first.gap + second.gap
    assert max(first.relative, second.relative) <= 1e-7


def test_pairwise_steps_and_settled_ones_agree(words, monkeypatch):
    """A bound that never binds takes the general steps: the same optimum."""
    bounded = partial(ssvm, solver=TIGHT)
    from mlestruct.regulariser import Regulariser

    d = words[1].d
    one = bounded(regulariser=0.5).fit(*words)
    two = bounded(regulariser=Regulariser.of(d, 0.5, upper=1e6)).fit(*words)
    assert one.certificate.relative <= 1e-7
    gaps = one.certificate.gap + two.certificate.gap
    assert abs(one.certificate.objective - two.certificate.objective) <= gaps
    np.testing.assert_allclose(one.theta, two.theta, atol=np.sqrt(2 * gaps / 0.5) + 1e-6)


def test_the_gap_of_the_best_weights_never_rises(words):
    """Its primal objective is the least so far, and evaluated afresh it is what is stated."""
    learner = ssvm(regulariser=0.5, solver=FrankWolfe(tol=0.0, rounds=25))
    dual, oracle = learner.dual(*words), resolve(None, words[0])
    gaps = []
    for state in learner.states(*words):
        batch, theta = dual.batch, state.theta
        best = oracle.many(batch, dual.scores(theta))[1] + batch.constant
        primal = dual.regulariser.value(theta) + batch.weight @ best - theta @ dual.observed
        assert state.gap - state.certificate.objective == pytest.approx(primal, rel=1e-9)
        gaps.append(state.gap)
    assert (np.diff(gaps) <= 1e-9 * gaps[0]).all()
    assert gaps[-1] < 0.1 * gaps[0]


def test_vertices_with_more_entries_than_any_before_find_room(words, monkeypatch):
    """Slots are widened under what they hold."""
    dual = ssvm(regulariser=0.5).dual(*words)
    iterate = watched(monkeypatch, dual, 5)
    rows, known = iterate.atoms.moment, iterate.atoms.known
    wider = active_set.widened(rows, rows.width + 3, known, rows.width + 9)
    assert (wider.width >= rows.width + 3).all()
    for m in range(8):
        for slot in range(known[m]):
            old, new = (np.zeros(dual.features.d) for _ in range(2))
            sets.add_row(m, slot, 1.0, rows, m * dual.features.d, old)
            sets.add_row(m, slot, 1.0, wider, m * dual.features.d, new)
            assert np.array_equal(old, new)
            assert old.any()


@pytest.mark.parametrize("ones", [False, True])
def test_rows_of_nothing_are_sparse_all_the_same(ones):
    """An empty matching has no entries; taken for a dense row it was read beyond its end."""
    none = np.zeros(2, dtype=np.int64)
    atoms = active_set.empty_atoms(
        np.full(6, 0.2), np.zeros(0), active_set.Widths(none, none, False, ones), 4
    )
    shape = np.ones(2), np.array([0, 3, 6]), np.zeros(3, dtype=np.int64)
    p = namedtuple("Problem", "weight offsets column_start")(*shape)
    sets.scaled_pass(np.zeros(6), np.zeros(0), 0, 0.9, p, atoms)
    tau = np.empty(6)
    sets.rebuild(tau, p, atoms)
    assert np.allclose(tau, 0.02)
    assert not atoms.vertex.length[:, 0].any()

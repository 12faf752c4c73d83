"""Max-margin rounds: settled blocks, sparse moments, and the best weights so far."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from mlestruct.batch import Batch
from mlestruct.features import Tied
from mlestruct.frank_wolfe import FrankWolfe, flat, rounds
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

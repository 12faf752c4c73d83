"""The spectral rule against the Bethe objective around a permutation."""

import numpy as np
import pytest
from scipy.special import xlogy

from mlestruct.structures import BipartiteMatching
from tests.reference.bethe_vertex import is_bethe_vertex


def bethe(score, tau):
    return float((score * tau - xlogy(tau, tau) + xlogy(1 - tau, 1 - tau)).sum())


def doubly_stochastic(rng, n):
    return rng.dirichlet(np.ones(2 * n)) @ np.eye(n)[
        [rng.permutation(n) for _ in range(2 * n)]
    ].reshape(2 * n, n * n)


@pytest.mark.parametrize("size", [2, 3, 5])
def test_the_rule_says_whether_a_direction_leads_up(size, rng):
    structure = BipartiteMatching(size)
    identity = np.eye(size).ravel()
    seen = set()
    for scale in np.linspace(0.05, 3.0, 40):
        score = (scale * np.eye(size) + 0.3 * rng.normal(size=(size, size))).ravel()
        holds = is_bethe_vertex(structure, score, identity)
        seen.add(holds)
        here = bethe(score, identity)
        steps = [(1 - h) * identity + h * doubly_stochastic(rng, size)
                 for h in (1e-6, 1e-3, 0.1) for _ in range(30)]  # fmt: skip
        if holds:
            assert max(bethe(score, tau) for tau in steps) <= here + 1e-12
        else:
            assert _perron_gains(score.reshape(size, size)) > 0
    assert size == 2 or seen == {True, False}


def _perron_gains(table):
    """The step along the Perron vectors of the rival odds, which gains wherever any does."""
    size = len(table)
    odds = np.exp(table - np.diag(table)[:, None])
    np.fill_diagonal(odds, 0.0)
    values, right = np.linalg.eig(odds)
    left = np.linalg.eig(odds.T)
    a = np.abs(left[1][:, left[0].real.argmax()].real)
    b = np.abs(right[:, values.real.argmax()].real)
    flow = a[:, None] * odds * b[None, :]
    step = flow - np.diag(flow.sum(axis=1))
    tau = np.eye(size) + 1e-7 * step / np.abs(step).max()
    return bethe(table, tau) - bethe(table, np.eye(size))


def test_any_scale_of_scores(rng):
    structure = BipartiteMatching(6)
    vertex = np.eye(6)[rng.permutation(6)].ravel()
    shift = 1e4 * (rng.normal(size=(6, 1)) + rng.normal(size=(1, 6))).ravel()
    assert is_bethe_vertex(structure, 20 * vertex + shift, vertex)
    assert not is_bethe_vertex(structure, 0.1 * vertex + shift, vertex)
    assert not is_bethe_vertex(structure, -2000 * vertex, vertex)


def test_only_perfect_matchings():
    with pytest.raises(ValueError, match="partial"):
        is_bethe_vertex(BipartiteMatching(2, 2, "partial"), np.zeros(4), np.eye(2).ravel())

"""What a person at the front reads: calls, where the time goes, what is proven, what is ahead."""

import time

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.progress import heading


@pytest.mark.parametrize("pace", [0.03, 0.2])
@pytest.mark.parametrize("now", [0.5, 0.0234, 1e-4])
def test_a_gap_that_falls_evenly_is_foretold(pace, now):
    calls = np.arange(40)
    seen = [(c, now * np.exp(pace * (39 - c))) for c in calls]
    power = 10.0 ** (np.ceil(np.log10(now)) - 1)
    more = int(np.ceil(np.log(now / power) / pace - 1e-9))
    said = heading(seen)
    assert f"{power:.0e} in about" in said
    assert any(f"about {k} calls" in said for k in (more, more + 1))


def test_a_fit_says_what_its_solver_took(capsys):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((4, 3, 3, 2)), [rng.permutation(3) for _ in range(4)]

    def solve(score):
        time.sleep(2e-3)
        from itertools import permutations

        table = score.reshape(3, 3)
        return max(permutations(range(3)), key=lambda p: table[range(3), list(p)].sum())

    model = ms.MatchingModel(oracle=solve, tol=1e-2, max_rounds=60, progress=True).fit(X, y)
    said = capsys.readouterr().err
    assert "s solver + " in said
    assert "proven to" in said
    assert 2e-3 * model.history_[-1][0] <= model.solver_seconds_ <= model.history_[-1][1]

"""What a person at the front reads: calls, where the time goes, what is proven."""

import time

import numpy as np

import mlestruct as ms


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

"""``mlestruct demo``: a bipartite matching model learned, judged and certified from end to end."""

from __future__ import annotations

import time

import numpy as np

from mlestruct import data
from mlestruct.estimators import MatchingModel


def run(quick: bool = False) -> int:
    """Learn on generated landmark pairs, predict unseen ones, print what a user would check."""
    sizes = (10, 5, 10) if quick else (30, 20, 40)
    train, valid, test = data.landmarks(sizes)
    n, d = train.X[0].shape[1:]
    print(f"{sizes[0]} training pairs of views with {n} landmarks, {d} features per candidate pair")
    plain = MatchingModel()
    plain.coef_ = np.ones(d)
    print(f"{'learner':>22} {'test error':>11} {'seconds':>8}")
    print(f"{'equal weights':>22} {1 - plain.score(test.X, test.y):11.4f}")
    for name, rho in (("ssvm", None), ("mle_struct", 0.5)):
        start = time.perf_counter()
        model = MatchingModel(learner=name, rho=rho, alpha=(0.1, 1.0, 10.0), tol=0.05)
        model.fit(train.X, train.y, validation=(valid.X, valid.y))
        error, seconds = 1 - model.score(test.X, test.y), time.perf_counter() - start
        print(f"{name:>22} {error:11.4f} {seconds:8.1f}   alpha {model.alpha_:g}")
    marginal = model.predict_marginals(test.X)
    right = [tau[np.arange(n), y] for tau, y in zip(marginal, test.y, strict=True)]
    print(f"mean −log probability of the true match: {-np.log(np.concatenate(right)).mean():.3f}")
    print(f"calibration error of all pairs: {model.calibration(test.X, test.y).error:.4f}")
    print(f"mle_struct: {model.certificate_}")
    return 0

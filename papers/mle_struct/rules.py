"""House again, at gaps 50 and 90: what other ways to choose λ on the validation pairs would give.

``house`` takes the λ of least −log p. Here beside it: the least error; the strongest λ within one
standard error of the least −log p; the least −log p when training and validation pairs also
change places; and the same least −log p with features divided by their standard deviations.

``sweeps`` is gap 90 by `house`'s dozen lines of Sinkhorn with more and more sweeps: do they end
before the optimum, and is that why they are better there?
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from mlestruct import Batch, Dense, FrankWolfe
from mlestruct.learners import mle_struct
from papers._run import Row, Setting
from papers.mle_struct.house import (
    CERTIFIED,
    SHARES,
    SWEEPS,
    THIRDS,
    Pairs,
    house_frames,
    pairs_of,
    sinkhorn,
)

Array = NDArray[np.float64]
GAPS, RHO = (50, 90), 0.5
TOGETHER = SWEEPS, 1000, 5000


def rules(setting: Setting) -> Iterator[Row]:
    """Every rule's choice, and what it gives on the test pairs."""
    known = house_frames(setting.data("cmu_house"))
    for gap in GAPS[:1] if setting.quick else GAPS:
        train, valid, test = (pairs_of(known, gap, split) for split in THIRDS)
        path = list(fits(train))
        each = np.array([valid.charges(theta, RHO).reshape(len(valid.batch), -1).mean(axis=1)
                         for theta in path])  # fmt: skip
        mean = each.mean(axis=1)
        allowed = mean.min() + each[mean.argmin()].std(ddof=1) / np.sqrt(len(valid.batch))
        back = [train.charges(theta, RHO).mean() for theta in fits(valid)]
        both = mean[: len(back)] + back[: len(mean)]
        wrong = np.array([valid.error(theta) for theta in path])
        chosen = {
            "least −log p": mean.argmin(),
            "least error": np.lexsort((mean, wrong))[0],
            "one standard error": np.flatnonzero(mean <= allowed)[0],
            "least −log p, both ways": both.argmin(),
        }
        for rule, k in chosen.items():
            yield row(gap, rule, int(k), valid, test, path)
        together = list(fits(joined(train, valid)))[: int(mean.argmin()) + 1]
        again = row(gap, "least −log p, fitted on both", len(together) - 1, valid, test, together)
        yield {**again, "validation nll": None}  # they were learned from
        spread = train.features.matrix.std(axis=0)
        train, valid, test = (scaled(pairs, spread) for pairs in (train, valid, test))
        path = list(fits(train))
        best = int(np.argmin([valid.charges(theta, RHO).mean() for theta in path]))
        yield row(gap, "least −log p, scaled features", best, valid, test, path)


def sweeps(setting: Setting) -> Iterator[Row]:
    """−log p along the penalties at gap 90: by the library, and by Sinkhorn with so many sweeps."""
    known = house_frames(setting.data("cmu_house"))
    train, valid, test = (pairs_of(known, GAPS[-1], split) for split in THIRDS)
    shares = SHARES[: 1 if setting.quick else None]
    paths = {"the library": list(fits(train))[: len(shares)]}
    for count in TOGETHER[: 1 if setting.quick else None]:
        path = [np.zeros(train.features.d)]
        for lam in (shares * len(train.batch)).tolist():
            path.append(sinkhorn(train, lam, path[-1], count))
        paths[f"{count} sweeps"] = path[1:]
    for learner, path in paths.items():
        for share, theta in zip(shares.tolist(), path, strict=False):
            merits = {
                f"{name} nll": float(pairs.charges(theta, RHO).mean())
                for name, pairs in (("training", train), ("validation", valid), ("test", test))
            }
            yield {"learner": learner, "lam per pair": share, **merits}


def fits(train: Pairs) -> Iterator[Array]:
    """Weights from the strongest λ on, as long as they are certified."""
    learner = mle_struct(RHO, solver=FrankWolfe(tol=1e-4, rounds=100))
    lams = (SHARES * len(train.batch)).tolist()
    for model in learner.path(train.batch, train.features, lams):
        if model.certificate.relative > CERTIFIED:
            return
        yield model.theta


def joined(one: Pairs, other: Pairs) -> Pairs:
    truth = [*one.truth, *other.truth]
    batch = Batch.of([one.batch.structure(0)] * len(truth), truth)
    rows = np.concatenate([one.features.matrix, other.features.matrix])
    return Pairs(batch, Dense.of(batch, rows), truth, one.frames)


def scaled(pairs: Pairs, spread: Array) -> Pairs:
    features = Dense.of(pairs.batch, pairs.features.matrix / spread)
    return Pairs(pairs.batch, features, pairs.truth, pairs.frames)


def row(gap: int, rule: str, k: int, valid: Pairs, test: Pairs, path: list[Array]) -> Row:
    return {
        "gap": gap,
        "rule": rule,
        "lam per pair": float(SHARES[k]),
        "validation nll": float(valid.charges(path[k], RHO).mean()),
        "test nll": float(test.charges(path[k], RHO).mean()),
        "test error": test.error(path[k]),
    }

"""Speed dating: which dates both sides liked, as edges of a b-matching.

People had several matches or none and nobody had to choose among them, so a person's capacity is
the number of his or her dates: edges are independent given their features, and the likelihood is
exact. Learned from waves 1 to ``TRAIN``, tested on the later ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlestruct import Batch, BMatching, Dense, FrankWolfe, marginals, tables
from mlestruct.learners import mle_struct
from papers._run import Row, Setting
from papers.mle_struct.figure import lines
from papers.mle_struct.judge import area, binned

Array = NDArray[np.float64]
TRAIN, LAST, QUICK, LAM = 14, 21, (1, 4, 6, 16, 18), 1.0
RATED = ("attr", "sinc", "intel", "fun", "amb", "shar")
NAMES = (*RATED, *(f"{name}_o" for name in RATED), "int_corr", "samerace")
LIKING = [0, len(RATED)]  # how attractive each finds the other
SOLVER = FrankWolfe(tol=1e-3, rounds=1000)


class Wave(NamedTuple):
    """Dates man by man: features (NaN: not answered), and whether both said yes."""

    features: Array
    match: Array
    men: int
    women: int


def read(path: Path) -> Wave:
    table = tables.table(path)
    columns = {name: np.asarray(table[name], dtype=float) for name in table.names}
    order = np.lexsort((columns["pid"], columns["iid"]))
    ages = np.abs(columns["age"] - columns["age_o"])
    X = np.stack([*(columns[name] for name in NAMES), ages], axis=1)
    men, women = (len(np.unique(columns[name])) for name in ("iid", "pid"))
    return Wave(X[order], columns["match"][order], men, women)


def dates(setting: Setting) -> Iterator[Row]:
    """All features, and the obvious ones alone: held-out log-likelihood and area."""
    folder = setting.data("speed_dating")
    numbers = QUICK if setting.quick else range(1, LAST + 1)
    waves = {k: read(folder / f"wave_{k:02d}.csv") for k in numbers}
    train = [wave for k, wave in waves.items() if k <= TRAIN]
    test = [wave for k, wave in waves.items() if k > TRAIN]
    answers = np.concatenate([wave.features for wave in train])
    mean, spread = np.nanmean(answers, axis=0), np.nanstd(answers, axis=0)
    rate = float(np.concatenate([wave.match for wave in train]).mean())
    shown = {}
    for name, chosen in (("attraction", LIKING), ("all", list(range(answers.shape[1])))):
        batch, features = problem(train, mean, spread, chosen)
        model = mle_struct(regulariser=LAM, solver=SOLVER).fit(batch, features)
        held, seen = problem(test, mean, spread, chosen)
        found = marginals(held, seen.potentials(model.theta), solver=SOLVER)
        assert held.target is not None
        shown[name] = binned(found.tau, held.target)
        yield {
            "market": "dates",
            "features": name,
            "certificate": model.certificate.relative,
            "AUC": area(found.tau, held.target),
            "log-likelihood per date": likelihood(found.tau, held.target),
            "constant rate": likelihood(np.full(held.size, rate), held.target),
            "dates": held.size,
            "matches": int(held.target.sum()),
        }
    axes = "predicted probability", "share that matched"
    lines(setting, "dates", {f"{held.size} dates": shown}, *axes, diagonal=True)


def problem(
    waves: list[Wave], mean: Array, spread: Array, chosen: list[int]
) -> tuple[Batch[Any], Dense]:
    """Standardised features, what was not answered at the mean, and a constant."""
    graphs = [BMatching.bipartite(w.men, w.women, w.women, w.men) for w in waves]
    batch = Batch.of(graphs, [g.ends[w.match > 0] for g, w in zip(graphs, waves, strict=True)])
    X = np.nan_to_num((np.concatenate([w.features for w in waves]) - mean) / spread)[:, chosen]
    return batch, Dense.of(batch, np.hstack([X, np.ones((len(X), 1))]))


def likelihood(tau: Array, y: Array) -> float:
    """Mean log-probability of what happened."""
    return float(np.mean(np.log(np.where(y > 0, tau, 1 - tau))))

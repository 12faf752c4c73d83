"""Chess rounds: observed perfect matchings of all players, made by a pairing program.

Score, rating, colours and whether two have met before. Pairs are made by an algorithm, so weights
*imitate* it. Rematches after forfeits are in the data, so having met is a feature and not
forbidden. Learned from the rounds 2 to ``LAST`` of both tournaments, tested on later ones.
Held-out log-likelihoods take the surrogate log Z over the matchings' hull: at ρ = ½ they are lower
bounds.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlestruct import Batch, Dense, FrankWolfe, Matching, tables
from mlestruct.inference import best
from mlestruct.inference.routine import Beliefs, routine
from mlestruct.learners import mle_struct, ssvm
from mlestruct.structures.entropy import Entropy
from papers._run import Row, Setting
from papers.mle_struct.dates import dates
from papers.mle_struct.judge import area

Array = NDArray[np.float64]
GAMES = "issue_7", "issue_15"
LAST, RHOS = 6, (0.5, 1.0)
FIT: dict[str, Any] = {"regulariser": 1.0, "solver": FrankWolfe(tol=1e-5, rounds=300)}


class Round(NamedTuple):
    """A complete graph of players, its features, and the pairs that were made."""

    structure: Matching
    features: Array
    pairs: NDArray[np.int64]


def rounds(path: Path) -> list[Round]:
    """Features from before the round: |Δ score|, |Δ rating| / 100, met before, colour clash."""
    table = tables.table(path)
    columns = {name: np.asarray(table[name]) for name in table.names}
    n = int(max(columns["player_a"].max(), columns["player_b"].max()))
    u, v = np.triu_indices(n, 1)
    met, whites, found = np.zeros((n, n)), np.zeros(n), []
    for number in np.unique(columns["round"]):
        rows = columns["round"] == number
        a, b = (columns[f"player_{side}"][rows].astype(int) - 1 for side in "ab")
        score, rating = np.empty(n), np.empty(n)
        score[a], score[b] = columns["score_a"][rows], columns["score_b"][rows]
        rating[a], rating[b] = columns["rating_a"][rows], columns["rating_b"][rows]
        clash = np.minimum(np.abs(whites[u]), np.abs(whites[v])) * (whites[u] * whites[v] > 0)
        apart = np.abs(score[u] - score[v])
        X = np.stack([apart, np.abs(rating[u] - rating[v]) / 100, met[u, v], clash], axis=1)
        found.append(Round(Matching(n), X, np.stack([a, b], axis=1)))
        met[a, b] = met[b, a] = 1.0
        whites[a] += 1
        whites[b] -= 1
    return found


def swiss(setting: Setting) -> Iterator[Row]:
    """Imitation of the pairing program: weights, areas, right pairs, held-out log-likelihood."""
    folder = setting.data("swiss_pairings")
    names, most = (GAMES[:1], 3) if setting.quick else (GAMES, None)
    games = [rounds(folder / f"{name}.csv") for name in names]
    train, test = ([r for g in games for r in part(g)[:most]] for part in (_early, _late))
    batch, features = _problem(train)
    held, seen = _problem(test)
    assert held.target is not None
    count = float(held.target.sum())
    single = _mean_area(held, -seen.matrix[:, 0])
    for name, rho in [("mle_struct", rho) for rho in RHOS] + [("ssvm", None)]:
        made: Any = mle_struct(rho, **FIT) if rho else ssvm(**FIT)
        model = made.fit(batch, features)
        score = seen.potentials(model.theta)
        right = [held.structure(m).encode(y) for m, y in enumerate(best(held, score)[0])]
        beliefs = _beliefs(held, score, rho) if rho else None
        reached = float(held.totals(score * held.target).sum())
        weights = ("score apart", "rating apart / 100", "met", "colours clash")
        yield {
            "market": "swiss",
            "learner": name,
            "rho": rho,
            **dict(zip(weights, map(float, model.theta), strict=True)),
            "certificate": model.certificate.relative,
            "polytope": model.certificate.polytope,
            "AUC": _mean_area(held, score if beliefs is None else beliefs.tau),
            "AUC, score apart alone": single,
            "right pairs": float(np.concatenate(right) @ held.target) / count,
            "surrogate log-likelihood per pair": (
                None if beliefs is None else (reached - float(beliefs.log_z.sum())) / count
            ),
            "uniform": -sum(_log_matchings(r.structure.n_nodes) for r in test) / count,
        }


def _beliefs(held: Batch[Any], score: Array, rho: float) -> Beliefs:
    direct = routine(Entropy.of(held, rho))
    assert direct is not None
    return direct.many(held, score)


def markets(setting: Setting) -> Iterator[Row]:
    """Dates, then rounds of chess, which take longer."""
    yield from dates(setting)
    yield from swiss(setting)


def _early(game: list[Round]) -> list[Round]:
    return game[1:LAST]


def _late(game: list[Round]) -> list[Round]:
    return game[LAST:]


def _problem(given: list[Round]) -> tuple[Batch[Any], Dense]:
    batch = Batch.of([r.structure for r in given], [r.pairs for r in given])
    return batch, Dense.of(batch, [r.features for r in given])


def _mean_area(batch: Batch[Any], values: Array) -> float:
    assert batch.target is not None
    places = [batch.coordinates(m) for m in range(len(batch))]
    return float(np.mean([area(values[k], batch.target[k]) for k in places]))


def _log_matchings(n: int) -> float:
    """log of (n − 1)(n − 3)…1."""
    return float(np.log(np.arange(1, n, 2)).sum())

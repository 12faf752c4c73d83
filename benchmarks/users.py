"""Do the 95 % intervals hold where users are? Settings that ``coverage`` does not run.

``python -m benchmarks users``: cohorts that resemble each other, one weight that varies by example,
features that are rare, correlated, of other scales or not known to the model, examples of all sizes
and weights, nearly separated outcomes; and pairs of one large bipartite matching as units.
Then errors that ``evaluate`` prints, and the gate of calibration. ``python -m benchmarks.users``
prints the table of docs/statistics.md, ``python -m benchmarks.users cohorts`` a part of it,
``errors``, ``several`` (years of room-mates) and ``calibrated`` the rest. ``--quick`` repeats less.

Experiments and repetitions were fixed before this was run. What intervals are for is what ``LIMIT``
other examples come to, with expected outcomes in the place of drawn ones.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

import mlestruct as ms
from benchmarks.coverage import HEAD, QUICK, WEIGHTS, Counted, _estimates, rows
from mlestruct import RoommateModel, data
from mlestruct.estimators import Calibration
from mlestruct.features import Dense, Tied
from mlestruct.inference.exact import exact
from mlestruct.inference.sampling import sample, sample_matchings
from mlestruct.learners import mle_struct
from mlestruct.learning.regulariser import Regulariser
from mlestruct.statistics import Identified, intervals, problem
from mlestruct.statistics.firth import Firth
from mlestruct.statistics.interval import Intervals
from mlestruct.structures.batch import Batch
from mlestruct.testing import vertices

Row = dict[str, Any]
Array = np.ndarray[Any, Any]
Random = np.random.Generator

LIMIT = 3000  # examples that a limit is taken from
SEED = 11
RARE = 0.05  # share of ones in a rare feature
SIZES = [ms.BipartiteMatching(n) for n in (3, 4, 5, 6)]


class Drawn(NamedTuple):
    """Examples, what the model knows of them, and the scores that drew them."""

    batch: Batch[Any]
    features: Any
    scores: Array


Features = Callable[[Random, int, int], Array]  # (rng, rows, columns)


def normal(rng: Random, rows: int, d: int) -> Array:
    return rng.standard_normal((rows, d))


def rare(rng: Random, rows: int, d: int) -> Array:
    """The first column is 1 for few rows."""
    X = rng.standard_normal((rows, d))
    X[:, 0] = rng.random(rows) < RARE
    return X


def alike(rng: Random, rows: int, d: int) -> Array:
    """Every two columns are correlated by .9."""
    return np.asarray(
        np.sqrt(0.9) * rng.standard_normal((rows, 1)) + np.sqrt(0.1) * normal(rng, rows, d)
    )


def scaled(rng: Random, rows: int, d: int) -> Array:
    """Columns of other units."""
    return normal(rng, rows, d) * np.array([1e3, 1.0, 1e-3])[:d]


@dataclass(frozen=True)
class Setting:
    """Chains of ``length`` nodes or, if there are ``tables``, matchings; what is unusual of them.

    ``varies``: the standard deviations of weights between units. ``cohorts``: of how many examples
    each consists, where they are units. ``known``: how many columns the model has.
    """

    units: int
    repeats: int
    length: tuple[int, int] = (8, 8)
    tables: Any = None
    rho: float | None = None
    summed: bool = False
    columns: Features = normal
    d: int = 3
    theta: Any = None
    varies: tuple[float, ...] = ()
    cohorts: tuple[int, ...] | None = None
    known: int | None = None
    weighted: bool = False

    def unit(self, count: int) -> Array:
        """Of every example; beyond the cohorts of one data set, others of the same sizes."""
        sizes = np.ones(1, int) if self.cohorts is None else np.array(self.cohorts)
        again = -(-count // int(sizes.sum()))
        return np.repeat(np.arange(len(sizes) * again), np.tile(sizes, again))[:count]

    def drawn(self, count: int, rng: Random) -> Drawn:
        return (_chains if self.tables is None else _tables)(self, count, rng)

    def own(self, theta: Array, count: int, rng: Random) -> Array:
        """Every example's weights."""
        unit, spread = self.unit(count), np.zeros(len(theta))
        spread[: len(self.varies)] = self.varies
        return np.asarray(
            theta + (spread * rng.standard_normal((unit.max() + 1, len(theta))))[unit]
        )

    def weights(self, count: int, rng: Random) -> Array | None:
        return rng.integers(1, 6, count).astype(float) if self.weighted else None


def _chains(asked: Setting, count: int, rng: Random) -> Drawn:
    lengths = rng.integers(asked.length[0], asked.length[1] + 1, count)
    empty = Batch.of([ms.chain(int(n), 2) for n in lengths])
    width = 8 if asked.d == 10 else 1
    rows = asked.columns(rng, int(lengths.sum()), width)
    tied = Tied.of(empty, rows, np.ones((int((lengths - 1).sum()), 1)))
    theta = 0.5 * np.random.default_rng(width).standard_normal(tied.d)
    own = asked.own(theta, count, rng)
    scores = tied.potentials(theta)
    if asked.varies:
        each = (tied.select(np.array([m])).potentials(w) for m, w in enumerate(own))
        scores = np.concatenate(list(each))
    found = [draws.outcomes()[0] for draws in sample(empty, scores, 1, rng)]
    batch = Batch.of(
        [ms.chain(int(n), 2) for n in lengths], found, weight=asked.weights(count, rng)
    )
    return Drawn(batch, tied, scores)


def _tables(asked: Setting, count: int, rng: Random) -> Drawn:
    which = rng.integers(len(asked.tables), size=count)
    theta = WEIGHTS[asked.d] if asked.theta is None else np.array(asked.theta)
    own, structures, X, y, scores = asked.own(theta, count, rng), [], [], [], []
    for k, weight in zip(which.tolist(), own, strict=True):
        structure, listed = asked.tables[k], LISTED[asked.tables[k]]
        x = asked.columns(rng, structure.size, asked.d)
        score = x @ weight
        best = np.argmax(listed @ score + rng.gumbel(size=len(listed)))
        structures.append(structure)
        y.append(structure.decode(listed[best]))
        X.append(x[:, : asked.known])
        scores.append(score)
    batch = Batch.of(structures, y, weight=asked.weights(count, rng))
    return Drawn(batch, Dense.of(batch, np.concatenate(X)), np.concatenate(scores))


FOUR, PARTIAL = [ms.BipartiteMatching(4)], [ms.BipartiteMatching(3, 3, "partial")]
LISTED = {one: vertices(one) for one in (*SIZES, *PARTIAL)}
COHORTS = {
    6: (1, 1, 2, 3, 5, 8),
    8: (1, 1, 2, 2, 3, 4, 6, 8),
    12: (1, 1, 1, 2, 2, 3, 3, 4, 5, 5, 7, 8),
}
EXACT: dict[str, Any] = {"tables": FOUR, "summed": True}
HALF: dict[str, Any] = {"tables": FOUR, "rho": 0.5}

SETTINGS = {
    **{f"cohorts, {k} of 1 to 8 chains, one weight varies (SD 1)":
       Setting(sum(sizes), 280, varies=(1.0,), cohorts=sizes) for k, sizes in COHORTS.items()},
    **{f"cohorts, {k} of 1 to 8 chains, all weights vary (SD .6)":
       Setting(sum(COHORTS[k]), 280, varies=(0.6,) * 6, cohorts=COHORTS[k]) for k in (8, 12)},
    "cohorts, 8 of 4 tables 4 × 4, one weight varies (SD 1)":
        Setting(32, 370, varies=(1.0,), cohorts=(4,) * 8, **EXACT),
    **{f"chains, one weight varies by example (SD 1), {n} examples":
       Setting(n, 280, varies=(1.0,)) for n in (8, 12, 30)},
    "chains, 10 weights, one varies by example (SD 1), 15 examples":
        Setting(15, 110, d=10, varies=(1.0,)),
    **{f"chains of 2 to 40 nodes, {n} examples": Setting(n, 280, length=(2, 40))
       for n in (4, 8, 30)},
    "chains with weights of 1 to 5, 12 examples": Setting(12, 280, weighted=True),
    **{f"chains, a feature that is 1 for 5 %, {n} examples": Setting(n, 280, columns=rare)
       for n in (8, 30, 100)},
    **{f"tables 4 × 4, {name}, {n} examples": Setting(n, 370, **{**EXACT, **more})
       for name, more in {
           "a feature that is 1 for 5 %": {"columns": rare},
           "features correlated by .9": {"columns": alike},
           "features of scales 1,000, 1, .001": {"columns": scaled, "theta": (1e-3, -0.5, 500.0)},
           "weights of 0": {"theta": (0.0, 0.0, 0.0)},
           "weights three times as large": {"theta": (3.0, -1.5, 1.5)},
           "a feature that the model lacks": {"known": 2},
       }.items() for n in (8, 30)},
    **{f"tables 4 × 4, ρ = ½, {name}, 30 examples": Setting(30, 370, **{**HALF, **more})
       for name, more in {
           "a feature that is 1 for 5 %": {"columns": rare},
           "weights three times as large": {"theta": (3.0, -1.5, 1.5)},
           "a feature that the model lacks": {"known": 2},
       }.items()},
    "tables 4 × 4, ρ = 1, 30 examples": Setting(30, 370, tables=FOUR, rho=1.0),
    **{f"tables of 3 × 3 to 6 × 6, {n} examples": Setting(n, 370, tables=SIZES, summed=True)
       for n in (8, 30)},
    "tables of 3 × 3 to 6 × 6, ρ = ½, 12 examples": Setting(12, 370, tables=SIZES, rho=0.5),
    "partial 3 × 3, ρ = ½, few stay single, 12 examples":
        Setting(12, 370, tables=PARTIAL, rho=0.5, columns=rare, theta=(2.0, -0.5, 0.5)),
}  # fmt: skip


def measured(name: str, quick: bool = False, seed: int = SEED) -> Counted:
    """One setting: its data sets, each learned from alone."""
    asked, repeats = SETTINGS[name], QUICK if quick else SETTINGS[name].repeats
    goal, combinations = _limit(asked, LIMIT // (30 if quick else 1))
    found, unit = [], asked.unit(asked.units)
    kind = {} if asked.cohorts is None else {"unit": unit, "unit_name": "cohorts"}
    for repeat in range(repeats):
        rng = np.random.default_rng([seed, asked.units, repeat])
        drawn = asked.drawn(asked.units, rng)
        one = problem(drawn.batch, drawn.features, asked.rho, summed=asked.summed, **kind)
        assert not isinstance(one, str)
        told = intervals(one, [f"w{j}" for j in range(drawn.features.d)])
        if len(told.rows) == len(combinations):
            found.append(told)
    units = asked.units if asked.cohorts is None else len(asked.cohorts)
    return Counted(name, units, repeats, found, combinations @ goal)


def _limit(asked: Setting, count: int) -> tuple[Array, Array]:
    """What intervals are for, and the combinations of weights that they are of."""
    drawn = replace(asked, weighted=False).drawn(count, np.random.default_rng(count))
    batch, features, scores = drawn
    one = problem(batch, features, asked.rho, summed=asked.summed)
    assert not isinstance(one, str)
    told = Identified.of(one.model)
    names = [f"w{j}" for j in range(features.d)]
    combinations = np.array([c.combination for c in told.contrasts(names)])
    expected = replace(batch, target=exact(batch, scores).tau)
    plain = Firth(replace(one.model, batch=expected), 0.0)
    return plain.maximise(plain.start(np.zeros(features.d), told.basis)).theta, combinations


class Market(NamedTuple):
    """One matching of n a side, ``signal`` times the weights, of people's features or of pairs'."""

    n: int
    signal: float
    d: int
    people: bool
    repeats: int

    def __str__(self) -> str:
        of = "people" if self.people else "pairs"
        return f"pairs, {self.n} a side, {self.signal:g} × {self.d} weights, features of {of}"

    @property
    def theta(self) -> Array:
        return self.signal * WEIGHTS[self.d]

    def drawn(self, rng: Random, count: int = 1) -> tuple[Array, Array]:
        """Every pair's features, and the mean of ``count`` matchings."""
        if self.people:
            his, hers = rng.standard_normal((2, self.n, self.d))
            X = -np.abs(his[:, None] - hers)
        else:
            X = rng.standard_normal((self.n, self.n, self.d))
        X = X.reshape(-1, self.d)
        structure, score = ms.BipartiteMatching(self.n), X @ self.theta
        found = sample_matchings(structure, score, count, rng, burn=60 * self.n, thin=self.n)
        return X, found.vertices.mean(axis=0)


MARKETS = [
    Market(n, signal, d, people, repeats)
    for people in (False, True)
    for d in (3, 10)
    for n, repeats in ((13, 200), (20, 200), (50, 200), (100, 100), (200, 60))
    for signal in (0.3, 1.0, 3.0)
    if n > 4 * d
]


def market(asked: Market, quick: bool = False, seed: int = SEED) -> Counted:
    """Its data sets, each of one matching, whose pairs are the units."""
    found, why, repeats = [], None, QUICK if quick else asked.repeats
    for repeat in range(repeats):
        X, y = asked.drawn(np.random.default_rng([seed, asked.n, repeat]))
        told = _told(asked, X, y)
        if told.refused is None:
            found.append(told)
        why = told.refused
    goal = _together(asked, quick)
    return Counted(str(asked), asked.n, repeats, found, goal, None if found else why)


def _told(asked: Market, X: Array, y: Array) -> Intervals:
    """As an estimator prints them."""
    structure, names = ms.BipartiteMatching(asked.n), [f"w{j}" for j in range(asked.d)]
    model = ms.StructuredModel(structure, feature_names=names, rho=0.5, alpha=1e-3)
    partner = [structure.decode(y)]
    return model.fit([X], partner).intervals([X], partner)


def _together(asked: Market, quick: bool) -> Array:
    """The limit: the fit of other matchings together, expected pairs in the place of drawn ones."""
    others = 3 if quick else max(8, 1200 // asked.n)
    drawn = [asked.drawn(np.random.default_rng([asked.n, k]), 300) for k in range(others)]
    X, expected = (np.concatenate(parts) for parts in zip(*drawn, strict=True))
    batch = replace(Batch.of(ms.BipartiteMatching(asked.n), count=others), target=expected)
    ridge = Regulariser.of(asked.d, 1e-6)
    return np.asarray(mle_struct(0.5, regulariser=ridge).fit(batch, Dense.of(batch, X)).theta)


YEARS, LEARNED, PEOPLE = 160, 20, (60, 200)


def errors(quick: bool = False) -> Iterator[Row]:
    """What ``RoommateModel.evaluate`` prints as errors, over the deviation between years."""
    for people in PEOPLE:
        years = LEARNED + (QUICK if quick else YEARS)
        table, pairs, _ = data.roommates(people, years, 3)

        def of(first: int, last: int, table: Any = table) -> Any:
            mine = (table["year"] >= first) & (table["year"] <= last)
            return {name: column[mine] for name, column in table.items()}

        settings = {"cohort": "year", "same": "gender", "ordinal": "q*", "rho": 0.5}
        model = RoommateModel(**settings).fit(of(1, LEARNED), pairs)
        told = [model.evaluate(of(k, k), pairs) for k in range(LEARNED + 1, years + 1)]
        found = {
            "AUC": [(one.auc["score"], one.auc_error["score"]) for one in told],
            "AUC's lead, logistic": [
                (one.auc_lead["logistic"], one.auc_lead_error["logistic"]) for one in told
            ],
            "partner among most probable": [
                (one.top[max(one.top)], one.top_error[max(one.top)]) for one in told
            ],
        }
        for name, both in found.items():
            value, printed = np.array(both).T
            yield _row(f"{people} people, {name}", "mean error / SD", printed.mean() / value.std())


SEVERAL = ((40, 5, 80), (100, 4, 60))  # people a year, years learned from together, repetitions


def several(quick: bool = False) -> Iterator[Row]:
    """Intervals of room-mates' summaries, of several years together; the limit is other years'."""
    for people, together, repeats in SEVERAL:
        repeats, others = (QUICK if quick else repeats), 1500 // people * 8
        table, pairs, _ = data.roommates(people, together * repeats + others, 4)
        found = []
        for k in range(repeats + 1):
            first, last = k * together, (k + 1) * together if k < repeats else np.inf
            mine = (first < table["year"]) & (table["year"] <= last)
            settings = {"cohort": "year", "same": "gender", "ordinal": "q*", "rho": 0.5}
            of = {name: column[mine] for name, column in table.items()}
            found.append(_estimates(RoommateModel(**settings).fit(of, pairs)))
        *each, rest = np.array(found)
        estimate, low, high = np.array(each).transpose(2, 0, 1)
        held = (low <= rest[:, 0]) & (rest[:, 0] <= high)
        name = f"room-mates, {together} years of {people} people"
        yield _row(name, f"95 % intervals that hold, of {held.size}", held.mean())
        wide = (high - low).mean(axis=0) / (3.92 * estimate.std(axis=0, ddof=1))
        yield _row(name, "mean width / (3.92 SD)", wide.mean())


CALIBRATED = [ms.BipartiteMatching(4), ms.chain(6, 2), ms.chain(5, 3), ms.grid(3, 3, 2)]


def calibrated(quick: bool = False) -> Iterator[Row]:
    """How often right probabilities are called so, and bins' intervals hold them."""
    for count in (8, 30, 100):
        for apart in (0.5, 1.5, 4.0):
            for structure in CALIBRATED:
                rng = np.random.default_rng([count, int(10 * apart)])
                both = [
                    _right(structure, count, apart, rng) for _ in range(QUICK if quick else 150)
                ]
                passed, held = np.mean(both, axis=0)
                name = f"{count} of {structure.size} parts, scores {apart:g} apart"
                yield _row(name, "right probabilities that pass", passed)
                yield _row(name, "bins' 95 % intervals that hold", held)


def _right(structure: Any, count: int, apart: float, rng: Random) -> tuple[bool, float]:
    """Of examples drawn by the probabilities that are stated: of nodes or pairs, as printed."""
    listed = vertices(structure)
    score = apart * rng.standard_normal((count, structure.size)) @ listed.T
    chance = np.exp(score - score.max(axis=1, keepdims=True))
    size = structure.size if isinstance(structure, ms.BipartiteMatching) else sum(structure.cards)
    tau = np.clip(chance / chance.sum(axis=1, keepdims=True) @ listed, 0.0, 1.0)[:, :size]
    true = listed[(score + rng.gumbel(size=score.shape)).argmax(axis=1)][:, :size]
    found = Calibration.of(tau, true, unit=np.repeat(np.arange(count), size))
    low, high = found.interval
    inside = (low <= found.predicted) & (found.predicted <= high)
    return found.calibrated, float(inside.mean())


def _row(workload: str, quantity: str, value: float) -> Row:
    return {"benchmark": "users", "workload": workload, "quantity": quantity, "ours": float(value)}


def run(quick: bool) -> Iterator[Row]:
    """Every setting, markets, printed errors, calibration."""
    for name in list(SETTINGS)[:: 8 if quick else 1]:
        yield from rows(measured(name, quick), quick)
    for one in MARKETS[:: 12 if quick else 1]:
        yield from rows(market(one, quick), quick)
    yield from errors(quick)
    yield from several(quick)
    yield from calibrated(quick)


OTHERS = {"errors": errors, "several": several, "calibrated": calibrated}


def _table() -> None:
    """Rows of docs/statistics.md; of those that begin so, if asked."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.users")
    parser.add_argument("begins", nargs="?", default="")
    parser.add_argument("--seed", type=int, default=SEED)
    asked = parser.parse_args()
    if asked.begins in OTHERS:
        for row in OTHERS[asked.begins]():
            print(f"| {row['workload']} | {row['quantity']} | {row['ours']:.3f} |", flush=True)
        return
    print(HEAD, flush=True)
    for name in SETTINGS:
        if name.startswith(asked.begins):
            print(measured(name, seed=asked.seed).line, flush=True)
    for one in MARKETS:
        if str(one).startswith(asked.begins):
            print(market(one, seed=asked.seed).line, flush=True)


if __name__ == "__main__":
    _table()

"""Do the 95 % intervals hold? Generated examples of every kind, beside what generated them.

``python -m benchmarks coverage`` draws data sets for every kind of structure and number of
examples, as many as ``Kind.repeats`` says, learns from each alone, and counts how often the
interval of every identified weight or contrast holds what it says it is for: the generator's own
weights where the likelihood is exact, the surrogate's limit elsewhere (the fit of ``LIMIT`` other
examples together). A cell that is refused says so. Widths are means over 3.92 Monte Carlo standard
deviations of the estimates, of the intervals that have both ends; how many have not is printed
beside it.
``--quick`` repeats less and leaves cells out. ``python -m benchmarks.coverage`` prints the table of
docs/statistics.md, ``python -m benchmarks.coverage "chains of 8" 8`` a part of it.

Experiments are fixed here, before any was run: 3 weights (1, −½, ½) per part, or tied weights drawn
once from N(0, ½²); 10 weights from 30 examples on; features from N(0, 1). So are the repetitions:
enough for 1,100 intervals a cell where a data set takes less than a second.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np

import mlestruct as ms
from mlestruct import RoommateModel, data
from mlestruct.features import Dense, Tied
from mlestruct.inference.exact import exact, outcomes
from mlestruct.inference.sampling import sample
from mlestruct.roommates.students import ANSWERS, DIFFERENCE, QUESTIONS
from mlestruct.statistics import Identified, Intervals, intervals, problem
from mlestruct.statistics.firth import Firth
from mlestruct.statistics.interval import refusal
from mlestruct.structures import BipartiteMatching, Custom, FactorGraph, Matching, Paths
from mlestruct.structures.batch import Batch
from mlestruct.testing import vertices

Row = dict[str, Any]
Array = np.ndarray[Any, Any]

UNITS = (1, 2, 4, 8, 30, 100)
QUICK = 6  # repetitions
SIDE_BY_SIDE = {4: 1100, 6: 370, 8: 370, 10: 200, 12: 130}  # repetitions of exact_mle, by size
SEED = 1  # of all data sets: another one draws others
LIMIT = 500  # examples that a limit is taken from, with their expected outcomes
WITHIN, BELOW = (0.93, 0.97), (0.93, 0.985)  # from 8 units on, and below
WIDTH = {4: 2.0, 8: 1.25}  # at most, from so many units on
MANY = 30  # examples from which there are 10 weights
WEIGHTS = {
    3: np.array([1.0, -0.5, 0.5]),
    10: np.array([1.0, -0.5, 0.5] + [0.3, -0.3, 0.2] * 2 + [0.0]),
}
VARIED = 0.6  # standard deviation of weights between examples, in the cell where they vary
ARCS = [(i, j) for i in range(6) for j in range(i + 1, 6) if j - i <= 2]


LOADS, CAPACITY = np.array([2, 3, 3, 4, 5, 5, 6, 7]), 14
BAGS = np.array([bag for bag in np.ndindex(*[2] * len(LOADS)) if LOADS @ bag <= CAPACITY], float)


def _packed(scores: Array) -> Array:
    """The best bag by looking at all of them, as a solver of a user's own."""
    return np.asarray(BAGS[int(np.argmax(BAGS @ scores))])


@dataclass(frozen=True)
class Kind:
    """A structure whose parts have features, or a labelled graph with tied weights; and its ρ."""

    structure: Any
    rho: float | str | None = None
    summed: bool = False
    states: int = 0
    solver: Any = None
    repeats: tuple[int, int, int, int] = (370, 1100, 200, 200)  # of fewer than 8 units, 8, 30, 100

    def drawn(self, count: int, rng: np.random.Generator, d: int, varied: float = 0.0) -> Any:
        """(batch, features, the weights, and the scores that drew it)."""
        return (_labelled if self.states else _parts)(self, count, rng, d, varied)


MATCHINGS = (370, 1100, 110, 110)
KINDS = {
    "perfect 4 × 4": Kind(BipartiteMatching(4), 0.5, repeats=MATCHINGS),
    "one-sided 3 × 4": Kind(BipartiteMatching(3, 4, "one_sided"), 0.5, repeats=MATCHINGS),
    "partial 3 × 3": Kind(BipartiteMatching(3, 3, "partial"), 0.5, repeats=MATCHINGS),
    "perfect 4 × 4, exact_mle": Kind(BipartiteMatching(4), summed=True),
    "chains of 8": Kind(ms.chain(8, 2), states=2),
    "trees of 8": Kind(ms.tree([((k - 1) // 2, k) for k in range(1, 8)], [2] * 8), states=2),
    "grids 4 × 4": Kind(ms.grid(4, 4, 2), states=2, repeats=(280, 280, 100, 60)),
    "paths of a DAG": Kind(Paths(ARCS, source=0, sink=5)),
    "bags, own solver": Kind(Custom(len(LOADS)), solver=_packed, repeats=(200, 370, 60, 60)),
    "tables of three, exact_mle": Kind(FactorGraph([2, 3, 2, 2], [[0, 1, 2], [2, 3]]), summed=True),
    "general, 6 nodes": Kind(Matching(6), 0.5, repeats=(60, 150, 110, 40)),
}


def _listed(structure: Any) -> Array:
    if isinstance(structure, Custom):
        return BAGS
    return outcomes(structure) if isinstance(structure, Matching) else vertices(structure)


@cache
def _rows(structure: Any) -> Array:
    return _listed(structure)


def _parts(kind: Kind, count: int, rng: np.random.Generator, d: int, varied: float) -> Any:
    """A feature row for every part, outcomes drawn from the list of all."""
    rows, theta = _rows(kind.structure), WEIGHTS[d]
    X = rng.standard_normal((count, kind.structure.size, d))
    own = theta + varied * rng.standard_normal((count, d))
    scores = np.einsum("kp,mpd,md->mk", rows, X, own, optimize=True)
    drawn = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    batch = Batch.of(kind.structure, [kind.structure.decode(rows[k]) for k in drawn])
    return batch, Dense.of(batch, X.reshape(-1, d)), theta, np.einsum("mpd,md->mp", X, own).ravel()


def _labelled(kind: Kind, count: int, rng: np.random.Generator, d: int, varied: float) -> Any:
    """Node features with a weight for each label, and a table for neighbours."""
    graph, features = kind.structure, {3: 1, 10: 8}[d]
    empty = Batch.of(graph, count=count)
    nodes = rng.standard_normal((count * graph.n_nodes, features))
    tied = Tied.of(empty, nodes, np.ones((count * graph.n_factors, 1)))
    theta = 0.5 * np.random.default_rng(features).standard_normal(tied.d)
    each = theta + varied * rng.standard_normal((count, tied.d))
    one = [tied.select(np.array([m])).potentials(w) for m, w in enumerate(each)] if varied else None
    scores = tied.potentials(theta) if one is None else np.concatenate(one)
    found = [draws.outcomes()[0] for draws in sample(empty, scores, 1, rng)]
    return Batch.of(graph, found), tied, theta, scores


def run(quick: bool) -> Iterator[Row]:
    """Every cell; the room-mates of one year."""
    for case in cases():
        if not quick or case.units in (4, 8):
            yield from rows(measured(case, quick), quick)
    for side in (4,) if quick else SIDE_BY_SIDE:
        yield from rows(exact_cell(side, QUICK if quick else SIDE_BY_SIDE[side]), quick)
    yield from years(quick)


class Case(NamedTuple):
    """A cell of the table: a kind, the number of examples and weights, how much weights vary."""

    name: str
    units: int
    d: int
    repeats: int
    varied: float = 0.0

    def __str__(self) -> str:
        vary = f", varying by {self.varied:g}" if self.varied else ""
        return f"{self.name}, {self.units} examples, {self.d} weights{vary}"


def cases() -> Iterator[Case]:
    """All of the table, in its order."""
    for name, kind in KINDS.items():
        for units in UNITS:
            few, eight, more, most = kind.repeats
            repeats = {8: eight, 30: more, 100: most}.get(units, few)
            yield Case(name, units, 10 if units >= MANY else 3, repeats)
    for name in ("chains of 8", "perfect 4 × 4, exact_mle"):
        yield Case(name, 8, 10, 110)
    for name in ("chains of 8", "perfect 4 × 4, exact_mle", "paths of a DAG"):
        yield Case(name, 12, 10, 200)
    for units, repeats in ((4, 280), (8, 1100), (30, 280)):
        yield Case("chains of 8", units, 3, repeats, VARIED)
    yield Case("chains of 8", 50, 3, 1100)


@dataclass(frozen=True)
class Counted:
    """What the intervals of one cell came to, over its repetitions.

    ``short`` of them told less than all contrasts, or were refused: for ``why``, if all were.
    """

    workload: str
    units: int
    repeats: int
    found: list[Intervals]
    target: Array
    why: str | None = None

    def column(self, name: str) -> Array:
        """Of every repetition and contrast."""
        return np.array([[getattr(row, name) for row in one.rows] for one in self.found])

    @property
    def held(self) -> float:
        """The share of intervals that hold the target."""
        low, high = self.column("low"), self.column("high")
        return float(((low <= self.target) & (self.target <= high)).mean())

    @property
    def width(self) -> float:
        """The mean of widths over 3.92 standard deviations of the estimates."""
        widths = self.column("high") - self.column("low")
        with np.errstate(invalid="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a contrast of which no end is known
            mean = np.nanmean(np.where(np.isfinite(widths), widths, np.nan), axis=0)
        return float(np.nanmean(mean / (3.92 * self.deviation)))

    @property
    def deviation(self) -> Array:
        """Of every contrast's estimate."""
        return np.asarray(self.column("estimate").std(axis=0, ddof=1))

    @property
    def endless(self) -> float:
        """The share of intervals without an end."""
        return float(1.0 - np.isfinite(self.column("high") - self.column("low")).mean())

    @property
    def bias(self) -> float:
        """The largest of all contrasts', in standard deviations."""
        off = self.column("estimate").mean(axis=0) - self.target
        return float(np.abs(off / self.deviation).max())

    @property
    def short(self) -> int:
        return self.repeats - len(self.found)

    @property
    def line(self) -> str:
        """A row of docs/statistics.md."""
        if self.why is not None:
            return f"| {self.workload} | refused | | | | | | |"
        cells = [f"{v:.3f}" for v in (self.held, self.width, self.endless, self.bias)]
        head = f"| {self.workload} | {self.repeats:,} | {self.column('low').size:,}"
        return " | ".join([head, *cells, f"{self.short} |"])


def measured(case: Case, quick: bool = False, seed: int = SEED) -> Counted:
    """One cell: its data sets, each learned from alone."""
    kind, d = KINDS[case.name], case.d
    target, repeats = limit(case.name, d, case.varied, quick), QUICK if quick else case.repeats
    found, combinations, why = [], None, None
    for repeat in range(repeats):
        rng = np.random.default_rng([seed, case.units, repeat, d])
        batch, features, *_ = kind.drawn(case.units, rng, d, case.varied)
        asked = problem(batch, features, kind.rho, summed=kind.summed, oracle=kind.solver)
        why = asked if isinstance(asked, str) else refusal(asked, d)
        if isinstance(asked, str) or why is not None:
            break
        if combinations is None:
            combinations = combined(asked.model)
        one = intervals(asked, [f"w{j}" for j in range(features.d)])
        if len(one.rows) == len(combinations):
            found.append(one)
    goal = np.zeros(0) if combinations is None else combinations @ target
    return Counted(str(case), case.units, repeats, found, goal, why)


def rows(one: Counted, quick: bool) -> Iterator[Row]:
    """A cell's coverage, width, open ends and bias; or that it is refused."""
    if one.why is not None:
        yield _row(one.workload, f"refused: {one.why}", None)
        return
    least, most = WITHIN if one.units >= 8 else BELOW
    held, width = one.held, one.width
    yield _row(
        one.workload,
        f"95 % intervals that hold, of {one.column('low').size}",
        held,
        target=f"{least} to {most}",
        met=None if quick else least <= held <= most,
    )
    widest = max((units for units in WIDTH if one.units >= units), default=None)
    top = None if widest is None else WIDTH[widest]
    yield _row(
        one.workload,
        "mean width / (3.92 SD)",
        width,
        target=None if top is None else f"at most {top:g}",
        met=None if quick or top is None else width <= top,
    )
    yield _row(one.workload, "intervals without an end", one.endless)
    yield _row(one.workload, "largest bias / SD", one.bias)
    yield _row(one.workload, "repetitions that told less, or nothing", one.short)


def combined(likelihood: Any) -> Array:
    """The combinations of weights that intervals are printed for."""
    names = [f"w{j}" for j in range(likelihood.d)]
    return np.array([c.combination for c in Identified.of(likelihood).contrasts(names)])


@cache
def limit(name: str, d: int, varied: float = 0.0, quick: bool = False) -> Array:
    """What the intervals are for: the true weights, or those that LIMIT examples come to.

    Expected outcomes stand in for drawn ones, so that only the features are left to chance.
    """
    kind, count = KINDS[name], LIMIT // (10 if quick else 1)
    batch, features, theta, scores = kind.drawn(count, np.random.default_rng([d, count]), d, varied)
    asked = problem(batch, features, kind.rho, summed=kind.summed, oracle=kind.solver)
    assert not isinstance(asked, str)
    assert asked.exact is not None
    if asked.exact is asked.model and not varied:
        return np.asarray(theta)
    expected = replace(batch, target=asked.exact.infer(batch, scores)[1])
    plain = Firth(replace(asked.model, batch=expected), 0.0)
    start = plain.start(np.zeros(features.d), Identified.of(asked.model).basis)
    return plain.maximise(start).theta


def _row(workload: str, quantity: str, value: Any, **more: Any) -> Row:
    return {
        "benchmark": "coverage",
        "workload": workload,
        "quantity": quantity,
        "ours": value,
    } | more


def exact_cell(side: int, repeats: int, units: int = 50, d: int = 3, seed: int = SEED) -> Counted:
    """exact_mle of larger matchings, drawn by exact conditionals: the generator's own weights."""
    structure, theta, found = BipartiteMatching(side), WEIGHTS[d], []
    for repeat in range(repeats):
        rng = np.random.default_rng([seed, side, units, repeat])
        X = rng.standard_normal((units, side * side, d))
        y = [_matched((x @ theta).reshape(side, side), rng) for x in X]
        batch = Batch.of(structure, y)
        asked = problem(batch, Dense.of(batch, X.reshape(-1, d)), summed=True)
        assert not isinstance(asked, str)
        found.append(intervals(asked, ["a", "b", "c"]))
    workload = f"perfect {side} × {side}, exact_mle, {units} examples, {d} weights"
    return Counted(workload, units, repeats, found, theta)


def _matched(score: Array, rng: np.random.Generator) -> Array:
    """An exact draw: row after row by its marginals, given the rows before."""
    score, columns, partner = score, np.arange(score.shape[1]), []
    for _ in range(len(score)):
        tau = exact(BipartiteMatching(len(score)), score.ravel()).tau[: len(score)]
        k = int(rng.choice(len(tau), p=np.maximum(tau, 0.0) / np.maximum(tau, 0.0).sum()))
        partner.append(int(columns[k]))
        columns, score = np.delete(columns, k), np.delete(score[1:], k, axis=1)
    return np.array(partner)


PEOPLE = 400
YEARS = {False: 240, True: 5}
YEARS_LIMIT = {False: 240, True: 10}
ALPHA, RHOS = 1.0, (0.5, 1.0)


def years(quick: bool) -> Iterator[Row]:
    """One year of room-mates each, for ρ = ½ and for Bethe, beside other years together.

    The generator adds effects of single answers to four questions that |difference| cannot
    express, so the limit is not its weights there; coverage of those is for the other ten.
    """
    total = YEARS[quick] + YEARS_LIMIT[quick]
    people, pairs, _ = data.roommates(PEOPLE, total, SEED)
    for rho in RHOS:
        yield from _years(people, pairs, YEARS[quick], rho, quick)


def _years(people: Any, pairs: Any, years: int, rho: float, quick: bool) -> Iterator[Row]:
    settings = {"cohort": "year", "same": "gender", "ordinal": "q*", "alpha": ALPHA, "rho": rho}
    rest = {name: column[people["year"] > years] for name, column in people.items()}
    truth = _estimates(RoommateModel(**settings).fit(rest, pairs))[:, 0]
    found = []
    for year in range(1, years + 1):
        mine = {name: column[people["year"] == year] for name, column in people.items()}
        found.append(_estimates(RoommateModel(**settings).fit(mine, pairs)))
    low, high = (np.array([one[:, k] for one in found]) for k in (1, 2))
    expressed = [q not in {name for name, _, _ in ANSWERS} for q in QUESTIONS]
    held = (low <= truth) & (truth <= high)
    own = ((low <= DIFFERENCE) & (high >= DIFFERENCE))[:, expressed]
    spread = float(np.array([one[:, 0] for one in found]).std(axis=0, ddof=1).mean())
    workload, share = f"{years} years of {PEOPLE} people, rho={rho:g}", float(held.mean())
    yield _row(
        workload,
        "95 % intervals with the limit",
        share,
        target=f"{WITHIN[0]} to {WITHIN[1]}",
        met=None if quick else WITHIN[0] <= share <= WITHIN[1],
    )
    yield _row(workload, "with the generator's weights", float(own.mean()))
    yield _row(workload, "mean width / (3.92 SD)", float((high - low).mean()) / (3.92 * spread))


def _estimates(model: RoommateModel) -> Array:
    """(weights × 3): estimate and interval."""
    return np.array([(c.estimate, c.low, c.high) for c in model.known_.told.rows])


def _table() -> None:
    """Rows of docs/statistics.md; of one kind or number of examples, if asked."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage")
    parser.add_argument("kind", nargs="?", choices=[*KINDS, "exact_mle"])
    parser.add_argument("units", nargs="?", type=int)
    parser.add_argument("--repeats", type=int)
    parser.add_argument("--seed", type=int, default=SEED)
    asked = parser.parse_args()
    print(HEAD, flush=True)
    for case in cases():
        if asked.kind in (None, case.name) and asked.units in (None, case.units):
            chosen = case._replace(repeats=asked.repeats or case.repeats)
            print(measured(chosen, seed=asked.seed).line, flush=True)
    for side, repeats in SIDE_BY_SIDE.items():
        if asked.kind in (None, "exact_mle") and asked.units in (None, side):
            print(exact_cell(side, asked.repeats or repeats, seed=asked.seed).line, flush=True)


HEAD = """\
| structure | repetitions | intervals | that hold | mean width / (3.92 SD) | without an end | \
largest bias / SD | repetitions that told less |
|---|---|---|---|---|---|---|---|"""


if __name__ == "__main__":
    _table()

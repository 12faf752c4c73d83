"""Calls with ``max_seconds``: they end, keep what they have, and say so once.

Time passes here by looks at the clock, by questions to a solver, or really; a limit of none of the
three changes a bit.
"""

from __future__ import annotations

import itertools
import time
import warnings
from typing import Any

import numpy as np
import pytest

import mlestruct as ms
from mlestruct import limits
from mlestruct.cli import main
from mlestruct.engine import Threads
from mlestruct.errors import DataWarning
from mlestruct.estimators import RoommateModel
from mlestruct.inference import marginals
from mlestruct.structures import BipartiteMatching, Custom, Matching, grid, skip_chain
from mlestruct.structures.batch import Batch
from mlestruct.structures.networks import BMatching

OFTEN, DRAWN = 60, 3  # places where time runs out, in the nightly and in the ordinary run
SLACK = 1e-6  # relative: what two proofs of one maximum may differ by
ADVICE = "raise max_seconds"
FIVE = list(itertools.combinations(range(5), 2))


class Looks:
    """A clock that stands still for so many looks, and has then run out."""

    def __init__(self, most: float) -> None:
        self.most, self.seen = most, 0

    def __call__(self) -> float:
        self.seen += 1
        return 0.0 if self.seen <= self.most else 1e9


def heard(call, *given, **named) -> tuple[Any, list[str]]:
    """What a call answers, or the TimeoutError that it raises; and what it warns of."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            found = call(*given, **named)
        except TimeoutError as error:
            found = error
    assert all(issubclass(one.category, ms.ConvergenceWarning) for one in said)
    assert all(one.filename == __file__ for one in said)  # where the library was called
    return found, [str(one.message) for one in said]


def cuts(monkeypatch, call, rng, count):
    """The call, cut after every of ``count`` numbers of looks that are drawn; the first and last.

    Yields what it answers, what it warns of, and whether it was cut.
    """
    clock = Looks(np.inf)
    monkeypatch.setattr(limits, "clock", clock)
    heard(call)
    looks = clock.seen
    draws = sorted({1, looks - 1, *rng.integers(1, max(looks, 2), count).tolist()})
    for most in draws:
        clock = Looks(most)
        monkeypatch.setattr(limits, "clock", clock)
        yield *heard(call), clock.seen > most


def best_three(score):
    """The three largest of a vector: what a user's solver answers."""
    out = np.zeros(score.shape)
    out[np.argsort(-score, kind="stable")[:3]] = 1.0
    return out


KINDS = {
    "general": (lambda: Batch.of([Matching(n) for n in (6, 10, 10)], count=None), 3.0, None, None),
    "partial": (lambda: Batch.of(Matching(9, kind="partial"), count=4), 4.0, None, None),
    "general at 1": (lambda: Batch.of(Matching(10), count=3), 3.0, 1.0, None),
    "tables": (lambda: Batch.of(BipartiteMatching(7, 7), count=20), 5.0, None, None),
    "tables at 1": (lambda: Batch.of(BipartiteMatching(7, 7), count=4), 5.0, 1.0, None),
    "loops": (lambda: Batch.of(grid(4, 4, 3), count=12), 6.0, None, None),
    "skips": (lambda: Batch.of(skip_chain(8, 3, [(0, 4), (2, 7)]), count=5), 6.0, None, None),
    "b-matching": (lambda: Batch.of(BMatching(5, FIVE, [1, 2, 1, 2, 2]), count=3), 2.0, None, None),
    "own solver": (lambda: Batch.of(Custom(7), count=4), 2.0, None, best_three),
    "own, several": (lambda: Batch.of([Custom(5), Custom(6)]), 1.0, None, best_three),
    "tables asked": (lambda: Batch.of(BipartiteMatching(5, 5), count=3), 3.0, None, "assignment"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [DRAWN, pytest.param(OFTEN, marks=pytest.mark.nightly)])
def test_bounds_hold_the_unlimited_answer_wherever_time_runs_out(kind, count, monkeypatch, rng):
    make, spread, rho, oracle = KINDS[kind]
    batch = make()
    scores = spread * rng.standard_normal(batch.size)

    def limited(seconds=1.0):
        return marginals(batch, scores, oracle, rho=rho, max_seconds=seconds)

    whole, _ = heard(limited, None)
    same, said = heard(limited, 1e6)
    assert not any("max_seconds" in words for words in said)
    for one, other in ((whole.tau, same.tau), (whole.lower, same.lower), (whole.upper, same.upper)):
        assert one.tobytes() == other.tobytes()
    room = SLACK * (1.0 + np.abs(whole.lower))
    for found, said, _ in cuts(monkeypatch, limited, rng, count):
        assert (found.lower <= whole.upper + room).all()
        assert (found.upper >= whole.lower - room).all()
        for m in range(len(batch)):
            tau = found.tau[batch.coordinates(m)]
            if np.isnan(tau).any():
                assert oracle is best_three
                assert np.isneginf(found.lower[m])
            else:
                assert batch.structure(m).contains(tau, 1e-6)
        short = ~(found.upper - found.lower <= 1e-3)
        assert len(said) <= 1
        assert len(said) == 1 or not short.any()
        assert all("max_seconds=1 " in words and ADVICE in words for words in said if short.any())


def learned(kind, rng):
    """A fitted estimator and its examples."""
    if kind == "own solver":
        X = [rng.standard_normal((6, 2)) for _ in range(6)]
        y = [best_three(x @ [1.0, -0.5] + rng.gumbel(size=6)) for x in X]
        model = ms.StructuredModel(Custom(6), oracle=best_three, tol=1e-2)
    elif kind == "tables":
        X = [rng.standard_normal((4, 4, 2)) for _ in range(8)]
        y, model = [rng.permutation(4) for _ in X], ms.MatchingModel(tol=1e-2)
    else:
        X = [rng.standard_normal((5, 2)) for _ in range(12)]
        y = [rng.integers(0, 2, 5) for _ in X]
        model = ms.SequenceModel(tol=1e-2, infer="exact")
    return model.fit(X, y), X, y


def same_bits(one, other) -> bool:
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same_bits, one, other))
    if isinstance(one, np.ndarray):
        return one.tobytes() == other.tobytes()
    if hasattr(one, "__dataclass_fields__"):
        return all(same_bits(getattr(one, f), getattr(other, f)) for f in one.__dataclass_fields__)
    return one == other or (one != one and other != other)


DOORS = {
    "predict_marginals": lambda model, X, y, **limit: model.predict_marginals(X, **limit),
    "intervals": lambda model, X, y, **limit: model.intervals(X, y, **limit),
    "evidence": lambda model, X, y, **limit: model.evidence(X, y, **limit),
    "log_likelihood": lambda model, X, y, **limit: model.log_likelihood(X, y, **limit),
    "sample": lambda model, X, y, **limit: model.sample(X, 2, **limit),
    "calibration": lambda model, X, y, **limit: model.calibration(X, y, **limit),
    "recalibrated": lambda model, X, y, **limit: model.recalibrated(X, y, **limit).coef_,
}
SUMMED = "tables", "sequences"
SLOW = ("recalibrated", "own solver")
PAIRS = [
    pytest.param(door, kind, marks=[pytest.mark.nightly] * ((door, kind) == SLOW))
    for door in DOORS
    for kind in (*SUMMED, "own solver")
    if door != "evidence" or kind in SUMMED
]


@pytest.mark.parametrize(("door", "kind"), PAIRS)
@pytest.mark.parametrize("count", [DRAWN, pytest.param(OFTEN, marks=pytest.mark.nightly)])
def test_every_door_answers_validly_wherever_time_runs_out(door, kind, count, monkeypatch, rng):
    model, X, y = learned(kind, rng)

    def ask(**limit):
        return DOORS[door](model, X, y, **limit)

    whole, _ = heard(ask)
    generous, said = heard(ask, max_seconds=1e6)
    assert same_bits(whole, generous)
    assert not any("max_seconds" in words for words in said)
    for found, said, cut in cuts(monkeypatch, lambda: ask(max_seconds=1.0), rng, count):
        assert len(said) <= 1
        if isinstance(found, TimeoutError):
            assert ADVICE in str(found)
            assert not said
            continue
        if not same_bits(whole, found):
            assert cut
            assert len(said) == 1
            assert "max_seconds=1 " in said[0]
            assert ADVICE in said[0]
        if door == "intervals":
            assert (found.refused is None) or "max_seconds" in found.refused
            for row, known in zip(found.rows, whole.rows, strict=bool(found.rows)):
                assert row.low <= known.low
                assert row.high >= known.high
                assert row.estimate == known.estimate
                assert ("not reached" in str(row)) == (row != known)
        elif door == "evidence":
            low, high = found.interval
            assert low <= whole.value <= high
        elif door == "log_likelihood":
            assert found[0] <= whole[1] + 1e-6
            assert found[1] >= whole[0] - 1e-6
        elif door == "sample":
            assert all(
                one == [] or same_bits(one, other)
                for one, other in zip(found.outcomes, whole.outcomes, strict=True)
            )


class Costly:
    """A solver of which each question takes a second of the clock."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, score):
        self.calls += 1
        return best_three(score)

    def clock(self) -> float:
        return float(self.calls)


@pytest.mark.parametrize("door", [door for door in DOORS if door != "evidence"])
@pytest.mark.parametrize("seconds", [0, 1, 7, 30, pytest.param(200, marks=pytest.mark.nightly)])
def test_no_solver_is_asked_after_the_limit(door, seconds, monkeypatch, rng):
    model, X, y = learned("own solver", rng)
    model.oracle = solver = Costly()
    monkeypatch.setattr(limits, "clock", solver.clock)
    heard(DOORS[door], model, X, y, max_seconds=seconds)
    assert solver.calls <= seconds
    solver.calls = 0
    model.max_seconds = seconds  # the estimator's own is for every call by itself
    heard(DOORS[door], model, X, y)
    assert solver.calls <= seconds


def test_a_solver_on_threads_is_not_asked_after_the_limit_either(monkeypatch, rng):
    model, X, _ = learned("own solver", rng)
    model.workers, model.oracle = 2, Costly()
    monkeypatch.setattr(limits, "clock", model.oracle.clock)
    heard(model.predict_marginals, X, max_seconds=40)
    assert model.oracle.calls <= 40 + 1  # both threads may have looked


@pytest.mark.parametrize("first", [2, pytest.param(4, marks=pytest.mark.nightly)])
def test_what_annealing_finds_in_time_has_an_interval_that_holds_the_sum(first, monkeypatch, rng):
    from mlestruct.inference.exact import exact
    from mlestruct.statistics.annealing import annealed

    structures = Matching(12), BipartiteMatching(8, 8), Matching(9, kind="partial"), grid(4, 4)
    held, cases = 0, 0
    for structure in structures[:first]:
        score = 1.5 * rng.standard_normal(structure.size)
        truth = exact(structure, score).log_z

        def ask(structure=structure, score=score):
            with limits.limited(1.0, "evidence"):
                return annealed(structure, score, np.random.default_rng(0))

        for found, said, _ in cuts(monkeypatch, ask, rng, DRAWN):
            assert len(said) <= 1
            held, cases = held + (found.low <= truth <= found.high), cases + 1
    assert held >= 0.85 * cases


@pytest.fixture(scope="module")
def room_mates():
    """A model, its people and pairs: two cohorts of 12 to 14."""
    rng = np.random.default_rng(3)
    people = [
        {"id": f"{year}-{k}", "year": year, "tidy": int(rng.integers(5)), "late": int(k % 3)}
        for year, size in ((1, 12), (2, 14))
        for k in range(size)
    ]
    pairs = [(f"{y}-{k}", f"{y}-{k + 1}") for y, n in ((1, 12), (2, 14)) for k in range(0, n, 2)]
    model = RoommateModel(ordinal=["tidy", "late"], cohort="year", tol=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(people, pairs)
    return model, people, pairs


def explained(model, people, pairs, max_seconds=None):
    plan = model.assign(people)
    return model.explain(plan, people[0]["id"], max_seconds=max_seconds)


ROOMS = {
    "assign": lambda m, people, pairs, **limit: m.assign(people, **limit),
    "explain": explained,
    "evaluate": lambda m, people, pairs, **limit: m.evaluate(people, pairs, **limit),
    "log_likelihood": lambda m, people, pairs, **limit: m.log_likelihood(people, pairs, **limit),
    "probabilities": lambda m, people, pairs, **limit: m.probabilities(people, **limit),
}


@pytest.mark.parametrize("door", ROOMS)
@pytest.mark.parametrize("count", [DRAWN, pytest.param(OFTEN, marks=pytest.mark.nightly)])
@pytest.mark.filterwarnings("ignore::mlestruct.errors.DataWarning")
def test_room_mates_calls_answer_validly_wherever_time_runs_out(
    door, count, room_mates, monkeypatch, rng
):
    model, people, pairs = room_mates
    whole = ROOMS[door](model, people, pairs)
    for found, said, cut in cuts(
        monkeypatch, lambda: ROOMS[door](model, people, pairs, max_seconds=1.0), rng, count
    ):
        assert len(said) <= 1
        assert cut or not said
        assert all(ADVICE in words for words in said)
        if isinstance(found, TimeoutError):
            assert door == "assign"
            assert "groups" in str(found)
        elif door == "assign":
            assert [pair[:2] for pair in found.pairs] == [pair[:2] for pair in whole.pairs]
        elif door == "explain":
            assert found.contributions == whole.contributions
        elif door == "log_likelihood":
            assert found[0] <= whole[1] + 1e-6
            assert found[1] >= whole[0] - 1e-6
        elif door == "evaluate":
            assert bool(said) == any("max_seconds" in note for note in found.notes)


@pytest.mark.parametrize("alpha", [1.0, [0.1, 1.0, 10.0]])
@pytest.mark.parametrize("count", [DRAWN, pytest.param(OFTEN, marks=pytest.mark.nightly)])
def test_a_fit_of_room_mates_that_is_cut_keeps_weights_with_a_certificate_that_holds(
    alpha, count, room_mates, monkeypatch, rng
):
    settings = {**room_mates[0].get_params(), "alpha": alpha}
    people, pairs = room_mates[1:]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole = RoommateModel(**settings).fit(people, pairs)
        generous = RoommateModel(**settings).fit(people, pairs, max_seconds=1e6)
    assert same_bits(whole.coef_, generous.coef_)

    def fit():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            return RoommateModel(**settings).fit(people, pairs, max_seconds=1.0)

    for found, said, _ in cuts(monkeypatch, fit, rng, count):
        assert len(said) <= 1
        assert bool(said) == (not found.converged_) or alpha != 1.0
        assert all("max_seconds" in words for words in said)
        assert np.isfinite(found.coef_).all()
        if found.alpha_ == whole.alpha_:  # D(τ) is never below the optimum
            gap = found.certificate_.objective - whole.certificate_.objective
            assert gap >= -1e-6
            assert found.certificate_.gap >= gap - 1e-6
        assert str(found.summary())


BAD = [-1, -0.5, float("nan"), "3", True, [1.0], np.array([1.0, 2.0]), 1j]


@pytest.mark.parametrize("bad", BAD, ids=repr)
def test_a_limit_that_is_no_number_of_seconds_is_refused_by_name(bad, room_mates, rng):
    model, X, y = learned("tables", rng)
    calls = [lambda door=door: DOORS[door](model, X, y, max_seconds=bad) for door in DOORS]
    calls += [lambda door=door: ROOMS[door](*room_mates, max_seconds=bad) for door in ROOMS]
    calls.append(lambda: room_mates[0].fit(*room_mates[1:], max_seconds=bad))
    calls.append(lambda: marginals(Batch.of(Matching(4), count=1), np.zeros(6), max_seconds=bad))
    calls.append(lambda: model.set_params(max_seconds=bad).predict_marginals(X))
    for call in calls:
        with pytest.raises(ValueError, match=r"max_seconds is .*; it must be a number of seconds"):
            call()


def test_a_limit_around_a_limit_holds_too_and_warns_once(monkeypatch, rng):
    clock = Looks(6)
    batch = Batch.of(grid(4, 4, 3), count=2)
    scores = 6.0 * rng.standard_normal(batch.size)

    def nested():
        with limits.limited(1.0, "outer"):
            return marginals(batch, scores, max_seconds=1e12)

    monkeypatch.setattr(limits, "clock", clock)
    _, said = heard(nested)
    assert len(said) == 1
    assert said[0].startswith("outer: max_seconds=1 ")


def test_limits_reach_threads_and_end_with_their_call(rng):
    class Late:
        def told(self, warm):
            return limits.late(), warm

    running = Threads(2).open([Late()] * 4)
    with limits.limited(0.0, "call") as limit:
        assert running.ask("told", [()] * 4) == [True] * 4
        limit.hit = False
    assert not limits.late()
    assert limits.left() == np.inf


LARGE = {
    "general 600": (lambda: Batch.of(Matching(600), count=1), 3.0, None),
    "general 398": (lambda: Batch.of(Matching(398), count=2), 3.0, None),
    "table 600": (lambda: Batch.of(BipartiteMatching(600, 600), count=1), 30.0, None),
    "tables at 1": (lambda: Batch.of(BipartiteMatching(60, 60), count=60), 10.0, 1.0),
    "grid 200": (lambda: Batch.of(grid(200, 200), count=1), 3.0, None),
    "grids of five": (lambda: Batch.of(grid(8, 8, 5), count=50), 10.0, None),
}


@pytest.mark.parametrize("limit", [0.1, pytest.param(0.3, marks=pytest.mark.nightly)])
@pytest.mark.parametrize(
    "kind",
    [k if k == "grids of five" else pytest.param(k, marks=pytest.mark.nightly) for k in LARGE],
)
def test_large_peaked_examples_end_within_ten_times_the_limit_and_a_second(kind, limit, rng):
    make, spread, rho = LARGE[kind]
    batch = make()
    scores = spread * rng.standard_normal(batch.size)
    for _ in ("compiling", "timed"):
        began = time.process_time()
        found, said = heard(marginals, batch, scores, rho=rho, max_seconds=limit)
        spent = time.process_time() - began
    assert spent <= 10 * limit + 1.0
    assert (found.lower <= found.upper).all()
    assert len(said) <= 1


@pytest.mark.filterwarnings("ignore::mlestruct.errors.DataWarning")
def test_the_command_line_takes_a_limit_for_every_part_of_room_mates(
    tmp_path, room_mates, monkeypatch, capsys
):
    _, people, pairs = room_mates
    monkeypatch.chdir(tmp_path)
    head = ",".join(people[0])
    rows = [",".join(str(cell) for cell in person.values()) for person in people]
    (tmp_path / "people.csv").write_text("\n".join([head, *rows]))
    (tmp_path / "pairs.csv").write_text("\n".join(["id_a,id_b", *map(",".join, pairs)]))
    roles = ["--cohort", "year", "--ordinal", "tidy,late"]
    limit = ["--max-seconds", "1000"]
    parts = {
        "fit": ["people.csv", "pairs.csv", *roles],
        "assign": ["people.csv", "--only", "1,2"],
        "explain": ["people.csv", people[0]["id"], "--only", "1"],
        "evaluate": ["people.csv", "pairs.csv"],
    }
    for part, given in parts.items():
        assert main(["roommates", part, *given, *limit]) == 0
        capsys.readouterr()
    for part, given in parts.items():
        for wrong in ("-1", "nan", "soon"):
            with pytest.raises(SystemExit):
                main(["roommates", part, *given, "--max-seconds", wrong])
            assert "--max-seconds" in capsys.readouterr().err
    assert main(["roommates", "assign", *parts["assign"], "--max-seconds", "0"]) == 2
    assert "--max-seconds" in capsys.readouterr().err

"""Bad inputs to estimators, metrics, tables, readers and the command line, one row each."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import mlestruct as ms
from benchmarks._faults.refusal import Bad, bad
from mlestruct import metrics
from mlestruct.cli import main
from mlestruct.estimators import Calibration
from mlestruct.families.joint.prediction import Mixture
from mlestruct.readers import read_columns
from mlestruct.tables import table

NAN, INF = np.nan, np.inf
RNG = np.random.default_rng(0)
TABLES = [RNG.standard_normal((3, 3, 2)) for _ in range(3)]
PARTNERS = [[0, 1, 2], [2, 0, 1], [1, 0, 2]]
IMAGES = [RNG.standard_normal((2, 3, 2)) for _ in range(2)]
LABELS = [np.array([[0, 1, 0], [1, 1, 0]]), np.array([[1, 1, 0], [0, 1, 0]])]
SENTENCES = [RNG.standard_normal((n, 2)) for n in (3, 1, 4)]
TAGS = [["a", "b", "a"], ["b"], ["a", "a", "b", "b"]]
PEOPLE = [{"id": i, "tidy": i % 3} for i in range(6)]
COUPLES = [(0, 3), (1, 4), (2, 5)]
SEEN = Mixture(0.6, [-1.0, 1.0], [0.5, 0.5])


def put(items: Any, k: int, value: Any) -> list[Any]:
    """The items with another one in place k."""
    return [*items[:k], value, *items[k + 1 :]]


def matchings() -> Iterator[Bad]:
    """What a model is set to and given, before any fit; a failed one leaves no trace."""
    for X, y, says in _matchings():
        yield bad("MatchingModel.fit", says, ms.MatchingModel(tol=0.1).fit, X, y)
    for name, value, says in (
        ("alpha", 0.0, "must be positive"), ("alpha", [[1.0, 2.0]], "alpha has shape"),
        ("bounds", 3, r"bounds are \(lower, upper\)"), ("max_rounds", -1, "rounds is -1"),
        ("workers", 0, "workers is 0"), ("tol", NAN, "tol is nan"),
        ("learner", "magic", "no learner 'magic'"),
        ("oracle", "qpbo", "is for FactorGraph"), ("kind", "magic", "kind is perfect"),
        ("engine", "magic", "no engine 'magic'"), ("solver", "magic", "route is auto"),
    ):  # fmt: skip
        model = ms.MatchingModel(**{"tol": 0.1, name: value})
        yield bad(f"MatchingModel({name})", says, model.fit, TABLES, PARTNERS)
    for name, value, says in (
        ("held_out", "half", "held_out must be numbers"), ("held_out", 1.0, "examples to hold out"),
        ("random_state", "seed", "random_state is 'seed'; it seeds nothing"),
    ):  # fmt: skip
        model = ms.MatchingModel(**{"alpha": (0.1, 1.0), name: value})
        yield bad(f"MatchingModel({name})", says, model.fit, TABLES, PARTNERS)
    fit = ms.MatchingModel(tol=0.1).fit
    yield bad("fit(checkpoint)", "must name a file", fit, TABLES, PARTNERS, checkpoint="none/kept")
    yield bad("fit(checkpoint)", "checkpoint is a path", fit, TABLES, PARTNERS, checkpoint=3)
    partly = put(PARTNERS, 1, ms.Partial([1, 1, -1]))
    yield bad("fit, partly seen", "example 1: column 1 has two", fit, TABLES, partly)
    partly = put(PARTNERS, 1, ms.Partial([7, -1, -1]))
    yield bad("fit, partly seen", "example 1: observed must hold", fit, TABLES, partly)
    fitted = ms.MatchingModel(tol=0.1).fit(TABLES, PARTNERS)
    yield bad("MatchingModel.predict", "example 0: feature 0 of", fitted.predict, [TABLES[0] * NAN])
    yield bad(
        "MatchingModel.predict", "1 features; the model has 2", fitted.predict, [TABLES[0][..., :1]]
    )
    yield bad("MatchingModel.predict", "not fitted yet", ms.MatchingModel().predict, TABLES)


def grids() -> Iterator[Bad]:
    """Pictures and their labels."""
    fit = ms.GridModel(tol=0.1).fit
    for says, X, y in (
        ("example 1: feature 0 of node 0 is nan", put(IMAGES, 1, IMAGES[1] * NAN), LABELS),
        (r"example 1: y has shape \(1, 3\)", IMAGES, put(LABELS, 1, LABELS[1][:1])),
        ("example 1: features must be numbers", put(IMAGES, 1, IMAGES[1].astype(str)), LABELS),
        ("example 1: label 0 is inf", IMAGES, put(LABELS, 1, LABELS[1] + INF)),
    ):
        yield bad("GridModel.fit", says, fit, X, y)


def sequences() -> Iterator[Bad]:
    """Sentences and their tags."""
    fit = ms.SequenceModel(tol=0.1).fit
    for says, X, y in (
        ("X has 2 examples but y has 3", SENTENCES[:2], TAGS),
        (r"example 2: y has shape \(1,\)", SENTENCES, put(TAGS, 2, ["a"])),
        ("example 1: y is None", SENTENCES, put(TAGS, 1, None)),
        ("no label in any example", SENTENCES, [[None] * len(x) for x in SENTENCES]),
        ("no position has an attribute", [[{}]], [["a"]]),
    ):
        yield bad("SequenceModel.fit", says, fit, X, y)


def joint() -> Iterator[Bad]:
    """Labels with what was seen, and the law of the noise."""
    model = ms.JointModel(ms.grid(1, 2), SEEN, smoothing=0.1)
    yield bad("JointModel.fit", "example 0: .*state 2", model.fit, [[0, 2]])
    yield bad("JointModel.fit", "no examples", model.fit, [])
    yield bad("JointModel.predict", "not fitted yet", model.predict, [[0.0, 1.0]])
    yield bad("Mixture", "label 1 has nu nan", Mixture, 0.5, [0.0, NAN], [1.0, 1.0])


def roommates() -> Iterator[Bad]:
    """Tables of people and pairs, and what is asked of a plan."""
    fit = ms.RoommateModel(ordinal="tidy").fit
    someone = lambda **answers: put(PEOPLE, 1, {**PEOPLE[1], **answers})  # noqa: E731
    yield bad("RoommateModel.fit", "id 0 is in row 0 and row 1", fit, someone(id=0), COUPLES)
    yield bad("RoommateModel.fit", "row 1 has no 'id'", fit, someone(id=None), COUPLES)
    yield bad("RoommateModel.fit", "person 1 answers inf", fit, someone(tidy=INF), COUPLES)
    yield bad("RoommateModel.fit", "the table of people is empty|needs a column", fit, [], COUPLES)
    yield bad("RoommateModel.fit", "nothing to learn from", fit, PEOPLE, [])
    yield bad("RoommateModel.fit", "0 is paired with themself", fit, PEOPLE, [(0, 0), (1, 4)])
    yield bad("RoommateModel.fit", "0 is in another pair too", fit, PEOPLE, [(0, 3), (0, 4)])
    yield bad("RoommateModel.fit", "nobody has id 99", fit, PEOPLE, [(0, 99)])
    yield bad(
        "RoommateModel(alpha)",
        "alpha has shape",
        ms.RoommateModel(ordinal="tidy", alpha=[]).fit,
        PEOPLE,
        COUPLES,
    )
    yield bad(
        "RoommateModel(tol)",
        "tol is nan",
        ms.RoommateModel(ordinal="tidy", tol=NAN).fit,
        PEOPLE,
        COUPLES,
    )
    model = ms.RoommateModel(ordinal="tidy").fit(PEOPLE, COUPLES)
    alone = [(0, other) for other in range(1, 6)]
    yield bad(
        "RoommateModel.assign",
        "too few may share with 0, because",
        model.assign,
        PEOPLE,
        forbid=alone,
    )
    yield bad(
        "RoommateModel.assign",
        "0 cannot be in 2 pairs",
        model.assign,
        PEOPLE,
        require=[(0, 1), (0, 2)],
    )
    yield bad("RoommateModel.assign", "answers 9, which nobody did", model.assign, someone(tidy=9))


def judgements() -> Iterator[Bad]:
    """Metrics."""
    yield bad(
        "entity_f1", "sentence 0: 1 true tags but 2", metrics.entity_f1, [["O"]], [["O", "O"]]
    )
    yield bad("entity_f1", "tag 0 is 'X-a'", metrics.entity_f1, [["X-a"]], [["O"]])
    yield bad("wilson", "a share is in 0..1", metrics.wilson, 1.5, 10)
    yield bad("Calibration", "part 0 has probability nan", Calibration.of, [NAN], [1])
    yield bad("Calibration", "part 0 has probability 0.5 and truth 2", Calibration.of, [0.5], [2])


def tables() -> Iterator[Bad]:
    """Tables and readers."""
    yield bad("table", "columns have different lengths", table, {"a": [1], "b": [1, 2]})
    yield bad("table", "needs a column", table, {})
    yield bad("table", "expected a list of values", table, {"a": "xyz"})
    yield bad("table", "two columns have one name", table, {1: [1], "1": [2]})
    yield bad(
        "read_columns", "line 2 has 1 columns, the lines before 2", read_columns, ["a b", "c"]
    )
    for name, text, says in (
        ("two.csv", "a,a\n1,2\n", "two columns 'a'"),
        ("short.csv", "a,b\n1\n", "line 2: 1 cells for 2"),
        ("empty.csv", "", "is empty"),
        ("quote.csv", 'a;b\n"1;2\n', "line 2: a quote is never closed"),
        ("names.csv", "1,2\n3,4\n5,6\n", "line 1: '1, 2' looks like data"),
    ):
        yield bad("table", f"{name}.*{says}", _file(table), name, text)
    yield bad("mlestruct check", "is empty", _command, ["check"], "")


def _matchings() -> Iterator[tuple[Any, Any, str]]:
    yield [], [], "no examples: X is empty"
    yield TABLES[:2], PARTNERS, "X has 2 examples but y has 3"
    yield TABLES, None, "y is None"
    yield None, PARTNERS, "X is a list of examples, not a NoneType"
    yield [x[..., :0] for x in TABLES], PARTNERS, "there are no features"
    yield put(TABLES, 1, TABLES[1][..., :1]), PARTNERS, "example 1 has 1 features"
    yield put(TABLES, 1, TABLES[1] * NAN), PARTNERS, "example 1: feature 0 of coordinate 0 is nan"
    yield put(TABLES, 1, TABLES[1].astype(str)), PARTNERS, "must be numbers"
    yield put(TABLES, 1, TABLES[1][:2]), PARTNERS, "example 1: a perfect matching is square"
    yield TABLES, put(PARTNERS, 1, [0, 0, 1]), "example 1: column 0 is matched by"
    yield TABLES, put(PARTNERS, 1, [0, 1, NAN]), "example 1: columns are integers, got nan"
    yield TABLES, put(PARTNERS, 1, [0, 1]), "example 1: an outcome names a column for each"


def _file(read: Any) -> Any:
    def call(name: str, text: str) -> Any:
        with TemporaryDirectory() as folder:
            path = Path(folder) / name
            path.write_text(text)
            return read(path)

    return call


def _command(arguments: list[str], text: str | None = None) -> None:
    """The command line's refusal (exit code 2, one line) as the error it stands for."""
    told = io.StringIO()
    with TemporaryDirectory() as folder, redirect_stderr(told), redirect_stdout(io.StringIO()):
        path = Path(folder) / "given.csv"
        if text is not None:
            path.write_text(text)
            arguments = [*arguments, str(path)]
        code = main(arguments)
    if code == 2 and told.getvalue().startswith("mlestruct: "):
        raise ValueError(told.getvalue())

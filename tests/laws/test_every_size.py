"""Every estimator and kind of structure works from size 1 to 1,100, from fit to a loaded model."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mlestruct import (
    Batch,
    BipartiteMatching,
    BMatching,
    ClusterGraph,
    ConvergenceWarning,
    FactorGraph,
    Flow,
    GraphModel,
    GridModel,
    Ising,
    JointModel,
    Matching,
    MatchingModel,
    MultiLabelModel,
    Paths,
    RegionGraph,
    RoommateModel,
    SequenceModel,
    SkipChainModel,
    StructuredModel,
    chain,
    exact,
    grid,
    plaquettes,
)
from mlestruct.errors import DataWarning
from mlestruct.families.joint.prediction import Mixture
from mlestruct.inference.decoding import decode
from mlestruct.inference.exact import LISTABLE, outcomes
from mlestruct.statistics.affordability import seconds
from mlestruct.structures import Structure
from mlestruct.structures.graph import grid_edges

Case = tuple[Any, list[Any], list[Any]]  # a model to fit, examples, outcomes

SIZES = (1, 2, 3, 8, 9, 12, 13, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257)
SIZES += (400, 401, 402, 1022, 1023, 1024, 1025, 1100)
SIDES = (1, 2, 3, 16, 31, 32, 33, 63, 64, 65, 127, 128)  # of grids
QUICK: dict[str, Any] = {"tol": 0.1, "max_rounds": 2, "progress": False}


def dense(*shape: int) -> Any:
    return np.random.default_rng(shape[0]).standard_normal(shape)


def matching(kind: str, shape: Callable[[int], tuple[int, int]]) -> Callable[[int], Case]:
    def made(n: int) -> Case:
        rows, columns = shape(n)
        x = dense(rows, columns, 1)
        single = [-1] * (rows - min(rows, columns))
        return MatchingModel(kind=kind, **QUICK), [x], [[*range(min(rows, columns)), *single]]

    return made


def structured(make: Callable[[int], Structure], **settings: Any) -> Callable[[int], Case]:
    """One structure with a feature per coordinate, and its best outcome by another score."""

    def made(n: int) -> Case:
        structure = make(n)
        best = decode(Batch.of(structure, count=1), dense(structure.size, 2)[:, 0]).outcomes[0]
        model = StructuredModel(structure=structure, **QUICK | settings)
        return model, [dense(structure.size, 1)], [best]

    return made


def rounds(make: Callable[[int], Structure]) -> Callable[[int], Case]:
    """As :func:`structured`, of what only Frank-Wolfe serves: in predictions, too, two rounds."""
    return structured(make, solver="frank_wolfe")


def general(make: Callable[[int], Structure]) -> Callable[[int], Case]:
    """Above 400 nodes predictions may go on by Frank-Wolfe, too."""
    return lambda n: (rounds if n > 398 else structured)(make)(n)


def b_matching(n: int) -> BMatching:
    return BMatching.bipartite(n, n, row_capacity=min(n, 2), column_capacity=min(n, 2))


def lattice(n: int) -> Any:
    """Arcs between n layers of two nodes each, from a source (0) to a sink (1)."""
    first = [(0, 2), (0, 3)]
    inner = [(2 * k + a, 2 * k + 2 + b) for k in range(1, n) for a in (0, 1) for b in (0, 1)]
    return [*first, *inner, (2 * n, 1), (2 * n + 1, 1)]


def ring(n: int) -> list[tuple[int, int]]:
    return [(i, (i + 1) % n) for i in range(n)] if n > 2 else [(0, 1)][: n - 1]


def clusters(n: int) -> ClusterGraph:
    pairs = [(i, i + 1) for i in range(n)]
    return ClusterGraph([2] * (n + 1), pairs, [(i, i + 1, (i + 1,)) for i in range(n - 1)])


def sequence(n: int, **settings: Any) -> Case:
    return SequenceModel(**QUICK | settings), [dense(n, 1)], [np.arange(n) % 2]


def skips(n: int) -> Case:
    model = SkipChainModel(lambda x: [(i, i + 3) for i in range(0, len(x) - 3, 7)], **QUICK)
    return model, [[{"word": str(i % 5)} for i in range(n)]], [np.arange(n) % 2]


def graph(n: int) -> Case:
    return GraphModel(**QUICK), [(dense(n, 1), ring(n))], [np.arange(n) % 2]


def picture(n: int, **settings: Any) -> Case:
    labels = (np.arange(n * n) % 2).reshape(n, n)
    return GridModel(**QUICK | settings), [dense(n, n, 1)], [labels]


def labels(n: int, **settings: Any) -> Case:
    y = np.arange(2 * n).reshape(2, n) // 3 % 2
    return MultiLabelModel(**QUICK | settings), list(dense(2, 1)), list(y)


def own(n: int) -> Case:
    model = StructuredModel(oracle=lambda s: np.arange(len(s)) == np.argmax(s), **QUICK)
    return model, [dense(n, 1)], [{0}]


def examples(make: Callable[[int], Case], size: int) -> Callable[[int], Case]:
    def made(count: int) -> Case:
        model, X, y = make(size)
        return model, [X[0] + k / count for k in range(count)], [y[0]] * count

    return made


def even(n: int) -> int:
    return n + n % 2


def square(n: int) -> tuple[int, int]:
    return n, n


CASES: dict[str, Callable[[int], Case]] = {
    "MatchingModel perfect": matching("perfect", square),
    "MatchingModel one-sided": matching("one_sided", square),
    "MatchingModel one-sided, more columns": matching("one_sided", lambda n: (n, n + 3)),
    "MatchingModel one-sided, one row": matching("one_sided", lambda n: (1, n)),
    "MatchingModel partial": matching("partial", square),
    "MatchingModel partial, one column": matching("partial", lambda n: (n, 1)),
    "MatchingModel partial, one row": matching("partial", lambda n: (1, n)),
    "StructuredModel bipartite": structured(BipartiteMatching),
    "StructuredModel general perfect": general(lambda n: Matching(even(n))),
    "StructuredModel general partial": general(lambda n: Matching(n + 1, kind="partial")),
    "StructuredModel ring partial": structured(
        lambda n: Matching(n + 1, [(i, i + 1) for i in range(n)], kind="partial")
    ),
    "StructuredModel b-matching": rounds(b_matching),
    "StructuredModel general b-matching": rounds(
        lambda n: BMatching(n + 2, [(i, i + 1) for i in range(n + 1)], capacity=2)
    ),
    "StructuredModel flow": rounds(lambda n: Flow(lattice(n), {0: (0, 2), 1: (-2, 0)})),
    "StructuredModel paths": structured(lambda n: Paths(lattice(n), 0, 1)),
    "StructuredModel chain": structured(lambda n: chain(n, 2)),
    "StructuredModel tree": structured(
        lambda n: FactorGraph([2] * n, [((i - 1) // 2, i) for i in range(1, n)])
    ),
    "StructuredModel star": structured(
        lambda n: FactorGraph([2] * n, [(0, i) for i in range(1, n)])
    ),
    "StructuredModel one variable": structured(lambda n: FactorGraph([n + 1], [])),
    "StructuredModel clusters": rounds(clusters),
    "StructuredModel Ising": rounds(lambda n: Ising(n + 1, [(i, i + 1) for i in range(n)])),
    "StructuredModel own solver": own,
    "SequenceModel": sequence,
    "SequenceModel ssvm": lambda n: sequence(n, learner="ssvm"),
    "SequenceModel perceptron": lambda n: sequence(n, learner="perceptron"),
    "SequenceModel pseudo-likelihood": lambda n: sequence(n, learner="pseudo_likelihood"),
    "SequenceModel exact": lambda n: sequence(n, learner="exact_mle"),
    "SkipChainModel": skips,
    "GraphModel": graph,
    "MultiLabelModel, labels apart": lambda n: labels(n, pairs=False),
    "MatchingModel, many examples": examples(matching("partial", square), 3),
    "StructuredModel general, many examples": examples(structured(lambda n: Matching(4)), 4),
    "StructuredModel own solver, many examples": examples(own, 4),
    "SequenceModel, many examples": examples(sequence, 3),
    "GridModel, many examples": examples(picture, 3),
}  # fmt: skip
GRIDS: dict[str, Callable[[int], Case]] = {
    "GridModel": picture,
    "GridModel eight neighbours": lambda n: picture(n, neighbours=8),
    "GridModel ssvm": lambda n: picture(n, learner="ssvm", oracle="trw_s"),
    "GridModel pseudo-likelihood": lambda n: picture(n, learner="pseudo_likelihood"),
    "StructuredModel grid": structured(lambda n: grid(n, n)),
    "StructuredModel plaquettes": rounds(lambda n: plaquettes(n, n)),
    "StructuredModel Ising grid": rounds(lambda n: Ising(n * (n + 1), grid_pairs(n))),
    "MultiLabelModel": labels,
}

MOST = {"StructuredModel b-matching": 129, "StructuredModel plaquettes": 8}
MOST["StructuredModel Ising grid"] = 33
"""Sizes up to which a solver answers within seconds: of 128 × 128 plaquettes none does."""


def grid_pairs(n: int) -> Any:
    """Neighbours on n rows of n + 1 nodes: those of a single node have no pair."""
    _, across, down = grid_edges(n, n + 1)
    return np.concatenate([across, down])


def drawn(cases: dict[str, Any], sizes: tuple[int, ...], most: int) -> list[tuple[str, int]]:
    """Two sizes up to ``most`` for every case, and to a quarter of what it has a limit for."""
    rng = np.random.default_rng(0)
    few = {
        name: [n for n in sizes if n <= min(most, MOST.get(name, 4 * most) // 4)] for name in cases
    }
    return [(name, int(n)) for name in cases for n in rng.choice(few[name], 2, replace=False)]


@pytest.fixture(autouse=True)
def _strict() -> Iterator[None]:
    """Two rounds do not converge, and say so; anything else that warns is a fault."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", DataWarning)
        yield


def check(case: Case, path: Path) -> None:
    model, X, y = case
    assert repr(model.fit(X, y))
    assert str(model.summary())
    found, tau = model.predict(X), model.predict_marginals(X)
    assert len(found) == len(X)
    for one in tau:
        assert np.isfinite(one).all()
        assert one.min(initial=0.0) >= -1e-9
        assert one.max(initial=0.0) <= 1 + 1e-9
    code = ("structure", "oracle", "skips")
    model.save(path)
    again = {name: getattr(model, name) for name in code if callable(getattr(model, name, None))}
    given = getattr(model, "structure", None)
    again |= {} if given is None else {"structure": given}
    same = type(model).load(path, **again)
    assert repr(same)
    assert str(same.summary()) == str(model.summary())
    for one, other in zip(same.predict_marginals(X), tau, strict=True):
        assert np.array_equal(one, other)
    for one, other in zip(same.predict(X), found, strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize(("name", "size"), [*drawn(CASES, SIZES, 65), *drawn(GRIDS, SIDES, 16)])
def test_a_model_of_any_size_works_from_fit_to_file(name: str, size: int, tmp_path: Path) -> None:
    check({**CASES, **GRIDS}[name](size), tmp_path / "model")


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "size"),
    [
        (name, n)
        for cases, sizes in ((CASES, SIZES), (GRIDS, SIDES))
        for name in cases
        for n in sizes
        if n <= MOST.get(name, n)
    ],
)
def test_a_model_of_every_size_works_from_fit_to_file(name: str, size: int, tmp_path: Path) -> None:
    check({**CASES, **GRIDS}[name](size), tmp_path / "model")


def room_mates(n: int, path: Path) -> None:
    people = [{"id": i, "tidy": i % 3, "late": i % 2} for i in range(2 * n)]
    model = RoommateModel(ordinal="tidy", binary="late", tol=1e-3, progress=False)
    model.fit(people, [(i, i + n) for i in range(n)])
    assert repr(model)
    assert str(model.summary())
    plan = model.assign(people)
    assert len(plan.pairs) == n
    model.save(path)
    same = RoommateModel.load(path)
    assert str(same.summary()) == str(model.summary())
    assert same.assign(people).pairs == plan.pairs


@pytest.mark.parametrize("n", [2, 3, 9, 16, 33])
def test_room_mates_of_any_number_are_paired(n: int, tmp_path: Path) -> None:
    room_mates(n, tmp_path / "model")


@pytest.mark.nightly
@pytest.mark.parametrize("n", [n for n in SIZES if 1 < n <= 550])
def test_room_mates_of_every_number_are_paired(n: int, tmp_path: Path) -> None:
    room_mates(n, tmp_path / "model")


@pytest.mark.parametrize("n", [1, 2, 9, 33])
def test_joint_models_of_any_length_predict(n: int) -> None:
    joint(n)


@pytest.mark.nightly
@pytest.mark.parametrize("n", SIZES)
def test_joint_models_of_every_length_predict(n: int) -> None:
    joint(n)


def joint(n: int) -> None:
    model = JointModel(chain(n, 2), Mixture(0.6, [-1.0, 1.0], [0.5, 0.5]), smoothing=0.1)
    model.fit([np.arange(n) % 2, np.zeros(n, int)])
    assert repr(model)
    assert np.isfinite(model.predict([np.full(n, 0.5)])[0]).all()
    assert np.isfinite(model.predict_marginals([np.full(n, np.nan)])[0]).all()


KINDS: dict[str, Callable[[int], Structure]] = {
    **{
        f"{kind} {name}": (lambda n, kind=kind, shape=shape: BipartiteMatching(*shape(n), kind))
        for kind in ("perfect", "one_sided", "partial")
        for name, shape in {
            "square": square, "row": lambda n: (1, n), "column": lambda n: (n, 1)
        }.items()
        if (kind, name) not in [("perfect", "row"), ("perfect", "column"), ("one_sided", "column")]
    },
    "general perfect": lambda n: Matching(even(n)),
    "general partial": lambda n: Matching(n + 1, kind="partial"),
    "general forest": lambda n: Matching(2 * n, [(i, i + 1) for i in range(2 * n - 1)]),
    "b-matching": lambda n: BMatching.bipartite(1, n),
    "flow": lambda n: Flow(lattice(n), {0: (0, 2), 1: (-2, 0)}),
    "paths": lambda n: Paths([(i, i + 1) for i in range(n)], 0, n),
    "chain": lambda n: chain(n, 2),
    "complete graph": lambda n: FactorGraph([2] * n, complete(n)),
    "complete Ising": lambda n: Ising(n, complete(n)),
    "no factors": lambda n: FactorGraph([2] * n, []),
}  # fmt: skip


def complete(n: int) -> Any:
    return np.stack(np.triu_indices(n, 1), axis=1)


SLOW = ("complete Ising", "general perfect", "general partial", "partial column")
SUMMED = [(kind, n) for kind in KINDS for n in (1, 64, 1024) if n < 1024 or kind not in SLOW]


@pytest.mark.parametrize(("kind", "n"), SUMMED)
def test_exact_sums_are_done_or_refused_at_any_size(kind: str, n: int) -> None:
    summed(kind, n)


@pytest.mark.nightly
@pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 513, 1023, 1024, 1025, 1100])
@pytest.mark.parametrize("kind", KINDS)
def test_exact_sums_are_done_or_refused_at_every_size(kind: str, n: int) -> None:
    summed(kind, n)


def summed(kind: str, n: int) -> None:
    if n > 300 and kind.startswith("complete"):
        n = 300 if kind == "complete graph" else 1100
    structure = KINDS[kind](n)
    assert seconds(structure) > 0
    for call in (lambda: exact(structure, np.zeros(structure.size)).log_z, lambda: listed(kind, n)):
        try:
            assert np.all(np.isfinite(call()))
        except ValueError:  # too many of them
            assert n > 8


def listed(kind: str, n: int) -> Any:
    """All outcomes, where there are few or the routine counts them before it lists them."""
    structure = KINDS[kind](n)
    return outcomes(structure) if isinstance(structure, LISTABLE) else 0.0


@pytest.mark.parametrize("n", [30, 63, 64, 1023, 1024, 1025, 1100])
def test_tables_of_too_many_variables_are_refused(n: int) -> None:
    with pytest.raises(ValueError, match="coordinates"):
        FactorGraph([3] * n, [range(n)])
    with pytest.raises(ValueError, match="coordinates"):
        RegionGraph([3] * n, [range(n)])

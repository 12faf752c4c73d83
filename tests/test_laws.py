"""Every structure × oracle × entropy obeys the public laws of mlestruct.testing."""

from __future__ import annotations

import numpy as np
import pytest

from mlestruct.features import Dense
from mlestruct.learning.dual import Dual
from mlestruct.learning.frank_wolfe import FrankWolfe
from mlestruct.learning.regulariser import Regulariser
from mlestruct.oracle import Answer, Counted, Simplices, Solver, Validated, load
from mlestruct.structures import (
    BipartiteMatching,
    Constraints,
    Custom,
    FactorGraph,
    Matching,
    Paths,
    chain,
    grid,
    tree,
)
from mlestruct.structures.batch import Batch
from mlestruct.structures.entropy import Entropy
from mlestruct.testing import check_entropy, check_oracle, check_structure, vertices
from tests.listing import BruteForce
from tests.reference.descents import solved

TREE = [(0, 1), (1, 2), (1, 3)]
DAG = [(0, 1), (0, 1), (0, 2), (1, 2), (1, 3), (2, 3), (2, 4), (0, 3)]  # 4 is a dead end
TABLE = [[3 * row + column for column in range(3)] for row in range(3)]
COLUMNS = [list(column) for column in zip(*TABLE, strict=True)]

STRUCTURES = {
    "variable": FactorGraph([3], []),
    "chain": chain(4, 2),
    "chain of ones": FactorGraph([1, 2, 1], [(0, 1), (1, 2)]),
    "tree": tree(TREE, [2, 3, 2, 2]),
    "forest": FactorGraph([2, 2, 3], [(2, 0)]),
    "order 3": FactorGraph([2, 3, 2, 2, 3], [(1, 0, 2), (2, 3), (4, 3)]),
    "two of order 3": FactorGraph([2, 2, 2, 3, 2], [(0, 1, 2), (4, 2, 3)]),
    "forbidden states": chain(4, 3).forbid([(0, 1), (2, 0), (2, 2)]),
    "forbidden configurations": FactorGraph([2, 3, 2], [(1, 0, 2)]).forbid(
        [(2, 1)], [(0, (0, 0, 0)), (0, (2, 1, 0))]
    ),
    "clamped chain": chain(4, 2).clamp([-1, 1, -1, -1]),
    "grid 2x2": grid(2, 2),
    "grid 2x3": grid(2, 3),
    "grid with forbidden": grid(2, 2, 3).forbid([(0, 0)], [(0, (1, 1))]),
    "order-3 cycle": FactorGraph([2, 2, 2, 2], [(0, 1, 2), (2, 3), (3, 0)]),
    "one pair": BipartiteMatching(1),
    "perfect": BipartiteMatching(3),
    "perfect forbidden": BipartiteMatching(4, forbidden=[(0, 0), (1, 2), (3, 3)]),
    "perfect dead pair": BipartiteMatching(3, forbidden=[(0, 1), (0, 2)]),
    "perfect required": BipartiteMatching(4, required=[(2, 1)]),
    "one_sided": BipartiteMatching(2, 4, "one_sided", forbidden=[(0, 3)]),
    "one_sided square": BipartiteMatching(3, 3, "one_sided"),
    "one_sided required": BipartiteMatching(3, 4, "one_sided", required=[(1, 3)]),
    "one row": BipartiteMatching(1, 3, "one_sided"),
    "partial": BipartiteMatching(3, kind="partial"),
    "partial wide": BipartiteMatching(2, 4, "partial", forbidden=[(0, 0)]),
    "partial tall": BipartiteMatching(4, 2, "partial", required=[(3, 1)]),
    "general perfect": Matching(
        6, [(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5), (0, 3), (1, 4)]
    ),
    "general partial": Matching(5, kind="partial", forbidden=[(0, 4)]),
    "general required": Matching(6, required=[(1, 4)]),
    "paths": Paths(DAG, 0, 3),
    "paths forbidden": Paths(DAG, 0, 3, fixed=[0, -1, -1, -1, -1, -1, -1, -1]),
    "paths required": Paths(DAG, 0, 3, fixed=[-1, -1, -1, 1, -1, -1, -1, -1]),
    "one path": Paths([(0, 1), (1, 2)], 0, 2),
    "groups": Custom(7, exactly_one=[[0, 1, 2], [3, 4]]),
    "groups fixed": Custom(6, exactly_one=[[0, 1, 2], [3, 4]], fixed=[0, -1, -1, 1, -1, -1]),
    "overlapping": Custom(9, exactly_one=TABLE + COLUMNS, shape=(3, 3)),
    "nested": Custom(4, exactly_one=[[0, 1, 2, 3], [0, 1, 2]]),
    "rows": Custom(5, A=[[1, 1, 1, 1, 1], [1, -1, 0, 0, 0]], lower=[1, -1], upper=[3, 0]),
    "groups and rows": Custom(
        6, exactly_one=[[0, 1, 2], [3, 4, 5]], A=[[1, 0, 0, 1, 0, 0]], upper=[1], shape=(2, 3)
    ),
    "plain": Custom(4),
}

CLAMPS = {
    "chain": [
        ([0, -1, -1, 1], lambda y: y[0] == 0 and y[3] == 1),
        ({2: 1}, lambda y: y[2] == 1),
        ([-1] * 4, lambda y: True),
    ],
    "order 3": [([-1, 2, -1, 0, -1], lambda y: y[1] == 2 and y[3] == 0)],
    "forbidden states": [([-1, 2, -1, -1], lambda y: y[1] == 2)],
    "clamped chain": [([0, -1, -1, -1], lambda y: y[0] == 0)],
    "grid 2x3": [([-1, 0, -1, 1, -1, 1], lambda y: y[1] == 0 and y[3] == 1 and y[5] == 1)],
    "perfect": [([-1, 2, -1], lambda y: y[1] == 2), ([0, 1, 2], lambda y: y.tolist() == [0, 1, 2])],
    "perfect required": [([0, -1, -1, -1], lambda y: y[0] == 0)],
    "one_sided": [([-1, 3], lambda y: y[1] == 3)],
    "partial": [([1, -1, -1], lambda y: y[0] == 1)],
    "partial tall": [([0, -1, -1, -1], lambda y: y[0] == 0)],
    "paths": [([3], lambda y: 3 in y), ([1, 4], lambda y: 1 in y and 4 in y)],
    "groups": [([-1, 0, -1, 1, -1, -1, -1], lambda v: v[1] == 0 and v[3] == 1)],
    "rows": [([1, -1, -1, -1, -1], lambda v: v[0] == 1)],
}


def own_oracle(structure):
    """The structure's own solver, where it has one."""
    if structure.default_oracle is None:
        disjoint = sum(map(len, structure.groups)) == len({k for g in structure.groups for k in g})
        return Simplices() if disjoint and structure.rows is None else None
    return load(structure.default_oracle)


def listing(structure):
    """A user's solver: the best of a list."""
    found = vertices(structure)

    def best(score):
        return found[(found @ score.reshape(-1)).argmax()].reshape(structure.shape)

    return best


OWN = sorted(name for name, s in STRUCTURES.items() if own_oracle(s) is not None)
LISTED = BruteForce(vertices)


@pytest.mark.parametrize("name", STRUCTURES)
def test_structures_obey_their_laws(name):
    """Encoding, views, constraints, loss, interior and clamps agree with the listed outcomes."""
    check_structure(STRUCTURES[name], clamps=CLAMPS.get(name, ()))


@pytest.mark.parametrize("name", OWN)
def test_oracles_obey_their_laws(name):
    """A structure's own solver equals brute force, ties and forbidden coordinates included."""
    check_oracle(own_oracle(STRUCTURES[name]), STRUCTURES[name])


@pytest.mark.parametrize("wrap", [Validated, Counted])
@pytest.mark.parametrize("name", ["order 3", "perfect forbidden", "paths required", "groups fixed"])
def test_wrapped_oracles_obey_their_laws(name, wrap):
    """Validating and counting change no answer."""
    check_oracle(wrap(own_oracle(STRUCTURES[name])), STRUCTURES[name])


@pytest.mark.parametrize("name", STRUCTURES)
def test_brute_force_and_plain_callables_obey_the_laws(name):
    """A list of outcomes, and a user's callable in each of its forms, are oracles."""
    structure = STRUCTURES[name]
    best = listing(structure)
    check_oracle(LISTED, structure)
    for solve in (
        best,
        lambda _, score: best(score),
        lambda score: structure.decode(best(score).reshape(-1)),
        lambda score: Answer(best(score), float((best(score) * score).sum()) + 0.1),
        lambda s, score: Answer(
            s.decode(best(score).reshape(-1)), float((best(score) * score).sum())
        ),
    ):
        check_oracle(Validated(Solver(solve)), structure, instances=24)


def test_a_heuristic_with_honest_bounds_obeys_the_laws():
    """An answer below the best is allowed where its bound is not."""
    structure = STRUCTURES["perfect"]

    def lazy(score):
        return Answer(np.eye(3), float(np.maximum(score, 0).sum() + 1e-9))

    check_oracle(Solver(lazy), structure, exact=False)
    with pytest.raises(AssertionError, match="equals brute force"):
        check_oracle(Solver(lazy), structure)


RHOS = {
    "chain": [None, 0.0, 0.4],
    "tree": [None, [0.2, 1.0, 0.7]],
    "order 3": [None, 0.5],
    "two of order 3": [None, 0.3],
    "grid 2x2": [None, 0.0, 0.75, 1.0],
    "grid 2x3": [None, 0.3],
    "order-3 cycle": [None, 2 / 3],
    "one pair": [None, 1.0],
    "perfect": [None, 0.0, 1.0, 2 / 3, 0.8, [0.1, 0.4, 0.5, 0.2, 0.3, 0.5]],
    "perfect forbidden": [None, 1.0],
    "perfect required": [None, 1.0],
    "one_sided": [None, 1.0],
    "one_sided square": [None, 1.0],
    "partial": [None, 1.0, 0.0],
    "partial wide": [None, 1.0],
    "paths": [None, 0.0, 0.5],
    "overlapping": [None, 0.0, [1, 1, 1, 0, 0, 0]],
    "nested": [None, [0.3, 0.7]],
}
CASES = [(name, rho) for name in STRUCTURES for rho in RHOS.get(name, [None])]


@pytest.mark.parametrize(("name", "rho"), CASES, ids=lambda value: str(value).replace(" ", ""))
def test_entropies_obey_their_laws(name, rho):
    """Slopes, concavity and the side of log Z hold for every structure and reweighting."""
    check_entropy(STRUCTURES[name], rho, oracle=LISTED)


REGULARISERS = [{}, {"l1": 0.5}, {"lower": -0.2, "upper": 0.3}, {"fixed": {0: 0.5}}]


@pytest.mark.parametrize("scale", [1.0, 100.0])
@pytest.mark.parametrize(("name", "rho"), CASES, ids=lambda value: str(value).replace(" ", ""))
def test_certificates_of_learning_never_lie(name, rho, scale, rng):
    """Every round of every kind of step: the objective never rises, and all intervals
    [objective − gap, objective] share the optimum."""
    structure = STRUCTURES[name]
    listed = vertices(structure)
    outcomes = [structure.decode(listed[k]) for k in rng.integers(len(listed), size=3)]
    bias = scale * rng.standard_normal(3 * structure.size)
    batch = Batch.of(structure, outcomes, weight=[0.3, 1, 4], bias=bias)
    features = Dense.of(batch, scale * rng.standard_normal((batch.size, 3)))
    regulariser = Regulariser.of(3, rng.choice([0.1, 1, 10]), **REGULARISERS[rng.integers(4)])
    dual = Dual(batch, features, Entropy.of(batch, rho), regulariser)
    lowest, highest = np.inf, -np.inf
    for step in ("pairwise", "block"):
        states = solved(FrankWolfe(tol=1e-9, rounds=25, step=step), dual, Validated(LISTED))
        proofs = [state.certificate for state in states]
        value = np.array([proof.objective for proof in proofs])
        gap = np.array([proof.gap for proof in proofs])
        assert (np.diff(value) <= 1e-9 * (1 + np.abs(value[1:]))).all(), step
        lowest, highest = min(lowest, value.min()), max(highest, (value - gap).max())
    assert highest <= lowest + 1e-8 * (1 + abs(lowest))


def test_the_bethe_entropy_of_a_grid_is_refused_where_it_is_not_concave():
    """A 2×3 grid has more than one cycle: ρ = 1 is convex nowhere certified, and said so."""
    structure = STRUCTURES["grid 2x3"]
    with pytest.raises(ValueError, match="not provably concave"):
        Entropy.of(Batch.of(structure), 1.0)
    check_entropy(structure, 1.0, allow_nonconvex=True)


BROKEN = {
    "decode": "decode then encode",
    "views": "views of an outcome",
    "loss": "loss to itself",
    "levelled": "levelled scores differ by the same",
    "interior": "interior point",
    "clamp": "clamp keeps exactly",
    "constraints": "constraints",
}


@pytest.mark.parametrize("part", BROKEN)
def test_a_broken_structure_is_caught(part):
    """Each law fails for a structure that breaks it, in its own words."""

    class Broken(BipartiteMatching):
        def decode(self, vector):
            outcome = super().decode(vector)
            return outcome[::-1] if part == "decode" else outcome

        def views(self):
            views = super().views()
            return (
                type(views)(views.C * 0.5, views.c0, views.D, views.over)
                if part == "views"
                else views
            )

        def loss(self, vertex):
            return (vertex, 1.0) if part == "loss" else super().loss(vertex)

        def levelled(self, scores):
            return scores / 2 if part == "levelled" else super().levelled(scores)

        def interior(self):
            return np.eye(3).ravel() if part == "interior" else super().interior()

        def clamp(self, observed):
            return self.refix(self.fixed) if part == "clamp" else super().clamp(observed)

        def constraints(self):
            stated = super().constraints()
            loose = part == "constraints"
            return Constraints(stated.A[:2], stated.lo[:2], stated.hi[:2]) if loose else stated

    every = list(vertices(BipartiteMatching(3)))
    outcomes = [BipartiteMatching(3).decode(v) for v in every]
    with pytest.raises(AssertionError, match=BROKEN[part]):
        check_structure(Broken(3), outcomes, clamps=[([0, -1, -1], lambda y: y[0] == 0)])


def test_a_broken_oracle_is_caught():
    """Wrong answers, writes, low bounds and coin flips are each named."""
    structure = STRUCTURES["perfect"]
    best = listing(structure)

    class Writes(BruteForce):
        def many(self, batch, scores):
            answers = super().many(batch, scores)
            scores[0] = 0.5
            return answers

    class Outside(BruteForce):
        def many(self, batch, scores):
            return np.full(batch.size, 0.25), super().many(batch, scores)[1]

    rng = np.random.default_rng(0)
    for oracle, law in (
        (Solver(lambda score: np.eye(3)), "equals brute force"),
        (Solver(lambda score: Answer(best(score), -50.0)), "no less than the best"),
        (
            Solver(lambda score: Answer(best(score), np.abs(score).sum() + rng.random())),
            "deterministic",
        ),
        (Outside(vertices), "lies in the structure"),
        (Writes(vertices), "does not change its input"),
    ):
        with pytest.raises(AssertionError, match=law):
            check_oracle(oracle, structure)


def test_a_false_bound_is_caught():
    """ρ = 0.9 on a triangle is concave and no bound; who calls it one is found out."""

    class Boast(FactorGraph):
        def bound(self, counting):
            return type(super().bound(counting))("upper", "hope")

    triangle = Boast([2, 2, 2], [(0, 1), (1, 2), (0, 2)])
    check_entropy(FactorGraph([2, 2, 2], [(0, 1), (1, 2), (0, 2)]), 0.9)
    with pytest.raises(AssertionError, match="bounded as the entropy claims"):
        check_entropy(triangle, 0.9, models=200)


def test_a_false_claim_of_concavity_is_caught():
    """The Bethe entropy of a 2×3 grid bends upwards at strongly correlated points."""

    class Boast(FactorGraph):
        def convex(self, counting):
            return True

    plain = grid(2, 3)
    scopes = plain.scope.reshape(-1, 2)
    with pytest.raises(AssertionError, match="no positive curvature"):
        check_entropy(Boast(plain.cards, scopes), 1.0)

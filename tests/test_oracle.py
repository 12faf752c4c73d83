"""The oracle seam: products of simplices, plain callables, and what the wrappers promise."""

import numpy as np
import pytest

from mlestruct.errors import Infeasible
from mlestruct.oracle import (
    CATALOGUE,
    Answer,
    Counted,
    Simplices,
    Solver,
    Validated,
    attained,
    load,
    pin,
    resolve,
)
from mlestruct.structures import BipartiteMatching, Custom, Paths, chain
from mlestruct.structures.batch import Batch
from mlestruct.testing import check_oracle, vertices
from tests.listing import BruteForce

PERFECT = BipartiteMatching(3)
LISTED = vertices(PERFECT)


def best(score):
    return LISTED[(LISTED @ score.ravel()).argmax()].reshape(3, 3)


def test_simplices_refuse_groups_that_overlap():
    structure = Custom(3, exactly_one=[[0, 1], [1, 2]])
    with pytest.raises(ValueError, match="do not overlap"):
        Simplices().many(Batch.of(structure), np.zeros(3))


def test_fixed_coordinates_reach_a_callable_as_scores():
    """A solver that knows nothing of required and forbidden pairs obeys them all the same."""
    structure = BipartiteMatching(3, forbidden=[(0, 0)], required=[(1, 2)])
    check_oracle(Solver(best), structure, instances=60)
    bounded = Solver(lambda s: Answer(best(s), attained(s.ravel(), best(s).ravel()) + 0.5))
    check_oracle(bounded, structure, instances=60)
    score = np.array([5.0, -np.inf, 1.0, 2.0])
    assert np.isfinite(pin(Custom(4, fixed=[-1, 0, 1, -1]), score)).all()


@pytest.mark.parametrize("number", [int, float, np.int8])
def test_arcs_that_look_like_a_vector_are_read_as_arcs(number):
    """[0, 1]: no path of two arcs as a vector, and the only one as a list of arcs' numbers.

    Answered by one array that the solver overwrites, beside answers that are vectors.
    """
    road = Paths([(0, 1), (1, 2)], 0, 2)
    batch = Batch.of([road, PERFECT, road])
    own = np.zeros(2, dtype=number)

    def solve(structure, score):
        if structure == PERFECT:
            return best(score).astype(number)
        own[:] = [1, 1] if score[0] > 0 else [0, 1]
        return own

    scores = np.concatenate([[-1.0, 3], np.arange(9.0), [1.0, 3]])
    vertices, upper = Validated(Solver(solve)).many(batch, scores)
    assert vertices[[0, 1, 11, 12]].tolist() == [1.0] * 4
    np.testing.assert_allclose(upper, [2.0, scores[2:11] @ vertices[2:11], 4.0])


@pytest.mark.parametrize("wrong", [-1e-3, 1 + 1e-3, np.nan, np.inf])
def test_an_entry_that_is_no_share_is_refused(wrong):
    structure = Custom(3)
    answer = np.array([0.0, 1.0, wrong])
    with pytest.raises(ValueError, match="example 1: the solver's answer is no outcome"):
        Solver(lambda s: answer if s[0] else np.zeros(3)).many(
            Batch.of(structure, count=2), np.repeat([0.0, 1.0], 3)
        )


def ask(oracle, structure=PERFECT, score=None):
    score = np.arange(float(structure.size)) if score is None else np.asarray(score, float)
    return oracle.many(Batch.of(structure), score)


def test_validation_refuses_answers_of_another_shape():
    class Short(BruteForce):
        def many(self, batch, scores):
            answers, upper = super().many(batch, scores)
            return answers[:-1], upper

    with pytest.raises(ValueError, match=r"oracle Short returned shapes \(8,\), \(1,\)"):
        ask(Validated(Short(vertices)))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_scores_must_be_finite_but_for_forbidden_coordinates(value):
    """−inf is a score of a coordinate fixed at 0, and of no other."""
    structures = [PERFECT, BipartiteMatching(3, forbidden=[(0, 1)])]
    batch = Batch.of([structures[0], structures[1], structures[0]])
    oracle = Validated(resolve(None, batch))
    scores = np.zeros(27)
    scores[18 + 4] = value
    with pytest.raises(ValueError, match=f"example 2: score of coordinate 4 is {value}"):
        oracle.many(batch, scores)
    scores[18 + 4], scores[9 + 1] = 0.0, -np.inf
    answers, upper = oracle.many(batch, scores)
    assert np.isfinite(upper).all()
    assert answers[10] == 0.0


def test_validation_lifts_a_bound_that_rounding_put_below_its_answer():
    shy = Solver(lambda s: Answer(best(s), attained(s.ravel(), best(s).ravel()) - 1e-9))
    answers, upper = ask(Validated(shy))
    assert upper[0] >= np.arange(9.0) @ answers


def test_an_infeasible_structure_is_named_through_any_oracle():
    structure = BipartiteMatching(3, forbidden=[(0, 0), (0, 1), (1, 0), (1, 1)])
    with pytest.raises(Infeasible, match="between them"):
        ask(Validated(Solver(best)), structure)


def test_counting_and_caching():
    counted = Counted(BruteForce(vertices))
    batch = Batch.of([PERFECT, PERFECT, BipartiteMatching(2)])
    counted.many(batch, np.random.default_rng(0).standard_normal(batch.size))
    assert counted.calls == 3
    assert counted.seconds > 0


def test_masks_pass_through_every_wrapper():
    mask = np.array([True, False, True, True])
    oracle = Solver(lambda s: (s > 0).astype(float), mask=lambda structure: mask)
    batch = Batch.of(Custom(4), count=2)
    for wrapped in (oracle, Validated(oracle), Counted(oracle)):
        assert wrapped.perturbable(batch).tolist() == mask.tolist() * 2
        assert wrapped.polytope == "convex hull"
    base = np.array([0.0, -0.7, 0.0, 0.0])
    check_oracle(oracle, Custom(4), base=base)


def test_names_defaults_and_what_is_no_oracle():
    batch = Batch.of(PERFECT)
    assert type(resolve(None, batch).oracle).__name__ == "Assignment"
    assert type(resolve("simplices", batch)) is Simplices
    given = BruteForce(vertices)
    assert resolve(given, batch) is given
    with pytest.raises(ValueError, match="no oracle named 'asignment'; there are assignment"):
        resolve("asignment", batch)
    with pytest.raises(ValueError, match="Custom has no default oracle"):
        resolve(None, Batch.of(Custom(3)))
    with pytest.raises(ValueError, match="is a name, a callable or has a method many; got 3"):
        resolve(3, batch)
    with pytest.raises(ValueError, match="no oracle named 'nothing'"):
        load("nothing")


def test_a_mixed_batch_asks_each_structures_own_solver():
    structures = [chain(3, 2), PERFECT, Paths([(0, 1), (0, 1)], 0, 1), chain(2, 2), PERFECT]
    batch = Batch.of(structures)
    scores = np.random.default_rng(0).standard_normal(batch.size)
    answers, upper = Validated(resolve(None, batch)).many(batch, scores)
    for m, structure in enumerate(structures):
        part = batch.coordinates(m)
        assert upper[m] == pytest.approx((vertices(structure) @ scores[part]).max())
        assert structure.contains(answers[part])


def test_brute_force_says_when_nothing_is_left():
    structure = Custom(2, exactly_one=[[0, 1]], fixed=[0, 0])
    with pytest.raises(Infeasible, match="no outcome respects"):
        ask(BruteForce(lambda s: np.eye(2)), structure)


@pytest.mark.parametrize("name", sorted(CATALOGUE))
def test_a_row_of_the_catalogue_names_its_solvers_polytope(name):
    """A default solver that is never asked is never loaded, and certificates name its polytope."""
    stated = CATALOGUE[name].polytope
    try:
        solver = load(name)
    except ImportError as error:
        pytest.skip(str(error))
    assert stated is None or stated == solver.polytope

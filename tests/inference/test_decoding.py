"""Predictions are outcomes with their own scores, the best ones where that can be proven."""

import itertools

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.estimators.base import Estimator
from mlestruct.inference import best, decode
from mlestruct.inference.bounds import outcome_interval
from mlestruct.inference.elimination import best_states
from mlestruct.oracle import load


def complete(n):
    return [[i, j] for i in range(n) for j in range(i)]


GRAPHS = {
    "complete, binary": lambda: ms.FactorGraph([2] * 6, complete(6)),
    "complete, three states": lambda: ms.FactorGraph([3] * 4, complete(4)),
    "grid": lambda: ms.grid(3, 3),
    "triples": lambda: ms.FactorGraph([2] * 5, [[0, 1, 2], [2, 3, 4], [0, 3, 4], [1, 3, 4]]),
    "mixed": lambda: ms.FactorGraph([2, 3, 2, 4], [[0, 1], [1, 2], [2, 3], [3, 0], [0, 2]]),
    "plaquettes": lambda: ms.plaquettes(3, 3),
}


def listed(structure, score):
    """The best score by listing all labellings."""
    states = itertools.product(*(range(k) for k in getattr(structure, "cards", [2] * 9)))
    return max(float(score @ structure.encode(list(s))) for s in states)


def frustrated(structure, rng):
    """Strong factors against weak nodes: what relaxations answer with fractions."""
    score = 3.0 * rng.normal(size=structure.size)
    if isinstance(structure, ms.FactorGraph):
        score[: structure.node_start[-1]] *= 0.02
    return score


@pytest.mark.parametrize("kind", GRAPHS)
@pytest.mark.parametrize(
    "seed", [*range(6), *(pytest.param(k, marks=pytest.mark.nightly) for k in range(6, 200))]
)
def test_default_oracles_are_decoded_to_the_best_outcome(kind, seed):
    rng, structure = np.random.default_rng(seed), GRAPHS[kind]()
    batch = ms.Batch.of(structure, count=3)
    score = np.concatenate([frustrated(structure, rng) for _ in range(3)])
    found = decode(batch, score)
    assert found.proven.all()
    for m in range(3):
        own, here = found.outcomes[m], score[batch.coordinates(m)]
        assert found.scores[m] == pytest.approx(here @ structure.encode(own), abs=1e-9)
        assert found.scores[m] == pytest.approx(listed(structure, here), abs=1e-6)
    assert best(batch, score)[1].tolist() == found.scores.tolist()
    assert outcome_interval(batch, score).lower.tolist() == found.scores.tolist()


@pytest.mark.parametrize("oracle", ["linear_program", "qpbo", "relaxation"])
def test_oracles_of_relaxations_by_name_are_decoded_too(oracle, rng):
    structure = ms.FactorGraph([2] * 6, complete(6))
    batch = ms.Batch.of(structure, count=1)
    for _ in range(10):
        score = frustrated(structure, rng)
        found = decode(batch, score, oracle)
        assert found.scores[0] == pytest.approx(listed(structure, score), abs=1e-6)


@pytest.mark.parametrize("fixed", [0, 1])
def test_maxima_are_summed_out_like_sums(fixed, rng):
    """With states fixed away, on several rows of scores at once."""
    structure = ms.FactorGraph([3, 2, 3, 2], [[0, 1], [1, 2], [2, 3], [3, 0]])
    shut = np.full(structure.size, -1, dtype=np.int8)
    shut[fixed] = 0
    structure = structure.refix(shut)
    scores = rng.normal(size=(5, structure.size))
    for row, states in zip(scores, best_states(structure, scores), strict=True):
        every = itertools.product(*(range(k) for k in structure.cards))
        allowed = [s for s in every if s[0] != fixed]
        worth = [float(row @ structure.encode(list(s))) for s in allowed]
        assert tuple(states) == allowed[int(np.argmax(worth))]


def test_fractions_of_matchings_go_to_their_exact_solver(rng):
    structure = ms.Matching(6)
    batch, score = ms.Batch.of(structure, count=1), rng.normal(size=15)
    halves = ms.oracle.resolve("linear_program", batch)
    assert decode(batch, score, halves).scores[0] == pytest.approx(best(batch, score)[1][0])


def test_predict_counts_what_is_not_proven():
    """Once per call; decode says which."""
    structure = ms.Custom(3, exactly_one=[[0, 1, 2]])

    def solve(score):
        chosen = np.eye(3)[int(np.argmax(score))]
        return ms.Answer(chosen, float(score.max()) + 0.25)

    X, y = [np.eye(3)] * 3, [np.eye(3)[k] for k in (0, 1, 1)]
    model = ms.StructuredModel(structure, oracle=solve, tol=10.0).fit(X, y)
    with pytest.warns(ms.ConvergenceWarning, match="3 of 3 answers are not proven best") as heard:
        model.predict(X)
    assert len(heard) == 1
    found = model.decode(X)
    assert not found.proven.any()
    np.testing.assert_allclose(found.upper - found.scores, 0.25)
    assert isinstance(model, Estimator)


def test_grids_with_contrast_predict_the_best_labelling(rng):
    """Weights that repel neighbours: two labels are no longer a cut."""
    y = [np.indices((4, 4)).sum(axis=0) % 2 for _ in range(4)]
    X = [rng.normal(size=(4, 4, 1)) for _ in y]
    model = ms.GridModel(contrast=True, alpha=0.01).fit(X, y)
    found, one = model.decode(X), model.structures(X)[0]
    for flat, score in zip(model.potentials(X), found.scores, strict=True):
        states = best_states(one, flat[None])[0]
        assert score == pytest.approx(float(flat @ one.encode(states)), abs=1e-6)


def test_an_effort_is_counted_and_gives_the_same_answer_twice(rng):
    from dataclasses import replace

    structure = ms.FactorGraph([3] * 10, complete(10))
    batch, score = ms.Batch.of(structure, count=1), 3.0 * rng.normal(size=structure.size)
    one, two = (replace(load("cp_sat"), effort=1.0).many(batch, score) for _ in range(2))
    assert one[0].tolist() == two[0].tolist()
    assert one[1].tolist() == two[1].tolist()
    assert one[1][0] >= float(score @ one[0]) - 1e-9

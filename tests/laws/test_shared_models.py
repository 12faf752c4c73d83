"""Models that threads share, copies of models, and models in other processes answer alike."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import mlestruct as ms

THREADS = 20


def matching(rng, kind="perfect"):
    X = rng.standard_normal((6, 5, 5, 3))
    return ms.MatchingModel(kind=kind, tol=1e-6), X, [rng.permutation(5) for _ in X]


def sharp(rng):
    X = rng.standard_normal((4, 4, 4, 2))
    return ms.MatchingModel(rho=1.0, alpha=0.01), X, [rng.permutation(4) for _ in X]


def grid(rng, states=2):
    X = rng.standard_normal((4, 4, 5, 2))
    return ms.GridModel(), X, rng.integers(0, states, (4, 4, 5))


def sequence(rng):
    X = [rng.standard_normal((int(rng.integers(1, 9)), 3)) for _ in range(8)]
    return ms.SequenceModel(), X, [rng.integers(0, 3, len(x)) for x in X]


def max_margin(rng):
    model, X, y = grid(rng, 3)
    return model.set_params(learner="ssvm", tol=0.05), X, y


def best_of_four(score):
    return np.eye(4, dtype=int)[int(np.argmax(score))]


def own_solver(rng):
    X = [rng.standard_normal((4, 3)) for _ in range(8)]
    structure = ms.Custom(4, exactly_one=[[0, 1, 2, 3]])
    y = [np.eye(4, dtype=int)[rng.integers(4)] for _ in X]
    return ms.StructuredModel(structure, oracle=best_of_four), X, y


def frank_wolfe(rng):
    model, X, y = matching(rng)
    return model.set_params(solver="frank_wolfe", tol=0.05), X, y


MAKERS = {
    make.__name__: make for make in (matching, sharp, grid, sequence, max_margin, own_solver)
} | {"frank_wolfe": frank_wolfe, "grid_of_three": lambda rng: grid(rng, 3)}


def fitted(name):
    model, X, y = MAKERS[name](np.random.default_rng(0))
    return model.fit(X, y), X, y


def answers(model, X):
    """Every number that a model says of some examples, as one array."""
    parts = [model.coef_, *model.predict(X)]
    if model.get_params()["learner"] != "ssvm":
        parts += model.predict_marginals(X)
    return np.concatenate([np.ravel(part).astype(float) for part in parts])


def answers_of_bytes(content, X):
    return answers(pickle.loads(content), X)


@pytest.mark.parametrize("name", MAKERS)
def test_threads_that_share_a_model_get_its_bits(name):
    model, X, y = fitted(name)
    expected = answers(model, X)

    def work(turn):
        if turn % 2:
            return answers(model, X)
        return answers(copy.copy(model).fit(X, y), X)  # another fit on the same structures

    with ThreadPoolExecutor(THREADS) as pool:
        for found in pool.map(work, range(THREADS)):
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", MAKERS)
def test_copies_of_a_used_model_have_its_bits(name):
    model, X, _ = fitted(name)
    expected = answers(model, X)
    for made in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(answers(made, X), expected)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # 3.12 warns of other threads
@pytest.mark.parametrize("way", ["spawn", "fork"])
def test_used_models_have_their_bits_in_another_process(way):
    names = [name for name in MAKERS if name != "grid_of_three"]
    used = {name: fitted(name)[:2] for name in names}
    expected = {name: answers(*used[name]) for name in names}
    with multiprocessing.get_context(way).Pool(1) as pool:
        for name in names:
            model, X = used[name]
            found = pool.apply(answers_of_bytes, (pickle.dumps(model), X))
            np.testing.assert_array_equal(found, expected[name])

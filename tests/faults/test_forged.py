"""FINDINGS 60: a forged checkpoint of any fit, at any round, ends in a ValueError or a fit."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest

import mlestruct as ms
from benchmarks._faults.damage import Kind, _header, _reshaped, fault
from mlestruct.learning.checkpoints import File

RNG = np.random.default_rng(0)
WORDS = [RNG.normal(size=(4, 2)) for _ in range(6)]
TAGS = [(x[:, 0] > 0).astype(int) for x in WORDS]
HOLES = [ms.Partial([*tags[:3], -1]) for tags in TAGS]
TABLES = [RNG.normal(size=(3, 3, 2)) for _ in range(5)]
PARTNERS = [RNG.permutation(3) for _ in TABLES]
LABELS = [(x[..., 0] > 0).astype(int) for x in TABLES]
PEOPLE = [{"id": i, "tidy": i % 3, "year": i % 2} for i in range(12)]
PAIRS = [(0, 6), (2, 4), (1, 7), (3, 5)]


def sequence(y=TAGS, **how):
    return lambda at: ms.SequenceModel(max_rounds=6, **how).fit(WORDS, y, checkpoint=at)


def matching(**how):
    return lambda at: ms.MatchingModel(max_rounds=5, **how).fit(TABLES, PARTNERS, checkpoint=at)


def grid(**how):
    return lambda at: ms.GridModel(max_rounds=6, **how).fit(TABLES, LABELS, checkpoint=at)


def rooms(at):
    model = ms.RoommateModel(ordinal="tidy", cohort="year", alpha=[0.1, 5.0], progress=False)
    return model.fit(PEOPLE, PAIRS, checkpoint=at)


FITS = {
    "messages": sequence(tol=1e-6),
    "several alphas": sequence(tol=1e-4, alpha=[0.1, 1.0]),
    "kinks": sequence(tol=1e-6, l1=0.1),
    "missing labels": sequence(HOLES, tol=1e-4),
    "perceptron": sequence(learner="perceptron"),
    "scaling": matching(tol=1e-6),
    "Frank-Wolfe": matching(tol=1e-6, solver="frank_wolfe"),
    "max-margin": matching(tol=1e-6, learner="ssvm"),
    "CAMEL": grid(tol=1e-3, learner="camel"),
    "trees": grid(tol=1e-6, learner="trw"),
    "room-mates": rooms,
}


class Stop(Exception):
    """The fit is killed."""


def halfway(fit, path, writes, monkeypatch):
    """The file as it is after so many writes."""
    right, count = File.write, 0

    def write(self):
        nonlocal count
        right(self)
        count += 1
        if count == writes:
            raise Stop

    with monkeypatch.context() as patched:
        patched.setattr(File, "write", write)
        with suppress(Stop):
            fit(ms.Checkpoint(path, every=1))
    return path.read_bytes()


@pytest.mark.parametrize("name", FITS)
@pytest.mark.parametrize(
    ("writes", "count"),
    [(1, 6), (3, 12), (99, 12), *(pytest.param(k, 300, marks=pytest.mark.nightly) for k in (1, 3))],
)
@pytest.mark.filterwarnings("ignore::mlestruct.ConvergenceWarning")
def test_forged_checkpoints_are_value_errors(name, writes, count, tmp_path, monkeypatch):
    fit = FITS[name]
    whole = halfway(fit, tmp_path / "kept", writes, monkeypatch)
    kind = Kind(name, ".ckpt", whole, lambda at: fit(ms.Checkpoint(at, every=1)), sealed=True)
    rng = np.random.default_rng(writes)
    for k in range(count):
        forged = (_header, _reshaped)[k % 2](kind, rng, k)
        assert fault(forged) is None, str(forged)


def test_an_error_of_the_users_solver_is_not_blamed_on_the_file(tmp_path, monkeypatch):
    ask = {"fail": False}

    def solve(score):
        if ask["fail"]:
            raise KeyError("licence")
        return np.eye(3)[np.argmax(score)]

    def fit(at):
        X = [np.eye(3)[:, :2] * k for k in (1.0, 2.0, 3.0)]
        y = [np.eye(3)[k] for k in (0, 1, 2)]
        structure = ms.Custom(3, exactly_one=[[0, 1, 2]])
        return ms.StructuredModel(structure, oracle=solve, tol=1e-9).fit(X, y, checkpoint=at)

    halfway(fit, tmp_path / "kept", 2, monkeypatch)
    ask["fail"] = True
    with pytest.raises(KeyError, match="licence"):
        fit(tmp_path / "kept")

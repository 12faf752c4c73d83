"""Saved estimators: the same predictions bit for bit in another process, code never stored."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import mlestruct as ms
from mlestruct import data
from mlestruct.storage import files

ELSEWHERE = """
import sys, pickle, numpy as np, mlestruct as ms
kind, path, inputs, outputs = sys.argv[1:]
X = pickle.loads(open(inputs, "rb").read())
model = getattr(ms, kind).load(path)
answers = [*model.predict(X), *model.predict_marginals(X), *model.potentials(X)]
np.savez(outputs, *answers)
"""


def words(texts):
    return [[{"word": w, "caps": w.isupper()} for w in text.split()] for text in texts]


def matching():
    train = data.landmarks(sizes=(6, 0, 0), n=5, d=4)[0]
    return ms.MatchingModel("perfect", alpha=(0.1, 1.0), bounds=(0.0, np.inf)), train.X, train.y


def sequence():
    X = words(["in ROME today", "Rome is OLD", "go"])
    y = [["O", "B-LOC", "O"], ["B-LOC", "O", "O"], ["O"]]
    return ms.SequenceModel(constraints="bio", weights="seen", alpha=0.1), X, y


def picture():
    train = data.grids(sizes=(4, 0, 0), side=4)[0]
    return ms.GridModel(contrast=True, rho=0.4, tol=0.01), train.X, train.y


@pytest.mark.parametrize("make", [matching, sequence, picture])
def test_another_process_predicts_the_same_bits(make, tmp_path):
    import pickle

    model, X, y = make()
    model.fit(X, y).save(tmp_path / "model.npz")
    (tmp_path / "X.pickle").write_bytes(pickle.dumps(X))
    kind, out = type(model).__name__, tmp_path / "answers.npz"
    places = [str(tmp_path / name) for name in ("model.npz", "X.pickle")]
    subprocess.run([sys.executable, "-c", ELSEWHERE, kind, *places, str(out)], check=True)
    here = [*model.predict(X), *model.predict_marginals(X), *model.potentials(X)]
    with np.load(out) as there:
        for k, array in enumerate(here):
            assert there[f"arr_{k}"].dtype == array.dtype
            assert there[f"arr_{k}"].tobytes() == array.tobytes()


@pytest.mark.parametrize("make", [matching, sequence, picture])
def test_everything_fitted_survives(make, tmp_path):
    model, X, y = make()
    model.fit(X, y).save(tmp_path / "a.npz")
    twin = type(model).load(tmp_path / "a.npz")
    assert repr(twin) == repr(model)
    assert twin.get_params() == model.get_params()
    for name in ("certificate_", "history_", "n_iter_", "alpha_", "alpha_scores_", "route_"):
        assert getattr(twin, name) == getattr(model, name), name
    assert twin.names() == model.names()
    assert str(twin.summary()) == str(model.summary())
    twin.save(tmp_path / "b.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def pick(score):
    return np.eye(len(score))[score.argmax()]


def test_code_is_passed_again(tmp_path, rng):
    """A file holds neither solver nor structure: load asks for them by name."""
    X = [rng.standard_normal((3, 2)) for _ in range(12)]
    y = [pick(x @ [2.0, -1.0]) for x in X]
    structure = ms.Custom(3, exactly_one=[range(3)])
    model = ms.StructuredModel(structure, oracle=pick, tol=0.01).fit(X, y)
    path = tmp_path / "model.npz"
    model.save(path)
    with pytest.raises(ValueError, match="without its structure, oracle, which is code"):
        ms.StructuredModel.load(path)
    twin = ms.StructuredModel.load(path, structure=structure, oracle=pick)
    np.testing.assert_array_equal(twin.predict(X), model.predict(X))


def test_wrong_files_are_refused_by_reason(tmp_path):
    path = tmp_path / "model.npz"
    with pytest.raises(ValueError, match="not fitted yet"):
        ms.MatchingModel().save(path)
    model, X, y = matching()
    model.fit(X, y).save(path)
    with pytest.raises(ValueError, match="holds a MatchingModel, not a GridModel"):
        ms.GridModel.load(path)
    with pytest.raises(ValueError, match="MatchingModel has no setting 'colour'"):
        ms.MatchingModel.load(path, colour="red")
    files.save(path, "MatchingModel", {"coef": np.zeros(2)}, {"settings": {}, "again": []})
    with pytest.raises(ValueError, match="does not load as a MatchingModel: 'model'"):
        ms.MatchingModel.load(path)

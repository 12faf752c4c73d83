"""What stands in a cell of the data is what is learned from, or it is refused with its place."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import mlestruct as ms
from mlestruct.storage import files
from mlestruct.structures.base import as_integers, as_numbers


def tables(rng, count=8):
    X = [rng.normal(size=(3, 3, 2)) for _ in range(count)]
    return X, [rng.permutation(3) for _ in X]


def rows(rng, count=6):
    X = [rng.normal(size=(4, 2)) for _ in range(count)]
    return X, [(x[:, 0] > 0).astype(int).tolist() for x in X]


@pytest.mark.parametrize("kind", ["X", "y", "both", "validation"])
def test_series_are_taken_by_position(kind, rng):
    X, y = tables(rng)
    order = rng.permutation(len(X))
    shuffled = {"X": pd.Series(X, index=order), "y": pd.Series(y, index=order)}
    alphas = [0.01, 0.1, 1.0, 10.0]
    plain, model = (ms.MatchingModel(alpha=alphas) for _ in range(2))
    if kind == "validation":
        plain.fit(X, y, validation=(X, y))
        model.fit(X, y, validation=(shuffled["X"], shuffled["y"]))
    else:
        plain.fit(X, y)
        model.fit(
            shuffled["X"] if kind in ("X", "both") else X,
            shuffled["y"] if kind in ("y", "both") else y,
        )
    assert model.alpha_scores_ == plain.alpha_scores_
    assert model.coef_.tobytes() == plain.coef_.tobytes()
    assert model.score(shuffled["X"], shuffled["y"]) == plain.score(X, y)


def labels(rng, count=12):
    X = [rng.normal(size=2) for _ in range(count)]
    return X, [[int(x[0] > 0), int(x[1] > 0)] for x in X]


def test_units_of_intervals_are_taken_by_position(rng):
    X, y = rows(rng, 12)
    units, order = [m // 2 for m in range(12)], rng.permutation(12)
    model = ms.SequenceModel().fit(X, y)
    plain = model.intervals(X, y, cohort=units)
    assert repr(model.intervals(X, y, cohort=pd.Series(units, index=order))) == repr(plain)


OF_X = ("predict", "predict_marginals", "decode", "potentials", "k_best")
OF_BOTH = ("score", "log_likelihood", "calibration", "intervals", "recalibrated")


@pytest.mark.parametrize("asked", OF_X + OF_BOTH)
def test_every_answer_checks_columns_by_names(asked, rng):
    X, y = rows(rng)
    frames = [pd.DataFrame(x, columns=["a", "b"]) for x in X]
    turned = [frame[["b", "a"]] for frame in frames]
    ask = getattr(ms.SequenceModel().fit(frames, y), asked)
    with pytest.raises(ValueError, match=r"X has columns \['b', 'a'\]; the model learned from"):
        ask(turned) if asked in OF_X else ask(turned, y)


def test_examples_in_frames_have_the_same_columns(rng):
    X, y = rows(rng)
    frames = [pd.DataFrame(x, columns=["a", "b"]) for x in X]
    with pytest.raises(ValueError, match="example 1 has columns"):
        ms.SequenceModel().fit([frames[0], *(f[["b", "a"]] for f in frames[1:])], y)
    with pytest.raises(ValueError, match="a frame is one example's features"):
        ms.SequenceModel().fit(pd.DataFrame({"a": [1, 2]}), y[:2])


@pytest.mark.parametrize("asked", OF_BOTH)
def test_every_answer_checks_labels_by_names(asked, rng):
    X, y = labels(rng)
    told = pd.DataFrame(y, columns=["rain", "sun"])
    model = ms.MultiLabelModel(alpha=0.5).fit(X, told)
    refused = pytest.raises(ValueError, match=r"y has columns \['sun', 'rain'\]; the model learned")
    with refused:
        getattr(model, asked)(X, told[["sun", "rain"]])
    with refused:
        model.fit(X, told, validation=(X, told[["sun", "rain"]]))


SETS = """
from mlestruct.readers.feature_dicts import Attributes
X = [[{"ab", "b"}, {"b", "cd", "e"}, {"cd"}], [{"ab"}, frozenset({"e", "b"}), {"ab", "cd"}]]
print(Attributes.of(X).names)
print(Attributes.of([[{"word": p} for p in x] for x in X]).names)
print(Attributes.of([[dict.fromkeys(p, 1.0).keys() for p in x] for x in X]).names)
"""


def test_sets_of_attributes_are_read_in_one_order():
    """Their own is that of hashes, another in every process, and no fit could be gone on with."""
    told = {
        subprocess.run(
            [sys.executable, "-c", SETS],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            capture_output=True,
            check=True,
        ).stdout
        for seed in (1, 2)
    }
    assert len(told) == 1
    assert b"['ab', 'b', 'cd', 'e']" in told.pop()


@pytest.mark.parametrize("value", [2**64 - 1, 2**63, 2**53])
@pytest.mark.parametrize("form", [np.uint64, object, list])
def test_wide_integers_are_never_minus_one(value, form):
    given = [value, 0, 1]
    if form is not list:
        given = np.array(given, dtype=form)
    with pytest.raises(ValueError, match="integers"):
        as_integers(given, "columns")
    assert as_integers(np.array([3, 0], dtype=np.uint64), "columns").tolist() == [3, 0]
    assert as_numbers(np.array([True, False]), "flags").tolist() == [1.0, 0.0]


@pytest.mark.parametrize(
    ("labels", "why"),
    [
        ([1, "1", 1, "1"], "would be .1. in one array"),
        (["a", "a\0", "a", "a\0"], "would be .a. in one array"),
        ([2**53 + 1, 1.5, 2**53, 2.5], r"would be 9007199254740992\.0 in one array"),
        ([None, "1", 1, "1"], "text and others|void|label"),
    ],
)
def test_labels_that_would_become_one_are_refused(labels, why, rng):
    X, _ = rows(rng)
    with pytest.raises(ValueError, match=why):
        ms.SequenceModel().fit(X, [labels] * len(X))


@pytest.mark.parametrize("kind", ["S3", "datetime64[D]", "complex128"])
def test_save_refuses_what_load_would(kind, tmp_path):
    array = np.zeros(2, dtype=kind)
    with pytest.raises(ValueError, match="model files hold numbers and text"):
        files.save(tmp_path / "file", "kind", {"a": array}, {})
    assert list(tmp_path.iterdir()) == []


def test_a_planted_link_is_not_followed(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / "model.part").symlink_to(victim)
    files.save(tmp_path / "model", "kind", {"a": np.zeros(2)}, {})
    assert victim.read_text() == "mine"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model", "model.part", "victim"]
    assert (tmp_path / "model").stat().st_mode & 0o777 == 0o666 & ~_umask()


def _umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_a_checkpoint_that_could_never_be_gone_on_from_is_refused_at_once(tmp_path, rng):
    X, y = tables(rng)
    model = ms.MatchingModel(alpha=[0.1, 1.0], random_state=None)
    with pytest.raises(ValueError, match="random_state=None"):
        model.fit(X, y, checkpoint=tmp_path / "fit.ckpt")
    model.fit(X, y)
    model.fit(X, y, validation=(X, y), checkpoint=tmp_path / "fit.ckpt")

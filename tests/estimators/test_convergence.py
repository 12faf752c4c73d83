"""A fit reaches what was asked of it, or says so once, in words that help."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.cli import main
from mlestruct.learners import LEARNERS

STARVED = {"max_rounds": 1, "tol": 1e-9}


def tables(seed=0, count=6, n=4, d=3):
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(n, n, d)) for _ in range(count)]
    return X, [rng.permutation(n) for _ in range(count)]


def words(seed=0, count=8, d=3):
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(5, d)) for _ in range(count)]
    return X, [(x[:, 0] + rng.normal(size=5) > 0).astype(int).tolist() for x in X]


def pictures(seed=0, count=4, side=4):
    rng = np.random.default_rng(seed)
    y = [(rng.random((side, side)) > 0.5).astype(int) for _ in range(count)]
    return [z[..., None] + rng.normal(size=(side, side, 1)) for z in y], y


KINDS = {
    "matching": (ms.MatchingModel, tables),
    "sequence": (ms.SequenceModel, words),
    "grid": (ms.GridModel, pictures),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("solver", ["direct", "frank_wolfe"])
def test_a_fit_says_whether_it_got_there(kind, solver, tmp_path):
    make, data = KINDS[kind]
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        good = make(solver=solver, tol=0.1).fit(*data())
        assert (good.converged_, len(heard)) == (True, 0)
        assert good.certificate_.relative <= 0.1
        bad = make(solver=solver, **STARVED).fit(*data())
    assert not bad.converged_
    (warning,) = heard
    assert issubclass(warning.category, ms.ConvergenceWarning)
    assert issubclass(warning.category, UserWarning)
    assert warning.filename == __file__
    for word in (make.__name__, f"{bad.certificate_.relative:.1e}", "1e-09", "max_rounds"):
        assert word in str(warning.message)
    for model in (good, bad):
        model.save(tmp_path / "model.npz")
        assert make.load(tmp_path / "model.npz").converged_ is model.converged_


@pytest.mark.parametrize("name", sorted(LEARNERS))
def test_every_learner_says_whether_it_got_there(name):
    X, y = pictures(count=3, side=2)
    model = ms.GridModel(learner=name, max_rounds=200, tol=1e-2)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            model.fit(X, y)
        except ValueError:
            pytest.skip("it does not take this structure")
    if name == "perceptron":
        assert heard == []
    else:
        assert model.converged_ == (not heard)


def test_time_that_runs_out_is_named():
    with pytest.warns(ms.ConvergenceWarning, match="max_seconds"):
        ms.MatchingModel(max_seconds=0.0, tol=1e-12).fit(*tables())


@pytest.mark.parametrize("by_split", [True, False])
def test_of_several_alphas_one_warning_names_the_others_that_missed(by_split):
    X, y = tables(count=8)
    how = {} if by_split else {"validation": tables(1)}
    with pytest.warns(ms.ConvergenceWarning) as heard:
        ms.MatchingModel(alpha=[0.1, 1.0, 10.0], **STARVED).fit(X, y, **how)
    assert len(heard) == 1
    assert "of 3 alphas missed it, too" in str(heard[0].message)


def test_the_command_line_prints_it_and_strict_fails(tmp_path, capsys, monkeypatch):
    """A warning is a line on standard error; with --strict the exit code is 1."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text("id,q\n" + "".join(f"{i},{i % 5}\n" for i in range(12)))
    pairs = "".join(f"{i},{i + 6}\n" for i in range(6))
    (tmp_path / "pairs.csv").write_text("id_a,id_b\n" + pairs)
    fit = ["roommates", "fit", "people.csv", "pairs.csv", "--ordinal", "q", "--force"]
    assert main([*fit, "--strict"]) == 0
    assert "warning" not in capsys.readouterr().err
    kept = ms.RoommateModel.__init__.__kwdefaults__
    monkeypatch.setitem(kept, "tol", 0.0)
    fit = [*fit, "--force"]
    assert main(fit) == 0
    assert "mlestruct: warning: RoommateModel: the fit has not converged" in capsys.readouterr().err
    assert main([*fit, "--strict"]) == 1

"""fit(checkpoint=…) at the front door: goes on, refuses what is another fit, survives Ctrl-C."""

import os
import warnings
from pathlib import Path

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.learners import LEARNERS, Interrupted
from mlestruct.learning.problem import Problem

X = [np.random.default_rng(seed).normal(size=(5, 3)) for seed in range(8)]
Y = [np.random.default_rng(seed).integers(0, 3, 5).tolist() for seed in range(8)]
PEOPLE = {"id": list(range(24)), "year": [k // 8 for k in range(24)]}
PEOPLE |= {f"q{j}": np.random.default_rng(j).integers(0, 4, 24).tolist() for j in range(3)}
PAIRS = [(k, k + 4) for year in range(3) for k in range(8 * year, 8 * year + 4)]


@pytest.fixture(autouse=True)
def _no_waiting_for_disks(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture
def ended(monkeypatch):
    """Sets after how many evaluations Ctrl-C comes; None: never."""
    left, evaluate = [None], Problem.value_and_gradient

    def evaluated(self, theta):
        if left[0] is not None:
            left[0] -= 1
            if left[0] < 0:
                raise KeyboardInterrupt
        return evaluate(self, theta)

    monkeypatch.setattr(Problem, "value_and_gradient", evaluated)
    return lambda count: left.__setitem__(0, count)


def sequences(**settings):
    return ms.SequenceModel(**{"tol": 1e-8, "max_rounds": 30, "progress": False} | settings)


def learned(model):
    """All that a fit leaves but its seconds, and the arrays as bits."""
    timeless = [(calls, objective, gap) for calls, _, objective, gap in model.history_]
    certificate, scores = repr(model.certificate_), model.alpha_scores_
    return model.coef_.tobytes(), certificate, timeless, model.alpha_, scores, model.route_


FITS = {
    "sequences": lambda **how: sequences().fit(X, Y, **how),
    "chosen on held-out examples": lambda **how: sequences(alpha=[0.1, 3.0]).fit(X, Y, **how),
    "chosen on others": lambda **how: sequences(alpha=[0.1, 3.0]).fit(
        X[2:], Y[2:], validation=(X[:2], Y[:2]), **how
    ),
    "labels missing": lambda **how: sequences(tol=1e-4).fit(X, [[None, *y[1:]] for y in Y], **how),
    "another learner": lambda **how: sequences(learner="pseudo_likelihood").fit(X, Y, **how),
    "room-mates": lambda **how: ms.RoommateModel(
        ordinal="q*", cohort="year", alpha=[0.1, 5.0], progress=False
    ).fit(PEOPLE, PAIRS, **how),
}


@pytest.mark.parametrize("name", FITS)
def test_a_fit_stopped_again_and_again_is_the_same_fit(name, tmp_path, ended):
    fit, times, model = FITS[name], 0, None
    whole, checkpoint = fit(), ms.Checkpoint(tmp_path / "fit.ckpt", every=1)
    while model is None:
        ended(2 + times)
        try:
            model = fit(checkpoint=checkpoint)
        except KeyboardInterrupt:
            times += 1
    assert times > 2
    assert learned(model) == learned(whole)
    ended(0)
    again = fit(checkpoint=checkpoint)  # finished: nothing is evaluated
    assert learned(again) == learned(whole)


@pytest.mark.parametrize("learner", sorted(set(LEARNERS) - {"contrastive"}))
def test_a_finished_fit_is_not_the_model_of_other_examples(learner, tmp_path):
    how = {"learner": learner, "tol": 0.1, "max_rounds": 3}
    checkpoint = tmp_path / "fit.ckpt"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ms.ConvergenceWarning)
        sequences(**how).fit(X[:2], Y[:2], checkpoint=checkpoint)
    with pytest.raises(ValueError, match=r"checkpoint of another fit: .*outcomes is"):
        sequences(**how).fit(X[:2], Y[2:4], checkpoint=checkpoint)


@pytest.mark.parametrize("calls", [1, 4, 9])
def test_ctrl_c_leaves_the_model_of_the_last_round(calls, tmp_path, ended):
    whole, model, path = sequences().fit(X, Y), sequences(), tmp_path / "fit.ckpt"
    ended(calls)
    with pytest.raises(KeyboardInterrupt) as stop:
        model.fit(X, Y, checkpoint=ms.Checkpoint(path, every=1))
    ended(None)
    assert isinstance(stop.value, Interrupted)
    rounds = model.n_iter_
    assert 0 < rounds <= calls
    assert learned(model)[2] == learned(whole)[2][:rounds]
    assert model.coef_.tobytes() == stop.value.model.theta.tobytes()
    with pytest.warns(ms.ConvergenceWarning, match="rounds ran out"):
        again = sequences(max_rounds=rounds - 1).fit(X, Y)  # the same rounds, and no more
    assert again.coef_.tobytes() == model.coef_.tobytes()
    assert model.predict(X[:1])[0].shape == (5,)
    assert learned(model.fit(X, Y, checkpoint=path)) == learned(whole)


def test_ctrl_c_before_the_first_round_leaves_the_model_as_it_was(tmp_path, ended):
    model = sequences().fit(X[:4], Y[:4])
    before = learned(model)
    ended(0)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y, checkpoint=tmp_path / "fit.ckpt")
    assert learned(model) == before
    assert not (tmp_path / "fit.ckpt").exists()


@pytest.fixture
def path(tmp_path):
    sequences().fit(X, Y, checkpoint=tmp_path / "fit.ckpt")
    return tmp_path / "fit.ckpt"


NEGATED = [-x for x in X]
SWAPPED = [Y[1], Y[0], *Y[2:]]


@pytest.mark.parametrize(
    ("fit", "difference"),
    [
        (lambda **how: sequences(alpha=0.5).fit(X, Y, **how), "alpha is 1.0 there, 0.5 here"),
        (lambda **how: sequences(tol=1e-6).fit(X, Y, **how), "tol is 1e-08 there, 1e-06 here"),
        (lambda **how: sequences(rho=1.0).fit(X, Y, **how), "rho is None there, 1.0 here"),
        (lambda **how: sequences(learner="trw").fit(X, Y, **how), "'mle_struct' there, 'trw' here"),
        (lambda **how: sequences(max_rounds=9).fit(X, Y, **how), "max_rounds is 30 there, 9 here"),
        (lambda **how: sequences(solver="frank_wolfe").fit(X, Y, **how), "solver is 'auto' there"),
        (lambda **how: sequences().fit(NEGATED, Y, **how), r"fit: features is '\w+' there"),
        (lambda **how: sequences().fit(X, SWAPPED, **how), r"fit: outcomes is '\w+' there"),
        (lambda **how: sequences().fit(X, Y, np.arange(1, 9), **how), "fit: example weights is"),
        (lambda **how: sequences().fit(X[1:], Y[1:], **how), "examples is 8 there, 7 here"),
        (FITS["another learner"], "learner is 'mle_struct' there, 'pseudo_likelihood' here"),
        (FITS["room-mates"], "loop is 'SequenceModel' there, 'RoommateModel' here"),
    ],
)
def test_the_checkpoint_of_another_fit_is_refused(path, fit, difference):
    before = path.read_bytes()
    with pytest.raises(ValueError, match=rf"fit.ckpt is the checkpoint of another.*{difference}"):
        fit(checkpoint=path)
    assert path.read_bytes() == before


def test_engines_and_workers_are_free(path):
    whole = learned(sequences().fit(X, Y))
    for how in ({"workers": 2}, {"engine": "serial"}, {"progress": None}):
        assert learned(sequences(**how).fit(X, Y, checkpoint=path)) == whole


def test_what_is_no_checkpoint_is_refused(path, tmp_path):
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    (tmp_path / "damaged").write_bytes(raw)
    sequences().fit(X, Y).save(tmp_path / "model")
    fits = {
        tmp_path / "damaged": "is no checkpoint to go on from.*checksum differs.*delete this one",
        tmp_path / "model": "holds a SequenceModel, not a Checkpoint. Name another file",
        tmp_path: "must name a file in a directory that exists",
        tmp_path / "no" / "fit": "must name a file in a directory that exists",
        3: r"checkpoint is a path, or ms.Checkpoint\(path\), not 3",
        ms.Checkpoint(path, every=0): "written every 1, 2, … rounds, not 0",
    }
    for checkpoint, message in fits.items():
        with pytest.raises(ValueError, match=message):
            sequences().fit(X, Y, checkpoint=checkpoint)


def test_the_command_line_goes_on(tmp_path, ended, capsys):
    from mlestruct.cli import main

    people = "\n".join(",".join(map(str, row)) for row in zip(*PEOPLE.values(), strict=True))
    (tmp_path / "people.csv").write_text(f"{','.join(PEOPLE)}\n{people}\n")
    pairs = "\n".join(f"{a},{b}" for a, b in PAIRS)
    (tmp_path / "pairs.csv").write_text(f"id_a,id_b\n{pairs}\n")

    def command(model, *more):
        tables = [str(tmp_path / name) for name in ("people.csv", "pairs.csv")]
        settings = ["--ordinal", "q*", "--cohort", "year", "--alpha", "1,5"]
        return main(["roommates", "fit", *tables, *settings, "--model", str(model), *more])

    kept = ["--checkpoint", str(tmp_path / "fit.ckpt")]
    ended(12)
    assert command(tmp_path / "resumed", *kept) == 130
    assert "stopped" in capsys.readouterr().err
    ended(None)
    assert command(tmp_path / "resumed", *kept) == command(tmp_path / "whole") == 0
    resumed, whole = (ms.RoommateModel.load(Path(tmp_path / n)) for n in ("resumed", "whole"))
    assert learned(resumed) == learned(whole)

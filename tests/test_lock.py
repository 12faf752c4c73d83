"""One fit writes a checkpoint at a time, in one process or in two."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.learning.checkpoints import Unwritten
from mlestruct.learning.loop import Loop
from mlestruct.storage.lock import Lock

HOLDS = """
import sys, time
from pathlib import Path
from mlestruct.storage.lock import Lock
lock = Lock(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(60)
"""


def elsewhere(path):
    """Another process that holds the path."""
    held = subprocess.Popen([sys.executable, "-c", HOLDS, str(path)], stdout=subprocess.PIPE)
    assert held.stdout.readline() == b"held\n"
    return held


def examples(rng, count=12):
    X = [rng.normal(size=(6, 3)) for _ in range(count)]
    return X, [(x[:, 0] > 0).astype(int) for x in X]


def test_a_path_held_by_another_process_is_refused_until_that_ends(tmp_path, rng):
    path = tmp_path / "fit.ckpt"
    held = elsewhere(path)
    fit = ms.SequenceModel(tol=1e-6)
    with pytest.raises(ValueError, match="give this one a file of its own"):
        fit.fit(*examples(rng), checkpoint=path)
    assert not path.exists()
    held.send_signal(signal.SIGKILL)
    held.wait()
    held.stdout.close()
    assert path.with_name("fit.ckpt.lock").exists()  # left behind by the dead one, and free
    fit.fit(*examples(rng), checkpoint=path)
    assert [file.name for file in tmp_path.iterdir()] == ["fit.ckpt"]


def test_a_path_held_by_another_thread_is_refused(tmp_path):
    path, held, done = tmp_path / "fit.ckpt", threading.Event(), threading.Event()

    def hold():
        lock = Lock(path)
        held.set()
        done.wait(60)
        lock.release()

    other = threading.Thread(target=hold, name="first")
    other.start()
    held.wait()
    with pytest.raises(ValueError, match="another fit keeps its checkpoint"):
        Loop(path, "second")
    done.set()
    other.join()
    Loop(path, "second").end()


def test_two_paths_and_links_to_one(tmp_path):
    one = Lock(tmp_path / "one")
    two = Lock(tmp_path / "two")
    (tmp_path / "planted.lock").symlink_to(tmp_path / "victim")
    with pytest.raises(OSError, match="no checkpoint can be kept there"):
        Lock(tmp_path / "planted")
    assert not (tmp_path / "victim").exists()
    for lock in (one, two):
        lock.release()
        lock.release()
    assert [file.name for file in tmp_path.iterdir()] == ["planted.lock"]


def test_what_an_error_left_of_a_fit_gives_way(tmp_path, rng):
    X, y = examples(rng)
    path, seen = tmp_path / "fit.ckpt", 0

    def solve(score):
        nonlocal seen
        seen += 1
        if seen == 30:
            raise KeyError("licence")
        return np.eye(3)[np.argmax(score)]

    model = ms.StructuredModel(ms.Custom(3, exactly_one=[[0, 1, 2]]), oracle=solve, tol=1e-9)
    X, y = [x[:3] for x in X], [np.eye(3)[k % 3] for k in range(len(y))]
    with pytest.raises(KeyError) as kept:
        model.fit(X, y, checkpoint=ms.Checkpoint(path, every=1))
    model.set_params(tol=1e-9).fit(X, y, checkpoint=path)
    assert kept.tb is not None


def full(after, monkeypatch):
    """A disk that takes so many files, and then no more."""
    right, count = os.fsync, 0

    def fails(file):
        nonlocal count
        count += 1
        if count > 2 * after:  # a file, and its folder
            raise OSError(28, "No space left on device")
        right(file)

    monkeypatch.setattr(os, "fsync", fails)


@pytest.mark.parametrize("after", [0, 3])
@pytest.mark.parametrize("route", ["direct", "frank_wolfe"])
def test_a_full_disk_leaves_the_weights_and_says_how_to_go_on(
    after, route, tmp_path, monkeypatch, rng
):
    X, y = examples(rng)
    path, how = tmp_path / "fit.ckpt", {"solver": route, "tol": 1e-5, "alpha": [0.1, 1.0]}
    whole = ms.SequenceModel(**how).fit(X, y)
    model = ms.SequenceModel(**how)
    full(after, monkeypatch)
    there = "written before is whole" if after else "it is not kept"
    with pytest.raises(Unwritten, match=f"No space left on device.*{there}.*Make room") as stop:
        model.fit(X, y, checkpoint=ms.Checkpoint(path, every=1))
    assert stop.value.filename == str(path)
    if route == "frank_wolfe" and not after:
        assert not hasattr(model, "coef_")  # its first round had not ended
    else:
        gaps = [row[3] for row in model.history_ if np.isfinite(row[3])]
        assert model.certificate_.gap <= min(gaps, default=np.inf)
        assert not model.converged_
        assert model.predict(X[:1])[0].shape == (6,)
    assert [p.name for p in tmp_path.iterdir() if p.suffix != ".lock"] == ["fit.ckpt"] * bool(after)
    monkeypatch.undo()
    model.fit(X, y, checkpoint=path)
    assert model.coef_.tobytes() == whole.coef_.tobytes()


def test_a_folder_that_is_gone_is_named(tmp_path, monkeypatch, rng):
    X, y = examples(rng)
    folder = tmp_path / "gone"
    folder.mkdir()
    seen = 0

    def solve(score):
        nonlocal seen
        seen += 1
        if seen == 40:
            for file in folder.iterdir():
                file.unlink()
            folder.rmdir()
        return np.eye(3)[np.argmax(score)]

    model = ms.StructuredModel(ms.Custom(3, exactly_one=[[0, 1, 2]]), oracle=solve, tol=1e-9)
    X, y = [x[:3] for x in X], [np.eye(3)[k % 3] for k in range(len(y))]
    with pytest.raises(Unwritten, match="it is not kept") as stop:
        model.fit(X, y, checkpoint=ms.Checkpoint(folder / "fit.ckpt", every=1))
    assert stop.value.filename == str(folder / "fit.ckpt")
    assert np.isfinite(model.coef_).all()

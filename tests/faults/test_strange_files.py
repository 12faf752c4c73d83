"""FINDINGS 60 once more: what is no file, what leads elsewhere, what a disk does not hold."""

from __future__ import annotations

import hashlib
import os
import stat

import numpy as np
import pytest

import mlestruct as ms
from mlestruct import data
from mlestruct.cli import main
from mlestruct.readers import read_columns
from mlestruct.roommates.report import export_csv
from mlestruct.storage import files
from mlestruct.tables import read

pytestmark = pytest.mark.skipif(os.name != "posix", reason="devices and pipes of POSIX")
ROWS = {"id": np.arange(4), "tidy": np.array([1, 2, 1, 2])}
READERS = {
    "a table": read,
    "columns": read_columns,
    "a model": ms.MatchingModel.load,
}


@pytest.mark.parametrize("reader", READERS)
def test_what_has_no_end_is_refused_unread(reader, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/zero", "/dev/random", "/dev/full", tmp_path):
        with pytest.raises(ValueError, match="no regular file"):
            READERS[reader](path)


def test_commands_refuse_them_in_one_line(tmp_path, capsys):
    os.mkfifo(tmp_path / "pipe")
    for command in (["check"], ["roommates", "fit"], ["roommates", "assign"]):
        assert (
            main([*command, str(tmp_path / "pipe"), *["--model", "none"] * (len(command) > 1)]) == 2
        )
        assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_pipe_that_was_opened_for_a_command_is_read():
    ours, theirs = os.pipe()
    os.write(theirs, b"id,q\n1,2\n3,4\n")
    os.close(theirs)
    assert read(f"/dev/fd/{ours}")["q"].tolist() == [2, 4]
    os.close(ours)


@pytest.fixture(scope="module")
def hall():
    people, pairs, _ = data.roommates(12, 2, 0)
    return ms.RoommateModel(cohort="year", ordinal="q*", mix="gender").fit(people, pairs), people


def writers(hall):
    model, people = hall
    return {
        "a table": lambda path: export_csv(path, ROWS),
        "a page": lambda path: model.report(path, people),
        "a model": model.save,
    }


@pytest.mark.parametrize("writer", ["a table", "a page", "a model"])
def test_a_link_is_replaced_and_not_followed(writer, hall, tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / "out").symlink_to(victim)
    writers(hall)[writer](tmp_path / "out")
    assert victim.read_text() == "mine"
    assert not (tmp_path / "out").is_symlink()


@pytest.mark.parametrize("writer", ["a table", "a page", "a model"])
def test_nothing_is_written_over_a_pipe(writer, hall, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match=r"pipe is no regular file; name another place"):
        writers(hall)[writer](tmp_path / "pipe")
    assert stat.S_ISFIFO(os.stat(tmp_path / "pipe").st_mode)


@pytest.mark.parametrize("writer", ["a table", "a page", "a model"])
def test_a_full_disk_leaves_the_old_file_and_names_it(writer, hall, tmp_path, monkeypatch):
    path = tmp_path / "out"
    path.write_text("old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space left on device; nothing new is written") as stop:
        writers(hall)[writer](path)
    assert stop.value.filename == str(path)
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("out", "old")]


FORGED = {
    "encrypted": (6, 0x01),
    "of a later kind": (6, 0x20),
    "strongly encrypted": (6, 0x40),
    "made for version 12.9": (4, 129),
    "packed in another way": (8, 99),
}


@pytest.mark.parametrize("forgery", FORGED)
def test_archives_that_cannot_be_opened_are_value_errors(forgery, tmp_path):
    path, (place, value) = tmp_path / "kept", FORGED[forgery]
    files.save(path, "kind", {"a": np.zeros(3)}, {})
    raw = bytearray(path.read_bytes()[: -files.DIGEST])
    for mark, shift in ((b"PK\x03\x04", 0), (b"PK\x01\x02", 2)):
        at = raw.find(mark)
        while at >= 0:
            raw[at + place + shift] = value
            at = raw.find(mark, at + 4)
    path.write_bytes(bytes(raw) + hashlib.sha256(raw).hexdigest().encode())
    with pytest.raises(ValueError, match="is not a model file"):
        files.load(path, "kind")


@pytest.mark.parametrize("seed", range(4))
def test_any_byte_of_an_archive_may_be_forged(seed, tmp_path):
    path, rng = tmp_path / "kept", np.random.default_rng(seed)
    files.save(path, "kind", {"a": np.zeros(3), "b": np.array(["x"])}, {"c": [1]})
    whole = path.read_bytes()[: -files.DIGEST]
    first = whole.find(b"PK\x01\x02")
    for k in range(60):
        raw = bytearray(whole)
        for at in rng.integers(first if k % 2 else 0, len(raw), size=2):
            raw[at] = rng.integers(256)
        path.write_bytes(bytes(raw) + hashlib.sha256(raw).hexdigest().encode())
        try:
            files.load(path, "kind")
        except ValueError:
            continue

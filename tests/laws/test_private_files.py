"""Files about people are their owner's alone: of a page's session, and of the command line's."""

from __future__ import annotations

import os
import stat
import threading
import time
import urllib.request
from urllib.parse import urlencode

import numpy as np
import pytest

from mlestruct import data
from mlestruct.cli import main
from mlestruct.roommates.project import Project
from mlestruct.roommates.server import Server
from mlestruct.storage.files import save
from mlestruct.storage.lock import Lock
from mlestruct.tables import write_csv
from tests.serve.test_server import form

pytestmark = pytest.mark.skipif(os.name != "posix", reason="rights of others are a matter of POSIX")


@pytest.fixture(autouse=True)
def loose():
    """A umask that lets everybody read and write: the program must not rely on a stricter one."""
    before = os.umask(0)
    yield
    os.umask(before)


def open_to_others(*folders):
    """Files and folders, these included, that anybody but their owner may use."""
    found = []
    for folder in folders:
        for path in (folder, *folder.rglob("*")):
            if path.stat().st_mode & 0o077:
                found.append((str(path), oct(stat.S_IMODE(path.stat().st_mode))))
    return found


def written(columns):
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    return "\n".join([",".join(columns), *(",".join(map(str, row)) for row in rows)]).encode()


def tables(n=20):
    people, pairs, _ = data.roommates(n=n, years=2, seed=2)
    return {"people": written(people), "pairs": written(pairs)}


def session(folder):
    """Everything that a page can do in one go; what stands in the folder is checked throughout."""
    with Server(Project.own(folder)) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()

        def ask(path, body=None):
            own = {"X-Mlestruct": server.token}
            request = urllib.request.Request(server.address + path, data=body, headers=own)
            with urllib.request.urlopen(request, timeout=60) as reply:
                found = reply.read()
            assert open_to_others(folder) == [], path
            return found

        for kind, text in tables().items():
            ask(f"file?kind={kind}&name={kind}.csv", text)
        ask("learn", urlencode(form(server.session.state()) | {"planned": "2"}, True).encode())
        while server.session.state()["running"]:
            time.sleep(0.02)
        who = server.session.state()["plan"]["homes"][0]["who"][0]
        ask("change", f"lock={who}".encode())
        for name in ("pairs.xlsx", "report.html"):
            ask(name)
        server.shutdown()


def test_every_file_of_a_page_is_private(tmp_path):
    folder = tmp_path / "project"
    session(folder)
    names = {path.name for path in folder.iterdir()}
    assert names >= {"people.csv", "pairs.csv", "roommates.toml", "model.npz"}
    assert open_to_others(folder) == []


def test_a_loose_project_is_tightened_when_it_is_opened(tmp_path):
    folder = tmp_path / "project"
    kept = Project.own(folder)
    kept.keep(kept.choices())
    for name in ("people.xlsx", "pairs.csv", "model.npz", ".people.csv.0123abcd"):
        (folder / name).write_text("people")
        (folder / name).chmod(0o666)
    (folder / "roommates.toml").chmod(0o644)
    outside = tmp_path / "outside"
    outside.write_text("not the project's")
    outside.chmod(0o644)
    (folder / "link").symlink_to(outside)
    folder.chmod(0o755)
    Project.own(folder)
    assert outside.stat().st_mode & 0o777 == 0o644
    (folder / "link").unlink()
    assert open_to_others(folder) == []


def test_an_empty_folder_becomes_private_and_a_full_one_of_others_does_not(tmp_path):
    for name, mode in (("empty", 0o700), ("full", 0o755)):
        folder = tmp_path / name
        folder.mkdir()
        folder.chmod(0o755)
        if name == "full":
            (folder / "thesis.txt").write_text("another matter")
        Project.own(folder).put("people", "people.csv", b"id\n1\n")
        assert folder.stat().st_mode & 0o777 == mode
        assert (folder / "people.csv").stat().st_mode & 0o777 == 0o600


def test_what_commands_write_about_people_is_private(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for kind, text in tables().items():
        (tmp_path / f"{kind}.csv").write_bytes(text)
    model, out = tmp_path / "roommates.npz", tmp_path / "roommates-out"
    fit = ["roommates", "fit", "people.csv", "pairs.csv", "--id", "id", "--partners", "id_a,id_b"]
    fit += ["--cohort", "year", "--same", "gender", "--ordinal", "q*", "--alpha", "10"]
    assert main(fit) == 0
    assert main(["roommates", "assign", "people.csv", "--only", "2"]) == 0
    assert main(["check", "people.csv"]) in (0, 1)
    capsys.readouterr()
    assert model.exists()
    assert {path.name for path in out.iterdir()} == {
        "pairs.csv", "probabilities.csv", "report.html",
    }  # fmt: skip
    assert open_to_others(model, out, tmp_path / "roommates.toml") == []


def test_an_overwritten_file_becomes_private(tmp_path):
    from mlestruct.roommates.report import export_csv

    path = tmp_path / "pairs.csv"
    path.write_text("old")
    path.chmod(0o666)
    export_csv(path, {"a": np.array([1])})
    assert path.stat().st_mode & 0o777 == 0o600


def test_lock_files_are_private_and_other_files_follow_the_umask(tmp_path):
    lock = Lock(tmp_path / "fit.ckpt")
    assert (tmp_path / "fit.ckpt.lock").stat().st_mode & 0o777 == 0o600
    lock.release()
    os.umask(0o022)
    save(tmp_path / "model.npz", "kind", {"a": np.zeros(2)}, {})
    write_csv(tmp_path / "invented.csv", {"a": np.zeros(2)})
    assert (tmp_path / "model.npz").stat().st_mode & 0o777 == 0o644
    assert (tmp_path / "invented.csv").stat().st_mode & 0o777 == 0o644

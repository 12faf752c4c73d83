"""Kernels compile once, in one place, for the types they are called with, and are kept on disk."""

from __future__ import annotations

import io
import os
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba.core import caching

from mlestruct.compiler import digest, kept, temporary
from mlestruct.kernels import Compiled, compiling, kernel, variant


def twice_as_much(x):
    """A stub that kernels may call."""


@variant(twice_as_much)
def _(x):
    return lambda x: 2.0 * x


def made(source, **names):
    """A kernel from text, as a module would hold it."""
    space = {"kernel": kernel, "np": np, "twice_as_much": twice_as_much, **names}
    exec(source, space)
    return space["f"]


PLAIN = "LEAST = 1\n@kernel\ndef f(x):\n    'Law.'\n    return x + LEAST\n"
CALLS = "@kernel\ndef f(x):\n    return g(x)\n"


@pytest.mark.parametrize(
    "changed",
    [
        PLAIN.replace("x +", "x -"),
        PLAIN.replace("= 1", "= 2"),
        PLAIN.replace("x + LEAST", "x + LEAST + 1"),
        PLAIN.replace("@kernel", "@kernel(error_model='numpy')"),
        PLAIN.replace("LEAST = 1", "LEAST = np.ones(2)"),
        PLAIN.replace("LEAST = 1", "LEAST = (1, 2)"),
    ],
)
def test_a_digest_sees_every_change(changed):
    before, after = made(PLAIN), made(changed)
    assert digest(before) != digest(after)
    assert digest(made(CALLS, g=before)) != digest(made(CALLS, g=after))
    assert digest(made(CALLS, g=made(CALLS, g=before))) != digest(
        made(CALLS, g=made(CALLS, g=after))
    )


SCRIPT = """
import sys, numpy as np, mlestruct.compiler as c, mlestruct.kernels as k
from mlestruct.structures.complete_kernel import row_sums
row_sums(np.ones(1), 2)
print(k.Compiled.kernels, row_sums.stats.cache_path, k.Compiled.folder)
"""


def test_what_was_compiled_is_found_by_the_next_process(tmp_path):
    for compiled in (1, 0):
        answer = subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        )
        count, folder, _ = answer.stdout.split()
        assert int(count) == compiled
        assert Path(folder).is_relative_to(tmp_path)
        assert not answer.stderr  # nobody watches a pipe


TOGETHER = """
import sys, time, numpy as np, mlestruct.compiler.linking as c
from mlestruct.structures.complete_kernel import row_sums
make = c.entry
def slowly(*given):
    print("made")
    time.sleep(1.0)
    return make(*given)
c.entry = slowly
print("ready", flush=True)
sys.stdin.readline()
row_sums(np.ones(1), 2)
"""


def test_of_processes_that_start_together_one_compiles(tmp_path):
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", TOGETHER],
            env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    for worker in workers:
        assert worker.stdout.readline() == "ready\n"
    for worker in workers:
        worker.stdin.write("go\n")
        worker.stdin.flush()
    assert sorted(worker.communicate()[0] for worker in workers) == ["", "", "made\n"]


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    """An installation that cannot be written, and no home."""

    ensure = caching._CacheLocator.ensure_cache_path

    def refuse(self):
        if not isinstance(self, kept._Temporary):
            raise PermissionError("read-only")
        ensure(self)

    monkeypatch.setattr(caching._CacheLocator, "ensure_cache_path", refuse)
    monkeypatch.setattr(kept.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(kept.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(Compiled, "folder", None)
    temporary.cache_clear()
    yield tmp_path
    temporary.cache_clear()


def test_a_read_only_installation_keeps_kernels_in_a_folder_of_its_user(nowhere):
    @kernel
    def one(x):
        return x + 1

    assert one(1) == 2
    assert Compiled.folder is not None
    folder = Path(Compiled.folder)
    assert folder.parent == nowhere
    assert list(folder.rglob("*.nbc"))
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("planted", ["open", "link"])
def test_a_folder_that_others_may_write_is_not_used(nowhere, planted):
    usual = temporary()
    temporary.cache_clear()
    usual.rmdir()
    if planted == "open":
        usual.mkdir()
        usual.chmod(0o777)
    else:
        (nowhere / "theirs").mkdir(mode=0o700)
        usual.symlink_to(nowhere / "theirs")
    assert temporary() != usual
    assert temporary().parent == nowhere


def test_without_any_folder_kernels_still_run(nowhere, monkeypatch):
    monkeypatch.setattr(kept._Temporary, "from_function", lambda *_: None)

    @kernel
    def one(x):
        return x + 1

    assert one(1) == 2
    assert isinstance(one.kept, caching.NullCache)


def test_a_full_disk_costs_no_fit(monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(caching.IndexDataCacheFile, "save", full)

    @kernel
    def one(x):
        return x + 2

    assert one(1) == 3


class Screen(io.StringIO):
    def isatty(self):
        return True


def test_a_person_is_told_once(monkeypatch, capsys):
    monkeypatch.setattr(Compiled, "kernels", 0)
    with compiling():
        pass
    assert capsys.readouterr() == ("", "")
    screen = Screen()
    monkeypatch.setattr(Compiled, "kernels", 0)
    monkeypatch.setattr(sys, "stderr", screen)
    for _ in range(2):
        with compiling():
            pass
    assert screen.getvalue().count("compiling once") == 1
    assert capsys.readouterr().out == ""

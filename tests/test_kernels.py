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
from mlestruct.compiler.kept import constants
from mlestruct.entropy import _xlogx
from mlestruct.kernels import Compiled, clock, compiling, kernel, uncollected, variant

MODULES = sorted(
    path
    for package in (mlestruct, mlestruct_oracles)
    for path in Path(package.__file__).parent.rglob("*.py")
)
PACKAGE = Path(mlestruct.__file__).parent
HERE = {
    *(PACKAGE / name for name in ("kernels.py", "lanes.py")),
    *(PACKAGE / "compiler").glob("*.py"),
}


def numbas(tree):
    """Every import of Numba."""
    for node in ast.walk(tree):
        names = [alias.name for alias in getattr(node, "names", ()) if hasattr(alias, "name")]
        if isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from (node for name in names if name.split(".")[0] == "numba")


def test_one_place_asks_numba_to_compile():
    """So options, the cache and the clock are one decorator's."""
    wrong = [
        f"{path}:{node.lineno}"
        for path in MODULES
        if path not in HERE
        for node in numbas(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert not wrong, f"use mlestruct.kernels.kernel: {wrong}"


@pytest.mark.parametrize("line", ["import numba as nb", "from numba.extending import overload"])
def test_the_scan_sees_what_it_is_for(line):
    assert len(list(numbas(ast.parse(line)))) == 1


@kernel
def half(x):
    """Called by kernels and by Python."""
    return 0.5 * x


@kernel
def halves(values):
    out = np.empty(len(values))
    for k in range(len(values)):
        out[k] = half(values[k])
    return out


@kernel
def countdown(n):
    return 0 if n <= 0 else 1 + countdown(n - 1)


@njit
def foreign(values):
    return halves(values).sum() + half(2.0)


def test_parts_and_entries_agree_in_any_order(rng):
    """A kernel gives Python what it gives other kernels, recursive or not, ours or anybody's."""
    values = rng.standard_normal(5)
    np.testing.assert_array_equal(halves(values), 0.5 * values)
    assert half(3.0) == 1.5
    assert half(3) == 1.5
    assert foreign(values) == (0.5 * values).sum() + 1.0
    assert countdown(4) == 4


def test_kernels_travel():
    """To a worker of another process, say, with whatever holds them."""
    code = "import pickle, sys; print(pickle.load(sys.stdin.buffer)(1.0))"
    answer = subprocess.run(
        [sys.executable, "-c", code], input=pickle.dumps(_xlogx), capture_output=True, check=True
    )
    assert float(answer.stdout) == 0.0
    assert pickle.loads(pickle.dumps(_xlogx)) is _xlogx


def test_what_kernels_call_has_no_machine_code_of_its_own():
    @kernel
    def inner(x):
        return np.zeros(3) + x

    @kernel
    def outer(x):
        return inner(x).sum()

    assert outer(2.0) == 6.0
    assert not inner.overloads
    assert not any(part.library.emitted for part in inner.parts.values())


class Two(NamedTuple):
    first: np.ndarray
    second: np.ndarray


def fields(two, n):
    low, high = two.first, two.second
    for _ in range(n):
        low, high = high, low
    return low[0] + Two(high, low).first[1:].sum()


def rows(two, n):
    total = 0.0
    for row in two.first.reshape(-1, 1):
        total += row[0]
    two.second[:n] = two.first[-n:]
    return total + two.second[0]


def copies(two, n):
    return two.first.copy()[0] + np.zeros(n).sum()


def picks(two, n):
    return two.second[np.arange(n)].sum()


def one_of(two, n):
    return two.first if n > 2 else two.second


def views(two, n):
    return two.first[n:], two.second[:-n]


def counting(function):
    """Whether machine code of a kernel for two arrays and a number counts holders by itself."""
    module = function.part(function.signatures[0]).library._final_module
    (own,) = (one for one in module.functions if f"{function.__name__}B" in one.name)
    return "NRT_incref" in str(own) or "NRT_decref" in str(own)


@pytest.mark.parametrize(
    ("plain", "counted"),
    [(fields, False), (rows, True), (copies, True), (picks, True), (one_of, True), (views, True)],
)
def test_only_kernels_that_make_or_return_arrays_count_who_holds_them(plain, counted, rng):
    compiled, n = kernel(plain), 3
    for _ in range(5):
        two = Two(rng.random(8), rng.random(8))
        twin, holders = Two(*map(np.copy, two)), [sys.getrefcount(one) for one in two]
        np.testing.assert_array_equal(compiled(two, n), plain(twin, n))
        assert [sys.getrefcount(one) for one in two] == holders
    assert counting(compiled) == counted


def test_kernels_release_the_gil():
    assert halves.targetoptions["nogil"]
    assert half.targetoptions["nopython"]


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
import sys, mlestruct.compiler as c, mlestruct.kernels as k
from mlestruct.entropy import _xlogx
_xlogx(0.25)
print(k.Compiled.kernels, _xlogx.stats.cache_path, k.Compiled.folder)
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
import sys, time, mlestruct.compiler.linking as c
from mlestruct.entropy import _xlogx
make = c.entry
def slowly(*given):
    print("made")
    time.sleep(1.0)
    return make(*given)
c.entry = slowly
print("ready", flush=True)
sys.stdin.readline()
_xlogx(0.25)
"""


@pytest.mark.skipif(kept.fcntl is None, reason="no files with locks")
@pytest.mark.parametrize("gone", ["Gone", "gone.Gone"])
def test_what_an_edition_with_other_classes_kept_is_compiled_again(gone, tmp_path, monkeypatch):
    """A named tuple's type is in the index by its class, which a later edition may lack."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(caching.config, "CACHE_DIR", str(tmp_path))
    found = kept.Kept(_xlogx.py_func)
    found._cache_file.save("key", 1)
    assert found._cache_file.load("key") == 1
    index = Path(found._cache_file._index_path)
    with index.open("rb") as file:
        pickle.load(file)
        first = file.tell()
    module, _, name = gone.rpartition(".")
    lost = f"c{module or __name__}\n{name}\n.".encode()
    index.write_bytes(index.read_bytes()[:first] + lost)
    assert found._cache_file.load("key") is None
    found._cache_file.save("key", 2)
    assert found._cache_file.load("key") == 2


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

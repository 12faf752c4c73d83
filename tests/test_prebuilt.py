"""Machine code in the package is what would be compiled, and is served only where it runs."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest
from numba.core import config

from mlestruct import prebuilt
from mlestruct.cli import main, warm
from mlestruct.compiler import Kernel
from mlestruct.kernels import Compiled, kernel


def total(values, by):
    result = 0.0
    for value in values:
        result += value / by
    return result


def other_total(values, by):
    result = 0.0
    for value in values:
        result -= value / by
    return result


@pytest.fixture
def packed(tmp_path, monkeypatch):
    """An archive with ``total`` in it, compiled as if in another process."""
    monkeypatch.setattr(prebuilt, "FOLDER", tmp_path / "package")
    monkeypatch.setenv(prebuilt.RECORD, str(tmp_path))
    prebuilt.archive.cache_clear()
    for _ in range(2):  # the second time from where machine code is kept
        kernel(total)(np.ones(3), 2.0)
    monkeypatch.delenv(prebuilt.RECORD)
    prebuilt.archive.cache_clear()
    yield prebuilt.pack(tmp_path)
    prebuilt.archive.cache_clear()


def answer(function: Kernel, *given: object) -> tuple[float, bool]:
    """The kernel's answer, and whether it was compiled for it."""
    before = Compiled.kernels
    return function(*given), Compiled.kernels > before


@pytest.fixture(autouse=True)
def _nothing_kept(monkeypatch, tmp_path):
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "kept"))


def test_the_same_bits_without_compiling(packed, rng):
    values = rng.standard_normal(100)
    found, compiled = answer(kernel(total), values, 7.0)
    assert not compiled
    assert found == total(values, 7.0)


@pytest.mark.parametrize(
    ("function", "given"),
    [(other_total, (np.ones(3), 2.0)), (total, (np.ones(3), 2)), (total, (np.ones(3, "f4"), 2.0))],
)
def test_other_sources_and_other_types_are_compiled(packed, function, given):
    found, compiled = answer(kernel(function), *given)
    assert compiled
    assert found == function(*given)


def test_a_processor_without_a_feature_is_not_served(packed, monkeypatch):
    monkeypatch.setattr(prebuilt, "level", lambda: ("one", ("sixteen-wings",)))
    prebuilt.pack(packed.parents[1])
    assert prebuilt.archive() is None


def test_who_chose_a_processor_is_not_served(packed, monkeypatch):
    monkeypatch.setattr(config, "CPU_NAME", "generic")
    assert prebuilt.archive() is None


def test_a_check_refuses_to_compile(packed, monkeypatch):
    monkeypatch.setenv(prebuilt.ONLY, "1")
    assert answer(kernel(total), np.ones(3), 2.0) == (1.5, False)
    with pytest.raises(RuntimeError, match="other_total would be compiled"):
        kernel(other_total)(np.ones(3), 2.0)


def test_no_entry_is_half_written(packed):
    with zipfile.ZipFile(packed) as opened:
        assert opened.testzip() is None
        assert len(opened.namelist()) == 2


def test_the_command_records_what_its_jobs_compile(tmp_path, monkeypatch, capsys):
    """Here an empty job, and a command that records nothing but a word."""
    monkeypatch.setattr(prebuilt, "FOLDER", tmp_path)
    monkeypatch.setattr(warm, "JOBS", {})
    word = tmp_path / "word.py"
    word.write_text(
        f"import os, pathlib; folder = pathlib.Path(os.environ[{prebuilt.RECORD!r}])\n"
        "(folder / 'x.entry').write_text(os.environ['NUMBA_CPU_NAME'])"
    )
    assert main(["warm", "--package", "--also", f"{warm.sys.executable} {word}"]) == 0
    assert prebuilt.level()[0] in capsys.readouterr().out
    with zipfile.ZipFile(prebuilt.place()) as opened:
        assert opened.read("x.entry").decode() == prebuilt.level()[0]
    assert prebuilt.place().parent == Path(tmp_path)

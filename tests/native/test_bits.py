"""Equal bits from every compiler, and nothing that sanitizers find.

After a kernel's sums are reordered on purpose, write the digests anew:

    MLESTRUCT_LEVEL=v3 python -m tests.native.workloads v3       and likewise baseline
"""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.native.workloads import STORED, digests

ROOT = Path(__file__).resolve().parents[2]
NATIVE = ROOT / "mlestruct" / "native"
ZIG = [sys.executable, "-m", "ziglang", "c++"]
FUZZED = "60"  # seconds
KERNELS = ["tests/native", "tests/oracles", "tests/inference/matching/test_scaling.py"]

spec = importlib.util.spec_from_file_location("build", NATIVE / "build.py")
build = importlib.util.module_from_spec(spec)
spec.loader.exec_module(build)

on_x86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="digests are of x86-64")
with_zig = pytest.mark.skipif(
    importlib.util.find_spec("ziglang") is None, reason="pip install 'ziglang>=0.17'"
)


def run(command, folder=ROOT, **variables):
    """Run a command with these environment variables; what it printed."""
    path = os.pathsep.join([str(folder), str(folder / "oracles"), os.environ.get("PYTHONPATH", "")])
    given = {**os.environ, "PYTHONPATH": path, **variables}
    done = subprocess.run(command, cwd=folder, env=given, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@on_x86
def test_this_build_gives_the_stored_bits():
    level = os.environ.get("MLESTRUCT_LEVEL", build.best_level())
    stored, found = json.loads(STORED.read_text())[level.partition("-")[0]], digests()
    assert found.keys() == stored.keys()
    assert not [name for name in stored if found[name] != stored[name]], __doc__


@on_x86
@pytest.mark.nightly
@pytest.mark.parametrize("compiler", ["g++", "clang++", pytest.param("zig", marks=with_zig)])
def test_every_compiler_gives_the_stored_bits(compiler, tmp_path):
    if compiler != "zig" and not shutil.which(compiler):
        pytest.skip(f"no {compiler} here")
    for name in ("mlestruct", "oracles", "tests"):
        ignored = shutil.ignore_patterns("objects", "lib", "__pycache__")
        shutil.copytree(ROOT / name, tmp_path / name, ignore=ignored)
    command = " ".join(ZIG) if compiler == "zig" else compiler
    run([sys.executable, "mlestruct/native/build.py", "--all-levels"], tmp_path, CXX=command)
    for level, stored in json.loads(STORED.read_text()).items():
        script = [sys.executable, "-m", "tests.native.workloads"]
        assert json.loads(run(script, tmp_path, MLESTRUCT_LEVEL=level)) == stored


@pytest.fixture(scope="module")
def sanitized():
    """What a process needs that runs kernels under AddressSanitizer and UBSan."""
    run([sys.executable, NATIVE / "build.py", "--kind", "sanitize"], CXX="g++")
    library = run(["g++", "-print-file-name=libasan.so"]).strip()
    return {
        "LD_PRELOAD": library,
        "ASAN_OPTIONS": "detect_leaks=0",
        "MLESTRUCT_LEVEL": "baseline-sanitize",
    }


@pytest.mark.nightly
def test_sanitizers_see_what_a_kernel_reads_beyond_an_array(sanitized):
    script = "import ctypes, sys; ctypes.CDLL(sys.argv[1]).mlestruct_canary(ctypes.c_int64(8))"
    with pytest.raises(AssertionError, match="heap-buffer-overflow"):
        run([sys.executable, "-c", script, NATIVE / "lib" / "baseline-sanitize.so"], **sanitized)


@pytest.mark.nightly
def test_sanitizers_find_nothing_in_kernels_tests(sanitized):
    chosen = ["-k", "not test_bits", "-p", "no:cacheprovider", "-q", "-x"]
    run([sys.executable, "-m", "pytest", *KERNELS, *chosen], **sanitized)


@pytest.mark.nightly
def test_sanitizers_find_nothing_at_random_sizes(sanitized):
    run([sys.executable, "-m", "tests.native.workloads", FUZZED], **sanitized)


@with_zig
@pytest.mark.nightly
def test_the_sources_compile_for_arm64(tmp_path):
    for folder in build.libraries().values():
        for source in folder.glob("*.cpp"):
            flags = ["-target", "aarch64-linux-gnu", "-O3", f"-I{build.INCLUDE}", *build.FLAGS]
            flags += ['-DMLESTRUCT_HEADERS=""', "-c", str(source), "-o", str(tmp_path / "made.o")]
            run([*ZIG, *flags])

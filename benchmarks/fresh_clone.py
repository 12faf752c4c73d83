"""`run.py demo` on a fresh clone: wall seconds of installation, build and demo.

Once with the compilers of this machine, and once with none of them on the PATH, where the
installation fetches ziglang from the package index. Needs git and the index; takes minutes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parents[1]
COMPILERS = ("c++", "g++", "clang++", "cc", "gcc", "clang", "zig")


def run(quick: bool) -> Iterator[dict[str, Any]]:
    """Both rows; ``quick`` leaves the one without a compiler out."""
    for hidden in (False,) if quick else (False, True):
        for quantity, seconds in timed(hidden).items():
            yield {
                "benchmark": "fresh_clone",
                "workload": "no compiler on the PATH" if hidden else "with a compiler",
                "quantity": f"wall s, {quantity}",
                "ours": seconds,
            }


def timed(hidden: bool) -> dict[str, float]:
    """Return the seconds of each step of `run.py demo` on a new clone."""
    with tempfile.TemporaryDirectory() as folder:
        clone, tools = Path(folder) / "clone", Path(folder) / "bin"
        subprocess.run(["git", "clone", "-q", str(HERE), str(clone)], check=True)
        environment = {**os.environ, "HOME": folder}
        for name in ("PYTHONPATH", "CXX"):
            environment.pop(name, None)
        if hidden:
            environment["PATH"] = str(without_compilers(tools))

        def seconds(*command: str) -> float:
            start = time.perf_counter()
            subprocess.run(command, cwd=clone, env=environment, check=True, capture_output=True)
            return time.perf_counter() - start

        python, own = shutil.which("python3", path=os.defpath), ".venv/bin/python"
        first, demo = (seconds(python or sys.executable, "run.py", "demo") for _ in range(2))
        if hidden:
            seconds(own, "-m", "pip", "install", "ziglang>=0.17,<0.18")
        shutil.rmtree(clone / "mlestruct" / "native" / "objects")
        build = seconds(own, "mlestruct/native/build.py")
    parts = {"first time": first, "installation": first - build - demo}
    return {**parts, "build of the kernels": build, "demo alone": demo}


def without_compilers(tools: Path) -> Path:
    """Return a folder of links to every program on the PATH but compilers."""
    tools.mkdir()
    for place in map(Path, os.environ["PATH"].split(os.pathsep)):
        for program in place.iterdir() if place.is_dir() else ():
            link = tools / program.name
            known = any(name in program.name for name in COMPILERS) or link.exists()
            if not known and program.is_file():
                link.symlink_to(program)
    return tools

"""Compile the native kernels and write the Python functions that call them.

    python mlestruct/native/build.py                 build for this machine, only what has changed
    python mlestruct/native/build.py --all-levels    as for a wheel: every processor level
    python mlestruct/native/build.py --kind debug    with symbols and without optimisation
    python mlestruct/native/build.py --kind sanitize with AddressSanitizer and UBSan

The compiler is ``$CXX``, else the first of c++, g++ and clang++, else the package ``ziglang``.
This script needs cffi and nothing of mlestruct, since it runs before the library is installed.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))  # this runs before the package is installed
from door import write_door  # noqa: E402
from library import ENDING, best_level  # noqa: E402

sys.path.remove(str(HERE))
INCLUDE = HERE / "include"
ORACLES = HERE.parents[1] / "oracles" / "mlestruct_oracles" / "native"
FLAGS = [
    "-std=c++17", "-fPIC", "-fvisibility=hidden", "-fno-exceptions", "-fno-rtti",
    "-fno-threadsafe-statics", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math",
    "-Wall", "-Wextra", "-Wno-psabi",
]  # fmt: skip
KINDS = {
    "release": ["-O3", "-DNDEBUG"],
    "debug": ["-O0", "-g"],
    "sanitize": [
        "-O1",
        "-g",
        "-fno-var-tracking",
        "-fsanitize=address,undefined",
        "-fno-sanitize-recover=undefined",
    ],
}
V3 = [
    "-mavx", "-mavx2", "-mbmi", "-mbmi2", "-mf16c", "-mfma", "-mlzcnt", "-mmovbe", "-mpopcnt",
    "-msse4.2", "-mcx16",
]  # fmt: skip
X86 = platform.machine().lower() in ("x86_64", "amd64")
LEVELS = {"baseline": ["-march=x86-64"], "v3": ["-march=x86-64", *V3]}
if not X86:
    LEVELS = {"baseline": []}
ZIG = {"baseline": "x86_64", "v3": "x86_64_v3"}


class Failed(Exception):
    """A build that did not work, with the compiler's own message."""


def compiler() -> list[str]:
    """Return the command that compiles C++ here."""
    if os.environ.get("CXX"):
        return shlex.split(os.environ["CXX"])
    for name in ("c++", "g++", "clang++"):
        if shutil.which(name):
            return [name]
    if importlib.util.find_spec("ziglang"):
        return [sys.executable, "-m", "ziglang", "c++"]
    raise Failed("no C++ compiler was found; install one, or: pip install 'ziglang>=0.17'")


def machine_flags(command: list[str], level: str) -> list[str]:
    """Return the flags that choose the processor level, in this compiler's spelling."""
    if command[-1:] == ["c++"] and "ziglang" in command:
        return [f"-mcpu={ZIG[level]}"] if X86 else []
    return LEVELS[level]


def libraries() -> dict[str, Path]:
    """Return the folder of every library's sources, by its name; an sdist may lack the oracles."""
    installed = HERE.parents[1] / "mlestruct_oracles" / "native"
    return {"mlestruct": HERE, "mlestruct_oracles": ORACLES if ORACLES.is_dir() else installed}


def header_digest(folder: Path) -> str:
    """Return a digest of the headers that Python's functions are written from."""
    text = b"".join(path.read_bytes() for path in sorted(folder.glob("*.h")))
    return hashlib.sha256(text).hexdigest()[:16]


def run(command: list[str]) -> None:
    """Run a compiler; show its own message where it fails."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise Failed(f"{shlex.join(command)}\n{done.stdout}{done.stderr}")
    sys.stderr.write(done.stderr)


def compile_library(name: str, folder: Path, level: str, kind: str) -> None:
    """Compile what has changed of one library for one level, and link it into place."""
    command = compiler()
    common = [*FLAGS, *KINDS[kind], *machine_flags(command, level), f"-I{INCLUDE}"]
    common += [f'-DMLESTRUCT_HEADERS="{header_digest(folder)}"']
    known = subprocess.run([*command, "--version"], capture_output=True, text=True).stdout
    headers = {*INCLUDE.glob("*.h"), *folder.rglob("*.h")}
    shared = [path.read_bytes() for path in sorted(headers)]
    sources = sorted({*folder.glob("*.cpp"), HERE / "about.cpp"}, key=lambda path: path.name)
    made = HERE / "objects"
    made.mkdir(exist_ok=True)

    def compiled(source: Path) -> Path:
        parts = [source.read_bytes(), *shared, " ".join(common).encode(), known.encode()]
        digest = hashlib.sha256(b"\0".join(parts)).hexdigest()[:20]
        target = made / f"{source.stem}-{digest}.o"
        if not target.exists():
            with tempfile.TemporaryDirectory(dir=made) as place:
                new = Path(place) / target.name
                run([*command, *common, "-c", str(source), "-o", str(new)])
                new.replace(target)
        return target

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = [str(path) for path in pool.map(compiled, sources)]
    library = library_path(folder, level, kind)
    stamp = hashlib.sha256(" ".join(objects).encode()).hexdigest()
    marker = made / f"{name}-{library.stem}.linked"
    if library.exists() and marker.exists() and marker.read_text() == stamp:
        return
    library.parent.mkdir(exist_ok=True)
    link = [*command[:-1], "cc"] if "ziglang" in command else command
    flags = ["-shared", *KINDS[kind]]
    if sys.platform.startswith("linux") and kind != "sanitize":
        flags += ["-nostdlib", "-lc", "-Wl,-z,defs"]
    with tempfile.TemporaryDirectory(dir=made) as place:
        new = Path(place) / library.name
        run([*link, *objects, *flags, "-o", str(new)])
        new.replace(library)
    marker.write_text(stamp)


def library_path(folder: Path, level: str, kind: str = "release") -> Path:
    """Return where a library lies."""
    return folder / "lib" / f"{level}{'' if kind == 'release' else '-' + kind}.{ENDING}"


def build(levels: list[str] | None = None, kind: str = "release") -> None:
    """Write the Python side of every header, and compile both libraries."""
    for name, folder in libraries().items():
        write_door(folder, header_digest(folder))
        wanted = levels or ([*LEVELS] if kind == "release" else ["baseline"])
        for level in wanted:
            compile_library(name, folder, level, kind)


def main() -> int:
    """Build as the command line asks."""
    parser = argparse.ArgumentParser(description="Compile mlestruct's native kernels.")
    parser.add_argument("--kind", choices=KINDS, default="release")
    parser.add_argument("--all-levels", action="store_true", help="as for a wheel")
    given = parser.parse_args()
    try:
        build(None if given.all_levels or given.kind != "release" else [best_level()], given.kind)
    except Failed as error:
        sys.stderr.write(f"mlestruct: the native kernels could not be built:\n{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

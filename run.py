"""Set up and run mlestruct with a bare Python 3.11 or later: no pip, no global install.

    python3 run.py demo            set up .venv, then run `mlestruct roommates`, the shipped example
    python3 run.py test [ARGS]     set up .venv with the test tools, then run `pytest ARGS`
    python3 run.py COMMAND [ARGS]  any other command of `mlestruct`

The first run downloads the dependencies into .venv beside this file; later runs start at once.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path
from urllib.parse import urljoin

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
PYTHON = BIN / ("python.exe" if os.name == "nt" else "python")
STAMP = VENV / "mlestruct-stamp"
OLDEST = (3, 11)


def main(args):
    if sys.version_info < OLDEST:
        return "mlestruct needs Python 3.11 or later; this is %s. %s" % (
            sys.version.split()[0],
            newer_python(),
        )
    if not args or args[0] in ("-h", "--help"):
        print(__doc__)
        return 0
    command, rest = args[0], args[1:]
    problem = set_up("test" if command == "test" else "office")
    if problem:
        return problem
    if command == "test":
        # Bare: every core, but not so many workers that each compiles the kernels for a few tests.
        pytest_args = rest or ["-n", "auto", "--maxprocesses=4"]
        os.chdir(ROOT)
        return subprocess.call([str(PYTHON), "-m", "pytest", *pytest_args])
    name = "roommates" if command == "demo" else command
    return subprocess.call([str(BIN / "mlestruct"), name, *rest])


def newer_python():
    found = [p for p in map(shutil.which, ("python3.13", "python3.12", "python3.11")) if p]
    return "Use: %s run.py" % found[0] if found else "None was found on the PATH."


def set_up(extra):
    """Leave a .venv that has the project in it, editable, with at least this extra; say what fails.

    The stamp names what was installed: a checkout that moved or a changed pyproject.toml installs
    again. It is written last, so an interrupted set-up is repeated.
    """
    content = (ROOT / "pyproject.toml").read_bytes() + str(ROOT).encode() + native_sources()
    digest = hashlib.sha256(content).hexdigest()
    stamp = STAMP.read_text().split() if STAMP.exists() else []
    if stamp[:1] == [digest] and (not extra or extra in stamp) and works(PYTHON, "import pip"):
        return None
    extras = sorted({extra, *stamp[1:]} - {""})
    if STAMP.exists():
        STAMP.write_text("")
    if not works(PYTHON, "import pip"):
        problem = make_venv()
        if problem:
            return problem
    print("Installing mlestruct and its dependencies into %s ..." % VENV, file=sys.stderr)
    target = str(ROOT) + ("[%s]" % ",".join(extras) if extras else "")
    if subprocess.call([str(PYTHON), "-m", "pip", "install", "--quiet", "--editable", target]):
        return "The installation failed; pip's message is above. Run the same command to try again."
    STAMP.write_text(" ".join([digest, *extras]))
    return None


def native_sources():
    """Return all that the compiled kernels are made of: a change of it installs again."""
    folders = [ROOT / "mlestruct" / "native", ROOT / "oracles" / "mlestruct_oracles" / "native"]
    paths = [p for folder in folders for p in folder.rglob("*") if p.suffix in (".cpp", ".h")]
    return b"".join(path.read_bytes() for path in sorted(paths))


def works(python, code):
    if not python.exists():
        return False
    return subprocess.run([str(python), "-c", code], capture_output=True).returncode == 0


def make_venv():
    """Try each way to a virtual environment with pip in it, from the usual to the last resort.

    The stamp comes first: a folder without it is somebody else's and is not touched.
    """
    if VENV.exists() and not STAMP.exists():
        return "%s was not made by run.py and has no working pip: move it away." % VENV
    notes = []
    for name, attempt in WAYS:
        shutil.rmtree(VENV, ignore_errors=True)
        VENV.mkdir()
        STAMP.touch()
        try:
            attempt()
        except (OSError, ValueError, subprocess.CalledProcessError) as error:
            output = getattr(error, "stdout", None) or str(error)
            notes.append("%s: %s" % (name, output.strip().splitlines()[-1]))
        else:
            if works(PYTHON, "import pip"):
                return None
            notes.append("%s: made an environment without pip" % name)
    return (
        "Could not make a virtual environment in %s:\n  %s\n"
        "Install what makes them and run this again; on Debian and Ubuntu:\n"
        "  sudo apt install python3-venv"
    ) % (VENV, "\n  ".join(notes))


def call(*command):
    output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    subprocess.run([str(part) for part in command], check=True, **output)


def with_ensurepip():
    call(sys.executable, "-m", "venv", VENV)


def with_pip():
    call(sys.executable, "-m", "pip", "--version")
    call(sys.executable, "-m", "venv", "--without-pip", VENV)
    call(sys.executable, "-m", "pip", "--python", PYTHON, "install", "pip")


def with_downloaded_pip():
    """Pip's wheel can install itself. It is fetched over https and checked against the index."""
    index = os.environ.get("PIP_INDEX_URL", "https://pypi.org/simple").rstrip("/") + "/pip/"
    with urllib.request.urlopen(index, timeout=60) as answer:
        page = answer.read().decode()
    link = r'href="([^"#]*/(pip-([0-9.]+)-py3-none-any\.whl))#sha256=([0-9a-f]{64})"'
    releases = re.findall(link, page)
    if not releases:
        raise ValueError("no release of pip at %s" % index)
    url, name, _, digest = max(releases, key=lambda r: [int(n) for n in r[2].split(".")])
    with urllib.request.urlopen(urljoin(index, url), timeout=60) as answer:
        wheel = answer.read()
    if hashlib.sha256(wheel).hexdigest() != digest:
        raise ValueError("%s does not have the checksum its index states" % name)
    call(sys.executable, "-m", "venv", "--without-pip", VENV)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(wheel)
        call(PYTHON, path / "pip", "install", "--no-index", path)


WAYS = [
    ("venv with ensurepip", with_ensurepip),
    ("venv with the system's pip", with_pip),
    ("venv with pip downloaded from the package index", with_downloaded_pip),
]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

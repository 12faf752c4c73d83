"""Every Python block of the documentation runs, in order, one namespace per page, and shows what
it prints.

A block after `<!-- no-run -->` is skipped. What a block prints stands below it, in a ```text block
after `<!-- output -->`: the same words, numbers to two digits (seconds and what is as good as zero
may be any), and a line of `…` for lines left out. Commands stand in ```console blocks after a
`$`, each with what it prints below it. After `<!-- output, about -->` numbers may be any: they
hang on a solver's clock. `python docs/outputs.py` writes all of them anew.
"""

import contextlib
import io
import re
import shlex
import sys
import types
import warnings
from collections.abc import Iterator
from pathlib import Path

import cloudpickle
import pytest

from mlestruct.cli import main

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md")),
    *sorted(p for p in (ROOT / "docs").rglob("*.md") if "_build" not in p.parts),
]
FENCE = re.compile(
    r"^(?:<!-- (?P<mark>no-run|output|output, about) -->\n+)?"
    r"^```(?P<language>[^\n`]*)\n(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


def blocks(text: str) -> Iterator[tuple[str | None, str, str, int]]:
    """(mark, language, body, line of the body's start counted from 0) of each fenced block."""
    for match in FENCE.finditer(text):
        line = text.count("\n", 0, match.start("body"))
        yield match["mark"], match["language"].strip(), match["body"], line


owing = True  # whether what is printed must be shown; docs/outputs.py writes it first


def run_page(path: Path, module: types.ModuleType) -> list[str]:
    """Run the page's blocks in the module; what each that ran printed."""
    printed: list[str] = []
    owed = ""  # where something was printed that is not shown yet
    for mark, language, body, line in blocks(path.read_text(encoding="utf-8")):
        place = f"{path.name}:{line + 1}"
        if language == "python" and mark != "no-run":
            assert not owed or not owing, f"{owed}: what this block prints is not shown below it"
            # Blank lines in front: tracebacks find the page's line.
            code = compile("\n" * line + body, str(path), "exec")
            with contextlib.redirect_stdout(io.StringIO()) as output:
                exec(code, module.__dict__)
            printed.append(output.getvalue().strip("\n"))
            owed = place if printed[-1] else ""
        elif language == "console" and mark != "no-run":
            for command, output in commands(body):
                printed.append(ran(command))
                shown = not owing or alike(printed[-1], output)
                assert shown, f"{place}: {command} prints otherwise:\n{printed[-1]}"
        elif mark is not None and mark.startswith("output"):
            assert language == "text", f"{place}: an output block is ```text, not ```{language}"
            numbers = mark == "output"
            assert alike(printed[-1], body, numbers), (
                f"{place}: the block before prints otherwise:\n{printed[-1]}"
            )
            owed = ""
        else:
            assert not language.startswith("py") or mark, f"{place}: a block to run is ```python"
    assert not owed or not owing, f"{owed}: what this block prints is not shown below it"
    return printed


def commands(body: str) -> list[tuple[str, str]]:
    """(command, output) of a block as a terminal shows it."""
    parts = re.split(r"(?m)^\$ (.*)\n", body)[1:]
    return list(zip(parts[::2], parts[1::2], strict=True))


def ran(command: str) -> str:
    """What `mlestruct …` prints, to a person who sees its output and its errors."""
    name, *arguments = shlex.split(command)
    assert name == "mlestruct", f"{command}: only mlestruct is run"
    output = io.StringIO()
    with (
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(output),
        contextlib.suppress(SystemExit),  # of --help, and of options that are refused
        warnings.catch_warnings(),
    ):
        main(arguments)
    return output.getvalue().strip("\n")


NUMBER = re.compile(r"(?<![\w.])[-+−]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w])")
NOTHING, BEYOND = 1e-5, 1e12  # as good as zero, and as good as infinite
GAP = re.compile(r"within \S+ of the optimum \(relative [^);]*")  # where a fit happens to end
CLOSE = 0.02  # relative; and a unit of the last digit shown


def alike(printed: str, shown: str, numbers: bool = True) -> bool:
    """Whether an output is the one shown, but for digits (or all ``numbers``), left-out lines."""
    parts = [part.strip("\n").splitlines() for part in re.split(r"(?m)^\s*…\s*$", shown)]
    lines = printed.strip("\n").splitlines()
    if len(parts) == 1:
        return _same(lines, parts[0], numbers)
    first, last = parts[0], parts[-1]
    enough = len(lines) >= len(first) + len(last) and len(parts) == 2
    tail = lines[len(lines) - len(last) :]
    return enough and _same([*lines[: len(first)], *tail], [*first, *last], numbers)


def _same(lines: list[str], shown: list[str], numbers: bool) -> bool:
    pairs = zip(lines, shown, strict=False)
    return len(lines) == len(shown) and all(_line(a, b, numbers) for a, b in pairs)


def _line(printed: str, shown: str, numbers: bool) -> bool:
    bare = [GAP.sub("within # of the optimum", line) for line in (printed, shown)]
    words = [NUMBER.sub("#", line).split() for line in bare]
    told = [NUMBER.findall(line) for line in bare]
    free = not numbers or re.search(r"\d (?:s|ms|seconds)\b", shown) is not None
    close = all(_close(a, b) for a, b in zip(*told, strict=False))
    return words[0] == words[1] and (free or close)


def _close(a: str, b: str) -> bool:
    x, y = (float(text.replace("−", "-")) for text in (a, b))
    digits = max(len(text.partition(".")[2]) for text in (a, b))
    unit = 10.0**-digits if digits and "e" not in (a + b).lower() else 0.0
    alike = max(abs(x), abs(y)) < NOTHING or min(abs(x), abs(y)) > BEYOND
    return alike or abs(x - y) <= CLOSE * max(abs(x), abs(y)) + 1.001 * unit


@contextlib.contextmanager
def documentation() -> Iterator[types.ModuleType]:
    """A module for one page."""
    module = types.ModuleType("documentation")
    sys.modules[module.__name__] = module  # dataclasses look their module up
    cloudpickle.register_pickle_by_value(module)  # as what a notebook defines goes to workers
    try:
        yield module
    finally:
        cloudpickle.unregister_pickle_by_value(module)
        del sys.modules[module.__name__]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_page_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with documentation() as module:
        run_page(path, module)


@pytest.mark.parametrize(
    ("printed", "shown", "same"),
    [
        ("AUC 0.781, 12 people", "AUC 0.788, 12 people", True),
        ("AUC 0.70, 12 people", "AUC 0.78, 12 people", False),
        ("AUC 0.781, 12 people", "AUC 0.781, 14 people", False),
        ("gap 3.1e-09", "gap 7.4e-11", True),
        ("gap 3.1e-02", "gap 7.4e-11", False),
        ("took 3.1 s", "took 0.2 s", True),
        (
            "-3.1 within 0.2 of the optimum (relative 1e-3)",
            "-3.1 within 1e-4 of the optimum (relative 3)",
            True,
        ),
        (
            "-3.1 within 0.2 of the optimum (relative 1)",
            "-4.1 within 0.2 of the optimum (relative 1)",
            False,
        ),
        ("+1.23  yes", "+1.24 yes", True),
        ("+1.23 yes", "-1.23 yes", False),
        ("a\nb\nc\nd", "a\n…\nd", True),
        ("a\nb\nc\nd", "a\n…\ne", False),
        ("a\nb", "a", False),
    ],
)
def test_outputs_are_compared_but_for_digits(printed: str, shown: str, same: bool) -> None:
    assert alike(printed, shown) is same

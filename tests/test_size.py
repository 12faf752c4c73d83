"""The limit on lines of code per package: it only goes down.

A line of code holds a token that is neither a comment nor part of a docstring. Whoever makes a
package smaller lowers its limit in the same commit; ``python tests/test_size.py`` prints the table.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SLACK = 0.03  # how far below its limit a package may stay before the limit is lowered

# Package: (limit, which files). The first pattern that a file's path begins with decides.
PACKAGES: dict[str, tuple[int, str]] = {
    "native": (7704, r".*/native/|.*\.(cpp|h)$"),
    "solvers": (840, r"oracles/"),
    "structures to oracle seam": (
        4102,
        r"mlestruct/(structures/|features/|oracle/)",
    ),
    "inference": (2646, r"mlestruct/inference/"),
    "learning": (
        3703,
        r"mlestruct/(learning|learners|engine|storage)/",
    ),
    "statistics, metrics, scorers": (1404, r"mlestruct/(statistics/|metrics|scorers)"),
    "roommates": (
        5487,
        r"mlestruct/(roommates|tables|data)/",
    ),
    "estimators": (2288, r"mlestruct/estimators/"),
    "families": (1725, r"mlestruct/families/"),
    "extras": (1591, r"mlestruct/"),
}
RAW = {"tests": 33609, "benchmarks": 7725}  # all lines, blank ones and comments included
CODE = (".py", ".cpp", ".h", ".js", ".css", ".html", ".j2")
GENERATED = ("_door.py", "_cffi.py")  # by the build, from headers
LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def python_lines(text: str) -> int:
    """Count the lines of a Python module that hold code."""
    docstrings: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        for one in body if isinstance(body := getattr(node, "body", None), list) else []:
            if isinstance(one, ast.Expr) and isinstance(getattr(one.value, "value", None), str):
                docstrings.update(range(one.lineno, (one.end_lineno or one.lineno) + 1))
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in LAYOUT:
            code.update(range(token.start[0], token.end[0] + 1))
    return len(code - docstrings)


def other_lines(text: str) -> int:
    """Count the lines of C++, JavaScript, CSS or a template that are not blank or a comment."""
    text = re.sub(
        r"/\*.*?\*/|\{#.*?#\}", lambda found: "\n" * found[0].count("\n"), text, flags=re.S
    )
    return sum(bool(re.sub(r"(^|\s)//.*", "", line).strip()) for line in text.splitlines())


def counted() -> dict[str, int]:
    """Count the lines of code of every package."""
    lines = dict.fromkeys(PACKAGES, 0)
    for path in sorted([*(ROOT / "mlestruct").rglob("*"), *(ROOT / "oracles").rglob("*")]):
        if path.suffix not in CODE or path.name in GENERATED:
            continue
        name, text = path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
        package = next(p for p, (_, files) in PACKAGES.items() if re.match(files, name))
        lines[package] += python_lines(text) if path.suffix == ".py" else other_lines(text)
    return lines


def raw_lines(folder: str) -> int:
    """Count all lines of the Python files in a folder."""
    return sum(len(path.read_bytes().splitlines()) for path in (ROOT / folder).rglob("*.py"))


def test_docstrings_comments_and_blank_lines_are_no_code() -> None:
    text = '"""Text.\n\nMore."""\n\n# why\nx = (\n    1  # one\n)'
    text += '\n\ndef f():\n    "Say."\n    return """a\n\nb"""\n'
    assert python_lines(text) == 3 + 1 + 3
    assert other_lines("/* a\n b */\nint x; // y\n\n// z\nurl = 'http://x';\n") == 2


@pytest.mark.parametrize("package", PACKAGES)
def test_no_package_exceeds_its_limit_or_keeps_a_loose_one(package: str) -> None:
    found, limit = counted()[package], PACKAGES[package][0]
    assert found <= limit, f"{package}: {found} lines of code for {limit} allowed"
    assert found >= (1 - SLACK) * limit, f"{package}: lower its limit from {limit} to {found}"


@pytest.mark.parametrize("folder", RAW)
def test_tests_and_benchmarks_stay_within_their_lines(folder: str) -> None:
    assert (1 - SLACK) * RAW[folder] <= raw_lines(folder) <= RAW[folder]


if __name__ == "__main__":
    table = counted()
    for package, lines in table.items():
        print(f"{lines:7,d} of {PACKAGES[package][0]:6,d}  {package}")
    print(f"{sum(table.values()):7,d} of {sum(one for one, _ in PACKAGES.values()):6,d}  all")
    for folder, limit in RAW.items():
        print(f"{raw_lines(folder):7,d} of {limit:6,d}  {folder} (all lines)")

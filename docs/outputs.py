"""Writes below every block and command of the manual what it prints: python docs/outputs.py [PAGE].

tests/test_docs.py keeps them right, but for digits.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests import test_docs as docs  # noqa: E402

LONG, LAST = 16, 2  # lines of an output that is shown whole; and of the end of a longer one
SCREEN = 24  # lines of what a command prints


def shown(printed: str, long: int = LONG) -> str:
    """An output as it stands in the manual: long ones without their middle."""
    lines = [line.rstrip() for line in printed.splitlines()]
    if len(lines) > long:
        lines = [*lines[: long - LAST - 3], "…", *lines[-LAST:]]
    return "\n".join(lines)


def rewritten(path: Path) -> str:
    """The page with what its blocks print now; outputs that are right but for digits stay."""
    text = path.read_text(encoding="utf-8")
    bare = re.sub(r"(?ms)^<!-- output(?:, about)? -->\n+```text\n.*?^```\n\n?", "", text)
    marks = _marks(text)
    with tempfile.TemporaryDirectory() as folder, docs.documentation() as module:
        os.chdir(folder)
        page = Path(folder) / path.name
        page.write_text(bare, encoding="utf-8")
        keep, docs.owing = docs.owing, False
        try:
            printed = docs.run_page(page, module)
        finally:
            docs.owing = keep
            os.chdir(ROOT)
    parts, end, number = [], 0, 0
    for match in docs.FENCE.finditer(bare):
        if match["language"].strip() == "console" and match["mark"] != "no-run":
            parts.append(bare[end : match.start("body")])
            end = match.end("body")
            for command, _ in docs.commands(match["body"]):
                parts.append(f"$ {command}\n{shown(printed[number], SCREEN)}\n")
                number += 1
        elif match["language"].strip() == "python" and match["mark"] != "no-run":
            parts.append(bare[end : match.end()])
            end = match.end()
            if printed[number]:
                mark = marks.get(match["body"], "output")
                parts.append(f"\n\n<!-- {mark} -->\n```text\n{shown(printed[number])}\n```")
            number += 1
    whole = "".join([*parts, bare[end:]]).rstrip() + "\n"
    return re.sub(r"(?s)(<!-- output[^\n]*\n```text\n(?:(?!```).)*```)\n{3,}", r"\1\n\n", whole)


def _marks(text: str) -> dict[str, str]:
    """By block, whether the numbers below it count."""
    found, block = {}, ""
    for mark, language, body, _ in docs.blocks(text):
        if mark is not None and mark.startswith("output"):
            found[block] = mark
        elif language == "python":
            block = body
    return found


def main(names: list[str]) -> None:
    """The named pages, or all."""
    for path in [Path(name).resolve() for name in names] or docs.PAGES:
        path.write_text(rewritten(path), encoding="utf-8")
        sys.stdout.write(f"{path.relative_to(ROOT)}\n")


if __name__ == "__main__":
    main(sys.argv[1:])

"""``python -m tests.reference [--strict] [--json] [CASES.json …]``: recompute reference cases.

A line per quantity, a count last. The exit code is 0 where every quantity agrees, 1 where one does
not, 2 where a file cannot be read. Without a file: the cases that ship with the library.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tests.reference.cases import Malformed
from tests.reference.core import main


def command(arguments: Sequence[str] | None = None) -> int:
    """Read the command line and run it."""
    parser = argparse.ArgumentParser(prog="python -m tests.reference", description=__doc__)
    parser.add_argument("files", nargs="*", metavar="CASES.json")
    parser.add_argument("--json", action="store_true", help="one JSON object per line")
    parser.add_argument("--strict", action="store_true", help="count what is missing as failed")
    given = parser.parse_args(arguments)
    try:
        return main(given.files, as_json=given.json, strict=given.strict)
    except Malformed as error:
        sys.stderr.write(f"tests.reference: {error}\n")
        return 2


if __name__ == "__main__":
    sys.exit(command())

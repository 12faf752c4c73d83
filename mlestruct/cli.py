"""The command line; every command's machinery is imported only when it runs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``mlestruct …``; returns the exit code."""
    parser = argparse.ArgumentParser(prog="mlestruct", description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    demo = commands.add_parser("demo", help="learn to match landmarks; errors, calibration, proof")
    demo.add_argument("--quick", action="store_true", help="fewer examples")
    check = commands.add_parser("verify", help="recompute the reference cases")
    check.add_argument("files", nargs="*", metavar="CASES.json")
    check.add_argument("--json", action="store_true", help="one JSON object per line")
    check.add_argument("--strict", action="store_true", help="count what is missing as failed")
    given = parser.parse_args(arguments)
    if given.command == "demo":
        from mlestruct.demo import run

        return run(quick=given.quick)
    from mlestruct import verify

    try:
        return verify.main(given.files, as_json=given.json, strict=given.strict)
    except (ValueError, OSError) as error:
        print(f"mlestruct verify: {error}", file=sys.stderr)
        return 2

"""``mlestruct verify``: the reference cases, recomputed."""

from __future__ import annotations

import argparse
from typing import Any


def add(commands: Any) -> None:
    """The command's options."""
    parser = commands.add_parser("verify", help="recompute the reference cases")
    parser.add_argument("files", nargs="*", metavar="CASES.json")
    parser.add_argument("--json", action="store_true", help="one JSON object per line")
    parser.add_argument("--strict", action="store_true", help="count what is missing as failed")
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """A line per quantity; 1 if any differs."""
    from mlestruct import verify

    return verify.main(given.files, as_json=given.json, strict=given.strict)

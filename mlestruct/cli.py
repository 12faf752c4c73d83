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
    infer = commands.add_parser(
        "infer", help="log Z, marginals or the best labelling of a .uai file"
    )
    infer.add_argument("file", metavar="FILE.uai")
    infer.add_argument("--task", default="MAR", help="PR, MAR (default) or MPE")
    infer.add_argument("--evidence", metavar="FILE.evid", help="observed variables")
    infer.add_argument("--method", default="auto", help="auto, exact, trw or bp")
    given = parser.parse_args(arguments)
    if given.command == "demo":
        from mlestruct.demo import run

        return run(quick=given.quick)
    try:
        return _infer(given) if given.command == "infer" else _verify(given)
    except (ValueError, OSError) as error:
        print(f"mlestruct {given.command}: {error}", file=sys.stderr)
        return 2


def _infer(given: argparse.Namespace) -> int:
    from mlestruct.readers import uai

    answer = uai.infer(given.file, given.task, given.evidence, given.method)
    print(answer.text, end="")
    print(answer.method, file=sys.stderr)
    return 0


def _verify(given: argparse.Namespace) -> int:
    from mlestruct import verify

    return verify.main(given.files, as_json=given.json, strict=given.strict)

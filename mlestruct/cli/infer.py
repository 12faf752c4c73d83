"""``mlestruct infer``: log Z, marginals or the best labelling of a .uai file."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from mlestruct.cli.options import add_json, tell


def add(commands: Any) -> None:
    """The command's options."""
    parser = commands.add_parser(
        "infer", help="log Z, marginals or the best labelling of a .uai file"
    )
    parser.add_argument("file", metavar="FILE.uai")
    parser.add_argument("--task", default="MAR", help="PR, MAR (default) or MPE")
    parser.add_argument("--evidence", metavar="FILE.evid", help="observed variables")
    parser.add_argument("--method", default="auto", help="auto, exact, trw or bp")
    add_json(parser)
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """The answer in the competition's format; how it was found goes to the error stream."""
    from mlestruct.readers import uai

    answer = uai.infer(given.file, given.task, given.evidence, given.method)
    if given.json:
        tell(given, task=given.task, answer=answer.text, method=answer.method)
        return 0
    print(answer.text, end="")
    print(answer.method, file=sys.stderr)
    return 0

"""``mlestruct roommates evaluate``: how well a model predicts pairs it was not learned from."""

from __future__ import annotations

import argparse
from typing import Any

from mlestruct.cli.roommates.common import add_people, add_report, finish, load


def add(parts: Any) -> None:
    """The command's options."""
    parser = parts.add_parser("evaluate", help="judge a model on pairs it has not seen")
    add_people(parser, "pairs")
    add_report(parser)
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Print the evaluation; write what assign writes, with the evaluation in the report."""
    from mlestruct.report import Report
    from mlestruct.tables import table

    shown = {"names": given.names, "protected": given.show_protected}
    report = Report.of(*load(given), table(given.pairs), **shown)
    return finish(report.evaluation, report, given)

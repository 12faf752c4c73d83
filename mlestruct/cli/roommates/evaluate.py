"""``mlestruct roommates evaluate``: how well a model predicts pairs it was not learned from."""

from __future__ import annotations

import argparse
from typing import Any

from mlestruct.cli.options import add_model, add_names, add_only, add_out, chosen


def add(parts: Any) -> None:
    """The command's options."""
    parser = parts.add_parser("evaluate", help="judge a model on pairs it has not seen")
    parser.add_argument("people", metavar="PEOPLE.csv")
    parser.add_argument("pairs", metavar="PAIRS.csv")
    add_model(parser)
    add_only(parser)
    add_names(parser)
    add_out(parser)
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Print the evaluation; write what assign writes, with the evaluation in the report."""
    from mlestruct.estimators import RoommateModel
    from mlestruct.report import Report
    from mlestruct.tables import table

    model = RoommateModel.load(given.model)
    people = chosen(table(given.people), model.cohort, given.only)
    report = Report.of(
        model, people, table(given.pairs), names=given.names, protected=given.show_protected
    )
    print(report.evaluation)
    print("wrote " + ", ".join(map(str, report.write(given.out))))
    return 0

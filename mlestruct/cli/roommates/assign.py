"""``mlestruct roommates assign``: a model and people in, pairs and a report out."""

from __future__ import annotations

import argparse
from typing import Any

from mlestruct.cli.options import add_model, add_names, add_only, add_out, add_rules, chosen, rules


def add(parts: Any) -> None:
    """The command's options."""
    parser = parts.add_parser("assign", help="pair up people")
    parser.add_argument("people", metavar="PEOPLE.csv")
    add_model(parser)
    add_only(parser)
    add_rules(parser)
    parser.add_argument("--rooms", metavar="ROOMS.csv", help="columns room and size")
    parser.add_argument(
        "--decision",
        choices=("map", "expected"),
        default="map",
        help="best total score (map), or most pairs expected right",
    )
    add_names(parser)
    add_out(parser)
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Write pairs.csv, probabilities.csv and report.html."""
    from mlestruct.estimators import RoommateModel
    from mlestruct.report import Report
    from mlestruct.tables import table

    model = RoommateModel.load(given.model)
    people = chosen(table(given.people), model.cohort, given.only)
    asked = rules(given, people[model.id].tolist())
    report = Report.of(
        model,
        people,
        forbid=asked["forbid"],
        require=asked["require"],
        rooms=table(given.rooms) if given.rooms else None,
        decision=given.decision,
        names=given.names,
        protected=given.show_protected,
    )
    print(report.plan)
    print("wrote " + ", ".join(map(str, report.write(given.out))))
    return 0

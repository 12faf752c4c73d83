"""``mlestruct roommates assign``: a model and people in, pairs and a report out."""

from __future__ import annotations

import argparse
from typing import Any

from mlestruct.cli.options import add_rules, rules
from mlestruct.cli.roommates.common import add_people, add_report, finish, load


def add(parts: Any) -> None:
    """The command's options."""
    parser = parts.add_parser("assign", help="pair up people")
    add_people(parser)
    add_rules(parser)
    parser.add_argument("--rooms", metavar="ROOMS.csv", help="columns room and size")
    parser.add_argument(
        "--decision",
        choices=("map", "expected"),
        default="map",
        help="best total score (map), or most pairs expected right",
    )
    add_report(parser)
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Print the plan; write pairs.csv, probabilities.csv and report.html."""
    from mlestruct.report import Report
    from mlestruct.tables import table

    model, people = load(given)
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
    return finish(report.plan, report, given)

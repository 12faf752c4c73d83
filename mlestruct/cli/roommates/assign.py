"""``mlestruct roommates assign``: a model and people in, pairs and a report out."""

from __future__ import annotations

import argparse
from typing import Any

from mlestruct.cli.options import add_rules, fields, finite, opened, rules, tell
from mlestruct.cli.roommates.common import add_people, add_report, add_unknown, finish, load


def add(parts: Any) -> None:
    """The command's options."""
    parser = parts.add_parser("assign", help="pair up people")
    add_people(parser)
    add_rules(parser)
    add_unknown(parser)
    parser.add_argument(
        "--rooms", metavar="ROOMS", help="columns room, size, and perhaps fixed and accessible"
    )
    parser.add_argument(
        "--fixed",
        nargs=2,
        action="append",
        default=[],
        metavar=("ROOM", "IDS"),
        help="who is to be in a room: one id, or two separated by a comma; repeatable",
    )
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

    model, people = load(given)
    ids = {str(who): who for who in people.as_names(model.id).tolist()}
    report = Report.of(
        model,
        people,
        **rules(given, ids.values()),
        rooms=opened(given, given.rooms, ("room",)) if given.rooms else None,
        fixed={
            room: [ids.get(who.strip(), who.strip()) for who in listed.split(",")]
            for room, listed in given.fixed
        },
        decision=given.decision,
        mix=given.mix,
        names=given.names,
        protected=given.show_protected,
    )
    wrote = finish(report.plan, report, given)
    plan = report.plan
    tell(
        given,
        pairs=[fields(pair) for pair in plan.pairs],
        singles=[fields(single) for single in plan.singles],
        left_over=plan.left_over,
        total=finite(plan.objective),
        gap=finite(plan.gap),
        notes=list(plan.people.notes),
        files=wrote,
    )
    return 0

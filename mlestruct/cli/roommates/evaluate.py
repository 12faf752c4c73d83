"""``mlestruct roommates evaluate``: how well a model predicts pairs it was not learned from."""

from __future__ import annotations

import argparse
import dataclasses
from typing import Any

from mlestruct.cli.options import tell
from mlestruct.cli.roommates.common import (
    add_people,
    add_report,
    add_unknown,
    among,
    finish,
    load_all,
)
from mlestruct.cli.roommates.fit import table_of_pairs


def add(parts: Any) -> None:
    """The command's options."""
    parser = parts.add_parser("evaluate", help="judge a model on pairs it has not seen")
    add_people(parser, "pairs")
    add_unknown(parser)
    add_report(parser)
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Print the evaluation; write what assign writes, with the evaluation in the report."""
    from mlestruct.report import Report

    model, everybody, people = load_all(given)
    pairs = among(table_of_pairs(given, model), everybody, people, model)
    pairs = people if pairs is None else pairs
    shown = {
        "names": given.names,
        "protected": given.show_protected,
        "mix": given.mix,
    }
    report = Report.of(model, people, pairs, **shown)
    wrote = finish(report.evaluation, report, given)
    assert report.evaluation is not None
    tell(given, **dataclasses.asdict(report.evaluation), files=wrote)
    return 0

"""``mlestruct roommates``: the shipped example, from tables to report."""

from __future__ import annotations

import argparse

from mlestruct.cli.roommates.common import add_out, finish


def add(parser: argparse.ArgumentParser) -> None:
    """Its one option."""
    add_out(parser)
    parser.set_defaults(json=False, all=False, per_person=10)
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Learn years 1 and 2, pair up year 3, judge it on the pairs that came about."""
    from mlestruct import data
    from mlestruct.estimators import RoommateModel
    from mlestruct.report import Report
    from mlestruct.tables import table

    people = table(data.shipped("roommates_people.csv"))
    pairs = table(data.shipped("roommates_pairs.csv"))
    before, after = people.rows(people["year"] < 3), people.rows(people["year"] == 3)
    print(f"learning from {len(before)} people of years 1 and 2 ...", flush=True)
    model = RoommateModel(cohort="year", same="gender", ordinal="q*", alpha=(1.0, 10.0, 100.0))
    print(model.fit(before, pairs).summary())
    print("\nyear 3, predicted and compared with the pairs that came about:")
    report = Report.of(model, after, pairs)
    finish(report.evaluation, report, given)
    return 0

"""``mlestruct roommates``: the shipped example, from tables to report, on one screen."""

from __future__ import annotations

import argparse
import textwrap

from mlestruct.cli.options import add_json, say, tell
from mlestruct.cli.roommates.common import add_out, new_folder

WIDTH = 78
STUDENTS = (
    "An example: {people} invented students of three years, their answers to {questions} "
    "questions, and who shared a room with whom."
)
LEARNING = (
    "Learning from the {pairs} pairs of years 1 and 2 … (the first time on a machine this also "
    "compiles the program: up to a minute)"
)
PLANNING = "Pairing up year 3 from its answers alone, then looking who really shared:"
YOURS = "With tables of your own (CSV or Excel): mlestruct check PEOPLE PAIRS"
MORE = "What is proven, in technical words: mlestruct roommates --technical"


def add(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument(
        "--technical", action="store_true", help="every weight, the proof and all measures too"
    )
    add_json(parser)
    add_out(parser)
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Learn years 1 and 2, pair up year 3, judge it on the pairs that came about."""
    from mlestruct import data
    from mlestruct.data.students import TASTE
    from mlestruct.estimators import RoommateModel
    from mlestruct.report import Report
    from mlestruct.tables import table

    people = table(data.shipped("roommates_people.csv"))
    pairs = table(data.shipped("roommates_pairs.csv"))
    before, after = people.rows(people["year"] < 3), people.rows(people["year"] == 3)
    learned, observed = pairs.rows(pairs["year"] < 3), pairs.rows(pairs["year"] == 3)
    questions = sum(name.startswith("q") for name in people.names)
    _say(given, STUDENTS.format(people=len(people), questions=questions))
    _say(given, LEARNING.format(pairs=len(learned)))
    model = RoommateModel(cohort="year", same="gender", ordinal="q*", alpha=(1.0, 10.0, 100.0))
    model.fit(before, learned)
    _say(given, PLANNING, "")
    report = Report.of(model, after, observed, truth=TASTE.scores)
    wrote = list(map(str, report.write(new_folder(given.out, given.force))))
    lines = [*report.headline(), f"The plan with its reasons, to open in a browser: {wrote[-1]}"]
    for line in lines:
        _say(given, line, indent="  ")
    if given.technical:
        say(given, "", model.summary(), "", report.evaluation)
    _say(given, "", YOURS, *([] if given.technical else [MORE]))
    tell(given, lines=lines, files=wrote)
    return 0


def _say(given: argparse.Namespace, *lines: str, indent: str = "") -> None:
    """Lines wrapped to a screen of eighty columns; paths stay whole."""
    wrapper = textwrap.TextWrapper(WIDTH, indent, indent and indent + "  ")
    wrapper.break_long_words = wrapper.break_on_hyphens = False
    for line in lines:
        say(given, wrapper.fill(line))

"""``mlestruct roommates fit``, ``assign``, ``evaluate`` and ``explain``."""

from __future__ import annotations

import argparse
import dataclasses
import warnings
from typing import TYPE_CHECKING, Any

from mlestruct.roommates.options import (
    add_columns,
    add_options,
    add_people,
    add_report,
    add_rules,
    aligned,
    among,
    chosen,
    fields,
    finish,
    finite,
    load,
    names,
    new_file,
    opened,
    reader,
    rules,
    say,
    tell,
)
from mlestruct.roommates.starting import add_example, add_generate, add_serve

if TYPE_CHECKING:
    from mlestruct.roommates.frames import Table
    from mlestruct.roommates.model import RoommateModel

ROLES = {
    "ordinal": "answers that are numbers, compared by difference",
    "binary": "answers that agree or differ",
    "categorical": "answers without an order",
    "ignore": "columns to leave out of patterns",
    "protected": "answers that explanations do not itemise",
}


def add_fit(parts: Any) -> None:
    """The command's options; COLUMNS are names or patterns like 'q*', separated by commas."""
    parser = parts.add_parser("fit", help="learn from people and the pairs observed")
    add_people(parser, "pairs")
    add_columns(parser)
    for role, words in ROLES.items():
        parser.add_argument(f"--{role}", type=names, default=[], metavar="COLUMNS", help=words)
    parser.add_argument(
        "--answers", action="store_true", help="a weight for every pair of answers, too"
    )
    parser.add_argument("--weight", metavar="COLUMN", help="of pairs: weights, or outcomes")
    parser.add_argument(
        "--outcomes",
        type=outcomes,
        metavar="VALUE=WEIGHT",
        help="what outcomes in the column of --weight weigh, such as moved=0.3,stayed=1",
    )
    parser.add_argument(
        "--missing",
        choices=("refuse", "neutral"),
        default="refuse",
        help="answers that are missing: refused, or counted as average ones",
    )
    add_options(parser, "unknown")
    parser.add_argument(
        "--unpaired",
        choices=("leave_out", "refuse"),
        default="leave_out",
        help="people without a pair: left out of learning, or refused",
    )
    parser.add_argument(
        "--alpha",
        type=numbers,
        default=[1.0],
        metavar="NUMBERS",
        help="ridge (λ/2)‖θ‖² on the weights; of several, held-out cohorts choose",
    )
    parser.add_argument("--rho", type=entropy_weight, default=0.5, help="½ (default) or 1, Bethe")
    parser.add_argument(
        "--checkpoint", metavar="FILE", help="keep the fit there; go on from it where it was ended"
    )
    parser.add_argument(
        "--strict", action="store_true", help="exit with 1 if the fit has not converged"
    )
    add_options(parser, "force")
    parser.set_defaults(run=run_fit)


numbers = reader(
    lambda text: [float(number) for number in names(text)],
    "needs numbers above 0",
    lambda found: bool(found) and all(0 < number < float("inf") for number in found),
)
entropy_weight = reader(float, "is a number such as 0.5 or 1")


def outcomes(text: str) -> dict[Any, float]:
    """``moved=0.3,stayed=1``; a value that reads as a whole number is one, as in a table."""
    weights: dict[Any, float] = {}
    for part in names(text):
        value, _, weight = part.rpartition("=")
        whole = value.isdecimal() and str(int(value)) == value
        try:
            weights[int(value) if whole else value] = float(weight)
        except ValueError as error:
            words = f"needs words with weights such as moved=0.3,stayed=1, not {text!r}"
            raise argparse.ArgumentTypeError(words) from error
    return weights


def table_of_pairs(given: argparse.Namespace, model: RoommateModel) -> Table | None:
    """The table of pairs, where there is one beside that of people."""
    if given.pairs is None:
        return None
    columns = [*model.room, *model.partner]
    return opened(given, given.pairs, [model.id, *columns] if columns else list(model.partners))


def run_fit(given: argparse.Namespace) -> int:
    """Print the summary, write the model."""
    from mlestruct.errors import DataWarning
    from mlestruct.roommates.model import RoommateModel

    settings = RoommateModel().get_params()
    told = {k: v for k, v in vars(given).items() if k in settings and v is not None}
    model = RoommateModel(**told)
    path = new_file(given.model, given.force, [given.people, given.pairs])
    wanted = [model.id, *([model.cohort] if model.cohort else []), *model.same]
    everybody = opened(given, given.people, wanted)
    people = chosen(everybody, given.cohort, given.only)
    pairs = among(table_of_pairs(given, model), everybody, people, model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # the summary's notes say it
        summary = model.fit(people, pairs, checkpoint=given.checkpoint).summary()
    model.save(path)
    say(given, summary, f"\nwrote {path}")
    tell(
        given,
        model=path,
        contrasts=[fields(contrast) for contrast in summary.contrasts],
        unidentified=summary.unidentified,
        notes=summary.notes,
        certificate=str(summary.certificate),
        alpha=summary.alpha,
    )
    return 0


def add_assign(parts: Any) -> None:
    """The command's options."""
    parser = parts.add_parser("assign", help="pair up people")
    add_people(parser)
    add_rules(parser)
    add_options(parser, "unknown")
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
    parser.set_defaults(run=run_assign)


def run_assign(given: argparse.Namespace) -> int:
    """Print the plan; write pairs.csv, probabilities.csv and report.html."""
    from mlestruct.roommates.report import Report

    model, _, people = load(given)
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


def add_evaluate(parts: Any) -> None:
    """The command's options."""
    parser = parts.add_parser("evaluate", help="judge a model on pairs it has not seen")
    add_people(parser, "pairs")
    add_options(parser, "unknown")
    add_report(parser)
    parser.set_defaults(run=run_evaluate)


def run_evaluate(given: argparse.Namespace) -> int:
    """Print the evaluation; write what assign writes, with the evaluation in the report."""
    from mlestruct.roommates.report import Report

    model, everybody, people = load(given)
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


def add_explain(parts: Any) -> None:
    """The command's options."""
    parser = parts.add_parser("explain", help="why two people are a pair, and who else was near")
    add_people(parser, "person")
    parser.add_argument("--partner", metavar="ID", help="default: the plan's")
    add_rules(parser)
    add_options(parser, "unknown", "show-protected")
    parser.set_defaults(run=run_explain)


def run_explain(given: argparse.Namespace) -> int:
    """Print the contributions of all answers, then the alternatives."""
    model, _, people = load(given)
    own = {str(who): who for who in people.as_names(model.id).tolist()}
    plan = model.assign(people, **rules(given, own.values()), mix=given.mix)
    person, partner = (own.get(who, who) for who in (given.person, given.partner))
    found = model.explain(plan, person, partner, protected=given.show_protected)
    near = plan.alternatives(person)
    listed = aligned(type(near[0])._fields, near) if near else "  none"
    say(given, found, f"\nother partners of {person}:", listed)
    tell(
        given,
        a=found.a,
        b=found.b,
        probability=found.probability,
        score=found.score,
        contributions=[fields(row) for row in found.contributions],
        withheld=found.withheld,
        alternatives=[fields(row) for row in near],
    )
    return 0


def add(commands: Any) -> None:
    """The command and its parts."""
    parser = commands.add_parser(
        "roommates",
        help="learn who shares with whom, pair up the next cohort; alone: a shipped example",
        description="Without a command: learn two years of a shipped example, predict the third.",
    )
    add_example(parser)
    parts = parser.add_subparsers(metavar="COMMAND")
    for add_part in (add_fit, add_assign, add_evaluate, add_explain, add_generate, add_serve):
        add_part(parts)

"""``mlestruct roommates explain``: which answers speak for a pair, and who else was near."""

from __future__ import annotations

import argparse
from typing import Any

from mlestruct.cli.options import add_rules, aligned, fields, own_ids, rules, say, tell
from mlestruct.cli.roommates.common import add_people, add_protected, add_unknown, load


def add(parts: Any) -> None:
    """The command's options."""
    parser = parts.add_parser("explain", help="why two people are a pair, and who else was near")
    add_people(parser, "person")
    parser.add_argument("--partner", metavar="ID", help="default: the plan's")
    add_rules(parser)
    add_unknown(parser)
    add_protected(parser)
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Print the contributions of all answers, then the alternatives."""
    model, people = load(given)
    own = own_ids(people.as_names(model.id).tolist())
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

"""``mlestruct roommates explain``: which answers speak for a pair, and who else was near."""

from __future__ import annotations

import argparse
from typing import Any

from mlestruct.cli.options import add_rules, aligned, own_ids, rules
from mlestruct.cli.roommates.common import add_people, add_protected, load


def add(parts: Any) -> None:
    """The command's options."""
    parser = parts.add_parser("explain", help="why two people are a pair, and who else was near")
    add_people(parser, "person")
    parser.add_argument("--partner", metavar="ID", help="default: the plan's")
    add_rules(parser)
    add_protected(parser)
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Print the contributions of all answers, then the alternatives."""
    model, people = load(given)
    own = own_ids(people[model.id].tolist())
    asked = rules(given, own.values())
    plan = model.assign(people, forbid=asked["forbid"], require=asked["require"])
    person, partner = (own.get(who, who) for who in (given.person, given.partner))
    print(model.explain(plan, person, partner, protected=given.show_protected))
    print(f"\nother partners of {person}:")
    near = plan.alternatives(person)
    print(aligned(type(near[0])._fields, near) if near else "  none")
    return 0

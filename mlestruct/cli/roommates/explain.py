"""``mlestruct roommates explain``: which answers speak for a pair, and who else was near."""

from __future__ import annotations

import argparse
from typing import Any

from mlestruct.cli.options import add_model, add_only, add_rules, aligned, chosen, own_ids, rules


def add(parts: Any) -> None:
    """The command's options."""
    parser = parts.add_parser("explain", help="why two people are a pair, and who else was near")
    parser.add_argument("people", metavar="PEOPLE.csv")
    parser.add_argument("person", metavar="ID")
    parser.add_argument("--partner", metavar="ID", help="default: the plan's")
    parser.add_argument("--show-protected", action="store_true", help="itemise protected columns")
    add_model(parser)
    add_only(parser)
    add_rules(parser)
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Print the contributions of all answers, then the alternatives."""
    from mlestruct.estimators import RoommateModel
    from mlestruct.tables import table

    model = RoommateModel.load(given.model)
    people = chosen(table(given.people), model.cohort, given.only)
    ids = people[model.id].tolist()
    own = own_ids(ids)
    asked = rules(given, ids)
    plan = model.assign(people, forbid=asked["forbid"], require=asked["require"])
    person, partner = own.get(given.person, given.person), own.get(given.partner, given.partner)
    print(model.explain(plan, person, partner, protected=given.show_protected))
    print(f"\nother partners of {person}:")
    near = plan.alternatives(person)
    print(aligned(type(near[0])._fields, near) if near else "  none")
    return 0

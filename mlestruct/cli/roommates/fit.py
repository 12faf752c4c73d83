"""``mlestruct roommates fit``: people and observed pairs in, a model file out."""

from __future__ import annotations

import argparse
from typing import Any

from mlestruct.cli.options import add_columns, add_model, add_only, chosen, names

ROLES = {
    "ordinal": "answers that are numbers, compared by difference",
    "binary": "answers that agree or differ",
    "categorical": "answers without an order",
    "ignore": "columns to leave out of patterns",
    "protected": "answers that explanations do not itemise",
}


def add(parts: Any) -> None:
    """The command's options; COLUMNS are names or patterns like 'q*', separated by commas."""
    parser = parts.add_parser("fit", help="learn from people and the pairs observed")
    parser.add_argument("people", metavar="PEOPLE.csv")
    parser.add_argument("pairs", metavar="PAIRS.csv")
    add_model(parser)
    add_columns(parser)
    for role, words in ROLES.items():
        parser.add_argument(f"--{role}", type=names, default=[], metavar="COLUMNS", help=words)
    parser.add_argument("--weight", metavar="COLUMN", help="weights of the pairs observed")
    parser.add_argument("--missing", choices=("refuse", "neutral"), default="refuse")
    parser.add_argument(
        "--alpha",
        type=float,
        nargs="+",
        default=[1.0],
        help="ridge (λ/2)‖θ‖² on the weights; of several, held-out cohorts choose",
    )
    parser.add_argument("--rho", type=float, default=0.5, help="½ (default) or 1, Bethe")
    add_only(parser)
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Print the summary, write the model."""
    from mlestruct.estimators import RoommateModel
    from mlestruct.tables import table

    settings = ("id", "cohort", "same", "partners", "weight", "missing", "rho", *ROLES)
    alpha = given.alpha[0] if len(given.alpha) == 1 else given.alpha
    model = RoommateModel(alpha=alpha, **{name: getattr(given, name) for name in settings})
    people = chosen(table(given.people), given.cohort, given.only)
    print(model.fit(people, table(given.pairs)).summary())
    model.save(given.model)
    print(f"\nwrote {given.model}")
    return 0

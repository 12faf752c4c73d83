"""``mlestruct roommates fit``: people and observed pairs in, a model file out."""

from __future__ import annotations

import argparse
from typing import Any

from mlestruct.cli.options import add_columns, names
from mlestruct.cli.roommates.common import add_people, chosen

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
    parser.add_argument("--missing", choices=("refuse", "neutral"), default="refuse")
    parser.add_argument(
        "--alpha",
        type=numbers,
        default=[1.0],
        metavar="NUMBERS",
        help="ridge (λ/2)‖θ‖² on the weights; of several, held-out cohorts choose",
    )
    parser.add_argument("--rho", type=float, default=0.5, help="½ (default) or 1, Bethe")
    parser.add_argument(
        "--checkpoint", metavar="FILE", help="keep the fit there; go on from it where it was ended"
    )
    parser.add_argument(
        "--strict", action="store_true", help="exit with 1 if the fit has not converged"
    )
    parser.set_defaults(run=run)


def numbers(text: str) -> list[float]:
    """``1,10`` as numbers."""
    return [float(number) for number in names(text)]


def outcomes(text: str) -> dict[Any, float]:
    """``moved=0.3,stayed=1``; a value that reads as a whole number is one, as in a table."""
    weights: dict[Any, float] = {}
    for part in names(text):
        value, _, weight = part.rpartition("=")
        whole = value.isdecimal() and str(int(value)) == value
        weights[int(value) if whole else value] = float(weight)
    return weights


def run(given: argparse.Namespace) -> int:
    """Print the summary, write the model."""
    from mlestruct.estimators import RoommateModel
    from mlestruct.tables import table

    settings = RoommateModel().get_params()
    model = RoommateModel(**{k: v for k, v in vars(given).items() if k in settings})
    people = chosen(table(given.people), given.cohort, given.only)
    pairs = table(given.pairs)
    print(model.fit(people, pairs, checkpoint=given.checkpoint).summary())
    model.save(given.model)
    print(f"\nwrote {given.model}")
    return 0

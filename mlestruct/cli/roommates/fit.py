"""``mlestruct roommates fit``: people and observed pairs in, a model file out."""

from __future__ import annotations

import argparse
import warnings
from typing import TYPE_CHECKING, Any

from mlestruct.cli.options import add_columns, fields, names, opened, say, tell
from mlestruct.cli.roommates.common import (
    add_force,
    add_people,
    add_unknown,
    among,
    chosen,
    new_file,
)

if TYPE_CHECKING:
    from mlestruct.estimators import RoommateModel
    from mlestruct.tables import Table

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
    parser.add_argument(
        "--missing",
        choices=("refuse", "neutral"),
        default="refuse",
        help="answers that are missing: refused, or counted as average ones",
    )
    add_unknown(parser)
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
    add_force(parser)
    parser.set_defaults(run=run)


def numbers(text: str) -> list[float]:
    """``1,10`` as numbers above 0."""
    try:
        found = [float(number) for number in names(text)]
    except ValueError:
        found = []
    if not found or not all(0 < number < float("inf") for number in found):
        raise argparse.ArgumentTypeError(f"needs numbers above 0, not {text!r}")
    return found


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


def entropy_weight(text: str) -> float:
    """``0.5`` or ``1``."""
    try:
        return float(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"is a number such as 0.5 or 1, not {text!r}") from error


def table_of_pairs(given: argparse.Namespace, model: RoommateModel) -> Table | None:
    """The table of pairs, where there is one beside that of people."""
    if given.pairs is None:
        return None
    columns = [*model.room, *model.partner]
    return opened(given, given.pairs, [model.id, *columns] if columns else list(model.partners))


def run(given: argparse.Namespace) -> int:
    """Print the summary, write the model."""
    from mlestruct.errors import DataWarning
    from mlestruct.estimators import RoommateModel

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

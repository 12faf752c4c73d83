"""What several commands share: options that name columns, rules and rows, and plain tables."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import Any


def names(text: str) -> list[str]:
    """``a,b`` as a list."""
    return [name.strip() for name in text.split(",") if name.strip()]


def partners(text: str) -> tuple[str, str]:
    """Two names."""
    listed = names(text)
    if len(listed) != 2:
        raise argparse.ArgumentTypeError(f"needs two columns such as id_a,id_b, not {text!r}")
    return listed[0], listed[1]


def add_columns(parser: argparse.ArgumentParser) -> None:
    """Options that say who is who and who may share with whom."""
    some: dict[str, Any] = {"type": names, "default": [], "metavar": "COLUMNS"}
    parser.add_argument("--id", default="id", metavar="COLUMN", help="people's ids (default: id)")
    parser.add_argument("--cohort", metavar="COLUMN", help="pairs stay within a cohort")
    parser.add_argument("--same", **some, help="partners agree in these, such as gender")
    parser.add_argument(
        "--partners",
        type=partners,
        default=("id_a", "id_b"),
        metavar="A,B",
        help="the two columns of ids in a table of pairs (default: id_a,id_b)",
    )


def add_rules(parser: argparse.ArgumentParser) -> None:
    """Options that forbid and require pairs."""
    pair: dict[str, Any] = {"nargs": 2, "action": "append", "default": [], "metavar": "ID"}
    parser.add_argument("--forbid", **pair, help="two people who may not share; repeatable")
    parser.add_argument("--require", **pair, help="two people who must share; repeatable")
    parser.add_argument(
        "--rules", metavar="RULES.csv", help="columns rule (forbid or require), id_a, id_b"
    )


def own_ids(ids: Iterable[Any]) -> dict[str, Any]:
    """Ids by what a shell can say of them."""
    return {str(person): person for person in ids}


def rules(given: argparse.Namespace, ids: Iterable[Any]) -> dict[str, list[tuple[Any, Any]]]:
    """``forbid`` and ``require``: pairs of the table's own ids."""
    from mlestruct.tables import table

    own = own_ids(ids)
    asked = [("forbid", *pair) for pair in given.forbid]
    asked += [("require", *pair) for pair in given.require]
    if given.rules:
        read = table(given.rules)
        asked += zip(*(read[name].tolist() for name in ("rule", "id_a", "id_b")), strict=True)
    made: dict[str, list[tuple[Any, Any]]] = {"forbid": [], "require": []}
    for rule, a, b in asked:
        if rule not in made:
            raise ValueError(f"{given.rules}: a rule is forbid or require, not {rule!r}")
        made[rule].append((own.get(str(a), a), own.get(str(b), b)))
    return made


def aligned(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table in plain text, two spaces between its columns."""
    lines = [
        [f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in row]
        for row in (head, *rows)
    ]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  " + "  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )

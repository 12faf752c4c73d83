"""A table of rules about two people, with the place of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlestruct.estimators.roommates.rules import Placed
from mlestruct.tables import Table

COLUMNS = ("rule", "id_a", "id_b")
KINDS = {"forbid": "forbid", "require": "require", "allow": "consent"}


def listed_rules(table: Table, own: Mapping[str, Any]) -> dict[str, list[Placed]]:
    """``forbid``, ``require`` and ``consent`` of columns rule, id_a, id_b; ``own`` ids by text."""
    made: dict[str, list[Placed]] = {kind: [] for kind in KINDS.values()}
    columns = (table.as_names(name).tolist() for name in COLUMNS)
    for row, (rule, a, b) in enumerate(zip(*columns, strict=True)):
        kind = KINDS.get(str(rule).casefold())
        if kind is None:
            raise ValueError(
                f"{table.at(row, 'rule')}: a rule is forbid, require or allow, not {rule!r}"
            )
        if a is None or b is None:
            raise ValueError(f"{table.at(row)}: a rule is about two people, and one is missing")
        made[kind].append(Placed.of([own.get(str(who), who) for who in (a, b)], table.at(row)))
    return made

"""What the page asks for: what is in the files, a fit, a plan, what a change would cost."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mlestruct.estimators import RoommateModel
from mlestruct.estimators.roommates import Plan
from mlestruct.report import Report
from mlestruct.report.cards import reason
from mlestruct.report.export import export_csv, guarded
from mlestruct.report.words import Words
from mlestruct.serve.project import RULES, Choices, Project, Rule
from mlestruct.tables import Column, Table, missing, table

ALPHAS, ALPHA = (1.0, 10.0, 100.0), 10.0
LISTS = ("same", "ordinal", "binary", "categorical", "protected")
FEW = 12  # different answers that make a column a question
OTHERS = 3  # partners named beside the plan's

Json = dict[str, Any]


def people_of(project: Project) -> Table:
    """The table of people; a ValueError where none was dropped."""
    return _table(project, "people")


def _table(project: Project, kind: str) -> Table:
    """A dropped file; ids are text in all of them, so that 7 and "7" are one person."""
    path, roles = project.file(kind), project.choices().roles
    if path is None:
        raise ValueError(f"no file of {kind} yet: drop one")
    read, ids = table(path), {roles.get("id"), *roles.get("partners", ())}
    columns = {n: _as_text(c) if n in ids else c for n, c in read.columns.items()}
    return replace(read, columns=columns)


def _as_text(column: Column) -> Column:
    gone = missing(column)
    texts = [None if absent else str(v) for v, absent in zip(column.tolist(), gone, strict=True)]
    return np.array(texts, dtype=object)


def overview(project: Project) -> Json:
    """Every dropped file with its columns, the roles chosen or proposed, and the cohorts."""
    choices, found = project.choices(), {}
    for kind in choices.files:
        try:
            read = _table(project, kind)
            found[kind] = {"rows": len(read), "columns": read.names, "said": "; ".join(read.said)}
        except ValueError as error:
            found[kind] = {"fault": str(error)}
    whole = "columns" in found.get("people", {})
    roles = dict(choices.roles) or (proposed(project) if whole else {})
    cohorts = _values(people_of(project), roles.get("cohort")) if whole else []
    return {
        "files": found,
        "roles": roles,
        "cohorts": cohorts,
        "planned": choices.planned or (cohorts[-1] if cohorts else None),
        "fitted": project.model.exists(),
    }


def _values(read: Table, name: str | None) -> list[str]:
    """The different values of a column as text, in their order; none without a column."""
    if not name or name not in read.names:
        return []
    column = read[name]
    return [str(value) for value in np.unique(column[~missing(column)]).tolist()]


def proposed(project: Project) -> Json:
    """Roles that the columns' names and values suggest; every one can be changed on the page."""
    people = people_of(project)
    pairs = _table(project, "pairs") if project.file("pairs") is not None else None
    ids = _first(people, ("id", "person", "student", "nr", "name")) or people.names[0]
    known = set(map(str, people[ids].tolist()))
    ends = [
        name for name in (pairs.names if pairs else [])
        if set(map(str, pairs[name].tolist())) <= known  # type: ignore[index]
    ]  # fmt: skip
    shared = [name for name in people.names if pairs and name in pairs.names and name not in ends]
    cohort = _first(people, ("year", "cohort", "jahr", "jahrgang")) or next(iter(shared), None)
    roles: Json = {"id": ids, "cohort": cohort, "partners": ends[:2], "same": []}
    roles |= {name: [] for name in LISTS}
    for name in people.names:
        if name not in (ids, cohort):
            kind = _role(name, people)
            if kind is not None:
                roles[kind].append(name)
    return roles


def _first(read: Table, wanted: Sequence[str]) -> str | None:
    lower = {name.lower(): name for name in read.names}
    return next((lower[name] for name in wanted if name in lower), None)


def _role(name: str, people: Table) -> str | None:
    """``same`` for a gender, a kind of question for few answers, None for what is no question."""
    column = people[name]
    levels = np.unique(column[~missing(column)])
    if name.lower() in ("gender", "sex", "geschlecht"):
        return "same"
    if not 2 <= len(levels) <= FEW:
        return None
    if column.dtype.kind == "O":
        return "categorical"
    return "ordinal"


def fit(project: Project) -> None:
    """Learn from all cohorts but the planned one, and keep the model."""
    choices, people = project.choices(), people_of(project)
    roles, pairs = choices.roles, _table(project, "pairs")
    learned = people.rows(~_planned(people, choices))
    if len(learned) == 0:
        raise ValueError("nobody is left to learn from: everybody is to be paired up")
    several = len(_values(learned, roles.get("cohort"))) > 1
    asked: dict[str, Any] = {name: list(roles.get(name, ())) for name in LISTS}
    model = RoommateModel(
        id=roles["id"],
        cohort=roles.get("cohort") or None,
        partners=_ends(roles),
        alpha=ALPHAS if several else ALPHA,
        missing="neutral",
        progress=False,
        **asked,
    )
    model.fit(learned, pairs).save(project.model)


def _ends(roles: Mapping[str, Any]) -> tuple[str, str]:
    ends = list(roles.get("partners", ()))
    if len(ends) != 2 or ends[0] == ends[1]:
        raise ValueError("choose the two columns of the pairs' table that name the two people")
    return ends[0], ends[1]


def _planned(people: Table, choices: Choices) -> Any:
    """True for everybody who is to be paired up."""
    cohort = choices.roles.get("cohort")
    if not cohort:
        return np.ones(len(people), dtype=bool)
    return np.array([str(value) == choices.planned for value in people[cohort].tolist()])


class Planned:
    """A fitted project's plan under its rules; made anew whenever a rule changes."""

    def __init__(self, project: Project) -> None:
        self.project, choices = project, project.choices()
        everybody = people_of(project)
        self.model = RoommateModel.load(project.model)
        self.people = everybody.rows(_planned(everybody, choices))
        self.ids = self.people[self.model.id].tolist()
        self.row = {who: row for row, who in enumerate(self.ids)}
        self.choices = choices
        self.plan = self._plan()

    def _plan(self) -> Plan:
        forbid, require = self._named(self.choices.forbid), self._named(self.choices.require)
        rooms = None if self.project.file("rooms") is None else _table(self.project, "rooms")
        return self.model.assign(self.people, rooms=rooms, forbid=forbid, require=require)

    def _named(self, rules: Sequence[Rule]) -> list[tuple[Any, Any]]:
        return [(self.ids[a], self.ids[b]) for a, b in rules]

    def shown(self) -> Json:
        """The opening lines, and a card for each pair with its reasons and other partners."""
        report, words = self.report(), Words.of("en")
        cards = [self._card(pair, words) for pair in self.plan.pairs]
        alone = [{"row": self.row[s.person], "name": str(s.person)} for s in self.plan.singles]
        rules = {name: [list(r) for r in getattr(self.choices, name)] for name in RULES}
        names = {str(row): str(who) for row, who in enumerate(self.ids)}
        return {"lines": report.headline(), "pairs": cards, "alone": alone, "names": names} | rules

    def _card(self, pair: Any, words: Words) -> Json:
        why = self.model.explain(self.plan, pair.a, pair.b)
        told = sorted(why.contributions, key=lambda part: -abs(part.contribution))[:OTHERS]
        a, b = self.row[pair.a], self.row[pair.b]
        return {
            "a": {"row": a, "name": str(pair.a)},
            "b": {"row": b, "name": str(pair.b)},
            "probability": pair.probability,
            "room": None if pair.room is None else str(pair.room),
            "group": pair.group,
            "locked": any({a, b} == set(rule) for rule in self.choices.require),
            "reasons": [reason(part, words) for part in told],
        }

    def cost(self, a: int, b: int) -> Json:
        """What the plan loses if these two share, and which pairs would be new."""
        changed = self.plan.what_if(require=[(self.ids[a], self.ids[b])])
        new = [f"{pair.a} + {pair.b}" for pair in changed.new]
        whole = max(abs(self.plan.objective), 1e-12)
        return {"loss": changed.loss, "share": changed.loss / whole, "new": new}

    def report(self) -> Report:
        """The same plan as a page."""
        return Report(self.model, self.people, self.plan)

    def csv(self) -> bytes:
        """The plan for a spreadsheet."""
        path = self.project.folder / "pairs.csv"
        export_csv(path, self.plan.columns())
        return path.read_bytes()

    def xlsx(self) -> bytes:
        """The plan as a workbook; needs the extra ``mlestruct[office]``."""
        from openpyxl import Workbook

        book, columns, out = Workbook(), self.plan.columns(), io.BytesIO()
        sheet = book.active
        sheet.append([guarded(name) for name in columns])
        for row in zip(*columns.values(), strict=True):
            sheet.append([guarded(_plain(value)) for value in row])
        book.save(out)
        return out.getvalue()


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


def ruled(choices: Choices, name: str, a: int, b: int, keep: bool) -> Choices:
    """The choices with one more rule of a kind, or without it; the other kind loses this pair."""
    if name not in RULES:
        raise ValueError(f"a rule is one of {', '.join(RULES)}, not {name!r}")

    def others(rules: Sequence[Rule], taken: set[int]) -> tuple[Rule, ...]:
        """Rules about another pair, and none that holds anybody ``taken``."""
        return tuple(r for r in rules if set(r) != {a, b} and not taken & set(r))

    more = ((a, b),) if keep else ()
    busy = {a, b} if keep and name == "require" else set()
    require, forbid = others(choices.require, busy), others(choices.forbid, set())
    if name == "require":
        return replace(choices, require=(*require, *more), forbid=forbid)
    return replace(choices, require=require, forbid=(*forbid, *more))

"""What the page asks for once files are there: a fit, a plan, what a change would cost."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import exp
from typing import Any

from mlestruct.estimators import RoommateModel
from mlestruct.estimators.roommates import Pair, Plan
from mlestruct.method import Progress
from mlestruct.report import Report
from mlestruct.report.cards import reason
from mlestruct.report.export import export_csv, guarded
from mlestruct.report.words import Words
from mlestruct.serve.inputs import Inputs, Json
from mlestruct.serve.project import RULES, Choices, Project, Rule
from mlestruct.tables.cells import written

OTHERS = 3  # reasons named on a card
LARGEST_FACTOR = 30.0  # in logarithms: beyond it a plan is practically impossible


def fit(project: Project, told: Callable[[Progress], None]) -> None:
    """Learn from all but those who are to be paired up, and keep the model."""
    given = Inputs(project)
    learned, _ = given.parts
    model = given.model(told).fit(learned, given.pairs(learned))
    model.set_params(progress=None).save(project.model)


class Planned:
    """A fitted project's plan under its rules; made anew whenever a rule changes."""

    def __init__(self, project: Project, language: str) -> None:
        given = Inputs(project)
        self.project, self.choices, self.words = project, given.choices, Words.of(language)
        self.model = RoommateModel.load(project.model)
        self.model.set_params(unknown=given.roles["unknown"])
        self.people = given.parts[1]
        self.ids = self.people.as_names(self.model.id).tolist()
        self.row = {who: row for row, who in enumerate(self.ids)}
        self.names = given.roles.get("names") or None
        self.plan = self._plan(given)

    def _plan(self, given: Inputs) -> Plan:
        rules, choices = given.rules(self.ids), self.choices
        rooms = given.named("rooms") if "rooms" in choices.files else None
        own = {written(name): name for name in rooms.as_names("room").tolist()} if rooms else {}
        fixed = {own.get(room, room): self._ids(rows) for room, rows in choices.fixed.items()}
        return self.model.assign(
            self.people,
            rooms=rooms,
            fixed=fixed or None,
            forbid=[*rules["forbid"], *map(tuple, map(self._ids, choices.forbid))],
            require=[*rules["require"], *map(tuple, map(self._ids, choices.require))],
            consent=rules["consent"],
        )

    def _ids(self, rows: Sequence[int]) -> list[Any]:
        strange = next((row for row in rows if not 0 <= row < len(self.ids)), None)
        if strange is not None:
            raise ValueError(f"nobody is in row {strange}: there are {len(self.ids)} people")
        return [self.ids[row] for row in rows]

    def shown(self) -> Json:
        """The opening lines, and a card for each home with its reasons."""
        beside = self.people.as_names(self.names).tolist() if self.names else None
        names = {
            str(row): str(who) if beside is None else f"{who} ({beside[row]})"
            for row, who in enumerate(self.ids)
        }
        return {
            "lines": self.report().headline(),
            "homes": [self._card(home) for home in self.plan.shared],
            "alone": [
                {"row": self.row[s.person], "room": _text(s.room), "locked": self._stays(s.room)}
                for s in self.plan.singles
            ],
            "names": names,
            "forbid": [list(rule) for rule in self.choices.forbid],
        }

    def _card(self, home: Sequence[Pair]) -> Json:
        rows = [self.row[who] for pair in home for who in (pair.a, pair.b)]
        required = {frozenset(rule) for rule in self.choices.require}
        twos = map(frozenset, zip(rows[::2], rows[1::2], strict=True))
        return {
            "rows": rows,
            "probabilities": [pair.probability for pair in home],
            "room": _text(home[0].room),
            "group": home[0].group,
            "locked": required.issuperset(twos) or self._stays(home[0].room),
            "reasons": [self._reasons(pair) for pair in home],
        }

    def _stays(self, room: Any) -> bool:
        return _text(room) in self.choices.fixed

    def _reasons(self, pair: Pair) -> list[str]:
        why = self.model.explain(self.plan, pair.a, pair.b)
        told = sorted(why.contributions, key=lambda part: -abs(part.contribution))[:OTHERS]
        return [reason(part, self.words) for part in told]

    def cost(self, kind: str, a: int, b: int) -> Json:
        """How much less probable the plan becomes by a change, and which pairs would be new."""
        changed = self.plan.what_if(
            require=[tuple(map(self.ids.__getitem__, r)) for r in self.asked(kind, a, b)]
        )
        new = [
            {"a": self.row[p.a], "b": self.row[p.b], "probability": p.probability}
            for p in changed.new
        ]
        factor = exp(changed.loss) if changed.loss < LARGEST_FACTOR else None
        return {"factor": factor, "new": new}

    def asked(self, kind: str, a: int, b: int) -> list[Rule]:
        """The pairs that a change makes: two people together, or each with the other's partner."""
        if min(a, b) < 0 or max(a, b) >= len(self.ids):
            raise ValueError("these people are not in the plan")
        if a == b:
            raise ValueError("name two people")
        if kind == "together":
            return self._free([(a, b)])
        partners = [self.plan.partner(self.ids[row]) for row in (a, b)]
        if kind != "swap" or None in partners:
            raise ValueError("only two people who each have a partner can be swapped")
        first, second = (self.row[who] for who in partners)
        if first == b:
            raise ValueError("these two share already")
        return self._free([(a, second), (b, first)])

    def _free(self, pairs: list[Rule]) -> list[Rule]:
        """These pairs; refused if one of these people is locked in a home."""
        held = {row for rule in self.choices.require for row in rule}
        held |= {row for rows in self.choices.fixed.values() for row in rows}
        taken = sorted({row for pair in pairs for row in pair} & held)
        if taken:
            raise ValueError(f"{self.ids[taken[0]]} is locked: unlock that home first")
        return pairs

    def report(self) -> Report:
        """The same plan as a page."""
        language = self.words.language
        return Report(self.model, self.people, self.plan, names=self.names, language=language)

    def csv(self) -> bytes:
        """The plan for a spreadsheet."""
        path = self.project.folder / "pairs.csv"
        export_csv(path, self.plan.columns())
        return path.read_bytes()

    def xlsx(self) -> bytes:
        """The plan as a workbook; needs the extra ``mlestruct[office]``."""
        try:
            from openpyxl import Workbook
        except ImportError as error:
            raise ValueError(
                "a workbook needs the extra mlestruct[office]; the CSV file opens in Excel too"
            ) from error
        book, columns, out = Workbook(), self.plan.columns(), io.BytesIO()
        sheet = book.active
        sheet.append([guarded(name) for name in columns])
        for row in zip(*columns.values(), strict=True):
            sheet.append([guarded(_plain(value)) for value in row])
        book.save(out)
        return out.getvalue()


def _text(room: Any) -> str | None:
    return None if room is None else str(written(room))


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


def ruled(choices: Choices, kind: str, rules: Sequence[Rule], keep: bool) -> Choices:
    """The choices with rules of a kind added, or without them; the other kind loses these pairs."""
    if kind not in RULES:
        raise ValueError(f"a rule is one of {', '.join(RULES)}, not {kind!r}")
    pairs = {frozenset(rule) for rule in rules}
    busy = {row for rule in rules for row in rule} if keep and kind == "require" else set()

    def others(old: Sequence[Rule], taken: set[int]) -> tuple[Rule, ...]:
        """Rules about other pairs, and none that holds anybody ``taken``."""
        return tuple(r for r in old if frozenset(r) not in pairs and not taken & set(r))

    more = tuple(rules) if keep else ()
    require, forbid = others(choices.require, busy), others(choices.forbid, set())
    fixed = {room: rows for room, rows in choices.fixed.items() if not keep or not _of(rules, rows)}
    if kind == "require":
        return replace(choices, require=(*require, *more), forbid=forbid, fixed=fixed)
    return replace(choices, require=require, forbid=(*forbid, *more), fixed=fixed)


def _of(rules: Sequence[Rule], rows: Sequence[int]) -> bool:
    return bool({row for rule in rules for row in rule} & set(rows))


def locked(choices: Choices, rows: Sequence[int], room: str | None, keep: bool) -> Choices:
    """These people stay together, in their room where there are rooms; or no longer."""
    if len(rows) not in (1, 2, 4) or len(set(rows)) < len(rows):
        raise ValueError("a home is one person, two or four")
    pairs = list(zip(rows[::2], rows[1::2], strict=False))
    loose = ruled(choices, "require", pairs, False)
    fixed: Mapping[str, tuple[int, ...]] = {
        name: who for name, who in loose.fixed.items() if not set(who) & set(rows)
    }
    if not keep:
        return replace(loose, fixed=fixed)
    if room is not None and len(rows) <= 2:
        held = replace(loose, fixed={**fixed, room: tuple(rows)})
        return replace(held, forbid=ruled(loose, "require", pairs, True).forbid)
    return ruled(loose, "require", pairs, True)

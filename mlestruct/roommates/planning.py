"""What the page asks for once files are there: a fit, a plan, what a change would cost."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import exp
from typing import Any

from mlestruct.drive import Progress
from mlestruct.roommates.cells import written
from mlestruct.roommates.inputs import Inputs, Json
from mlestruct.roommates.leaks import Crossed
from mlestruct.roommates.model import RoommateModel
from mlestruct.roommates.people import by_text, meant
from mlestruct.roommates.plan import Pair, Plan
from mlestruct.roommates.project import Decisions, Project, Rule, apart, joined, together
from mlestruct.roommates.report import Report, export_csv, guarded, reason
from mlestruct.roommates.words import PAGE

OTHERS = 3  # reasons named on a card
LARGEST_FACTOR = 30.0  # in logarithms: beyond it a plan is practically impossible


def fit(project: Project, told: Callable[[Progress], None]) -> None:
    """Learn from all but those who are to be paired up, and keep the model."""
    given = Inputs(project)
    learned, _ = given.parts
    model = given.model(told).fit(learned, given.pairs(learned))
    model.set_params(progress=None).save(project.model)


class Planned:
    """A fitted project's plan under what was decided; made anew whenever that changes."""

    def __init__(self, project: Project) -> None:
        given = Inputs(project)
        self.project, self.choices = project, given.choices
        self.model = RoommateModel.load(project.model)
        self.model.set_params(unknown=given.roles["unknown"])
        self.people = given.parts[1]
        self.ids = self.people.as_names(self.model.id).tolist()
        self.texts = [str(written(who)) for who in self.ids]
        self.row = {who: row for row, who in enumerate(self.ids)}
        self.own = by_text(self.ids)
        self.names = given.roles.get("names") or None
        self.held = joined(part for part in given.decided if part.why is None)
        with self._in_words():
            self.plan = self._plan(given)

    def _plan(self, given: Inputs) -> Plan:
        rules, held = given.rules(self.ids), self.held
        rooms = given.named("rooms") if "rooms" in self.choices.files else None
        own = {str(written(name)): name for name in rooms.labels("room")} if rooms else {}
        fixed = {own.get(room, room): list(map(self._id, who)) for room, who in held.fixed.items()}
        asked = [*rules["require"], *self._pairs((*held.require, *held.together))]
        once = {frozenset(two): two for two in reversed(asked)}
        for who in fixed.values():
            for k in range(0, len(who) - 1, 2):
                once.pop(frozenset(who[k : k + 2]), None)
        return self.model.assign(
            self.people,
            rooms=rooms,
            fixed=fixed or None,
            forbid=[*rules["forbid"], *self._pairs(held.forbid)],
            require=[*reversed(once.values())],
            consent=rules["consent"],
        )

    @contextmanager
    def _in_words(self) -> Iterator[None]:
        """A plan across what all pairs agree in is refused in the page's own words."""
        try:
            yield
        except Crossed as error:
            lines = []
            for agreed, broken in error.found:
                values = {**agreed._asdict(), "broken": broken, "planned": error.planned}
                values["chance"] = f"{100 * agreed.chance:.0f}"
                values["alike"] = "; ".join(", ".join(block) for block in agreed.blocks)
                way = "crossed" if agreed.whole else "crossed spelled"
                lines.append(PAGE[way].format(**values))
            raise ValueError("\n".join(lines)) from error

    def _id(self, text: str) -> Any:
        return meant(text, self.own, self.ids)

    def _pairs(self, rules: Iterable[Rule]) -> list[tuple[Any, Any]]:
        return [(self._id(a), self._id(b)) for a, b in rules]

    def named(self, rows: Sequence[int]) -> tuple[str, ...]:
        """The ids of people, as text, by their rows."""
        strange = next((row for row in rows if not 0 <= row < len(self.ids)), None)
        if strange is not None:
            raise ValueError(f"nobody is in row {strange}: there are {len(self.ids)} people")
        return tuple(self.texts[row] for row in rows)

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
            "forbid": [[self.row[who] for who in two] for two in self._pairs(self.held.forbid)],
        }

    def _card(self, home: Sequence[Pair]) -> Json:
        rows = [self.row[who] for pair in home for who in (pair.a, pair.b)]
        required = set(map(frozenset, self._pairs(self.held.require)))
        twos = [frozenset((pair.a, pair.b)) for pair in home]
        return {
            "rows": rows,
            "probabilities": [pair.probability for pair in home],
            "room": _text(home[0].room),
            "group": home[0].group,
            "locked": required.issuperset(twos) or self._stays(home[0].room),
            "reasons": [self._reasons(pair) for pair in home],
        }

    def _stays(self, room: Any) -> bool:
        return _text(room) in self.held.fixed

    def _reasons(self, pair: Pair) -> list[str]:
        why = self.model.explain(self.plan, pair.a, pair.b)
        told = sorted(why.contributions, key=lambda part: -abs(part.contribution))[:OTHERS]
        return [reason(part) for part in told]

    def cost(self, kind: str, a: int, b: int) -> Json:
        """How much less probable the plan becomes by a change, and which pairs would be new.

        ``undone`` are pairs that were put together before and would be so no longer.
        """
        made, undone = self.changed(kind, a, b)
        old, must = self.choices, set(map(frozenset, self.plan.require))
        gone = set(map(frozenset, self._pairs(undone)))
        base = replace(
            self.plan, require=tuple(r for r in self.plan.require if frozenset(r) not in gone)
        )
        with self._in_words():
            changed = base.what_if(
                forbid=self._pairs(r for r in made.forbid if r not in old.forbid),
                require=[
                    two
                    for two in self._pairs(r for r in made.together if r not in old.together)
                    if frozenset(two) not in must
                ],
            )
            self.model.refuse_crossed(changed.plan)
        homes = {_people(home) for home in self.plan.shared}
        new = [
            {"a": self.row[p.a], "b": self.row[p.b], "probability": p.probability}
            for home in changed.plan.shared
            if _people(home) not in homes
            for p in home
        ]
        factor = exp(changed.loss) if changed.loss < LARGEST_FACTOR else None
        return {"factor": factor, "new": new, "undone": [list(two) for two in undone]}

    def changed(self, kind: str, a: int, b: int) -> tuple[Decisions, list[Rule]]:
        """What would be decided after a change, and which pairs put together before it undoes."""
        first, second = self.named((a, b))
        if a == b:
            raise ValueError("name two people")
        two = first, second
        if kind == "apart":
            return apart(self.choices.decisions, two)
        return together(
            self.choices.decisions, [two] if kind == "together" else self._swap(kind, a, b)
        )

    def _swap(self, kind: str, a: int, b: int) -> list[Rule]:
        """Each of two people with the other's partner."""
        partners = [self.plan.partner(self.ids[row]) for row in (a, b)]
        if kind != "swap" or None in partners:
            raise ValueError("only two people who each have a partner can be swapped")
        first, second = (self.row[who] for who in partners)
        if first == b:
            raise ValueError("these two share already")
        return [(self.texts[a], self.texts[second]), (self.texts[b], self.texts[first])]

    def report(self) -> Report:
        """The same plan as a page."""
        return Report(self.model, self.people, self.plan, names=self.names)

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
            sheet.append([guarded(v.item() if hasattr(v, "item") else v) for v in row])
        book.save(out)
        return out.getvalue()


def _people(home: Sequence[Pair]) -> frozenset[Any]:
    return frozenset(who for pair in home for who in (pair.a, pair.b))


def _text(room: Any) -> str | None:
    return None if room is None else str(written(room))

"""A project put to use: its tables, what to learn from, whom to pair up, what a change costs."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from math import exp
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlestruct.progress import Show
from mlestruct.roommates.cells import written
from mlestruct.roommates.doctor import Diagnosis, examine, paired, role_of, unchecked
from mlestruct.roommates.frames import Table
from mlestruct.roommates.leaks import leaks
from mlestruct.roommates.model import RoommateModel
from mlestruct.roommates.people import by_text, meant
from mlestruct.roommates.plan import Pair, Plan
from mlestruct.roommates.project import (
    ALLOWED,
    ASKED,
    SINGLE,
    WAYS,
    Choices,
    Decisions,
    Dropped,
    Project,
    Rule,
    Settings,
    apart,
    judged,
    together,
)
from mlestruct.roommates.reading import read, sheets
from mlestruct.roommates.report import Report, export_csv, guarded
from mlestruct.roommates.rooms import COLUMNS, listed_rules
from mlestruct.roommates.words import PAGE, number, percent

ALPHAS, ALPHA = (1.0, 10.0, 100.0), 10.0
EXAMINED = ("people", "pairs")
NEEDED: dict[str, tuple[str, ...]] = {"rooms": ("room",), "rules": COLUMNS}
SAME = 1.05  # times as probable, which is about as good
LARGEST_FACTOR = 30.0  # in logarithms: beyond it a plan is practically impossible

Json = dict[str, Any]


def opened(
    kind: str, path: Path | str, sheet: str | None, told: Settings | None, **reading: Any
) -> Table:
    """A file as a table with the columns of its kind, else a ValueError lists those there are."""
    wanted: Sequence[str] = NEEDED.get(kind, ())
    if told is not None and kind in EXAMINED:
        wanted = [told.id, *told.groups] if kind == "people" else told.columns.needed
    found = read(path, wanted, sheet=sheet, **reading)
    for name in NEEDED.get(kind, ()):
        _ = found[name]
    return found


class Inputs:
    """The tables under the choices of one moment; what is asked twice is read once.

    For a command these are its own ``choices``, under which a table that cannot be read is an error
    at once, and ``told`` are settings that go before all others.
    """

    def __init__(
        self,
        project: Project,
        choices: Choices | None = None,
        told: Mapping[str, Any] | None = None,
    ) -> None:
        self.project, self.choices = project, choices or project.choices()
        self.told = dict(told or {})
        self.tables: dict[str, Table] = {}
        self.faults: dict[str, str] = {}
        self.sheets: dict[str, list[str]] = {}
        for kind, file in self.choices.files.items():
            try:
                self.tables[kind] = self._table(kind, file)
                self.sheets[kind] = [] if choices else sheets(project.path(file))
            except (OSError, ValueError) as error:
                if choices is not None:
                    raise
                self.sheets.setdefault(kind, _sheets(project.path(file)))
                self.faults[kind] = str(error).replace(str(project.path(file)), file.name)

    def _table(self, kind: str, file: Dropped) -> Table:
        """A file as its user calls it: messages name it so."""
        path, told = self.project.path(file), self.choices.settings
        told = replace(told or Settings(), **self.told) if self.told else told
        found = opened(kind, path, file.sheet, told, **self.choices.reading)
        found = found.respelled(told.spelled if told else {})
        if not file.name:
            return found
        said = tuple(line.replace(str(path), file.name) for line in found.said)
        places = found.places and replace(found.places, path=file.name)
        return replace(found, said=said, places=places)

    def named(self, kind: str) -> Table:
        """A table; a ValueError where none was dropped, or where it cannot be read."""
        if kind not in self.tables:
            raise ValueError(self.faults.get(kind) or f"no file of {kind} yet: drop one")
        return self.tables[kind]

    @property
    def ready(self) -> list[str]:
        """The kinds of tables that the doctor looks at, people first."""
        return [kind for kind in EXAMINED if kind in self.tables] if "people" in self.tables else []

    @cached_property
    def examined(self) -> Diagnosis:
        """What the doctor says under what was chosen, or on his own."""
        chosen = self.choices.settings
        return self._examined(self.settings, True) if chosen else self._examined(Settings(), False)

    def _examined(self, told: Settings, chosen: bool) -> Diagnosis:
        return examine([self.tables[kind] for kind in self.ready], told, chosen)

    @cached_property
    def settings(self) -> Settings:
        """As chosen, for the columns that are there; else, and for new ones, as proposed."""
        return replace(self._settings, **self.told)

    @cached_property
    def _settings(self) -> Settings:
        chosen = self.choices.settings
        if chosen is None and self.told:
            return Settings()
        if chosen is None or "people" not in self.tables:
            return chosen or self.examined.settings
        names, usual = self.tables["people"].names, Settings()
        kept, gone = chosen.keeping(names.__contains__), dict(self.columns_gone)
        lost = [name for name in SINGLE if getattr(chosen, name) in gone]
        lost += WAYS if set(chosen.shares) & set(gone) else []
        kept = replace(kept, **{name: getattr(usual, name) for name in lost})
        if not lost and not self.columns_new:
            return kept
        offer = self._examined(kept, False).settings
        kept = replace(kept, **{name: getattr(offer, name) for name in lost if name != "names"})
        taken = {kept.id, kept.cohort, kept.names, *kept.shares}
        new = [name for name in self.columns_new if name not in taken]
        more: Json = {
            role: (*getattr(kept, role), *(n for n in getattr(offer, role) if n in new))
            for role in (*ASKED, "ignore", "same")
        }
        codes = {name: codes for name, codes in offer.no_answer.items() if name in new}
        return replace(kept, **more, no_answer={**kept.no_answer, **codes})

    @cached_property
    def columns_new(self) -> list[str]:
        """Columns of people of which nothing was said when columns were chosen."""
        chosen = self.choices.settings
        said = {*chosen.uses(), *chosen.shares} if chosen else ()
        return [name for name in self.tables["people"].names if chosen and name not in said]

    @cached_property
    def columns_gone(self) -> list[tuple[str, list[str]]]:
        """Columns of which something was chosen, and that no table has now; and what that was."""
        chosen = self.choices.settings
        if chosen is None or "people" not in self.tables:
            return []
        people = self.tables["people"].names
        anywhere = {name for kind in self.ready for name in self.tables[kind].names}
        was = {n: roles for n, roles in chosen.uses().items() if n not in people}
        for name in chosen.shares:
            if name not in anywhere:
                was[name] = [*was.get(name, []), "who shared"]
        return [(name, roles) for name, roles in was.items() if roles != ["ignore"]]

    @cached_property
    def agreeing(self) -> list[str]:
        """The columns in which all observed pairs agree, as far as no cohort explains that."""
        people, told = self.tables["people"], self.settings
        if told.id not in people.names:
            return []
        pairs = self._paired()
        group = unchecked(people, replace(told, same=())).group_of
        taken = {told.id, told.cohort, *told.room, *told.partner}
        columns = {name: people.columns[name] for name in people.names if name not in taken}
        return [leak.column for leak in leaks(columns, pairs, group) if leak.agreed]

    def _paired(self) -> NDArray[np.int64]:
        tables = [self.named(kind) for kind in self.ready]
        return paired(tables, self.named("people"), self.settings)

    @cached_property
    def decided(self) -> Decisions:
        """Every decision about people, and why it does not fit those who are paired up now."""
        made, told = self.choices.decided, self.settings
        with suppress(ValueError, LookupError):
            if "people" in self.tables:
                return judged(made, self.parts[1], told.id, told.groups, self.tables.get("rooms"))
        return judged(made, None, "", (), None)

    @cached_property
    def offered(self) -> dict[str, list[list[Any]]]:
        """By column, what probably means no answer, and how many gave it."""
        found, people = {}, self.tables["people"]
        for name in self.settings.asked:
            counts = Counter(map(written, people.as_written(name).tolist()))
            found[name] = [[value, counts[value]] for value in role_of(people[name])[1]]
        return {name: codes for name, codes in found.items() if codes}

    @property
    def cohorts(self) -> list[str]:
        """The cohorts as text, in their order."""
        people = self.tables.get("people")
        name = self.settings.cohort if people is not None else None
        if people is None or not name or name not in people.names:
            return []
        known = {value for value in people.labels(name) if value is not None}
        return [str(written(value)) for value in sorted(known)]

    @property
    def planned(self) -> str | None:
        """The cohort to pair up: as chosen, or the last."""
        cohorts = self.cohorts
        chosen = self.choices.planned
        return chosen if chosen in cohorts else cohorts[-1] if cohorts else None

    @property
    def unpaired(self) -> str | None:
        """The last cohort, if nobody of it shares with anybody yet."""
        people, cohorts, name = self.named("people"), self.cohorts, self.settings.cohort
        if len(cohorts) < 2 or name is None:
            return None
        rows = people.rows(np.unique(self._paired()))
        known = {str(written(value)) for value in rows.labels(name)}
        return None if cohorts[-1] in known else cohorts[-1]

    def of_cohorts(self, only: Sequence[str]) -> Table:
        """The people of some cohorts."""
        people, cohort = self.named("people"), self.settings.cohort
        if cohort is None:
            raise ValueError("only= needs a cohort, and there is none: name its column by cohort=")
        values = [str(written(value)) for value in people.as_names(cohort).tolist()]
        unknown = [value for value in only if value not in values]
        if unknown:
            known = ", ".join(sorted(set(values)))
            raise ValueError(f"nobody has {cohort} {unknown[0]}; there are {known}")
        return people.rows([value in only for value in values])

    @cached_property
    def parts(self) -> tuple[Table, Table]:
        """(whom to learn from, whom to pair up)."""
        people, told = self.named("people"), self.settings
        if "new" in self.choices.files:
            return people, self.here(self.named("new"))
        if told.cohort:
            own = [str(written(one)) for one in people.labels(told.cohort)]
            later = np.array([one == self.planned for one in own], dtype=bool)
        else:
            later = np.ones(len(people), dtype=bool)
            later[np.unique(self._paired())] = False
        if not later.any():
            raise ValueError(
                "nobody is left to be paired up: drop the new people, or choose a year"
            )
        if later.all():
            raise ValueError("nobody is left to learn from: everybody is to be paired up")
        return people.rows(~later), self.here(people.rows(later))

    @property
    def left(self) -> set[str]:
        """The ids of people who left."""
        return {who for part in self.choices.decided if part.kind == "left" for who in part.who}

    def here(self, people: Table) -> Table:
        """Those who did not leave."""
        return people.without_rows_of([self.settings.id], self.left) if self.left else people

    def model(self, learned: Table, progress: Show = None) -> RoommateModel:
        """To be fitted as chosen."""
        told = self.settings
        if not told.shares or (told.way == "partners" and len(set(told.shares)) < 2):
            raise ValueError("choose the columns that say who shared")
        named = (*ASKED, *ALLOWED, "id", "cohort", "same", "mix", "no_answer", "protected")
        asked: Json = {name: getattr(told, name) for name in (*named, told.way)}
        if self.choices.settings is not None:
            several = told.cohort and len(set(learned.as_names(told.cohort).tolist())) > 1
            asked["alpha"] = ALPHAS if several else ALPHA
            codes = {n: v for n, v in told.no_answer.items() if v and n in told.asked}
            asked |= {"protected": [n for n in told.protected if n in told.asked]}
            asked |= {"no_answer": codes}
            asked |= {n: v for n, v in self.told.items() if n in ("protected", "no_answer")}
        else:
            asked |= {"ignore": told.ignore}
        return RoommateModel(**(asked | dict(told.fit) | {"progress": progress}))

    def pairs(self, learned: Table) -> Table | None:
        """Who shared, but for others than are learned from; None where people's own table says.

        Lines about people who left, and are in the table of people no more, are passed over.
        """
        told, given = self.settings, self.tables.get("pairs")
        if given is None or (told.way != "partners" and not set(told.shares) <= set(given.names)):
            return None
        everybody, kept = (
            {str(written(who)) for who in t.as_names(told.id).tolist()}
            for t in (self.named("people"), learned)
        )
        names = told.shares if told.way == "partners" else (told.id,)
        gone = (everybody - kept) | (self.left - everybody)
        return given.without_rows_of(names, gone) if gone else given

    def rules(self, ids: Sequence[Any]) -> dict[str, list[Any]]:
        """The rules of the dropped file; without a file there are none."""
        if "rules" not in self.choices.files:
            return {"forbid": [], "require": [], "consent": []}
        return dict(listed_rules(self.named("rules"), {str(who): who for who in ids}))


def _sheets(path: Path) -> list[str]:
    try:
        return sheets(path)
    except (OSError, ValueError):
        return []


def fit(project: Project, told: Show) -> None:
    """Learn from all but those who are to be paired up, and keep the model."""
    given = Inputs(project)
    learned, _ = given.parts
    model = given.model(learned, told).fit(learned, given.pairs(learned))
    model.set_params(progress=None).save(project.model)


class Planned:
    """A model's plan for some people, under what was decided and what is ``asked`` besides."""

    def __init__(
        self, given: Inputs, model: RoommateModel, people: Table, asked: Mapping[str, Any]
    ) -> None:
        self.given, self.model, self.people = given, model, people
        self.ids = people.as_names(model.id).tolist()
        self.texts = [str(written(who)) for who in self.ids]
        self.row = {who: row for row, who in enumerate(self.ids)}
        self.own = by_text(self.ids)
        self.names = given.settings.names
        self.held = tuple(part for part in given.decided if part.why is None)
        self.plan = self._plan(asked)

    @classmethod
    def of(cls, project: Project) -> Planned:
        """The plan of the page."""
        given = Inputs(project)
        model = RoommateModel.load(project.model)
        model.set_params(unknown=given.settings.unknown)
        return cls(given, model, given.parts[1], {})

    def _plan(self, asked: Mapping[str, Any]) -> Plan:
        rules, held = self.given.rules(self.ids), self.held
        rooms = self.given.named("rooms") if "rooms" in self.given.choices.files else None
        own = {str(written(name)): name for name in rooms.labels("room")} if rooms else {}
        fixed = {
            own.get(str(part.room), part.room): [self._id(who) for who in part.who]
            for part in held
            if part.kind == "fixed"
        }
        must = [*asked.get("require", []), *rules["require"]]
        must += self._twos(held, "require", "together")
        once = {frozenset(two): two for two in reversed(must)}
        for who in fixed.values():
            for k in range(0, len(who) - 1, 2):
                once.pop(frozenset(who[k : k + 2]), None)
        never = [*asked.get("forbid", []), *rules["forbid"], *self._twos(held, "forbid")]
        return self.model.assign(
            self.people,
            rooms=rooms,
            fixed=fixed or None,
            forbid=never,
            require=[*reversed(once.values())],
            consent=rules["consent"],
            mix=asked.get("mix") or (),
        )

    def _id(self, text: str) -> Any:
        return meant(text, self.own, self.ids)

    def _pairs(self, rules: Iterable[Sequence[str]]) -> list[tuple[Any, Any]]:
        return [(self._id(a), self._id(b)) for a, b in rules]

    def _twos(self, decided: Decisions, *kinds: str) -> list[tuple[Any, Any]]:
        return self._pairs(part.who for part in decided if part.kind in kinds)

    def named(self, rows: Sequence[int]) -> tuple[str, ...]:
        """The ids of people, as text, by their rows."""
        strange = next((row for row in rows if not 0 <= row < len(self.ids)), None)
        if strange is not None:
            raise ValueError(f"nobody is in row {strange}: there are {len(self.ids)} people")
        return tuple(self.texts[row] for row in rows)

    def shown(self) -> Json:
        """The opening lines, and a card for each home with its reasons."""
        report = self.report()
        homes = [self._card(home) for home in report.homes()]
        return {
            "lines": report.headline(),
            "homes": [home for home in homes if home["reasons"]],
            "alone": [home | {"row": home["rows"][0]} for home in homes if not home["reasons"]],
            "names": {str(row): report.shown(who) for row, who in enumerate(self.ids)},
        }

    def _card(self, home: Json) -> Json:
        pairs, room = home["pairs"], _text(home["room"])
        twos = {frozenset(home["who"][2 * k : 2 * k + 2]) for k in range(len(pairs))}
        required = set(map(frozenset, self._twos(self.held, "require")))
        stays = room is not None and room in [p.room for p in self.held if p.kind == "fixed"]
        return {
            "rows": [self.row[who] for who in home["who"]],
            "probabilities": [pair["probability"] for pair in pairs],
            "room": room,
            "group": home["group"],
            "locked": stays or (bool(twos) and required >= twos),
            "reasons": [pair["reasons"] for pair in pairs],
        }

    def cost(self, kind: str, a: int, b: int) -> Json:
        """How much less probable the plan becomes by a change, and which pairs would be new.

        ``undone`` are pairs that were put together before and would be so no longer.
        """
        made, undone = self.changed(kind, a, b)
        must = set(map(frozenset, self.plan.require))
        gone = set(map(frozenset, self._pairs(undone)))
        base = replace(
            self.plan, require=tuple(r for r in self.plan.require if frozenset(r) not in gone)
        )
        new = tuple(part for part in made if part not in self.given.choices.decided)
        more = [two for two in self._twos(new, "together") if frozenset(two) not in must]
        changed = base.what_if(forbid=self._twos(new, "forbid"), require=more)
        self.model.refuse_crossed(changed.plan)
        homes = {_people(home) for home in self.plan.shared}
        pairs = [
            {"a": self.row[p.a], "b": self.row[p.b], "probability": p.probability}
            for home in changed.plan.shared
            if _people(home) not in homes
            for p in home
        ]
        factor = exp(changed.loss) if changed.loss < LARGEST_FACTOR else None
        cost = {"factor": factor, "new": pairs, "undone": [list(two) for two in undone]}
        return cost | {"words": self._in_words(kind, cost)}

    def _in_words(self, kind: str, found: Json) -> list[str]:
        """A cost as a person says it."""
        if not found["new"]:
            return [PAGE["not together" if kind == "apart" else "share already"]]
        factor, ids = found["factor"], self.ids
        far = "cost far" if factor is None else "cost same" if factor < SAME else "cost"
        name = self.report().shown
        pairs = ", ".join(
            f"{name(ids[p['a']])} + {name(ids[p['b']])} ({percent(p['probability'])})"
            for p in found["new"]
        )
        undone = ", ".join(" + ".join(two) for two in found["undone"])
        return [
            PAGE[far].format(factor=None if factor is None else number(factor)),
            PAGE["new pairs"].format(pairs=pairs),
            *([PAGE["cost undone"].format(pairs=undone)] if undone else []),
        ]

    def home(self, row: int) -> tuple[tuple[str, ...], str | None]:
        """The people of somebody's home, and their room."""
        homes = [(_people(home), home[0].room) for home in self.plan.shared]
        homes += [(frozenset([one.person]), one.room) for one in self.plan.singles]
        who, room = next(home for home in homes if self.ids[row] in home[0])
        return tuple(self.texts[self.row[one]] for one in who), _text(room)

    def changed(self, kind: str, a: int, b: int) -> tuple[Decisions, list[Rule]]:
        """What would be decided after a change, and which pairs put together before it undoes."""
        first, second = self.named((a, b))
        if a == b:
            raise ValueError("name two people")
        made = self.given.choices.decided
        if kind == "apart":
            return apart(made, (first, second))
        pairs = [(first, second)] if kind == "together" else self._swap(kind, a, b)
        return together(made, pairs)

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
        path = self.given.project.folder / "pairs.csv"
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

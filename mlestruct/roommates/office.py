"""An office's case: its project put to use, with tables, model, plan, and what a change costs.

Commands, the page and the report ask the same object.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import replace
from functools import cached_property
from math import exp
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlestruct.progress import Show
from mlestruct.roommates.doctor import Diagnosis, examine, paired, role_of, unchecked
from mlestruct.roommates.frames import Table, written
from mlestruct.roommates.model import RoommateModel
from mlestruct.roommates.people import People, listed
from mlestruct.roommates.plan import Pair, Plan
from mlestruct.roommates.project import (
    ALLOWED,
    ASKED,
    LOCKS,
    SINGLE,
    WAYS,
    Choices,
    Decided,
    Decisions,
    Dropped,
    Project,
    Settings,
)
from mlestruct.roommates.reading import read, sheets
from mlestruct.roommates.report import Report, guarded
from mlestruct.roommates.rooms import COLUMNS, listed_rules
from mlestruct.roommates.words import PAGE, number, percent

ALPHAS, ALPHA = (1.0, 10.0, 100.0), 10.0
EXAMINED = ("people", "pairs")
NEEDED: dict[str, tuple[str, ...]] = {"rooms": ("room",), "rules": COLUMNS}
LARGEST_FACTOR = 30.0  # in logarithms: beyond it a plan is practically impossible
RULES = ("rule", "rule proposed", "spelled rule")  # findings that ask for one
TWO = ("together", "swap", "apart")  # changes that are about two people
RULED = {"require": "require", "together": "require", "forbid": "forbid"}  # rules of decisions
CHANGES = (*TWO, "lock", "unlock", "left", "back")

Json = dict[str, Any]


def opened(
    kind: str, path: Path | str, sheet: str | None, told: Settings | None, **reading: Any
) -> Table:
    """A file as a table with the columns of its kind, else a ValueError lists those there are."""
    found = read(path, sheet=sheet, **reading)
    for name in NEEDED.get(kind, ()):
        _ = found[name]
    return found.respelled(told.spellings if told else {})


class Office:
    """Tables, settings, model and plan under the choices of one moment; each is made once.

    For a command these are its own ``choices``, under which a table that cannot be read is an error
    at once. ``told`` are settings that go before all others, ``only`` the cohorts a command is
    about, ``rules`` what its plan must keep besides; the settings of its ``model`` go before
    everything. ``tables`` are those that were read already.
    """

    def __init__(
        self,
        project: Project,
        choices: Choices | None = None,
        told: Mapping[str, Any] | None = None,
        *,
        tables: Mapping[str, Table] | None = None,
        model: RoommateModel | None = None,
        only: Sequence[str] | None = None,
    ) -> None:
        self.project, self.choices = project, choices or project.choices()
        self.rules: dict[str, Any] = {}
        self.told, self.own, self.only = dict(told or {}), model, only
        self.command = choices is not None
        if model is not None:
            several = {n: tuple(listed(getattr(model, n))) for n in ("same", "room", "partner")}
            partners = {"partners": tuple(model.partners)}
            self.told |= several | partners | {"id": model.id, "cohort": model.cohort}
        self.tables: dict[str, Table] = dict(tables or {})
        self.faults: dict[str, str] = {}
        self.sheets: dict[str, list[str]] = {}
        for kind, file in self.choices.files.items() if tables is None else ():
            path = project.path(file)
            with suppress(OSError, ValueError):
                self.sheets[kind] = [] if self.command else sheets(path)
            try:
                self.tables[kind] = self._table(kind, file)
            except (OSError, ValueError) as error:
                if self.command:
                    raise
                self.faults[kind] = str(error).replace(str(path), file.name)

    def _table(self, kind: str, file: Dropped) -> Table:
        """A file as its user calls it: messages name it so."""
        path, told = self.project.path(file), self.choices.settings
        told = replace(told or Settings(), **self.told) if self.told else told
        found = opened(kind, path, file.sheet, told, **self.choices.reading)
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
        chosen = self.choices.settings is not None
        return self._examined(self.settings if chosen else Settings(), chosen)

    def _examined(self, told: Settings, chosen: bool) -> Diagnosis:
        return examine([self.tables[kind] for kind in self.ready], told, chosen)

    @cached_property
    def settings(self) -> Settings:
        """As chosen, for the columns that are there; else, and for new ones, as proposed."""
        chosen = self.choices.settings
        if chosen is None:
            chosen = Settings() if self.told else self.examined.settings
        elif "people" in self.tables:
            chosen = self._kept(chosen)
        return replace(chosen, **self.told)

    def _kept(self, chosen: Settings) -> Settings:
        """Settings for the columns that are there now."""
        kept = chosen.keeping(self.tables["people"].names.__contains__)
        gone, usual = dict(self.columns_gone), Settings()
        lost = [name for name in SINGLE if getattr(chosen, name) in gone]
        lost += WAYS if set(chosen.shares) & set(gone) else []
        kept = replace(kept, **{name: getattr(usual, name) for name in lost})
        if not lost and not self.columns_new:
            return kept
        offer = self._examined(kept, False).settings
        kept = replace(kept, **{name: getattr(offer, name) for name in lost if name != "names"})
        new = {*self.columns_new} - {kept.id, kept.cohort, kept.names, *kept.shares}
        return kept.with_those(offer.keeping(new.__contains__))

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
        for name in [name for name in chosen.shares if name not in anywhere]:
            was[name] = [*was.get(name, []), "who shared"]
        return [(name, roles) for name, roles in was.items() if roles != ["ignore"]]

    @property
    def agreeing(self) -> list[str]:
        """The columns in which all observed pairs agree, or that somebody took for a rule."""
        found = [one.values["column"] for one in self.examined.findings if one.code in RULES]
        return [*self.settings.same, *self.settings.mix, *found]

    @cached_property
    def _paired(self) -> NDArray[np.int64]:
        """(pairs × 2) rows of people, of all pairs that can be read."""
        tables = [self.named(kind) for kind in self.ready]
        return paired(tables, self.named("people"), self.settings)

    @cached_property
    def offered(self) -> dict[str, list[Any]]:
        """By column, what probably means no answer."""
        people = self.tables["people"]
        return {name: role_of(people[name])[1] for name in self.settings.asked}

    @cached_property
    def _cohort_of(self) -> list[Any]:
        """Everybody's cohort, as it is written."""
        people, name = self.tables.get("people"), self.settings.cohort
        there = people is not None and name in people.names
        return [*map(written, people.listed(name))] if there and people and name else []

    @property
    def cohorts(self) -> list[str]:
        """The cohorts as text, in their order."""
        return [str(value) for value in sorted({*self._cohort_of} - {None})]

    @property
    def planned(self) -> str | None:
        """The cohort to pair up: as chosen, or the last."""
        cohorts, chosen = self.cohorts, self.choices.planned
        return chosen if chosen in cohorts else cohorts[-1] if cohorts else None

    @property
    def unpaired(self) -> str | None:
        """The last cohort, if nobody of it shares with anybody yet."""
        if len(self.cohorts) < 2:
            return None
        known = {str(self._cohort_of[row]) for row in self._paired.ravel()}
        return None if self.cohorts[-1] in known else self.cohorts[-1]

    def of_cohorts(self, only: Sequence[str]) -> Table:
        """The people of some cohorts."""
        people, cohort = self.named("people"), self.settings.cohort
        if cohort is None:
            raise ValueError("only= needs a cohort, and there is none: name its column by cohort=")
        unknown = next((value for value in only if value not in self.cohorts), None)
        if unknown is not None:
            raise ValueError(f"nobody has {cohort} {unknown}; there are {', '.join(self.cohorts)}")
        return people.rows([str(value) in only for value in self._cohort_of])

    @cached_property
    def parts(self) -> tuple[Table, Table]:
        """(whom to learn from, whom to pair up) of a project."""
        people, later = self.named("people"), []
        if "new" in self.choices.files:
            return people, self.named("new")
        if self.settings.cohort:
            later = [str(value) == self.planned for value in self._cohort_of]
        else:
            later = (~np.isin(np.arange(len(people)), self._paired)).tolist()
        if not any(later):
            raise ValueError(
                "nobody is left to be paired up: drop the new people, or choose a year"
            )
        if all(later):
            raise ValueError("nobody is left to learn from: everybody is to be paired up")
        return people.rows([not one for one in later]), people.rows(later)

    @property
    def _named(self) -> bool:
        """Whether somebody said whom to pair up."""
        return self.choices.planned is not None or "new" in self.choices.files

    @cached_property
    def known(self) -> Table:
        """Whom to learn from, or to judge by: those named, else all but whom to pair up."""
        if self.only is not None:
            return self.of_cohorts(self.only)
        whole = self.command and (self.choices.planned is None or "new" in self.choices.files)
        return self.named("people") if whole else self.parts[0]

    @property
    def skipped(self) -> list[str]:
        """The cohorts that were learned from and that nobody named: they are not planned."""
        known = () if self.own is None or self.only or self._named else self.own.cohorts_
        return [cohort for cohort in self.cohorts if cohort in known]

    @cached_property
    def people(self) -> Table:
        """Whom to pair up: those named, else the project's, else those not learned from."""
        skipped = self.skipped
        fresh = [cohort for cohort in self.cohorts if cohort not in skipped]
        if skipped and not fresh:
            raise ValueError(
                f"nobody is left to pair up: who shares is known of {self.settings.cohort} "
                f"{', '.join(skipped)}, and was learned from; to pair people up all the same, "
                "name theirs by only="
            )
        if self.only is not None or skipped:
            found = self.of_cohorts(fresh if self.only is None else self.only)
        else:
            found = self.parts[1] if self.own is None or self._named else self.named("people")
        return found.without_rows_of([self.settings.id], self.left) if self.left else found

    @property
    def left(self) -> set[str]:
        """The ids of people who left."""
        return {who for part in self.choices.decided if part.kind == "left" for who in part.who}

    def fit(self, progress: Show = None, checkpoint: str | None = None) -> RoommateModel:
        """A model, learned as chosen."""
        told, people = self.settings, self.known
        if not told.shares or (told.way == "partners" and len(set(told.shares)) < 2):
            raise ValueError("choose the columns that say who shared")
        names = ("id", "cohort", "same", "mix", "no_answer", "protected", "ignore")
        asked: Json = {name: getattr(told, name) for name in (*ASKED, *ALLOWED, *names, told.way)}
        if self.choices.settings is not None:
            several = told.cohort and len(set(people.listed(told.cohort))) > 1
            asked["alpha"] = ALPHAS if several else ALPHA
            asked["protected"] = [n for n in told.protected if n in told.asked]
            asked["no_answer"] = {n: v for n, v in told.no_answer.items() if v and n in told.asked}
            asked |= {n: v for n, v in self.told.items() if n in ("protected", "no_answer")}
        model = RoommateModel(**(asked | dict(told.fit) | {"progress": progress}))
        return model.fit(people, self.pairs(people), checkpoint=checkpoint)

    def pairs(self, learned: Table) -> Table | None:
        """Who shared, but for others than are learned from; None where people's own table says.

        Lines about people who left, and are in the table of people no more, are passed over.
        """
        told, given = self.settings, self.tables.get("pairs")
        if given is None or (told.way != "partners" and not set(told.shares) <= set(given.names)):
            return None
        everybody, kept = (
            {str(written(who)) for who in t.listed(told.id)}
            for t in (self.named("people"), learned)
        )
        names = told.shares if told.way == "partners" else (told.id,)
        gone = (everybody - kept) | (self.left - everybody)
        return given.without_rows_of(names, gone) if gone else given

    @cached_property
    def decided(self) -> Decisions:
        """Every decision about people, and why it does not fit those who are paired up now."""
        found = []
        for part in self.choices.decided:
            why: str | None = PAGE["unfit nobody yet"]
            with suppress(ValueError, LookupError):
                why = self._unfit(part)
            found.append(part._replace(why=why))
        return tuple(found)

    def _unfit(self, part: Decided) -> str | None:
        """Why a decision does not fit these people, groups and rooms; None where it does."""
        everybody = self.everybody
        rows = [everybody.known(who) for who in part.who]
        if part.kind == "left":
            return None
        if None in rows:
            return PAGE["unfit gone"].format(who=part.who[rows.index(None)])
        first, *others = (everybody.groups[everybody.group_of[row]] for row in rows)
        other = next((group for group in others if group is not first), None)
        if part.kind != "forbid" and other is not None:
            return PAGE["unfit groups"].format(first=first.label, second=other.label)
        if part.kind != "fixed":
            return None
        rooms = self.tables.get("rooms")
        names = [str(written(name)) for name in rooms["room"]] if rooms else []
        if rooms is None or part.room not in names:
            return PAGE["unfit room"].format(room=part.room)
        for name, mine in zip(self.settings.groups, first.key, strict=True):
            theirs = rooms.listed(name)[names.index(part.room)] if name in rooms.names else mine
            if written(theirs) != written(mine):
                return PAGE["unfit room of"].format(room=part.room, group=f"{name} {theirs}")
        return None

    @cached_property
    def everybody(self) -> People:
        """Those who are to be paired up, whatever is wrong with their answers."""
        return unchecked(self.people, self.settings)

    def id_of(self, text: str) -> Any:
        """Whose id is written so; None for nobody who is to be paired up."""
        row = self.everybody.known(text)
        return None if row is None else self.everybody.ids[row]

    @cached_property
    def model(self) -> RoommateModel:
        """The model of a command, or what the page learned."""
        if self.own is not None:
            return self.own
        return RoommateModel.load(self.project.model).set_params(unknown=self.settings.unknown)

    @cached_property
    def plan(self) -> Plan:
        """The best plan under what was decided, the table of rules, and ``rules`` of a command."""
        kept: dict[str, Any] = {"forbid": [], "require": [], "consent": []}
        if "rules" in self.choices.files:
            ids = {str(who): who for who in self.everybody.ids}
            kept = dict(listed_rules(self.named("rules"), ids))
        held = [part for part in self.decided if part.why is None]
        fixed = {p.room: [*map(self.id_of, p.who)] for p in held if p.kind == "fixed"}
        for part in held:
            if part.kind in RULED:
                kept[RULED[part.kind]].append(tuple(map(self.id_of, part.who)))
        for name, more in self.rules.items():
            kept[name] = [*more, *kept.get(name, ())]
        rooms = self.named("rooms") if "rooms" in self.choices.files else None
        return self.model.assign(self.people, rooms=rooms, fixed=fixed or None, **kept)

    def report(self, **shown: Any) -> Report:
        """The plan with its reasons."""
        shown |= {"names": self.settings.names, "questions": self.settings.words}
        return Report(self.model, self.people, self.plan, **shown)

    def xlsx(self) -> bytes:
        """The plan as a workbook."""
        from openpyxl import Workbook

        book, columns, out = Workbook(), self.plan.columns(), io.BytesIO()
        for row in ([*columns], *zip(*columns.values(), strict=True)):
            cells = (cell.item() if hasattr(cell, "item") else cell for cell in row)
            book.active.append([*map(guarded, cells)])
        book.save(out)
        return out.getvalue()

    def home(self, who: str) -> tuple[tuple[str, ...], str | None]:
        """The people of somebody's home, and their room."""
        pairing, me = self.plan.find(self.id_of(who))
        home = next(one for one in self.plan.homes if one.pairing is pairing and me in one.who)
        return tuple(str(written(pairing.ids[one])) for one in home.who), _text(home.room)

    def changed(self, kind: str, who: Sequence[str]) -> Office:
        """The case after a change; a ValueError where that breaks a decision, or leaves no plan."""
        if kind not in CHANGES or len(set(who)) != len(who) or len(who) != 1 + (kind in TWO):
            raise ValueError(
                f"{kind}: name two people for together, swap and apart, and one for the others"
            )
        stranger = next((one for one in who if kind != "back" and self.id_of(one) is None), None)
        if stranger is not None:
            raise ValueError(f"nobody who is planned has id {stranger!r}")
        new, kept = self._decided_by(kind, tuple(who))
        for part in kept:
            if any(_contradict(part, one) for one in new):
                raise ValueError(f"{part}: let that go first")
        after = self.under((*kept, *new))
        for part in after.decided:
            if part.why and part[:3] in [one[:3] for one in new]:
                raise ValueError(part.why)
        _ = after.plan
        return after

    def _decided_by(self, kind: str, who: tuple[str, ...]) -> tuple[list[Decided], list[Decided]]:
        """What a change decides, and the decisions that it leaves."""
        new, own = list[Decided](), set(who)
        gone: Sequence[str] = ("together",)
        if kind == "back":
            return new, [part for part in self.choices.decided if not own & set(part.who)]
        if kind in ("lock", "unlock"):
            home, room = self.home(who[0])
            if room is None and len(home) == 1:
                raise ValueError("who lives alone can be locked in a room only; there is none")
            lock = Decided("require" if room is None else "fixed", home, room)
            new, gone, own = [lock] if kind == "lock" else [], LOCKS, set(home)
        elif kind == "left":
            new, gone = [Decided("left", who)], ()
        elif kind == "apart":
            new, gone = [Decided("forbid", tuple(sorted(who)))], ("together", "forbid")
        else:
            pairs = [who] if kind == "together" else self._swapped(*who)
            new, own = [Decided("together", pair) for pair in pairs], {a for p in pairs for a in p}
        waits = {part[:3] for part in self.decided if part.why and gone == LOCKS}
        kept = [
            part
            for part in self.choices.decided
            if part.kind not in gone
            or part[:3] in waits  # a lock that does not fit now
            or not (set(part.who) <= own if kind not in TWO[:2] else own & set(part.who))
        ]
        return new, kept

    def _swapped(self, a: str, b: str) -> list[tuple[str, ...]]:
        """Each of two people with the other's partner."""
        theirs = [self.plan.partner(self.id_of(one)) for one in (a, b)]
        if None in theirs:
            raise ValueError("only two people who each have a partner can be swapped")
        first, second = (str(written(who)) for who in theirs)
        if first == b:
            raise ValueError("these two share already")
        return [(a, second), (b, first)]

    def under(self, decided: Decisions) -> Office:
        """The same case under other decisions."""
        twin = copy(self)
        twin.choices = replace(self.choices, decided=decided)
        for name in ("decided", "people", "everybody", "plan", "shown"):
            vars(twin).pop(name, None)
        return twin

    def cost(self, after: Office) -> Json:
        """How much less probable the plan becomes, which pairs are new, what is let go."""
        homes = {frozenset(_people(home)) for home in self.plan.shared}
        new = [home for home in after.plan.shared if frozenset(_people(home)) not in homes]
        words = [] if new else [PAGE["no change"]]
        if new and after.left == self.left:
            loss = self.plan.objective - after.plan.objective
            words = [PAGE["cost"].format(factor=number(exp(min(loss, LARGEST_FACTOR))))]
        if new:
            name = after.report().shown
            told = (
                f"{name(p.a)} + {name(p.b)} ({percent(p.probability)})"
                for home in new
                for p in home
            )
            words.append(PAGE["new pairs"].format(pairs=", ".join(told)))
        gone = [str(part) for part in self.choices.decided if part not in after.choices.decided]
        words += [PAGE["let go by it"].format(gone=", ".join(gone))] if gone else []
        pairs = [[str(written(who)) for who in pair[:2]] for home in new for pair in home]
        return {"new": pairs, "words": words}

    @cached_property
    def shown(self) -> Json:
        """The opening lines, and a card for each home with its reasons."""
        report, cards = self.report(), []
        held = [p for p in self.decided if p.why is None and p.kind in LOCKS]
        for home in report.homes():
            who = [str(written(one)) for one in home["who"]]
            locked = any({*part.who} <= {*who} for part in held)
            cards.append(home | {"who": who, "room": _text(home["room"]), "locked": locked})
        names = {str(written(who)): report.shown(who) for who in self.everybody.ids}
        return {"lines": report.headline(), "homes": cards, "names": names}


def _people(home: Sequence[Pair]) -> list[Any]:
    return [who for pair in home for who in (pair.a, pair.b)]


def _text(room: Any) -> str | None:
    return None if room is None else str(written(room))


def _contradict(old: Decided, new: Decided) -> bool:
    """Whether both cannot hold: two homes of one person, or of one room, or kept apart in one."""
    kinds, theirs, mine = {old.kind, new.kind}, set(old.who), set(new.who)
    if "left" in kinds or kinds == {"forbid"}:
        return False
    if "forbid" in kinds:
        return theirs <= mine if old.kind == "forbid" else mine <= theirs
    inside = old.kind == "together" and theirs <= mine
    return bool(theirs & mine and not inside) or (old.room is not None and old.room == new.room)

"""A project's tables as the page needs them: read, examined by the doctor, and put to use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from mlestruct.progress import Show
from mlestruct.roommates.cells import written
from mlestruct.roommates.doctor import Diagnosis, Told, examine, paired, unchecked
from mlestruct.roommates.frames import Table
from mlestruct.roommates.leaks import leaks
from mlestruct.roommates.model import RoommateModel
from mlestruct.roommates.project import Decided, Dropped, Project, judged
from mlestruct.roommates.reading import read, sheets
from mlestruct.roommates.rooms import COLUMNS, listed_rules

ALPHAS, ALPHA = (1.0, 10.0, 100.0), 10.0
EXAMINED = ("people", "pairs")
WANTED: dict[str, tuple[str, ...]] = {"rooms": ("room",), "rules": COLUMNS}
KINDS_OF_ANSWERS = ("ordinal", "binary", "categorical")
WAYS = ("partners", "room", "partner")
SETTINGS: dict[str, tuple[str, ...]] = {  # the first is the default
    "missing": ("neutral", "refuse"),
    "unknown": ("refuse", "neutral", "nearest"),
    "larger": ("refuse", "leave_out"),
}

SINGLE = ("id", "cohort", "names")
LISTED = ("same", "mix", "protected", *KINDS_OF_ANSWERS)

Json = dict[str, Any]
Mask = Any


def opened(kind: str, path: Path, sheet: str | None) -> Table:
    """A file as a table with the columns of its kind, else a ValueError lists those there are."""
    wanted = WANTED.get(kind, ())
    found = read(path, wanted, sheet=sheet)
    for name in wanted:
        _ = found[name]
    return found


class Inputs:
    """The dropped files under the choices of one moment; what is asked twice is read once."""

    def __init__(self, project: Project) -> None:
        self.project, self.choices = project, project.choices()
        self.tables: dict[str, Table] = {}
        self.faults: dict[str, str] = {}
        self.sheets: dict[str, list[str]] = {}
        for kind, file in self.choices.files.items():
            try:
                self.sheets[kind] = sheets(project.path(file))
                self.tables[kind] = self._table(kind, file)
            except (OSError, ValueError) as error:
                self.faults[kind] = str(error).replace(str(project.path(file)), file.name)

    def _table(self, kind: str, file: Dropped) -> Table:
        """A file as its user calls it: messages name it so."""
        path = self.project.path(file)
        found = opened(kind, path, file.sheet)
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
        chosen = replace(_told(self.roles), chosen=True) if self.choices.roles else Told()
        return self._examined(chosen)

    def _examined(self, told: Told) -> Diagnosis:
        names = [self.choices.files[kind].name for kind in self.ready]
        return examine([self.tables[kind] for kind in self.ready], told, names)

    @cached_property
    def roles(self) -> Json:
        """As chosen, for the columns that are there; else, and for new ones, as proposed."""
        chosen: Json = {"mix": [], **self.choices.roles}
        if not self.choices.roles or "people" not in self.tables:
            return chosen if self.choices.roles else proposed(self.examined)
        names = self.tables["people"].names
        roles = chosen | {role: [n for n in chosen[role] if n in names] for role in LISTED}
        roles["no_answer"] = {n: v for n, v in chosen["no_answer"].items() if n in names}
        gone = {name for name, _ in self.columns_gone}
        lost = [name for name in SINGLE if chosen[name] in gone]
        way = set(chosen[chosen["way"]]) & gone
        added = [n for n in names if n not in self.choices.known] if self.choices.known else []
        if lost or way or added:
            kept = {name: None if name in lost else roles[name] for name in SINGLE}
            asked = _told(roles | kept | ({chosen["way"]: []} if way else {}))
            offer = proposed(self._examined(asked))
            roles |= {name: offer[name] for name in lost if name != "names"}
            roles |= {name: offer[name] for name in ("way", *WAYS)} if way else {}
            taken = {roles[name] for name in SINGLE} | set(roles[roles["way"]])
            for role in (*KINDS_OF_ANSWERS, "same"):
                roles[role] += [n for n in offer[role] if n in added and n not in taken]
            roles["no_answer"] |= {n: v for n, v in offer["no_answer"].items() if n in added}
            roles["names"] = None if "names" in lost else roles["names"]
        return roles

    @cached_property
    def columns_gone(self) -> list[tuple[str, list[str]]]:
        """Columns of which something was chosen, and that no table has now; and what that was."""
        chosen = self.choices.roles
        if not chosen or "people" not in self.tables:
            return []
        people = self.tables["people"].names
        anywhere = {name for kind in self.ready for name in self.tables[kind].names}
        was: dict[str, list[str]] = {}
        for role in (*SINGLE, *LISTED):
            named = chosen.get(role) or []
            for name in [named] if isinstance(named, str) else named:
                was.setdefault(name, []).extend([role] if name not in people else [])
        for name in chosen["no_answer"]:
            was.setdefault(name, []).extend(["no answer"] if name not in people else [])
        for name in chosen[chosen["way"]]:
            was.setdefault(name, []).extend(["who shared"] if name not in anywhere else [])
        return [(name, roles) for name, roles in was.items() if roles]

    @cached_property
    def agreeing(self) -> list[str]:
        """The columns in which all observed pairs agree, as far as no cohort explains that."""
        people, told = self.tables["people"], _told(self.roles)
        if told.id not in people.names:
            return []
        pairs = paired([self.tables[kind] for kind in self.ready], people, told)
        group = unchecked(people, replace(told, same=())).group_of
        taken = {told.id, told.cohort, *told.room, *told.partner}
        columns = {name: people.columns[name] for name in people.names if name not in taken}
        return [leak.column for leak in leaks(columns, pairs, group) if leak.agreed]

    @cached_property
    def decided(self) -> list[Decided]:
        """Every decision about people, and why it does not fit those who are paired up now."""
        roles = self.roles if "people" in self.tables else {}
        try:
            people = self.parts[1]
            groups = [*([roles["cohort"]] if roles["cohort"] else []), *roles["same"]]
            return judged(self.choices, people, roles["id"], groups, self.tables.get("rooms"))
        except (ValueError, LookupError):
            return judged(self.choices, None, "", (), None)

    @cached_property
    def offered(self) -> dict[str, list[list[Any]]]:
        """By column, what probably means no answer, and how many gave it."""
        found: dict[str, list[list[Any]]] = {}
        codes = examine([self.tables[k] for k in self.ready], _told(self.roles, False)).codes
        for name, values in codes.items():
            counts = Counter(map(written, self.tables["people"].as_written(name).tolist()))
            found[name] = [[value, counts[value]] for value in values]
        return found

    @property
    def cohorts(self) -> list[str]:
        """The cohorts as text, in their order."""
        name, people = self.roles.get("cohort"), self.tables.get("people")
        if not name or people is None or name not in people.names:
            return []
        known = {value for value in people.labels(name) if value is not None}
        return [str(written(value)) for value in sorted(known)]

    @property
    def planned(self) -> str | None:
        """The cohort to pair up: as chosen, or the last."""
        cohorts = self.cohorts
        chosen = self.choices.planned
        return chosen if chosen in cohorts else cohorts[-1] if cohorts else None

    @cached_property
    def parts(self) -> tuple[Table, Table]:
        """(whom to learn from, whom to pair up)."""
        people = self.named("people")
        if "new" in self.choices.files:
            return people, self.named("new")
        later = self._later(people)
        if not later.any():
            raise ValueError(
                "nobody is left to be paired up: drop the new people, or choose a year"
            )
        if later.all():
            raise ValueError("nobody is left to learn from: everybody is to be paired up")
        return people.rows(~later), people.rows(later)

    def _later(self, people: Table) -> Mask:
        """True for who is to be paired up: of the planned cohort, or without one in no pair."""
        cohort = self.roles.get("cohort")
        if cohort:
            return np.array([str(written(own)) == self.planned for own in people.labels(cohort)])
        alone = np.ones(len(people), dtype=bool)
        tables = [self.named(kind) for kind in self.ready]
        alone[np.unique(paired(tables, people, _told(self.roles)))] = False
        return alone

    def model(self, progress: Show) -> RoommateModel:
        """To be fitted as chosen."""
        roles, way = self.roles, self.roles["way"]
        cohort: str | None = roles["cohort"] or None
        cohorts = self.parts[0].as_names(cohort).tolist() if cohort else []
        if not roles[way] or (way == "partners" and len(set(roles[way])) < 2):
            raise ValueError("choose the columns that say who shared")
        named = (*KINDS_OF_ANSWERS, *SETTINGS, "id", "same", "mix")
        asked: dict[str, Any] = {name: roles[name] for name in named}
        codes = {n: v for n, v in roles["no_answer"].items() if v and n in _asked(roles)}
        asked[way] = tuple(roles[way])
        return RoommateModel(
            **asked,
            cohort=cohort,
            alpha=ALPHAS if len(set(map(written, cohorts))) > 1 else ALPHA,
            progress=progress,
            no_answer=codes,
            protected=[name for name in roles["protected"] if name in _asked(roles)],
        )

    def pairs(self, learned: Table) -> Table | None:
        """Who shared, but for others than are learned from; None where people's own table says."""
        way, given = self.roles["way"], self.tables.get("pairs")
        elsewhere = given is not None and set(self.roles[way]) <= set(given.names)
        if way != "partners" and not elsewhere:
            return None
        name, listed = self.roles["id"], self.roles["partners"]
        left, kept = (set(t.as_names(name).tolist()) for t in (self.named("people"), learned))
        names = listed if way == "partners" else [name]
        return self.named("pairs").without_rows_of(names, left - kept)

    def rules(self, ids: Sequence[Any]) -> dict[str, list[Any]]:
        """The rules of the dropped file; without a file there are none."""
        if "rules" not in self.choices.files:
            return {"forbid": [], "require": [], "consent": []}
        return dict(listed_rules(self.named("rules"), {str(who): who for who in ids}))


def _asked(roles: Mapping[str, Any]) -> list[str]:
    return [name for kind in KINDS_OF_ANSWERS for name in roles[kind]]


def _told(roles: Mapping[str, Any], codes: bool = True) -> Told:
    """What was chosen, for the doctor; ``codes`` with what was said to mean no answer."""
    if not roles:
        return Told()
    way = roles["way"]
    ways: dict[str, Any] = {way: tuple(roles[way])} if roles[way] else {}
    return Told(
        roles["id"] or Told().id,
        roles.get("cohort") or None,
        tuple(roles["same"]),
        no_answer=roles["no_answer"] if codes else (),
        mix=tuple(roles["mix"]),
        **ways,
    )


def proposed(found: Diagnosis) -> Json:
    """The doctor's proposal in the page's words; every part can be changed there."""
    told = found.told
    way = "room" if told.room else "partner" if told.partner else "partners"

    def of(role: str) -> list[str]:
        return [name for name, own in found.roles.items() if own == role]

    return {
        "id": told.id,
        "cohort": next(iter(of("cohort")), None),
        "same": of("same"),
        "way": way,
        **{name: list(getattr(told, name)) for name in WAYS},
        **{role: of(role) for role in KINDS_OF_ANSWERS},
        "mix": list(told.mix),
        "protected": [],
        "no_answer": {name: list(values) for name, values in found.codes.items()},
        **{name: allowed[0] for name, allowed in SETTINGS.items()},
        "names": None,
    }


def checked(asked: Mapping[str, Any]) -> Json:
    """Roles as the page sends them: names and lists of names, nothing else."""
    roles: Json = {}
    for name in ("id", "cohort", "names"):
        roles[name] = _name(asked.get(name), name) or None
    for name in (*LISTED, *WAYS):
        roles[name] = _names(asked.get(name, []), name)
    for name, allowed in (("way", WAYS), *SETTINGS.items()):
        roles[name] = asked.get(name, allowed[0])
        if roles[name] not in allowed:
            raise ValueError(f"{name} is one of {', '.join(allowed)}, not {roles[name]!r}")
    codes = asked.get("no_answer", {})
    if not isinstance(codes, dict):
        raise ValueError("no_answer is a list of codes by column")
    roles["no_answer"] = {str(name): _names(values, name) for name, values in codes.items()}
    strange = next((name for name in asked if name not in roles), None)
    if strange is not None:
        raise ValueError(f"unknown role {strange!r}; there are {', '.join(roles)}")
    if not roles["id"]:
        raise ValueError("choose the column that holds the ids of people")
    return roles


def merged(new: Json, old: Mapping[str, Any], gone: Collection[str]) -> Json:
    """New roles, with the old ones of columns that are not there now, and may come back."""
    kept = {role: [n for n in old.get(role, []) if n in gone and n not in new[role]]
            for role in LISTED}  # fmt: skip
    codes = {n: v for n, v in old.get("no_answer", {}).items() if n in gone}
    return (
        new
        | {role: [*new[role], *kept[role]] for role in LISTED}
        | {"no_answer": {**codes, **new["no_answer"]}}
    )


def forgotten(old: Mapping[str, Any], now: Json, names: Collection[str]) -> Json:
    """The old roles without what they say of some columns; ``now`` are those that are used."""
    roles = {**old, "no_answer": {n: v for n, v in old["no_answer"].items() if n not in names}}
    for role in LISTED:
        roles[role] = [name for name in old.get(role, []) if name not in names]
    for role in SINGLE:
        roles[role] = now[role] if old[role] in names else old[role]
    way = set(old[old["way"]]) & set(names)
    return roles | ({name: now[name] for name in ("way", *WAYS)} if way else {})


def _name(value: Any, what: str) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise ValueError(f"{what} is a name, not {value!r}")


def _names(value: Any, what: str) -> list[str]:
    if isinstance(value, list) and all(isinstance(name, str) for name in value):
        return value
    raise ValueError(f"{what} is a list of names, not {value!r}")

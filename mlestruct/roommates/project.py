"""A project: what an office decided, in two files that people can read, edit and keep.

``roommates.toml`` says where tables are, what columns are for and how to learn: it names nobody.
``roommates.people.toml`` names people: who left, who is locked together or kept apart. Decisions
are tied to ids and names of columns, so that they outlive a corrected workbook. One that does not
fit the people, groups and rooms of now is out of use, and said, and holds again when it fits.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, Self

from mlestruct.roommates.observed import WhoShares
from mlestruct.roommates.words import COMMENTS, FILE, PAGE
from mlestruct.storage.files import fresh

MODEL = "model.npz"
KINDS = ("people", "pairs", "new", "rooms", "rules")
ENDINGS = (".csv", ".tsv", ".txt", ".xlsx", ".xlsm")
LARGEST = 64 << 20  # bytes of one file
READING = ("decimal", "encoding", "header", "separator")
SINGLE = ("id", "cohort", "names")
WAYS = ("partners", "room", "partner")
ASKED = ("ordinal", "binary", "categorical")
LISTED = ("same", "mix", *ASKED, "ignore", "protected", "trust")
ALLOWED: dict[str, tuple[str, ...]] = {  # the first is proposed
    "missing": ("neutral", "refuse"),
    "unknown": ("refuse", "neutral"),
    "larger": ("refuse", "leave_out"),
}
LOCKS = ("require", "fixed")
HEADINGS = {**dict.fromkeys(LOCKS, "lock"), "forbid": "apart"}
HEADINGS |= {"together": "together", "left": "left"}


class Dropped(NamedTuple):
    """A file: where it is kept, the user's own name for it, and the chosen sheet."""

    kept: str
    name: str = ""
    sheet: str | None = None

    def __str__(self) -> str:
        return self.kept + (f"#{self.sheet}" if self.sheet else "")


@dataclass(frozen=True)
class Settings:
    """What columns are for and what becomes of odd answers; ``fit`` are other settings of a fit.

    ``names`` is the column shown beside ids, answers in columns of ``trust`` are as meant, and
    ``spelled`` has what to read in place of a spelling, ``levels`` the answers in their order and
    ``words`` the question's own words, by column. The other names are those of
    :class:`RoommateModel`.
    """

    id: str = "id"
    cohort: str | None = None
    names: str | None = None
    partners: tuple[str, ...] = ("id_a", "id_b")
    room: tuple[str, ...] = ()
    partner: tuple[str, ...] = ()
    same: tuple[str, ...] = ()
    mix: tuple[str, ...] = ()
    ordinal: tuple[str, ...] = ()
    binary: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    protected: tuple[str, ...] = ()
    trust: tuple[str, ...] = ()
    no_answer: Any = field(default_factory=dict)
    spelled: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    levels: Mapping[str, Sequence[str]] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)
    missing: str = "refuse"
    unknown: Any = "refuse"
    larger: str = "refuse"
    fit: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, asked: Mapping[str, Any]) -> Self:
        """From a request or a file: names and lists of names, nothing else."""
        asked = {n: v for n, v in asked.items() if v not in (None, "")}
        checked(asked, ROLES, "a project")
        if "id" not in asked:
            raise ValueError("choose the column that holds the ids of people")
        made: Any = {n: tuple(v) if isinstance(v, list) else v for n, v in asked.items()}
        return cls(**made)

    @property
    def way(self) -> str:
        """Which of WAYS says who shares."""
        return "room" if self.room else "partner" if self.partner else "partners"

    @property
    def shares(self) -> tuple[str, ...]:
        """The columns that say who shares."""
        return tuple(getattr(self, self.way))

    @property
    def spellings(self) -> dict[str, Mapping[str, str]]:
        """What to read for an answer, by column: ``levels`` are numbered from 1."""
        numbers = {
            n: {one: str(k) for k, one in enumerate(told, 1)} for n, told in self.levels.items()
        }
        return {**self.spelled, **numbers}

    @property
    def groups(self) -> list[str]:
        """The columns that keep people apart."""
        return [*([self.cohort] if self.cohort else []), *self.same]

    @property
    def asked(self) -> list[str]:
        """The questions."""
        return [name for role in ASKED for name in getattr(self, role)]

    @property
    def sharing(self) -> WhoShares:
        return WhoShares(self.way, self.shares, self.id, self.cohort)

    def uses(self) -> dict[str, list[str]]:
        """By column of people, all that is said of it; who shares is not among these."""
        found: dict[str, list[str]] = {}
        for role in (*SINGLE, *LISTED, *BY_COLUMN):
            told = getattr(self, role) or ()
            for name in (told,) if isinstance(told, str) else told:
                found.setdefault(name, []).append(role.replace("_", " "))
        return found

    def keeping(self, true: Callable[[str], bool]) -> Self:
        """With what is said of some columns only; ids, cohort and who shares stay."""
        kept: dict[str, Any] = {r: tuple(filter(true, getattr(self, r))) for r in LISTED}
        for name in BY_COLUMN:
            kept[name] = {n: v for n, v in getattr(self, name).items() if true(n)}
        return replace(self, **kept)

    def with_those(self, old: Settings) -> Self:
        """With all that is said in others of columns of which nothing is said here."""
        mine = self.uses()
        more: dict[str, Any] = {}
        for role in LISTED:
            more[role] = (*getattr(self, role), *(n for n in getattr(old, role) if n not in mine))
        for name in BY_COLUMN:
            more[name] = {**getattr(old, name), **getattr(self, name)}
        return replace(self, **more)


NAME, NAMES, TABLE = "a name", "a list of names", "a table"
CHECKS: dict[str, Any] = {
    NAME: str | int,
    NAMES: list | tuple,
    TABLE: Mapping,
    "true or false": bool,
    "anything": object,
}
MARKS = ("protected", "trust")
BY_COLUMN = {"no_answer": NAMES, "spelled": TABLE, "levels": NAMES, "words": NAME}
ROLES = {  # what settings say, and as what
    **dict.fromkeys(SINGLE, NAME),
    **dict.fromkeys((*WAYS, *LISTED), NAMES),
    **dict.fromkeys((*BY_COLUMN, "fit"), TABLE),
    **ALLOWED,
}
COLUMN = {"role": (*ASKED, "ignore"), **BY_COLUMN, **dict.fromkeys(MARKS, "true or false")}
ENTRIES = {  # of each part of the first file
    "tables": dict.fromkeys((*KINDS, *READING, "id", "names"), NAME) | dict.fromkeys(WAYS, NAMES),
    "dropped": dict.fromkeys(KINDS, NAME),
    "groups": {"cohort": NAME, "same": NAMES, "differ": NAMES, "plan": NAME},
    "columns": None,
    "fit": None,
}


def checked(found: Mapping[str, Any], known: Mapping[str, Any], where: str) -> None:
    """ValueError where an entry is none that is known, or of another kind."""
    for name, value in found.items():
        if name not in known:
            raise ValueError(f"{where} has {name!r}; expected {', '.join(sorted(known))}")
        kind = known[name]
        one_of = isinstance(kind, tuple)
        parts = value if kind == NAMES and isinstance(value, (list, tuple)) else ()
        fits = value in kind if one_of else isinstance(value, CHECKS[kind])
        if not fits or not all(isinstance(part, str) for part in parts):
            words = f"one of {', '.join(kind)}" if one_of else kind
            raise ValueError(f"{where}: {name} is {words}, not {value!r}")


class Decided(NamedTuple):
    """One decision about people by their ids as text; ``why`` it is out of use, if it is.

    Kinds: ``require`` (locked together), ``fixed`` (locked in a room), ``forbid`` (kept apart),
    ``together`` (put together, and may be changed again), ``left``.
    """

    kind: str
    who: tuple[str, ...]
    room: str | None = None
    reason: str = ""
    why: str | None = None

    def __str__(self) -> str:
        return PAGE[f"decided {self.kind}"].format(who=" + ".join(self.who), room=self.room)


Decisions = tuple[Decided, ...]


@dataclass(frozen=True)
class Choices:
    """All that is in the two files; without ``settings`` nothing was said of columns yet.

    ``planned``: the cohort to pair up, as text; ``reading``: how files of text are read.
    """

    files: Mapping[str, Dropped] = field(default_factory=dict)
    settings: Settings | None = None
    planned: str | None = None
    decided: Decisions = ()
    reading: Mapping[str, Any] = field(default_factory=dict)


class Project:
    """A folder that holds everything: closing the page, or the program, loses nothing."""

    def __init__(self, folder: str | os.PathLike[str], file: str = FILE) -> None:
        self.folder = Path(folder)
        self.file = self.folder / file
        self.private = self.file.with_suffix(".people.toml")
        self.model = self.folder / MODEL

    @classmethod
    def own(cls, folder: str | os.PathLike[str]) -> Self:
        """A folder for the project alone, made where it is not there, which nobody else reads.

        A folder that is no project's, in which somebody keeps other things, stays as it is.
        """
        made = cls(folder)
        made.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        inside = list(made.folder.iterdir())
        for path in (made.folder, *inside) if made.file.exists() or not inside else ():
            ours = not path.is_symlink() and (path == made.folder or path.is_file())
            if ours and path.stat().st_mode & 0o077:
                with suppress(OSError):
                    path.chmod(path.stat().st_mode & 0o700)
        return made

    def choices(self) -> Choices:
        """As last kept; a project that begins has none."""
        try:
            found, people = (
                tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
                for path in (self.file, self.private)
            )
            return _read(found, people, self.folder)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"{self.file} is not a project of room-mates: {error}") from error

    def keep(self, choices: Choices, notes: Mapping[str, str] | None = None) -> None:
        """Write what is new of all choices, and leave comments alone; ``notes`` are by column."""
        _write(self.file, _document(choices), COMMENTS["file"], notes or {})
        if choices.decided or self.private.exists():
            people: dict[str, Any] = {}
            for part in choices.decided:
                told = {"who": [*part.who], "room": part.room, "reason": part.reason or None}
                people.setdefault(HEADINGS[part.kind], []).append(told)
            _write(self.private, people, COMMENTS["people"], {})

    def put(
        self, kind: str, name: str, data: bytes, check: Callable[[Path], None] | None = None
    ) -> Dropped:
        """Keep a dropped file, unless ``check``, given it under another name, refuses it."""
        ending = Path(name).suffix.lower()
        if kind not in KINDS:
            raise ValueError(f"a file is one of {', '.join(KINDS)}, not {kind!r}")
        if ending not in ENDINGS:
            raise ValueError(f"{name}: expected a file that ends in {', '.join(ENDINGS)}")
        kept = f"{kind}{ending}"
        if check is not None:
            with TemporaryDirectory(dir=self.folder) as beside:
                tried = Path(beside) / kept
                tried.write_bytes(data)
                try:
                    check(tried)
                except ValueError as error:
                    words = str(error).replace(str(tried), name)
                    raise ValueError(f"{words}; the file that was there stays") from error
        with fresh(self.folder / kept, private=True) as file:
            file.write(data)
        return Dropped(kept, name.replace("\\", "/").rpartition("/")[2])

    def path(self, file: Dropped) -> Path:
        """Where a file is."""
        return self.folder / file.kept


def _read(found: Mapping[str, Any], people: Mapping[str, Any], folder: Path) -> Choices:
    """Choices from what is in the files."""
    checked(found, dict.fromkeys(ENTRIES, TABLE), "the file")
    parts = {name: dict(found.get(name, {})) for name in ENTRIES}
    for name, known in ENTRIES.items():
        checked(parts[name], known or dict.fromkeys(parts[name], "anything"), f"[{name}]")
    tables, groups, fit = parts["tables"], parts["groups"], parts["fit"]
    files = {}
    for kind in [kind for kind in KINDS if kind in tables]:
        before, mark, after = tables[kind].rpartition("#")
        sheet = bool(mark) and (folder / before).exists()
        kept = before if sheet else tables[kind]
        files[kind] = Dropped(kept, parts["dropped"].get(kind, ""), after if sheet else None)
    asked: dict[str, Any] = {n: tables[n] for n in ("names", *WAYS) if n in tables}
    asked |= {"id": tables.get("id", Settings.id), "cohort": groups.get("cohort")}
    asked |= {"same": groups.get("same", []), "mix": groups.get("differ", [])}
    asked |= {name: fit.pop(name) for name in ALLOWED if name in fit}
    for name, told in parts["columns"].items():
        checked(told, COLUMN, f"[columns.{name}]")
        marks = [mark for mark in MARKS if told.get(mark)]
        for entry in [*([told["role"]] if "role" in told else []), *marks]:
            asked.setdefault(entry, []).append(name)
        for entry in [entry for entry in BY_COLUMN if entry in told]:
            asked.setdefault(entry, {})[name] = told[entry]
    said = parts["columns"] or groups or "id" in tables
    settings = Settings.of(asked | {"fit": fit}) if said else None
    reading = {name: tables[name] for name in READING if name in tables}
    planned = str(groups["plan"]) if "plan" in groups else None
    return Choices(files, settings, planned, tuple(_decisions(people)), reading)


def _decisions(people: Mapping[str, Any]) -> Iterable[Decided]:
    checked(people, dict.fromkeys(HEADINGS.values(), "anything"), "the file of people")
    for kind in ("require", "forbid", "together", "left"):
        heading = HEADINGS[kind]
        for part in people.get(heading, []):
            checked(part, {"who": NAMES, "room": NAME, "reason": NAME}, f"[[{heading}]]")
            room = part.get("room")
            who = tuple(part["who"])
            yield Decided("fixed" if room else kind, who, room, part.get("reason", ""))


def _document(made: Choices) -> dict[str, Any]:
    """What the first file is to hold."""
    tables: dict[str, Any] = {kind: str(file) for kind, file in made.files.items()}
    tables |= made.reading
    dropped = {kind: file.name for kind, file in made.files.items() if file.name}
    found: dict[str, Any] = {"tables": tables, "dropped": dropped}
    told = made.settings
    if told is None:
        return found
    tables |= {"id": told.id, "names": told.names, told.way: [*told.shares]}
    columns: dict[str, dict[str, Any]] = {}
    for role in (*ASKED, "ignore", *MARKS):
        entry = {role: True} if role in MARKS else {"role": role}
        for name in getattr(told, role):
            columns.setdefault(name, {}).update(entry)
    for role in BY_COLUMN:
        for name, values in getattr(told, role).items():
            plain = [*values] if BY_COLUMN[role] == NAMES else values
            columns.setdefault(name, {})[role] = plain
    groups = {"cohort": told.cohort, "same": [*told.same], "differ": [*told.mix]}
    fit = {name: getattr(told, name) for name in ALLOWED} | dict(told.fit)
    return found | {"groups": groups | {"plan": made.planned}, "columns": columns, "fit": fit}


def _write(path: Path, made: Mapping[str, Any], about: str, notes: Mapping[str, str]) -> None:
    """All of a file, or nothing of it; what is there keeps its comments and its order."""
    try:
        import tomlkit
    except ImportError as error:
        raise ValueError(
            f"to write {path.name} needs the extra mlestruct[office]: "
            "pip install 'mlestruct[office]'"
        ) from error
    if path.exists():
        file = tomlkit.parse(path.read_text(encoding="utf-8"))
    else:
        file = tomlkit.document()
        file.add(tomlkit.comment(about))
    _update(file, made, COMMENTS | dict(notes))
    with fresh(path, private=True) as out:
        out.write(tomlkit.dumps(file).encode())


def _update(file: Any, made: Mapping[str, Any], notes: Mapping[str, str]) -> None:
    """Entries that are new or other; those that are gone, or nothing, are taken out."""
    import tomlkit

    wanted = {name: value for name, value in made.items() if value not in (None, {}, [])}
    for name in [name for name in file if name not in wanted]:
        del file[name]
    for name, value in wanted.items():
        if isinstance(value, dict):
            if name not in file:
                file[name] = tomlkit.table()
                if name in notes:
                    file[name].comment(notes[name])
            _update(file[name], value, notes)
        elif isinstance(value, list) and isinstance(value[0], dict):
            new = [{n: v for n, v in part.items() if v is not None} for part in value]
            listed = file.get(name) or tomlkit.aot()
            for k in reversed(range(len(listed))):
                if listed[k] not in new:
                    del listed[k]
            for part in [part for part in new if part not in listed]:
                listed.append(tomlkit.item(part))
            file[name] = listed
        elif name not in file or file[name] != value:
            file[name] = value

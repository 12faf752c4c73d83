"""A project: what an office decided, in two files that people can read, edit and keep.

``roommates.toml`` says where tables are, what columns are for and how to learn: it names nobody.
``roommates.people.toml`` names people: who left, who is locked together or kept apart. Decisions
are tied to ids and names of columns, so that they outlive a corrected workbook. One that does not
fit the people, groups and rooms of now is out of use, and said, and holds again when it fits.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, Self

from mlestruct.roommates.cells import written
from mlestruct.roommates.frames import Table
from mlestruct.roommates.observed import ColumnNames
from mlestruct.roommates.people import by_text, groups_of, meant
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
    "unknown": ("refuse", "neutral", "nearest"),
    "larger": ("refuse", "leave_out"),
}
BY_COLUMN = ("no_answer", "spelled")
LOCKS = {"require": "lock", "fixed": "lock"}
HEADINGS = {**LOCKS, "forbid": "apart", "together": "together", "left": "left"}

Rule = tuple[str, str]
"""Two people by their ids, as text."""


class Dropped(NamedTuple):
    """A file: where it is kept, the user's own name for it, and the chosen sheet."""

    kept: str
    name: str
    sheet: str | None = None


@dataclass(frozen=True)
class Settings:
    """What columns are for and what becomes of odd answers; ``fit`` are other settings of a fit.

    ``names`` is the column shown beside ids, answers in columns of ``trust`` are as meant, and
    ``spelled`` has what to read in place of a spelling, by column. The other names are those of
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
    missing: str = "refuse"
    unknown: Any = "refuse"
    larger: str = "refuse"
    fit: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, asked: Mapping[str, Any]) -> Self:
        """From a request or a file: names and lists of names, nothing else."""
        known = [one.name for one in fields(cls)]
        strange = next((name for name in asked if name not in known), None)
        if strange is not None:
            raise ValueError(f"unknown role {strange!r}; there are {', '.join(known)}")
        made: dict[str, Any] = {"fit": dict(asked.get("fit", {}))}
        for name in SINGLE:
            made[name] = asked.get(name) or None
            if not isinstance(made[name], str | None):
                raise ValueError(f"{name} is a name, not {made[name]!r}")
        for name in (*LISTED, *WAYS):
            default = cls.partners if name == "partners" else ()
            made[name] = _names(asked.get(name, default), name)
        for name, allowed in ALLOWED.items():
            made[name] = asked.get(name, getattr(cls, name))
            if made[name] not in allowed:
                raise ValueError(f"{name} is one of {', '.join(allowed)}, not {made[name]!r}")
        codes = asked.get("no_answer", {})
        if not isinstance(codes, dict):
            raise ValueError("no_answer is a list of codes by column")
        made["no_answer"] = {str(name): _names(values, name) for name, values in codes.items()}
        made["spelled"] = {str(n): dict(words) for n, words in asked.get("spelled", {}).items()}
        if not made["id"]:
            raise ValueError("choose the column that holds the ids of people")
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
    def groups(self) -> list[str]:
        """The columns that keep people apart."""
        return [*([self.cohort] if self.cohort else []), *self.same]

    @property
    def asked(self) -> list[str]:
        """The questions."""
        return [name for role in ASKED for name in getattr(self, role)]

    @property
    def columns(self) -> ColumnNames:
        return ColumnNames(
            self.partners, self.cohort, id=self.id, room=self.room, partner=self.partner
        )

    def uses(self) -> dict[str, list[str]]:
        """By column of people, all that is said of it; who shares is not among these."""
        found: dict[str, list[str]] = {}
        for role in (*SINGLE, *LISTED):
            told = getattr(self, role) or ()
            for name in (told,) if isinstance(told, str) else told:
                found.setdefault(name, []).append(role)
        for name in self.no_answer:
            found.setdefault(name, []).append("no answer")
        for name in self.spelled:
            found.setdefault(name, []).append("spelled")
        return found

    def keeping(self, true: Callable[[str], bool]) -> Self:
        """With what is said of some columns only; ids, cohort and who shares stay."""
        kept: dict[str, Any] = {r: tuple(filter(true, getattr(self, r))) for r in LISTED}
        for name in ("no_answer", "spelled"):
            kept[name] = {n: v for n, v in getattr(self, name).items() if true(n)}
        return replace(self, **kept)

    def with_those(self, old: Settings) -> Self:
        """With all that is said in others of columns of which nothing is said here."""
        mine = self.uses()
        more: dict[str, Any] = {}
        for role in LISTED:
            more[role] = (*getattr(self, role), *(n for n in getattr(old, role) if n not in mine))
        for name in ("no_answer", "spelled"):
            more[name] = {**getattr(old, name), **getattr(self, name)}
        return replace(self, **more)


def _names(value: Any, what: str) -> tuple[str, ...]:
    if isinstance(value, (list, tuple)) and all(isinstance(name, str) for name in value):
        return tuple(map(str, value))
    raise ValueError(f"{what} is a list of names, not {value!r}")


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
        """A folder for the project alone, made where it is not there, which nobody else reads."""
        made = cls(folder)
        made.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # a folder that is no project's, in which somebody keeps other things, stays as it is
        if made.file.exists() or not any(made.folder.iterdir()):
            _tighten(made.folder)
        return made

    def choices(self) -> Choices:
        """As last kept; a project that begins has none."""
        found, people = _parsed(self.file), _parsed(self.private)
        try:
            return _read(found, people, self.folder)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"{self.file} is not a project of room-mates: {error}") from error

    def keep(self, choices: Choices, notes: Mapping[str, str] | None = None) -> None:
        """Write what is new of all choices, and leave comments alone; ``notes`` are by column."""
        made = _document(choices)
        _write(self.file, made, notes or {})
        if choices.decided or self.private.exists():
            _write(self.private, _people(choices.decided), {})

    def put(
        self, kind: str, name: str, data: bytes, check: Callable[[Path], None] | None = None
    ) -> Dropped:
        """Keep a dropped file, unless ``check``, given it under another name, refuses it."""
        ending = Path(name).suffix.lower()
        if kind not in KINDS:
            raise ValueError(f"a file is one of {', '.join(KINDS)}, not {kind!r}")
        if ending not in ENDINGS:
            raise ValueError(f"{name}: expected a file that ends in {', '.join(ENDINGS)}")
        if len(data) > LARGEST:
            raise ValueError(f"{name} has {len(data)} bytes; at most {LARGEST} are read")
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


def _tighten(folder: Path) -> None:
    """Take the rights of others from a folder and the files in it, where they are ours to take."""
    for path in (folder, *folder.iterdir()):
        if path.is_symlink() or not (path == folder or path.is_file()):
            continue
        mode = path.stat().st_mode
        if mode & 0o077:
            with suppress(OSError):
                path.chmod(mode & 0o700)


def _parsed(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not a project of room-mates: {error}") from error


ENTRIES = {  # of each part of the first file
    "tables": {*KINDS, *READING, "id", "names", *WAYS},
    "dropped": {*KINDS},
    "groups": {"cohort", "same", "differ", "plan"},
    "columns": None,
    "fit": None,
}


def _read(found: Mapping[str, Any], people: Mapping[str, Any], folder: Path) -> Choices:
    """Choices from what is in the files."""
    _only(found, set(ENTRIES), "the file")
    parts = {name: dict(found.get(name, {})) for name in ENTRIES}
    for name, known in ENTRIES.items():
        _only(parts[name], known, f"[{name}]")
    tables, groups, columns = parts["tables"], parts["groups"], parts["columns"]
    files = {}
    for kind in [kind for kind in KINDS if kind in tables]:
        before, mark, after = _text(tables[kind]).rpartition("#")
        sheet = bool(mark) and (folder / before).exists()
        kept = before if sheet else tables[kind]
        files[kind] = Dropped(kept, parts["dropped"].get(kind, ""), after if sheet else None)
    asked: dict[str, Any] = {n: tables[n] for n in ("id", "names", *WAYS) if n in tables}
    asked |= {"cohort": groups.get("cohort"), "same": groups.get("same", [])}
    asked |= {"mix": groups.get("differ", []), "no_answer": {}, "spelled": {}}
    for name, told in columns.items():
        _only(told, {"role", *BY_COLUMN, "protected", "trust"}, f"[columns.{name}]")
        roles = [told["role"]] if "role" in told else []
        if roles and told["role"] not in (*ASKED, "ignore"):
            raise ValueError(
                f"[columns.{name}]: a role is {', '.join(ASKED)} or ignore, not {told['role']!r}"
            )
        for role in [*roles, *(mark for mark in ("protected", "trust") if told.get(mark))]:
            asked.setdefault(role, []).append(name)
        for entry in [entry for entry in BY_COLUMN if entry in told]:
            asked[entry][name] = told[entry]
    asked |= {name: parts["fit"].pop(name) for name in ALLOWED if name in parts["fit"]}
    said = columns or groups or "id" in tables
    settings = Settings.of({"id": Settings.id, **asked, "fit": parts["fit"]}) if said else None
    plan = groups.get("plan")
    reading = {name: tables[name] for name in READING if name in tables}
    planned = None if plan is None else str(plan)
    return Choices(files, settings, planned, tuple(_decisions(people)), reading)


def _only(found: Mapping[str, Any], known: Collection[str] | None, where: str) -> None:
    strange = next((name for name in found if known is not None and name not in known), None)
    if strange is not None:
        raise ValueError(f"{where} has {strange!r}; expected {', '.join(sorted(known or ()))}")


def _decisions(people: Mapping[str, Any]) -> Iterable[Decided]:
    _only(people, set(HEADINGS.values()), "the file of people")
    for heading in ("lock", "apart", "together", "left"):
        for part in people.get(heading, []):
            _only(part, {"who", "room", "reason"}, f"[[{heading}]]")
            kind = next(kind for kind, own in HEADINGS.items() if own == heading)
            kind = "fixed" if "room" in part else kind
            who = _names([*part["who"]], f"[[{heading}]] who")
            room = _text(part["room"]) if kind == "fixed" else None
            yield Decided(kind, who, room, _text(part.get("reason", "")))


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise TypeError(f"{value!r} is no text")


def _document(made: Choices) -> dict[str, Any]:
    """What the first file is to hold."""
    tables: dict[str, Any] = {
        kind: file.kept + (f"#{file.sheet}" if file.sheet else "")
        for kind, file in made.files.items()
    }
    tables |= made.reading
    told = made.settings
    dropped = {kind: file.name for kind, file in made.files.items() if file.name}
    if told is None:
        return {"tables": tables, "dropped": dropped}
    tables |= {"id": told.id, "names": told.names, told.way: [*told.shares]}
    groups = {"cohort": told.cohort, "same": [*told.same], "differ": [*told.mix]}
    columns: dict[str, dict[str, Any]] = {}
    for role in (*ASKED, "ignore"):
        for name in getattr(told, role):
            columns.setdefault(name, {})["role"] = role
    for mark in ("protected", "trust"):
        for name in getattr(told, mark):
            columns.setdefault(name, {})[mark] = True
    for entry in BY_COLUMN:
        for name, values in getattr(told, entry).items():
            plain = dict(values) if isinstance(values, Mapping) else [*values]
            columns.setdefault(name, {})[entry] = plain
    fit = {name: getattr(told, name) for name in ALLOWED} | dict(told.fit)
    return {
        "tables": tables,
        "dropped": dropped,
        "groups": groups | {"plan": made.planned},
        "columns": columns,
        "fit": fit,
    }


def _people(decided: Decisions) -> dict[str, Any]:
    """What the second file is to hold."""
    found: dict[str, Any] = {}
    for part in decided:
        told = {"who": [*part.who], "room": part.room, "reason": part.reason or None}
        found.setdefault(HEADINGS[part.kind], []).append(told)
    return found


def _write(path: Path, made: Mapping[str, Any], notes: Mapping[str, str]) -> None:
    """All of a file, or nothing of it; what is there keeps its comments and its order."""
    try:
        import tomlkit
    except ImportError as error:
        raise ValueError(
            f"to write {path.name} needs the extra mlestruct[office]: "
            "pip install 'mlestruct[office]'"
        ) from error
    new = not path.exists()
    file = tomlkit.document() if new else tomlkit.parse(path.read_text(encoding="utf-8"))
    if new:
        file.add(tomlkit.comment(COMMENTS["people" if "people" in path.suffixes[0] else "file"]))
    _update(file, made, notes)
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
                if name in COMMENTS:
                    file[name].comment(COMMENTS[name])
                if name in notes:
                    file[name].comment(notes[name])
            _update(file[name], value, notes)
        elif isinstance(value[0] if isinstance(value, list) else None, dict):
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


def judged(
    made: Decisions,
    people: Table | None,
    id_column: str,
    groups: Sequence[str],
    rooms: Table | None,
) -> Decisions:
    """Every decision, with the reason why it does not fit these people and rooms, if any."""
    if people is None:
        return tuple(part._replace(why=PAGE["unfit nobody yet"]) for part in made)
    ids = people.as_names(id_column).tolist()
    texts, row = by_text(ids), {who: k for k, who in enumerate(ids)}
    of = {int(m): group for group in groups_of(people, groups) for m in group.members}
    places = {} if rooms is None else {str(written(n)): k for k, n in enumerate(rooms["room"])}

    def why(part: Decided) -> str | None:
        known = {who: meant(who, texts, ids) for who in part.who}
        if part.kind == "left":
            return None
        gone = next((who for who in part.who if known[who] is None), None)
        if gone is not None:
            return PAGE["unfit gone"].format(who=gone)
        own = [of[row[who]] for who in known.values()]
        if part.kind != "forbid" and len({group.label for group in own}) > 1:
            other = next(group.label for group in own if group is not own[0])
            return PAGE["unfit groups"].format(first=own[0].label, second=other)
        if part.kind != "fixed":
            return None
        if rooms is None or part.room not in places:
            return PAGE["unfit room"].format(room=part.room)
        for name, mine in zip(groups, own[0].key, strict=True):
            theirs = rooms.labels(name)[places[part.room]] if name in rooms.names else mine
            if written(theirs) != written(mine):
                return PAGE["unfit room of"].format(room=part.room, group=f"{name} {theirs}")
        return None

    return tuple(part._replace(why=why(part)) for part in made)


def together(made: Decisions, pairs: Sequence[Rule]) -> tuple[Decisions, list[Rule]]:
    """With these pairs put together; and which earlier ones that undoes. Locks are not broken."""
    for pair in pairs:
        _refuse_locked(made, pair)
        _refuse_apart(made, pair)
    taken, asked = {who for pair in pairs for who in pair}, [set(pair) for pair in pairs]
    old = [part for part in made if part.kind == "together" and taken & set(part.who)]
    kept = (part for part in made if part not in old)
    undone = [part.who for part in old if set(part.who) not in asked]
    return (*kept, *(Decided("together", pair) for pair in pairs)), [(a, b) for a, b in undone]


def apart(made: Decisions, pair: Rule) -> tuple[Decisions, list[Rule]]:
    """With two people kept apart; and which pair put together before that undoes."""
    if any(set(pair) <= set(part.who) for part in made if part.kind in LOCKS):
        raise ValueError(f"{pair[0]} and {pair[1]} are locked: unlock that home first")
    undone = [part for part in made if part.kind == "together" and set(part.who) == set(pair)]
    kept = tuple(part for part in made if part not in undone)
    known = any(part.kind == "forbid" and set(part.who) == set(pair) for part in made)
    return kept if known else (*kept, Decided("forbid", pair)), [pair for _ in undone]


def locked(made: Decisions, who: Sequence[str], room: str | None, keep: bool) -> Decisions:
    """These people stay together, in their room where there are rooms; or no longer."""
    if len(who) not in (1, 2, 4) or len(set(who)) < len(who):
        raise ValueError("a home is one person, two or four")
    if room is None and len(who) == 1:
        raise ValueError("who lives alone can be locked in a room only, and there is none")

    def goes(part: Decided) -> bool:
        same = set(part.who) == set(who)
        return part.kind in LOCKS and (same or (not keep and set(part.who) <= set(who)))

    loose = tuple(part for part in made if not goes(part))
    if not keep:
        return loose
    _refuse_locked(loose, who)
    taken = next((part for part in loose if part.kind == "fixed" and part.room == room), None)
    if taken is not None:
        raise ValueError(f"room {room} is locked for {' and '.join(taken.who)}")
    for two in combinations(who, 2):
        _refuse_apart(loose, two)
    pairs = [*zip(who[::2], who[1::2], strict=False)]
    asked = [set(pair) for pair in pairs]
    for part in made:
        if part.kind == "together" and set(part.who) & set(who) and set(part.who) not in asked:
            raise ValueError(f"{' and '.join(part.who)} were put together: let that go first")
    if room is not None:
        return (*loose, Decided("fixed", tuple(who), room))
    return (*loose, *(Decided("require", pair) for pair in pairs))


def let_go(made: Decisions, kind: str, who: Sequence[str]) -> Decisions:
    """Without one decision."""
    left = tuple(part for part in made if part[:2] != (kind, tuple(who)))
    if len(left) == len(made):
        raise ValueError(f"there is no such decision about {' and '.join(who)}")
    return left


def _refuse_apart(made: Decisions, pair: Rule) -> None:
    if any(part.kind == "forbid" and set(part.who) == set(pair) for part in made):
        raise ValueError(f"{pair[0]} and {pair[1]} are kept apart: let that go first")


def _refuse_locked(made: Decisions, who: Sequence[str]) -> None:
    for part in made:
        taken = next((own for own in who if part.kind in LOCKS and own in part.who), None)
        if taken is not None:
            home = " and ".join(part.who)
            raise ValueError(f"{taken} is locked: unlock that home first ({home})")

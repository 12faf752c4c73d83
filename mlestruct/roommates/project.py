"""A project on disk, from which nothing is lost, and what the office decided about people.

Decisions are tied to ids, so that they outlive a corrected workbook. One that cannot be kept with
the people, groups and rooms of now is kept out of use, and said, and holds again when they come
back.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from mlestruct.files import fresh, parsed
from mlestruct.roommates.cells import written
from mlestruct.roommates.frames import Table
from mlestruct.roommates.people import by_text, groups_of, meant

KINDS = ("people", "pairs", "new", "rooms", "rules")
CHOICES = "project.json"
MODEL = "model.npz"
RULES = ("require", "forbid", "together")  # what may be asked of two people
STEPS = 50  # decisions that can be taken back
ENDINGS = (".csv", ".tsv", ".txt", ".xlsx", ".xlsm")
LARGEST = 64 << 20  # bytes of one file

Rule = tuple[str, str]
"""Two people by their ids, as text."""


class Dropped(NamedTuple):
    """A file: the name it is kept under, the user's own name for it, and the chosen sheet."""

    kept: str
    name: str
    sheet: str | None = None


@dataclass(frozen=True)
class Decisions:
    """What was decided about people, each by the text of an id; files may come and go.

    ``require``: pairs that are locked; ``forbid``: pairs kept apart; ``together``: pairs that were
    put together or swapped, and may be changed again; ``fixed``: who is locked in a room.
    """

    require: tuple[Rule, ...] = ()
    forbid: tuple[Rule, ...] = ()
    together: tuple[Rule, ...] = ()
    fixed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Choices(Decisions):
    """What was chosen on the page. ``files``: the dropped file of each kind.

    ``roles``: what every column is for, and how it is read, as the page says it; ``planned``: the
    cohort to pair up, as text; ``before``: the decisions before each of the last changes;
    ``known``: the columns of people that there were when roles were chosen.
    """

    files: Mapping[str, Dropped] = field(default_factory=dict)
    roles: Mapping[str, Any] = field(default_factory=dict)
    planned: str | None = None
    before: tuple[Decisions, ...] = ()
    known: tuple[str, ...] = ()

    @property
    def decisions(self) -> Decisions:
        """What was decided about people, without anything else."""
        return Decisions(self.require, self.forbid, self.together, self.fixed)

    def decided(self, new: Decisions) -> Choices:
        """With other decisions; those of now can be had back by :meth:`undone`."""
        if new == self.decisions:
            return self
        return replace(self, **vars(new), before=(*self.before, self.decisions)[-STEPS:])

    def undone(self) -> Choices:
        """With the decisions before the last change of them."""
        if not self.before:
            raise ValueError("there is nothing to take back")
        return replace(self, **vars(self.before[-1]), before=self.before[:-1])


class Project:
    """A folder that holds everything: closing the page, or the program, loses nothing."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # a folder that is no project's, in which somebody keeps other things, stays as it is
        if (self.folder / CHOICES).exists() or not any(self.folder.iterdir()):
            _tighten(self.folder)

    @property
    def model(self) -> Path:
        """Where the fitted model is kept."""
        return self.folder / MODEL

    def choices(self) -> Choices:
        """As last kept; a project that begins has none."""
        path = self.folder / CHOICES
        if not path.exists():
            return Choices()
        try:
            return _read(parsed(path.read_text(encoding="utf-8")))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"{path} is not a project of this page: {error}") from error

    def keep(self, choices: Choices) -> None:
        """Write all choices at once, or none of them."""
        self._write(CHOICES, json.dumps(asdict(choices), indent=1).encode())

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
        self._write(kept, data)
        return Dropped(kept, name.replace("\\", "/").rpartition("/")[2])

    def path(self, file: Dropped) -> Path:
        """Where a dropped file is kept."""
        return self.folder / Path(file.kept).name

    def _write(self, name: str, data: bytes) -> None:
        with fresh(self.folder / name, private=True) as file:
            file.write(data)


def _tighten(folder: Path) -> None:
    """Take the rights of others from a folder and the files in it, where they are ours to take."""
    for path in (folder, *folder.iterdir()):
        if path.is_symlink() or not (path == folder or path.is_file()):
            continue
        mode = path.stat().st_mode
        if mode & 0o077:
            with suppress(OSError):
                path.chmod(mode & 0o700)


def _read(kept: Mapping[str, Any]) -> Choices:
    """Choices from their JSON."""
    files = {kind: Dropped(*map(_text, file)) for kind, file in kept["files"].items()}
    return Choices(
        **vars(_decisions(kept)),
        files=files,
        roles=dict(kept["roles"]),
        planned=_text(kept["planned"]),
        before=tuple(map(_decisions, kept.get("before", ()))),
        known=tuple(map(str, kept.get("known", ()))),
    )


def _decisions(kept: Mapping[str, Any]) -> Decisions:
    require, forbid, together = (
        tuple((_id(a), _id(b)) for a, b in kept.get(name, ())) for name in RULES
    )
    fixed = {str(room): tuple(map(_id, who)) for room, who in kept["fixed"].items()}
    return Decisions(require, forbid, together, fixed)


def _id(value: Any) -> str:
    """The text of an id; an older version kept the rows of a table, which say nothing now."""
    if isinstance(value, str):
        return value
    raise TypeError(f"row {value!r} is no id: decisions of an older version cannot be read")


def _text(value: Any) -> Any:
    if value is None or isinstance(value, str):
        return value
    raise TypeError(f"{value!r} is no text")


class Decided(NamedTuple):
    """One decision: its kind, ids, room, and why it is out of use (a key and values) or None."""

    kind: str
    who: tuple[str, ...]
    room: str | None = None
    why: tuple[str, Mapping[str, Any]] | None = None


def listed(made: Decisions) -> list[Decided]:
    """Every decision, one by one."""
    twos = [Decided(kind, tuple(two)) for kind in RULES for two in getattr(made, kind)]
    return [*twos, *(Decided("fixed", who, room) for room, who in made.fixed.items())]


def joined(parts: Iterable[Decided]) -> Decisions:
    """The inverse of :func:`listed`."""
    parts = list(parts)

    def of(kind: str) -> tuple[Rule, ...]:
        return tuple((part.who[0], part.who[1]) for part in parts if part.kind == kind)

    fixed = {str(part.room): part.who for part in parts if part.kind == "fixed"}
    return Decisions(of("require"), of("forbid"), of("together"), fixed)


def judged(
    made: Decisions,
    people: Table | None,
    id_column: str,
    groups: Sequence[str],
    rooms: Table | None,
) -> list[Decided]:
    """Every decision, with the reason why it does not fit these people and rooms, if any."""
    if people is None:
        return [part._replace(why=("unfit nobody yet", {})) for part in listed(made)]
    ids = people.as_names(id_column).tolist()
    texts, row = by_text(ids), {who: k for k, who in enumerate(ids)}
    own = [group.label for group in groups_of(people, groups)]
    number = {int(m): k for k, g in enumerate(groups_of(people, groups)) for m in g.members}

    def why(part: Decided) -> tuple[str, Mapping[str, Any]] | None:
        found = {who: meant(who, texts, ids) for who in part.who}
        gone = next((who for who, known in found.items() if known is None), None)
        if gone is not None:
            return "unfit gone", {"who": gone}
        rows = [row[known] for known in found.values()]
        of = [own[number[k]] for k in rows]
        if part.kind != "forbid" and len(set(of)) > 1:
            return "unfit groups", {"first": of[0], "second": next(g for g in of if g != of[0])}
        return _room_unfit(part, people, rows[0], groups, rooms) if part.kind == "fixed" else None

    return [part._replace(why=why(part)) for part in listed(made)]


def _room_unfit(
    part: Decided, people: Table, row: int, groups: Sequence[str], rooms: Table | None
) -> tuple[str, Mapping[str, Any]] | None:
    """Why these people cannot stay in their room."""
    names = [] if rooms is None else [str(written(name)) for name in rooms.labels("room")]
    if rooms is None or part.room not in names:
        return "unfit room", {"room": part.room}
    place = names.index(part.room)
    for name in groups:
        if name in rooms.names:
            whose = rooms.labels(name)[place], people.labels(name)[row]
            if written(whose[0]) != written(whose[1]):
                return "unfit room of", {"room": part.room, "group": f"{name} {whose[0]}"}
    return None


def together(made: Decisions, pairs: Sequence[Rule]) -> tuple[Decisions, list[Rule]]:
    """With these pairs put together; and which earlier ones that undoes. Locks are not broken."""
    for a, b in pairs:
        _refuse_locked(made, (a, b))
        if _of(made.forbid, (a, b)):
            raise ValueError(f"{a} and {b} are kept apart: let that go first")
    taken = {who for pair in pairs for who in pair}
    undone = [old for old in made.together if taken & set(old) and not _of(pairs, old)]
    kept = tuple(old for old in made.together if not taken & set(old))
    return replace(made, together=(*kept, *pairs)), undone


def apart(made: Decisions, pair: Rule) -> tuple[Decisions, list[Rule]]:
    """With two people kept apart; and which pair put together before that undoes."""
    homes = [*made.require, *made.fixed.values()]
    if any(set(pair) <= set(home) for home in homes):
        raise ValueError(f"{pair[0]} and {pair[1]} are locked: unlock that home first")
    undone = [old for old in made.together if set(old) == set(pair)]
    kept = tuple(old for old in made.together if set(old) != set(pair))
    more = () if _of(made.forbid, pair) else (pair,)
    return replace(made, together=kept, forbid=(*made.forbid, *more)), undone


def ruled(made: Decisions, kind: str, pairs: Sequence[Rule], keep: bool) -> Decisions:
    """With rules of a kind added, or without them; one that breaks another is refused."""
    if kind not in RULES:
        raise ValueError(f"a rule is one of {', '.join(RULES)}, not {kind!r}")
    if not keep:
        return joined(
            part for part in listed(made) if part.kind != kind or not _of(pairs, part.who)
        )
    for pair in pairs:
        if _of(getattr(made, kind), pair):
            continue
        if kind == "forbid":
            new, undone = apart(made, pair)
        else:
            new, undone = together(made, [pair])
            new = replace(made, require=(*made.require, pair)) if kind == "require" else new
        if undone:
            a, b = undone[0]
            raise ValueError(f"{a} and {b} were put together: let that go first")
        made = new
    return made


def locked(made: Decisions, who: Sequence[str], room: str | None, keep: bool) -> Decisions:
    """These people stay together, in their room where there are rooms; or no longer."""
    if len(who) not in (1, 2, 4) or len(set(who)) < len(who):
        raise ValueError("a home is one person, two or four")
    if room is None and len(who) == 1:
        raise ValueError("who lives alone can be locked in a room only, and there is none")
    pairs = [(a, b) for a, b in zip(who[::2], who[1::2], strict=False)]
    loose = replace(
        ruled(made, "require", pairs, False),
        fixed={
            name: own
            for name, own in made.fixed.items()
            if set(own) != set(who) and (keep or not set(own) <= set(who))
        },
    )
    if not keep:
        return loose
    _refuse_locked(loose, who)
    if room is not None and room in loose.fixed:
        raise ValueError(f"room {room} is locked for {' and '.join(loose.fixed[room])}")
    barred = [two for two in combinations(who, 2) if _of(made.forbid, two)]
    if barred:
        raise ValueError(f"{' and '.join(barred[0])} are kept apart: let that go first")
    lost = [old for old in made.together if set(old) & set(who) and not _of(pairs, old)]
    if lost:
        raise ValueError(f"{' and '.join(lost[0])} were put together: let that go first")
    if room is None:
        return replace(loose, require=(*loose.require, *pairs))
    return replace(loose, fixed={**loose.fixed, room: tuple(who)})


def let_go(made: Decisions, kind: str, who: Sequence[str]) -> Decisions:
    """Without one decision."""
    left = [part for part in listed(made) if part[:2] != (kind, tuple(who))]
    if len(left) == len(listed(made)):
        raise ValueError(f"there is no such decision about {' and '.join(who)}")
    return joined(left)


def _of(rules: Iterable[Sequence[str]], pair: Sequence[str]) -> bool:
    return any(set(rule) == set(pair) for rule in rules)


def _refuse_locked(made: Decisions, who: Sequence[str]) -> None:
    held = {own: home for home in (*made.require, *made.fixed.values()) for own in home}
    taken = next((own for own in who if own in held), None)
    if taken is not None:
        home = " and ".join(held[taken])
        raise ValueError(f"{taken} is locked: unlock that home first ({home})")

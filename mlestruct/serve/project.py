"""A project on disk: files as they were dropped, choices, rules and the model; nothing is lost."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

from mlestruct.files import parsed

KINDS = ("people", "pairs", "new", "rooms", "rules")
CHOICES = "project.json"
MODEL = "model.npz"
RULES = ("require", "forbid", "together")  # what may be asked of two people
STEPS = 50  # decisions that can be taken back
ENDINGS = (".csv", ".tsv", ".txt", ".xlsx", ".xlsm", ".parquet")
STAYS = "the file that was there stays"
LARGEST = 64 << 20  # bytes of one file

Rule = tuple[str, str]
"""Two people by their ids, as text."""


class Unreadable(ValueError):
    """Why a file is refused, and the path under which it was tried."""


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
        return replace(self._with(new), before=(*self.before, self.decisions)[-STEPS:])

    def undone(self) -> Choices:
        """With the decisions before the last change of them."""
        if not self.before:
            raise ValueError("there is nothing to take back")
        return replace(self._with(self.before[-1]), before=self.before[:-1])

    def _with(self, new: Decisions) -> Choices:
        return replace(self, **{part.name: getattr(new, part.name) for part in fields(Decisions)})


class Project:
    """A folder that holds everything: closing the page, or the program, loses nothing."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self._holds_nothing_else():
            _tighten(self.folder)

    def _holds_nothing_else(self) -> bool:
        """Whether the folder is a project's, and not one in which somebody keeps other things."""
        return (self.folder / CHOICES).exists() or not any(self.folder.iterdir())

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
        try:
            self._write(kept, data, check)
        except Unreadable as error:
            raise ValueError(f"{error.args[0].replace(error.args[1], name)}; {STAYS}") from error
        return Dropped(kept, name.replace("\\", "/").rpartition("/")[2])

    def path(self, file: Dropped) -> Path:
        """Where a dropped file is kept."""
        return self.folder / Path(file.kept).name

    def _write(self, name: str, data: bytes, check: Callable[[Path], None] | None = None) -> None:
        """All of it or nothing: into a new file beside, which then takes the name."""
        beside = self.folder / f".{name}.{secrets.token_hex(4)}"
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            if check is not None:
                try:
                    check(beside)
                except ValueError as error:
                    raise Unreadable(str(error), str(beside)) from error
            os.replace(beside, self.folder / name)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise


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
    now = _decisions(kept)
    return Choices(
        now.require,
        now.forbid,
        now.together,
        now.fixed,
        {kind: Dropped(*map(_text, file)) for kind, file in kept["files"].items()},
        dict(kept["roles"]),
        _text(kept["planned"]),
        tuple(map(_decisions, kept.get("before", ()))),
        tuple(map(str, kept.get("known", ()))),
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

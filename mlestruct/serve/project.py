"""A project on disk: files as they were dropped, choices, rules and the model; nothing is lost."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

KINDS = ("people", "pairs", "rooms")
CHOICES = "project.json"
MODEL = "model.npz"
RULES = ("require", "forbid")  # what may be asked of two people
ENDINGS = (".csv", ".tsv", ".txt", ".xlsx", ".parquet")
LARGEST = 64 << 20  # bytes of one file

Rule = tuple[int, int]
"""Two people by their rows among those who are paired up."""


@dataclass(frozen=True)
class Choices:
    """What was chosen on the page. ``files``: the dropped file of each kind.

    ``roles``: id, cohort and partner columns by name, and lists of columns for the rest;
    ``planned``: the cohort to pair up, as text; ``require`` and ``forbid``: pairs of rows.
    """

    files: Mapping[str, str] = field(default_factory=dict)
    roles: Mapping[str, Any] = field(default_factory=dict)
    planned: str | None = None
    require: tuple[Rule, ...] = ()
    forbid: tuple[Rule, ...] = ()


class Project:
    """A folder that holds everything: closing the page, or the program, loses nothing."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)

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
            kept = json.loads(path.read_text(encoding="utf-8"))
            rules = [tuple((int(a), int(b)) for a, b in kept[name]) for name in RULES]
            return Choices(kept["files"], kept["roles"], kept["planned"], *rules)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"{path} is not a project of this page: {error}") from error

    def keep(self, choices: Choices) -> None:
        """Write all choices at once, or none of them."""
        self._write(CHOICES, json.dumps(asdict(choices), indent=1).encode())

    def put(self, kind: str, name: str, data: bytes) -> str:
        """Keep a dropped file, and return the name it is kept under."""
        ending = Path(name).suffix.lower()
        if kind not in KINDS:
            raise ValueError(f"a file is one of {', '.join(KINDS)}, not {kind!r}")
        if ending not in ENDINGS:
            raise ValueError(f"{name}: expected a file that ends in {', '.join(ENDINGS)}")
        if len(data) > LARGEST:
            raise ValueError(f"{name} has {len(data)} bytes; at most {LARGEST} are read")
        kept = f"{kind}{ending}"
        self._write(kept, data)
        return kept

    def file(self, kind: str) -> Path | None:
        """The file of a kind, where one was dropped."""
        name = self.choices().files.get(kind)
        return None if name is None else self.folder / Path(name).name

    def _write(self, name: str, data: bytes) -> None:
        """All of it or nothing: into a new file beside, which then takes the name."""
        beside = self.folder / f".{name}.{secrets.token_hex(4)}"
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            os.replace(beside, self.folder / name)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise

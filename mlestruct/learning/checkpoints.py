"""Checkpoints: the file in which a fit stands, so that whatever ends it costs a few rounds.

A fit is loops within loops: alphas, rounds of linearisation, rounds of a solver. Each has a record,
a tree of arrays that says where it stands, with the records of the loops that it has begun since.
All else follows from these, so that a fit which goes on from its file has the bits of one that
nothing ended. :class:`mlestruct.learning.loop.Loop` keeps the records.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from time import perf_counter as clock
from typing import Any

import numpy as np

from mlestruct.storage.trees import pack, unpack

EVERY = 10  # rounds between two writes, at least;
SHARE = 20.0  # and so many times the seconds that the last write took
LARGEST = 1 << 40  # bytes
KIND, FORMAT = "Checkpoint", 4

Setting = Callable[[], Mapping[str, Any]]
"""Makes names, and the values or digests that must be the same for a fit to go on."""
Record = dict[str, Any]


class Unwritten(OSError):
    """A checkpoint could not be written: a full disk, a folder that is gone.

    ``model`` is that of the rounds before, where there were any, under the regulariser ``given``.
    """

    model: Any = None
    given: Any = None


@dataclass(frozen=True)
class Checkpoint:
    """The file that a fit is kept in, written after ``every`` rounds.

    By default after 10 rounds, or more where writing would take a fair share of the fit's time.
    Say ``every=1`` where a single round takes long.
    """

    path: str | os.PathLike[str]
    every: int | None = None

    def open(self, name: str, setting: Setting) -> File:
        """The file of this fit: a new one, or the one that is there, if it is of the same fit."""
        from mlestruct.storage.lock import Lock

        path = Path(self.path)
        if self.every is not None and not (isinstance(self.every, int) and self.every > 0):
            raise ValueError(f"a checkpoint is written every 1, 2, … rounds, not {self.every!r}")
        if path.is_dir() or not path.parent.is_dir():
            raise ValueError(
                f"checkpoint={str(path)!r} must name a file in a directory that exists"
            )
        here = fresh(name, {"mlestruct": version("mlestruct"), **setting()})
        lock = Lock(path)
        kept = _read(path) if path.exists() else here
        file = File(path, self.every, kept, lock, resumed=kept is not here)
        file.refuse_other(kept, here)
        return file


class File:
    """Writes the records of a whole fit when that is due; says what another fit differs in."""

    def __init__(
        self, path: Path, every: int | None, root: Record, lock: Any, *, resumed: bool
    ) -> None:
        self.path, self.every, self.root, self.lock = path, every, root, lock
        self.resumed = resumed
        self.rounds, self.took, self.written = 0, 0.0, clock()

    def due(self) -> bool:
        """Count a round; whether the file is to be written after it."""
        self.rounds += 1
        if self.every is not None:
            return self.rounds >= self.every
        return self.rounds >= EVERY and clock() - self.written >= SHARE * self.took

    def write(self) -> None:
        from mlestruct.storage.files import save

        began = clock()
        packed, arrays = pack(self.root)
        header = {"format": FORMAT, "fit": packed}
        try:
            save(self.path, KIND, arrays, header, largest=LARGEST, private=True)
        except OSError as error:
            there = "the checkpoint written before is whole"
            there = there if self.path.exists() else "it is not kept"
            why = (
                f"{error.strerror}, and {there}; the weights of the best round are in the model. "
                "Make room and fit again to go on from the file, or name another"
            )
            raise Unwritten(error.errno, why, str(self.path)) from error
        self.rounds, self.written = 0, clock()
        self.took = self.written - began

    def refuse_other(self, there: Record, here: Record) -> None:
        """Raise a ValueError that names every difference between two loops."""
        old, new = ({"loop": kept["name"], **kept["setting"]} for kept in (there, here))
        names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
        if names:
            said = "; ".join(f"{n} is {old.get(n)!r} there, {new.get(n)!r} here" for n in names)
            raise ValueError(
                f"{self.path} is the checkpoint of another fit: {said}. Name another file, or "
                "delete this one to begin anew"
            )


def fresh(name: str, setting: Mapping[str, Any]) -> Record:
    """The record of a loop at its start."""
    return {
        "name": name, "setting": dict(setting), "state": None, "rows": [], "done": False,
        "found": None, "seconds": 0.0, "inner": [],
    }  # fmt: skip


def _read(path: Path) -> Record:
    from mlestruct.storage.files import load

    try:
        arrays, header = load(path, KIND, largest=LARGEST)
        if header.get("format") != FORMAT:
            raise ValueError(f"its format is {header.get('format', 1)}, this library's {FORMAT}")
        kept: Record = unpack(header["fit"], arrays)
        _check(kept)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{path} is no checkpoint to go on from: {error}. Name another file, or delete this "
            "one to begin anew"
        ) from error
    return kept


def _check(kept: Any) -> None:
    if not isinstance(kept, dict) or set(kept) != set(fresh("", {})):
        raise ValueError("it holds no loops")
    rows = np.asarray(kept["rows"], dtype=float)
    if rows.size and rows.shape[1:] != (4,):
        raise ValueError(f"its rounds are {rows.shape}, not rows of 4")
    if not isinstance(kept["seconds"], float):
        raise ValueError(f"its seconds are {kept['seconds']!r}")
    for inner in kept["inner"]:
        _check(inner)

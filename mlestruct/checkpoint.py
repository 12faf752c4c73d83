"""Checkpoints: what a fit knows, written every few rounds, so that whatever ends it costs no more.

A fit is loops within loops: alphas, rounds of linearisation, rounds of a solver. A loop keeps where
it stands as a tree of arrays, and the loops begun inside since; all else follows from these. So a
fit that goes on from its file has the bits of one that nothing ended. :func:`begin` opens the file
(of a whole fit: :meth:`Checkpoint.loop`), :meth:`Writer.write` writes it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from time import perf_counter as clock
from typing import TYPE_CHECKING, Any

from mlestruct.trees import Tree, pack, unpack

if TYPE_CHECKING:
    from mlestruct.lock import Lock

EVERY = 10  # rounds between two writes, at least;
OUTWEIGH = 5  # and this many coordinates evaluated for every number that is written
LARGEST = 1 << 40  # bytes
KIND = "Checkpoint"
BROKEN = TypeError, LookupError, AttributeError, ArithmeticError, AssertionError, RuntimeError

Setting = Mapping[str, Any]
"""Names, and the values or digests that must be the same for a fit to go on."""
Fit = dict[str, Any]
"""A loop as files keep it."""


class Unwritten(OSError):
    """A checkpoint could not be written: a full disk, a folder that is gone.

    ``model`` is that of the rounds before, where there were any, under the regulariser ``given``.
    """

    model: Any = None
    given: Any = None


@dataclass(frozen=True)
class Checkpoint:
    """The file that a fit is kept in, written after ``every`` rounds.

    By default after 10 rounds, or more where writing would cost a fair share of the fit (see
    ``OUTWEIGH``). Say ``every=1`` where a single round takes long.
    """

    path: str | os.PathLike[str]
    every: int | None = None

    def loop(self, name: str, setting: Callable[[], Setting], size: int = 0) -> Loop:
        """The outermost loop of a fit: a new one, or where there is a file the one kept in it."""
        from mlestruct.lock import Lock

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
        writer = Writer(path, self.every, kept, lock, resumed=kept is not here)
        writer.refuse_other(kept, here)
        return Loop(kept, writer, size)


class Clock:
    """The seconds of a whole fit, without those in which kernels compiled."""

    def __init__(self) -> None:
        self.origin = clock()

    def start(self, spent: float) -> None:
        """Count on from ``spent`` seconds."""
        self.origin = clock() - spent

    @property
    def seconds(self) -> float:
        return clock() - self.origin


def never() -> bool:
    return False


class Loop:
    """One loop of a fit; without a ``writer`` it keeps nothing.

    ``tree`` is where to go on from, None at the start. ``save`` says between two rounds
    where the loop stands, ``finish`` what it came to; ``loop`` begins another inside. ``beside``
    is kept together with the tree; ``heavy`` beside the result, until :meth:`thin`. All loops of a
    fit share its ``clock``, so that a budget of seconds is the fit's; it is ``late`` when these are
    spent, which a method asks where a single round may take many evaluations or calls.
    """

    def __init__(
        self, kept: Fit, writer: Writer | None = None, size: int = 0, clock: Clock | None = None
    ) -> None:
        self.kept, self.writer, self.size = kept, writer, size
        self.begun = 0
        self.clock = Clock() if clock is None else clock
        self.beside: Callable[[], Tree] = lambda: None
        self.late = never

    @contextmanager
    def trusted(self) -> Iterator[None]:
        """What breaks inside a fit that goes on from a file may be the file's fault, and says so.

        A file with the right checksum can hold anything. Errors of a user's solver have a note.
        """
        try:
            yield
        except BROKEN as error:
            if self.writer is None or not self.writer.resumed or hasattr(error, "__notes__"):
                raise
            raise ValueError(
                f"going on from {self.writer.path}: {type(error).__name__}: {error}. If this is "
                "not the file that this fit wrote, name another, or delete it to begin anew"
            ) from error

    @property
    def tree(self) -> Tree:
        return self.kept["tree"]

    @property
    def past(self) -> Tree:
        """The state kept beside the method's tree; once the loop is done, its result."""
        return self.kept["result" if self.done else "beside"]

    @property
    def done(self) -> bool:
        return bool(self.kept["done"])

    def loop(self, name: str, setting: Callable[[], Setting], size: int = 0) -> Loop:
        """The next loop inside: from its start, or from where the file has it."""
        if self.writer is None:
            return Loop(fresh(name, {}), clock=self.clock)
        inner, here = self.kept["inner"], fresh(name, setting())
        if self.begun and not inner[self.begun - 1]["done"]:  # left half-way: begun anew next time
            inner[self.begun - 1].update(NOTHING, inner=[])
        if self.begun == len(inner):
            inner.append(here)
        kept, self.begun = inner[self.begun], self.begun + 1
        self.writer.refuse_other(kept, here)
        return Loop(kept, self.writer, size, self.clock)

    def save(self, where: Callable[[], Tree]) -> None:
        """Another can go on from here, without the loops inside. Trees may be live arrays."""
        if self.writer is None:
            return
        due = self.writer.due(self.size)
        if due or self.kept["inner"]:
            self.kept.update(tree=where(), beside=self.beside(), inner=[])
            self.begun = 0
        if due:
            self.writer.write()

    def finish(self, result: Tree = None, heavy: Tree = None) -> None:
        """End the loop with this result; None: with the results of the loops inside.

        The file is free for another fit, once the whole of this one has ended.
        """
        if self.writer is None:
            return
        if not self.done:
            inner = self.kept["inner"] if result is None else []
            self.kept.update(NOTHING, done=True, result=result, heavy=heavy, inner=inner)
            if self.kept is self.writer.root:
                self.writer.write()
        if self.kept is self.writer.root:
            self.writer.lock.release()

    def thin(self) -> None:
        """Forget the ``heavy`` results of the loops inside, but for the last loop's."""
        for kept in self.kept["inner"][: self.begun - 1]:
            kept["heavy"] = None


class Writer:
    """Writes a whole fit when that is due; says what another's file differs in."""

    def __init__(
        self, path: Path, every: int | None, root: Fit, lock: Lock, *, resumed: bool
    ) -> None:
        self.path, self.every, self.root, self.lock = path, every, root, lock
        self.resumed = resumed
        self.rounds, self.evaluated, self.numbers = 0, 0, 0

    def due(self, size: int) -> bool:
        self.rounds, self.evaluated = self.rounds + 1, self.evaluated + size
        if self.every is not None:
            return self.rounds >= self.every
        return self.rounds >= EVERY and self.evaluated >= OUTWEIGH * self.numbers

    def write(self) -> None:
        from mlestruct.files import save

        packed, arrays = pack(self.root)
        try:
            save(self.path, KIND, arrays, {"fit": packed}, largest=LARGEST, private=True)
        except OSError as error:
            there = "the checkpoint written before is whole"
            there = there if self.path.exists() else "it is not kept"
            why = (
                f"{error.strerror}, and {there}; the weights of the best round are in the model. "
                "Make room and fit again to go on from the file, or name another"
            )
            raise Unwritten(error.errno, why, str(self.path)) from error
        self.rounds, self.evaluated = 0, 0
        self.numbers = sum(array.size for array in arrays.values())

    def refuse_other(self, there: Fit, here: Fit) -> None:
        """A ValueError that names every difference between two loops."""
        old, new = ({"loop": kept["name"], **kept["setting"]} for kept in (there, here))
        names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
        if names:
            said = "; ".join(f"{n} is {old.get(n)!r} there, {new.get(n)!r} here" for n in names)
            raise ValueError(
                f"{self.path} is the checkpoint of another fit: {said}. Name another file, or "
                "delete this one to begin anew"
            )


AnyCheckpoint = Checkpoint | Loop | str | os.PathLike[str] | None
"""Where to keep a fit, if anywhere: a file, or the loop around."""
NOTHING = {"tree": None, "beside": None, "done": False, "result": None, "heavy": None}


def fresh(name: str, setting: Setting) -> Fit:
    """A loop at its start."""
    return {"name": name, "setting": dict(setting), **NOTHING, "inner": []}


def begin(
    keeps: AnyCheckpoint, name: str, setting: Callable[[], Setting] = dict, size: int = 0
) -> Loop:
    """A loop inside another, or one that keeps nothing; ``size`` coordinates a round."""
    if keeps is None:
        return Loop(fresh(name, {}))
    if isinstance(keeps, (str, os.PathLike)):
        keeps = Checkpoint(keeps)
    if not hasattr(keeps, "loop"):
        raise ValueError(f"checkpoint is a path, or ms.Checkpoint(path), not {keeps!r}")
    return keeps.loop(name, setting, size)


def _read(path: Path) -> Fit:
    from mlestruct.files import load

    try:
        arrays, header = load(path, KIND, largest=LARGEST)
        kept: Fit = unpack(header["fit"], arrays)
        _check(kept)
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"{path} is no checkpoint to go on from: {error}. Name another file, or delete this "
            "one to begin anew"
        ) from error
    return kept


def _check(kept: Any) -> None:
    if not isinstance(kept, dict) or set(kept) != set(fresh("", {})):
        raise ValueError("it holds no loops")
    for inner in kept["inner"]:
        _check(inner)

"""The loop of a fit: its limits, whom it tells of its rounds, and where it stands in its file.

A method owns its ``while`` and calls the loop, never the other way::

    if loop.found is not None:          # finished, as the file says
        return loop.found
    if loop.state is not None:
        …                               # go on from what an earlier save kept
    while True:
        loop.save(lambda: …)            # where it stands, as a tree of arrays
        said = Found(theta, certificate, …)
        why = loop.over(said)           # "seconds", "calls", "rounds", or nothing
        if why or certificate.relative <= loop.tol:
            return loop.end(said, why)
        loop.tell(said)
        …                               # a step

A method that runs others gives each a loop inside, ``Loop(loop, name)``: what these have kept
belongs to the round that began them, and is forgotten at the next ``save``.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields, replace
from time import perf_counter as clock
from typing import Any

import numpy as np

from mlestruct import limits
from mlestruct.learning.checkpoints import Checkpoint, File, Record, Setting, fresh
from mlestruct.learning.dual import Certificate
from mlestruct.storage.trees import Tree
from mlestruct.structures.base import Array

NONE = np.zeros(0)
LIMITS: dict[str, Any] = {"tol": 1e-3, "rounds": 1000, "seconds": None, "calls": None}
BROKEN = TypeError, LookupError, AttributeError, ArithmeticError, AssertionError, RuntimeError


@dataclass(frozen=True)
class Found:
    """What a fit has come to, after a round or at its end.

    ``theta`` are the best weights so far and ``tau`` the point of least objective; the certificate
    is theirs. By Frank-Wolfe its tangent was taken ``at`` another point:
    ``certificate(dual, oracle, theta, tau, at=at)`` finds it again. ``calls`` counts questions so
    far, of which the first round asked one per example; ``asking`` are the seconds of ``seconds``
    in which a solver was waited for; ``rounds`` is their limit. ``moved``: odd sets kept ``tau``
    from where inference had it. ``learned`` is what was learned of ``inference``, by which the
    model predicts. ``short`` says why a fit ended before what was asked of it: ``rounds``,
    ``seconds``, ``calls`` ran out, no ``step`` led on, or the ``proof`` leaves more.
    ``history`` has (calls, seconds, objective, gap) of every round; it, ``inference`` and ``done``
    are there at the end.
    """

    theta: Array
    certificate: Certificate
    tau: Array = field(default_factory=lambda: NONE, repr=False)
    at: Array = field(default_factory=lambda: NONE, repr=False)
    round: int = 0
    calls: int = 0
    examples: int = 0
    route: str = "frank_wolfe"
    moved: bool = False
    asking: float = 0.0
    learned: Tree = field(default=None, repr=False)
    short: str = ""
    done: bool = False
    seconds: float = 0.0
    rounds: int = 0
    history: list[tuple[int, float, float, float]] = field(default_factory=list, repr=False)
    inference: Any = None

    @property
    def gap(self) -> float:
        return self.certificate.gap

    @property
    def converged(self) -> bool:
        """The fit reached what was asked of it: for certified learners, the relative gap."""
        return not self.short

    def tree(self) -> Tree:
        """The result as files keep it; the history is the loop's."""
        kept = {one.name: getattr(self, one.name) for one in fields(self) if one.name not in BESIDE}
        return kept | {"certificate": asdict(self.certificate)}

    @classmethod
    def of(cls, tree: Tree) -> Found:
        """The inverse of :meth:`tree`."""
        tau = NONE if tree["tau"] is None else tree["tau"]
        return cls(**tree | {"certificate": Certificate(**tree["certificate"]), "tau": tau})


BESIDE = ("rounds", "history", "inference")
Told = Callable[[Found], object] | None
"""Is told of every round of a fit, as it comes; if it returns True, the next one is the last."""


@dataclass
class History:
    """Rounds of a fit, told of one after the other, and the last of them.

    ``rows`` are (calls, seconds, objective, gap); ``stopped`` says that whoever is told has had
    enough.
    """

    told: Told = None
    rows: list[tuple[int, float, float, float]] = field(default_factory=list)
    last: Found | None = None
    stopped: bool = False


class Loop:
    """The limits of a fit, whom it tells, and its place in a file, if it has one.

    ``tol`` is the relative gap to reach, ``seconds`` are those of the whole fit, whose loops share
    one clock; a loop inside has the ``calls`` that its caller leaves it. ``state`` is where to go
    on from, None at the start, and ``found`` the result of a loop that its file has finished.
    ``history`` has its rounds, those of another loop where they are told as that one's own: then
    they follow ``before`` so many rounds and calls.

    Parameters
    ----------
    keeps : None, path, Checkpoint or Loop
        What the loop is kept in: nothing, a file, or the loop around, whose next one this is, from
        its start or where the file has it.
    name, setting
        What tells the loop from others, for files.
    solver : FrankWolfe or BCFW, optional
        Settings that have the limits; ``limits`` by name come first, and the loop around has the
        rest of them.
    told : callable, optional
        Is told of every round.
    after : Found or None
        Rounds are told as those of the loop around, following this result, if there is one.
    """

    def __init__(
        self,
        keeps: Any = None,
        name: str = "",
        setting: Setting = dict,
        solver: Any = None,
        told: Told = None,
        **limits: Any,
    ) -> None:
        outer, place = keeps if isinstance(keeps, Loop) else None, solver or keeps
        self.tol, self.rounds, self.seconds, self.calls = (
            limits.get(one, getattr(place, one, default)) for one, default in LIMITS.items()
        )
        self.history, self.before, self.origin = History(told), (0, 0), clock()
        self.file: File | None = None
        self.record: Record = {}
        self.state: Tree = None
        self.found: Found | None = None
        self.begun = 0  # of the loops inside
        if outer is not None:
            self.origin, after = outer.origin, limits.get("after")
            if "after" in limits:
                self.history = outer.history
                self.before = (0, 0) if after is None else (after.round + 1, after.calls)
            if outer.file is not None:
                inner, here = outer.record["inner"], fresh(name, setting())
                if outer.begun == len(inner):
                    inner.append(here)
                outer.file.refuse_other(inner[outer.begun], here)
                self._place(outer.file, inner[outer.begun])
                outer.begun += 1
        elif keeps is not None:
            kept = Checkpoint(keeps) if isinstance(keeps, (str, os.PathLike)) else keeps
            if not isinstance(kept, Checkpoint):
                raise ValueError(f"checkpoint is a path, or ms.Checkpoint(path), not {keeps!r}")
            file = kept.open(name, setting)
            self.origin -= file.root["seconds"]
            self._place(file, file.root)

    def _place(self, file: File, record: Record) -> None:
        self.file, self.record, self.state = file, record, record["state"]
        try:
            self.found = None if record["found"] is None else Found.of(record["found"])
        except BROKEN as error:
            self.blame(error)
            raise
        if record["done"] or record["state"] is not None:
            self.history.rows[:] = [(int(row[0]), *map(float, row[1:])) for row in record["rows"]]  # type: ignore[misc]

    def late(self) -> bool:
        """Whether no time is left, of the fit's own or by the limit of the call around it."""
        out = self.seconds is not None and clock() - self.origin > self.seconds
        return out or limits.late()

    def left(self, calls: int) -> int | None:
        """The calls that remain of a limit once so many are spent; None without a limit."""
        return None if self.calls is None else max(self.calls - calls, 0)

    def spent(self, found: Found) -> bool:
        """Whether no time or no call is left for another method."""
        late = self.seconds is not None and found.seconds >= self.seconds
        return late or self.left(found.calls) == 0

    def over(self, said: Found, stuck: str = "") -> str:
        """Why no round follows this one, or nothing; a round asks about every example once.

        ``stuck`` is the method's own reason.
        """
        if self.late():
            return "seconds"
        if self.history.stopped:
            return "stopped"
        out = self.calls is not None and said.calls + said.examples > self.calls
        return stuck or ("calls" if out else "rounds" if said.round >= self.rounds else "")

    def tell(self, said: Found, short: str = "", *, done: bool = False) -> Found:
        """Enter a round into the history, with its seconds, and tell of it."""
        (rounds, calls), history, seconds = self.before, self.history, clock() - self.origin
        more: Any = {"seconds": seconds, "rounds": self.rounds, "short": short, "done": done}
        said = replace(said, round=said.round + rounds, calls=said.calls + calls, **more)
        proof, history.last = said.certificate, said
        history.rows.append((said.calls, seconds, proof.objective, proof.gap))
        if history.told is not None:
            history.stopped = history.told(said) is True
        return said

    def end(self, found: Any = None, short: str | None = None) -> Any:
        """End with this result, which is returned; None: with those of the loops inside.

        With ``short``, which says why a fit ended before its tolerance was met or nothing, it is
        told as the last round. Once the outermost loop has ended its file is free for another fit.
        """
        if short is not None:
            found = self.tell(found, short, done=True)
        if self.file is None:
            return found
        outermost = self.record is self.file.root
        if not self.record["done"]:
            self.record.update(state=None, done=True, rows=np.array(self.history.rows))
            if found is not None:
                self.record.update(found=found.tree(), inner=[])
            if outermost:
                self._write()
        if outermost:
            self.file.lock.release()
        return found

    def better(self, first: Found, more: Found) -> Found:
        """What two methods came to, one after the other: the last, with the better proof of both.

        Weights of 0, at which a descent was stuck, replace nothing: the other has compared its own.
        """
        more = replace(more, route=f"{first.route}, then {more.route}")
        if not more.gap <= first.gap and first.theta.any():
            tau = first.tau
            more = replace(more, certificate=first.certificate, theta=first.theta, tau=tau, at=tau)
            calls, seconds, *_ = self.history.rows[-1]
            self.history.rows[-1] = calls, seconds, more.certificate.objective, more.gap
        return more

    def save(self, where: Tree | Callable[[], Tree]) -> None:
        """Another can go on from here, without the loops inside; ``where`` is a tree or makes it.

        Its arrays may be live ones.
        """
        if self.file is None:
            return
        due = self.file.due()
        if due or self.record["inner"]:
            state = where() if callable(where) else where
            self.record.update(state=state, rows=np.array(self.history.rows), inner=[])
            self.begun = 0
        if due:
            self._write()

    def _write(self) -> None:
        assert self.file is not None
        self.file.root["seconds"] = clock() - self.origin
        self.file.write()

    def thin(self) -> None:
        """Forget τ of the results of the loops inside, but for the last loop's."""
        for kept in self.record["inner"][: self.begun - 1] if self.file else []:
            if kept["found"] is not None:
                kept["found"].update(tau=None, at=NONE)

    def blame(self, error: Exception) -> None:
        """Raise a ValueError if an error may be the fault of the file that a fit goes on from.

        A file with the right checksum can hold anything. Errors of a user's solver have a note.
        """
        if self.file is not None and self.file.resumed and not hasattr(error, "__notes__"):
            raise ValueError(
                f"going on from {self.file.path}: {type(error).__name__}: {error}. If this is "
                "not the file that this fit wrote, name another, or delete it to begin anew"
            ) from error


AnyCheckpoint = Checkpoint | Loop | str | os.PathLike[str] | None
"""Where to keep a fit, if anywhere: a file, or the loop around."""

"""What a method of learning is, and what it says of each of its rounds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from mlestruct.checkpoint import Loop, Setting
from mlestruct.dual import Certificate
from mlestruct.structures.base import Array
from mlestruct.trees import Tree

NONE = np.zeros(0)


def _none() -> Array:
    return NONE


@dataclass(frozen=True)
class Cost:
    """What a run is expected to take at most; ``bytes`` of memory beside its data, 0 if unknown."""

    calls: int
    examples: int
    seconds_per_call: float
    bytes: int = 0

    @property
    def seconds(self) -> float:
        return self.calls * self.examples * self.seconds_per_call

    def __str__(self) -> str:
        per_call = f"{1e3 * self.seconds_per_call:.2g} ms"
        room = f", {self.bytes / 1e6:.3g} MB" if self.bytes else ""
        time = f"{self.calls} calls × {self.examples} examples × {per_call} ≈ {self.seconds:.2g} s"
        return time + room


@dataclass(frozen=True)
class Progress:
    """What a round has come to.

    ``theta`` are the best weights so far and ``tau`` the point of least objective; the certificate
    is theirs. By Frank-Wolfe each is from its own round, and the certificate never rises. Its
    tangent was taken ``at`` another point: ``certificate(dual, oracle, theta, tau, at=at)`` finds
    it again. ``calls`` counts questions so far, of which the first round asked one per example;
    ``asking`` are the seconds of ``seconds`` in which a solver was waited for.
    ``cut``: the ``direct`` route's own τ lay outside the outcomes' hull, and this one is near it.
    ``learned`` is what was learned of inference, beside θ: see :mod:`mlestruct.inference.choose`.
    ``own`` is what else the method says of the round.

    A method ends by ``over``, which says why it can go no further, or where ``left`` (None: the
    certificate's relative gap) is within the tolerance it is given. ``prove`` is called with the
    reason before it ends, and says what the round has really come to: it may go on. A ``silent``
    round says nothing unless it is the last. A fit that is cut short ends with the round
    ``instead`` of its last, where there is one: its weights are proven to be better.

    ``seconds``, ``cost``, ``done`` and ``short`` are filled in by :func:`mlestruct.drive.drive`.
    ``short`` says why a last round has not reached what was asked of it: ``rounds``, ``seconds``,
    ``calls`` ran out, no ``step`` led on, or the ``proof`` leaves more. A method may have a word of
    its own for what a round lacks, where its rounds run out. Rounds that a checkpoint
    remembers come again without arrays, the last of them with its θ.
    """

    round: int
    calls: int
    examples: int
    certificate: Certificate
    theta: Array
    tau: Array = field(default_factory=_none)
    at: Array = field(default_factory=_none)
    route: str = "frank_wolfe"
    cut: bool = False
    asking: float = 0.0
    bytes: int = 0
    learned: Tree = None
    own: Any = None
    left: float | None = None
    over: str = ""
    prove: Callable[[str], Progress] | None = None
    silent: bool = False
    instead: Progress | None = None
    seconds: float = 0.0
    cost: Cost = Cost(0, 0, 0.0)
    done: bool = False
    short: str = ""

    @property
    def gap(self) -> float:
        return self.certificate.gap

    @property
    def points(self) -> tuple[Array, Array | None]:
        """τ, and its tangent's point if another."""
        return self.tau, None if self.at is self.tau else self.at

    def within(self, tol: float) -> bool:
        """Whether the relative gap is at most ``tol``."""
        return (self.certificate.relative if self.left is None else self.left) <= tol


class Method(Protocol):
    """Minimises a problem in rounds; it knows neither clocks nor files nor when to stop.

    Interface: ``rounds(loop)`` yields a :class:`Progress` per round, for ever or until ``over``.
    Wherever another could go on it calls ``loop.save(where)``, ``where()`` a tree; ``loop.tree`` is
    None, or the tree to go on from: then the same bits follow. A method inside runs by
    ``drive(…, keeps=loop)``. ``name`` and ``setting()`` (names to values or digests) must be those
    of the fit that a checkpoint keeps; ``size`` coordinates are evaluated in a round.
    """

    @property
    def name(self) -> str: ...
    @property
    def size(self) -> int: ...
    def setting(self) -> Setting: ...
    def rounds(self, loop: Loop) -> Iterator[Progress]: ...


@dataclass(frozen=True)
class OwnRounds:
    """A method of functions, whose rounds are a learner's own."""

    name: str
    rounds: Callable[[Loop], Iterator[Progress]]
    setting: Callable[[], Setting]
    size: int = 0

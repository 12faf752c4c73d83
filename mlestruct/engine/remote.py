"""Shards at workers that may die: dealt round robin, made again from snapshots and a log.

A worker that is lost costs its own shards and nothing else: another takes its place, makes them
again, lets them remember the last snapshot and asks all questions since once more. Asked the same
from the same memory they answer the same bits, so nobody sees that it happened.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from mlestruct.engine.protocol import Maker, Tree
from mlestruct.engine.worker import Reply
from mlestruct.errors import LostWorker

log = logging.getLogger("mlestruct")
START = 60.0  # seconds beside the timeout in which a worker may start, on a busy machine


class Gone(Exception):
    """A worker ended, or did not answer in time."""


class Host(Protocol):
    """A worker and the line to it. Both methods raise :class:`Gone`; ``end`` never does.

    Interface: ``send(request, *arguments)`` of :class:`mlestruct.engine.worker.Worker`;
    ``receive(seconds)`` → its reply; ``release()`` when its shards are no longer needed;
    ``end()`` kills it.
    """

    def send(self, request: str, *arguments: Any) -> None: ...
    def receive(self, seconds: float | None) -> Reply: ...
    def release(self) -> None: ...
    def end(self) -> None: ...


@dataclass(frozen=True, kw_only=True)
class Care:
    """How workers are looked after; the settings of every engine that has some.

    ``timeout``: seconds a round may take at a worker before it counts as hanging; whatever else is
    asked of one (to start, to remember, to be ready again) may take a minute more. ``retries``:
    times a question is asked of a new worker after it cost one. ``every``: rounds between
    snapshots; questions are kept so long.
    """

    timeout: float | None = None
    retries: int = 2
    every: int = 5

    def limit(self, request: str) -> float | None:
        """Seconds that a worker has for a request."""
        if self.timeout is None:
            return None
        return self.timeout if request == "ask" else self.timeout + START

    def __post_init__(self) -> None:
        if self.timeout is not None and not self.timeout > 0:
            raise ValueError(f"timeout is {self.timeout} s; it must be positive, or None")
        if self.retries < 0 or self.every < 1:
            raise ValueError(
                f"retries={self.retries} must be at least 0 and every={self.every} at least 1"
            )


@dataclass
class Place:
    """One worker's shards."""

    makers: Mapping[int, Maker]
    host: Host
    busy: bool = False
    memories: Mapping[int, Tree] = field(default_factory=dict)
    log: list[Mapping[int, Any]] = field(default_factory=list)


class Remote:
    """Running shards of any engine that has workers; ``hire`` starts one."""

    def __init__(
        self, makers: Sequence[Maker], workers: int, hire: Callable[[], Host], care: Care
    ) -> None:
        self.count, self.hire, self.care, self.rounds = len(makers), hire, care, 0
        dealt = [range(i, len(makers), workers) for i in range(min(workers, len(makers)))]
        self.places: list[Place] = []
        try:
            for numbers in dealt:
                self.places.append(Place({k: makers[k] for k in numbers}, hire()))
            self._each("make", [(place.makers, {}) for place in self.places])
        except BaseException:
            self.close()
            raise

    def __len__(self) -> int:
        return self.count

    def round(self, questions: Sequence[Any]) -> list[Any]:
        asked = [{k: questions[k] for k in place.makers} for place in self.places]
        answers = self._each("ask", [(own,) for own in asked])
        for place, own in zip(self.places, asked, strict=True):
            place.log.append(own)
        self.rounds += 1
        if self.rounds % self.care.every == 0:
            self.memory()
        return self._in_order(answers)

    def memory(self) -> list[Tree]:
        found = self._each("memory", [()] * len(self.places))
        for place, memories in zip(self.places, found, strict=True):
            place.memories, place.log = memories, []
        return self._in_order(found)

    def remember(self, trees: Sequence[Tree]) -> None:
        for place in self.places:
            place.memories, place.log = {k: trees[k] for k in place.makers}, []
        self._each("remember", [(place.memories,) for place in self.places])

    def close(self) -> None:
        for place in self.places:
            if place.busy:
                place.host.end()
            else:
                place.host.release()
        self.places = []

    def _in_order(self, found: Sequence[Mapping[int, Any]]) -> list[Any]:
        known = {k: answer for own in found for k, answer in own.items()}
        return [known[k] for k in range(self.count)]

    def _each(self, request: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """A request to every worker, all at work at once; replies in the workers' order."""
        lost: dict[int, str] = {}
        for i, (place, own) in enumerate(zip(self.places, arguments, strict=True)):
            try:
                place.busy = True
                place.host.send(request, *own)
            except Gone as gone:
                lost[i] = str(gone)
        limit = self.care.limit(request)
        until = time.monotonic() + (limit or 0.0)
        replies = []
        for i, (place, own) in enumerate(zip(self.places, arguments, strict=True)):
            try:
                if i in lost:
                    raise Gone(lost[i])
                left = max(until - time.monotonic(), 0.0) if limit is not None else None
                reply = place.host.receive(left)
            except Gone as gone:
                reply = self._again(place, request, own, str(gone))
            place.busy = False
            replies.append(reply)
        return [_opened(reply) for reply in replies]

    def _again(self, place: Place, request: str, own: tuple[Any, ...], why: str) -> Reply:
        """The request put to new workers, brought to where the lost one was."""
        place.host.end()
        for attempt in range(self.care.retries):
            log.warning("a worker %s; another takes its place (%d)", why, attempt + 1)
            place.host = self.hire()
            try:
                _opened(self._put(place.host, "make", place.makers, place.memories))
                for questions in place.log:
                    _opened(self._put(place.host, "ask", questions))
                if request == "make":
                    return True, None
                return self._put(place.host, request, *own)
            except Gone as gone:
                why = str(gone)
                place.host.end()
        self.places.remove(place)
        times = f"{self.care.retries + 1} times" if self.care.retries else "once"
        if request == "ask":
            example = culprit(place.makers, own[0], self._survives)
            if example is not None:
                raise LostWorker(f"example {example}: asked about it, a worker {why}", example)
        raise LostWorker(f"a worker {why}, {times}, and no example alone is to blame")

    def _put(self, host: Host, request: str, *arguments: Any) -> Reply:
        host.send(request, *arguments)
        return host.receive(self.care.limit(request))

    def _survives(self, maker: Maker, question: Any) -> bool:
        """Whether a worker of its own answers this shard's question."""
        host = self.hire()
        try:
            self._put(host, "make", {0: maker}, {})
            self._put(host, "ask", {0: question})
        except Gone:
            host.end()
            return False
        host.release()
        return True


def _opened(reply: Reply) -> Any:
    done, value = reply
    if not done:
        raise value
    return value


def culprit(
    makers: Mapping[int, Maker],
    questions: Mapping[int, Any],
    survives: Callable[[Maker, Any], bool],
) -> int | None:
    """The number of an example that alone does not let a worker survive, or None.

    Makers offer ``halves(question)`` → two (maker, question), and ``first``, the number of their
    first example. O(shards + log examples) workers.
    """
    for number, maker in makers.items():
        found = _within(maker, questions[number], survives)
        if found is not None:
            return found
    return None


def _within(maker: Any, question: Any, survives: Callable[[Maker, Any], bool]) -> int | None:
    if survives(maker, question) or not hasattr(maker, "halves"):
        return None
    halves = maker.halves(question)
    if not halves:
        return int(maker.first)
    found = (_within(half, asked, survives) for half, asked in halves)
    return next((example for example in found if example is not None), None)

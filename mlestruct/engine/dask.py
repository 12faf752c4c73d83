"""Parts at the workers of a Dask cluster: they are scattered, their warm starts are futures.

Everything travels as a pickle of ours. Arrays that Dask unpacks may be read-only or not aligned,
and sums over those take other instructions, with other last digits.
"""

from __future__ import annotations

import importlib
import logging
import os
import pickle
from collections.abc import Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

from mlestruct.errors import LostWorker
from mlestruct.storage.trees import Tree

log = logging.getLogger("mlestruct")
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
EVERY = 20  # rounds after which states are gathered and scattered anew
TRIES = 3  # times that a question is put before its part counts as deadly
PATIENCE = "600s"  # a busy machine may read a large shard later than Dask's 30 s allow for
NOTHING = pickle.dumps(None, protocol=4)  # the warm start of a part that was never asked


@dataclass(frozen=True, kw_only=True)
class Dask:
    """Parts at the workers of a Dask cluster. Needs the extra ``dask``.

    ``cluster`` is a scheduler's address, a ``distributed.Client`` or a cluster object such as
    ``distributed.LocalCluster``; None starts ``workers`` processes of one thread each on 127.0.0.1.
    ``timeout`` is how many seconds a round may take, a worker's start included. A worker that takes
    longer is restarted, and its question put again; the example that is to blame is then named.
    """

    cluster: Any = None
    workers: int | None = None
    timeout: float | None = None
    _client: list[Any] = field(default_factory=list, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.timeout is not None and not self.timeout > 0:
            raise ValueError(f"timeout is {self.timeout} s; it must be positive, or None")
        if self.cluster is not None and self.workers is not None:
            raise ValueError(f"workers={self.workers} is the cluster's own business: leave it away")

    def __deepcopy__(self, memo: object) -> Dask:
        return self  # copies of an estimator, as a search makes them, share its workers

    def open(self, parts: Sequence[Any]) -> Remote:
        return Remote(parts, self.client, self.timeout)

    def close(self) -> None:
        """End the cluster, if this engine started it; leave another's alone."""
        while self._client:
            client = self._client.pop()
            if client is not self.cluster:
                own = client.cluster if self.cluster is None else None
                client.close()  # first, or its data count as lost with the cluster's workers
                if own is not None:
                    own.close()

    @property
    def client(self) -> Any:
        if self._client:
            return self._client[0]
        try:
            distributed: Any = importlib.import_module("distributed")
        except ImportError as error:
            raise ValueError("engine='dask' needs Dask: pip install 'mlestruct[dask]'") from error
        client = self.cluster
        if self.cluster is None:
            client = _local(distributed, self.workers or CORES)
        elif not isinstance(self.cluster, distributed.Client):
            client = distributed.Client(self.cluster)
        self._client.append(client)
        return client


def _local(distributed: Any, workers: int) -> Any:
    """Start workers with the caller's number of BLAS threads: another gives sums other digits."""
    import dask

    common = os.environ.get("OMP_NUM_THREADS", str(CORES))
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    nanny = "distributed.nanny.pre-spawn-environ"
    threads = {name: os.environ.get(name, common) for name in names}
    settings = {
        nanny: {**dask.config.get(nanny), **threads},
        "distributed.comm.timeouts.tcp": PATIENCE,
    }
    # A worker that is away again 15 s after it was lost would not be started any more; Dask asks
    # for these seconds at each loss.
    dask.config.set({"distributed.deploy.lost-worker-timeout": PATIENCE})
    with dask.config.set(settings):
        cluster = distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, host="127.0.0.1", dashboard_address=":0"
        )
        return distributed.Client(cluster, direct_to_workers=True)


class RemotePart:
    """A part as its worker has it, with its last warm start and the bytes that stand for that."""

    def __init__(self, body: bytes) -> None:
        self.body, self.size = body, len(body)
        self.part: Any = None
        self.warm: tuple[Any, bytes] = (None, NOTHING)

    def __reduce__(self) -> tuple[Any, ...]:
        return RemotePart, (self.body or packed(self.part),)

    def __sizeof__(self) -> int:
        return self.size


def ask(remote: RemotePart, before: tuple[bytes, bytes], question: bytes) -> tuple[bytes, bytes]:
    """Return the part's answer and its next warm start; ``before`` ends with the one until now."""
    if remote.part is None:
        remote.part, remote.body = pickle.loads(remote.body), b""
    warm, state = remote.warm
    if before[1] != state:
        known = pickle.loads(before[1])
        warm = None if known is None else remote.part.unpack(known)
    remote.warm = None, b""  # an error leaves nothing behind whose state is not known
    name, arguments = pickle.loads(question)
    answer, warm = getattr(remote.part, name)(*arguments, warm)
    remote.warm = warm, packed(remote.part.pack(warm))
    return packed(answer), remote.warm[1]


def packed(value: Any) -> bytes:
    """Return the value's pickle; ValueError if it has none."""
    import cloudpickle

    try:
        body: bytes = cloudpickle.dumps(value, protocol=4)
    except Exception as error:
        raise ValueError(
            f"no other process can be sent this: {error}; make what is not data (locks, files, "
            "connections, solver handles) inside the call, or use engine='threads'"
        ) from error
    return body


class Remote:
    """Parts at work. Where a worker is lost the parts are sent again, and asked all anew.

    ``states`` are the last warm starts that are known here, ``log`` the questions since: at most
    ``EVERY`` rounds of them. Asked the same from the same start, parts answer the same bits.
    """

    def __init__(self, parts: Sequence[Any], client: Any, timeout: float | None) -> None:
        self.parts, self.client, self.timeout = list(parts), client, timeout
        self.states, self.log = [NOTHING] * len(self.parts), list[list[bytes]]()
        self.sent, self.pairs = list[Any](), list[Any]()
        self.why = "was lost"
        self._send()

    def ask(self, name: str, questions: Sequence[tuple[Any, ...]]) -> list[Any]:
        known = {id(question): packed((name, question)) for question in questions}
        self.log.append([known[id(question)] for question in questions])
        answers = [pickle.loads(answer) for answer in self._gathered(0, since=len(self.log) - 1)]
        if len(self.log) == EVERY:
            self.memory()
        return answers

    def memory(self) -> list[Tree]:
        states = self._gathered(1, since=len(self.log))
        self._scatter_states(states)
        return [pickle.loads(state) for state in states]

    def remember(self, trees: Sequence[Tree]) -> None:
        self._scatter_states([packed(tree) for tree in trees])

    def close(self) -> None:
        self.client.cancel(self.pairs)
        self.sent, self.pairs = [], []

    def _send(self) -> None:
        self.sent = self._scattered([RemotePart(packed(part)) for part in self.parts])
        self.pairs = self._scattered([(b"", state) for state in self.states])

    def _scatter_states(self, states: list[bytes]) -> None:
        self.states, self.log = states, []
        self.pairs = self._scattered([(b"", state) for state in states])

    def _scattered(self, values: list[Any]) -> list[Any]:
        try:
            return list(self.client.scatter(values, hash=False))
        except TimeoutError as error:
            raise LostWorker(f"{self.client} has no workers left") from error

    def _mapped(self, function: Any, *columns: list[Any]) -> list[Any]:
        if any(one.cancelled() for column in columns for one in column):
            raise CancelledError
        return list(self.client.map(function, *columns, pure=False))

    def _gathered(self, part: int, since: int) -> list[bytes]:
        """Put the questions ``since`` one of the log; return all answers, or all warm starts."""
        for attempt in range(TRIES):
            try:
                if attempt:
                    log.warning("a worker %s; its parts are sent again (%d)", self.why, attempt)
                    self._send()
                for questions in self.log[0 if attempt else since :]:
                    known = {id(one): one for one in questions}
                    sent = dict(zip(known, self._scattered([*known.values()]), strict=True))
                    given = [sent[id(one)] for one in questions]
                    self.pairs = self._mapped(ask, self.sent, self.pairs, given)
                asked = self._mapped(itemgetter(part), self.pairs)
                if self._answered(self.pairs, asked, 1 + len(self.log) * bool(attempt)):
                    return list(self.client.gather(asked))
            except CancelledError:
                self.why = "was lost"
        raise self._blamed()

    def _answered(self, pairs: list[Any], asked: list[Any], rounds: int) -> bool:
        """Wait for these answers; False if some do not come."""
        distributed: Any = importlib.import_module("distributed")
        try:
            distributed.wait(asked, timeout=None if self.timeout is None else self.timeout * rounds)
        except TimeoutError:
            self.why = f"did not answer within {self.timeout:.3g} s"
            late = {pair.key for pair in pairs if not pair.done()}
            busy = self.client.processing().items()
            hanging = [address for address, tasks in busy if not late.isdisjoint(tasks)]
            self.client.restart_workers(hanging, raise_for_error=False)
            self.client.cancel([*asked, *pairs])
            return False
        errors = [one.exception() for one in asked if one.status == "error"]
        lost = any(one.status in ("cancelled", "lost") for one in asked)
        return not (lost or any(isinstance(error, distributed.KilledWorker) for error in errors))

    def _blamed(self) -> LostWorker:
        for part, question in zip(self.parts, self.log[-1] if self.log else (), strict=False):
            example = self._culprit(part, *pickle.loads(question))
            if example is not None:
                why = f"example {example}: asked about it, a worker {self.why}"
                return LostWorker(why, example)
        return LostWorker(f"a worker {self.why}, {TRIES} times, and no example alone is to blame")

    def _culprit(self, part: Any, name: str, arguments: tuple[Any, ...]) -> int | None:
        """The number of an example that alone does not let a worker survive, or None."""
        given = [RemotePart(packed(part)), (b"", NOTHING), packed((name, arguments))]
        try:
            one = self._mapped(ask, *([sent] for sent in self._scattered(given)))
            if self._answered(one, one, 1):
                return None
        except CancelledError:
            self.why = "was lost"
        halves = part.halves(arguments)
        if not halves:
            return int(part.first)
        found = (self._culprit(half, name, asked) for half, asked in halves)
        return next((example for example in found if example is not None), None)

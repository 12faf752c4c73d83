"""Shards as actors of a Dask cluster: this machine's processes, or any scheduler's workers."""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from mlestruct.engine.protocol import Maker
from mlestruct.engine.remote import Care, Gone, Remote
from mlestruct.engine.worker import Reply, Worker, packed, unpacked

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
LOOK = 1.0  # seconds between looks at whether a silent worker is still there
PATIENCE = "600s"  # a busy machine may read a large shard later than Dask's 30 s allow for
HELP = 30.0  # seconds to wait until the scheduler has noticed a loss, and for a new worker


@dataclass(frozen=True, kw_only=True)
class Dask(Care):
    """One actor per worker. Needs the extra ``dask``.

    ``cluster``: a scheduler's address, a ``distributed.Client``, or None for ``workers`` processes
    on 127.0.0.1, one thread each. On a cluster all its workers are used, or ``workers`` of them.
    Dask never makes a lost actor again: we do, on a worker that is idle or else on the least busy.
    """

    cluster: Any = None
    workers: int | None = None
    _client: list[Any] = field(default_factory=list, repr=False, compare=False)
    _used: list[str] = field(default_factory=list, repr=False, compare=False)

    def start(self, makers: Sequence[Maker]) -> Remote:
        own = self.cluster is None
        there = len(self._addresses())
        count = (self.workers or CORES) if own else max(min(self.workers or there, there), 1)
        return Remote(makers, count, self._hire, self)

    def close(self) -> None:
        """End the cluster, if this engine started it; leave another's alone."""
        while self._client:
            client = self._client.pop()
            if self.cluster is None:
                client.cluster.close()
                client.close()
            elif client is not self.cluster:
                client.close()

    @property
    def client(self) -> Any:
        if not self._client:
            self._client.append(self._connected())
        return self._client[0]

    def _connected(self) -> Any:
        try:
            distributed: Any = importlib.import_module("distributed")
        except ImportError as error:
            raise ValueError("engine='dask' needs Dask: pip install 'mlestruct[dask]'") from error
        if self.cluster is None:
            return _local(distributed, self.workers or CORES)
        given = isinstance(self.cluster, distributed.Client)
        return self.cluster if given else distributed.Client(self.cluster)

    def _addresses(self) -> list[str]:
        return sorted(self.client.scheduler_info(n_workers=-1)["workers"])

    def _hire(self) -> Actor:
        """On an idle worker, waiting a little for one to come back, else on the least busy."""
        until = time.monotonic() + HELP
        while True:
            addresses = self._addresses()
            busy = {address: self._used.count(address) for address in addresses}
            idle = [address for address in addresses if not busy[address]]
            late = time.monotonic() > until
            if idle or (late and addresses):
                return Actor(self.client, min(idle or addresses, key=busy.__getitem__), self._used)
            if late:
                raise ValueError(f"{self.client} has no workers left")
            time.sleep(0.05)


def _local(distributed: Any, workers: int) -> Any:
    import dask

    nanny = "distributed.nanny.pre-spawn-environ"
    settings = {
        nanny: {**dask.config.get(nanny), **_threads()},
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


def _threads() -> dict[str, str]:
    """The caller's number of BLAS threads for its workers: another gives sums other digits."""
    common = os.environ.get("OMP_NUM_THREADS", str(CORES))
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    return {name: os.environ.get(name, common) for name in names}


class Actor:
    """Our worker, as an actor at one of Dask's."""

    def __init__(self, client: Any, address: str, used: list[str]) -> None:
        self.client, self.address, self.used = client, address, used
        used.append(address)
        self.worker: Any = client.submit(
            Worker, actor=True, workers=[address], allow_other_workers=False, pure=False
        )
        self.asked: Any = None
        self.lost = False

    def send(self, request: str, *arguments: Any) -> None:
        frames = packed((request, *arguments))
        try:
            if not hasattr(self.worker, "reply"):
                self.worker = self._waited(self.worker, None)
            self.asked = self.worker.reply(frames)
        except Gone:
            raise
        except Exception as error:
            self.lost = True
            raise Gone(f"at {self.address} was lost ({error})") from error

    def receive(self, seconds: float | None) -> Reply:
        try:
            frames = self._waited(self.asked, seconds)
        except Gone:
            raise
        except Exception as error:
            self.lost = True
            raise Gone(f"at {self.address} was lost ({error})") from error
        reply: Reply = unpacked(frames)
        return reply

    def release(self) -> None:
        """Once: a worker that was lost and has no successor is released at the end again."""
        if self.worker is not None:
            self.used.remove(self.address)
        self.worker = self.asked = None

    def end(self) -> None:
        """The scheduler may notice a loss later than we do; a worker that is there hangs."""
        self.release()
        until = time.monotonic() + (HELP if self.lost else 0.0)
        while self._there():
            if time.monotonic() >= until:
                self.client.restart_workers([self.address], raise_for_error=False)
                return
            time.sleep(0.05)

    def _there(self) -> bool:
        return self.address in self.client.scheduler_info(n_workers=-1)["workers"]

    def _waited(self, future: Any, seconds: float | None) -> Any:
        until = None if seconds is None else time.monotonic() + seconds
        while True:
            left = LOOK if until is None else max(min(LOOK, until - time.monotonic()), 0.0)
            try:
                return future.result(timeout=left)
            except TimeoutError:
                if not self._there():
                    self.lost = True
                    raise Gone(f"at {self.address} was lost") from None
                if until is not None and time.monotonic() >= until:
                    raise Gone(f"did not answer within {seconds:.3g} s") from None

"""Engines by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from mlestruct.engine.local import Serial, Threads
from mlestruct.engine.protocol import Engine


def engine_of(engine: Engine | str | None, workers: int) -> Engine:
    """An engine from a name and a number of workers, or the one given."""
    if not isinstance(workers, int) or workers < 1:
        raise ValueError(f"workers is {workers!r}; it must be a whole number, at least 1")
    if engine is None:
        engine = "serial" if workers == 1 else "threads"
    if not isinstance(engine, str):
        if workers != 1:
            raise ValueError(f"workers={workers} is {engine!r}'s own business: leave it away")
        return engine
    if engine not in ENGINES:
        raise ValueError(f"no engine {engine!r}; there are {', '.join(ENGINES)}")
    return ENGINES[engine](workers)


def _processes(workers: int) -> Engine:
    from mlestruct.engine.processes import Processes

    return Processes(workers=workers)


def _dask(workers: int) -> Engine:
    from mlestruct.engine.dask import Dask

    return Dask(workers=workers)


# Cached, so that all runs that name an engine share its workers, which take a second to start.
ENGINES: dict[str, Callable[[int], Engine]] = {
    "serial": lambda workers: Serial(),
    "threads": Threads,
    "processes": cache(_processes),
    "dask": cache(_dask),
}

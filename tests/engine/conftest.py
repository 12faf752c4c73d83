"""Engines whose workers take a second to start, shared by a module's tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from mlestruct.engine import Engine, Serial, Threads
from mlestruct.engine.processes import Processes

ENGINES = ["serial", "threads", "processes", "dask"]


@pytest.fixture(scope="package")
def engine_named() -> Iterator[Callable[[str], Engine]]:
    """Every engine with two workers, started when a test first asks for it."""
    known: dict[str, Engine] = {"serial": Serial(), "threads": Threads(2)}

    def named(name: str) -> Engine:
        if name == "processes" and name not in known:
            known[name] = Processes(workers=2, every=2)
        if name == "dask" and name not in known:
            pytest.importorskip("distributed")
            from mlestruct.engine.dask import Dask

            known[name] = Dask(workers=2, every=2)
        return known[name]

    yield named
    for name in ("processes", "dask"):
        if name in known:
            known[name].close()


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest, engine_named: Callable[[str], Engine]) -> Engine:
    return engine_named(request.param)


@pytest.fixture(params=["processes", "dask"])
def remote(request: pytest.FixtureRequest, engine_named: Callable[[str], Engine]) -> Engine:
    """Engines whose workers can be lost."""
    return engine_named(request.param)

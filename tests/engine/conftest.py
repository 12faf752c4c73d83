"""Dask's workers take seconds to start, so a package's tests share them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mlestruct.engine import Dask, Engine, Serial, Threads


@pytest.fixture(scope="package")
def remote() -> Iterator[Engine]:
    """Return the engine whose workers can be lost, with two of them."""
    pytest.importorskip("distributed")
    engine = Dask(workers=2)
    yield engine
    engine.close()


@pytest.fixture(params=["serial", "threads", "dask"])
def engine(request: pytest.FixtureRequest) -> Engine:
    if request.param == "dask":
        found: Engine = request.getfixturevalue("remote")
        return found
    return Serial() if request.param == "serial" else Threads(2)

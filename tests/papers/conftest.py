"""What the papers' tests share: an experiment's brief run, as its command prints it."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from papers._run import Experiment, Row, main


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Callable[..., list[Row]]:
    """The rows of ``--quick --json``: an object per line, and nothing in them that is not JSON."""

    def rows(experiment: Experiment, data: Path | None = None) -> list[Row]:
        given = [experiment.__name__, "--quick", "--json"]
        given += [] if data is None else ["--data", str(data)]
        assert main("any", {experiment.__name__: experiment}, given) == 0
        lines = capsys.readouterr().out.splitlines()
        return [json.loads(line, parse_constant=pytest.fail) for line in lines]

    return rows

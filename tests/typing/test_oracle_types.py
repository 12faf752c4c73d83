"""Type checkers accept a solver on its own structures and reject it on others."""

from pathlib import Path

import pytest

api = pytest.importorskip("mypy.api")

ROOT = Path(__file__).resolve().parents[2]
ACCEPTED = """
from mlestruct.batch import Batch
from mlestruct.oracle import Oracle, Simplices
from mlestruct.structures import BipartiteMatching, Custom, FactorGraph, Paths, chain
from mlestruct_oracles.assignment import Assignment
from mlestruct_oracles.shortest_path import ShortestPath
from mlestruct_oracles.viterbi import Viterbi

matching: Oracle[BipartiteMatching] = Assignment()
labels: Oracle[FactorGraph] = Viterbi()
paths: Oracle[Paths] = ShortestPath()
own: Oracle[Custom] = Simplices()
squares = Batch.of(BipartiteMatching(2))
Assignment().many(squares, squares.bias)
chains = Batch.of(chain(2, 2))
Viterbi().many(chains, chains.bias)
"""
REJECTED = """
from mlestruct.batch import Batch
from mlestruct.oracle import Oracle
from mlestruct.structures import BipartiteMatching, FactorGraph, chain
from mlestruct_oracles.assignment import Assignment
from mlestruct_oracles.viterbi import Viterbi

chains = Batch.of(chain(2, 2))
Assignment().many(chains, chains.bias)
squares = Batch.of(BipartiteMatching(2))
Viterbi().many(squares, squares.bias)
wrong: Oracle[FactorGraph] = Assignment()
"""


def test_a_solver_fits_its_own_structures_only(tmp_path, monkeypatch):
    """Assignment on matchings passes; on a chain it is an error at that line. One mypy run."""
    monkeypatch.chdir(tmp_path)
    for name, text in (("accepted.py", ACCEPTED), ("rejected.py", REJECTED)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    output, errors, _ = api.run(
        [
            f"--config-file={ROOT / 'pyproject.toml'}",
            f"--cache-dir={ROOT / '.mypy_cache'}",
            "--follow-imports=silent",
            "--no-error-summary",
            "accepted.py",
            "rejected.py",
        ]
    )
    assert not errors
    found = {tuple(line.split(":")[:2]) for line in output.splitlines() if ": error:" in line}
    assert found == {("rejected.py", line) for line in ("9", "11", "12")}, output

"""Type checkers know settings, results, and which structures a solver is for."""

from pathlib import Path

import pytest

api = pytest.importorskip("mypy.api")

ROOT = Path(__file__).resolve().parents[2]
ACCEPTED = """
import numpy as np
import mlestruct as ms
from numpy.typing import NDArray

X, y = [np.zeros((2, 2, 1))], [[0, 1]]
matching: ms.MatchingModel = ms.MatchingModel("partial", alpha=(0.1, 1.0), tol=0.1).fit(X, y)
pictures = ms.GridModel(contrast=True, oracle="qpbo", random_state=3)
words = ms.SequenceModel(constraints="bio", learner="ssvm")
own = ms.StructuredModel(ms.Custom(2), oracle=lambda score: score > 0)
share: float = matching.score(X, y)
interval: tuple[float, float] = matching.log_likelihood(X, y)
tau: list[NDArray[np.float64]] = matching.predict_marginals(X)
again: ms.GridModel = ms.GridModel.load("model.npz")
graphs = ms.GraphModel(tables="potts", void=255, unseen="left_out", l1=0.1)
regions: list[NDArray[np.float64]] = graphs.predict_marginals([([[1.0]], [])])
eight = ms.GridModel(neighbours=8, tables="symmetric")
tags = ms.SequenceModel(constraints=[("O", "I-x"), (None, "I-x")])
likely: float = tags.k_best(X, 3)[0][0][1]
several: ms.MultiLabelModel = ms.MultiLabelModel(pairs=False).fit([[1.0]], [[1, 0]])
van = ms.StructuredModel(oracle=lambda scores, van: scores > 0, bias="price", feature_names=["a"])
regret: float = ms.scorers.regret("cost")(van, X, y)
skips = ms.SkipChainModel(lambda x: [], l1=0.5)
careful: ms.GraphModel = ms.GraphModel(tables="potts").fit(
    [{"nodes": [[1.0]] * 3, "edges": []}],
    [[0, 1, 1]],
    node_weight=[[1, 2, 1]],
)
heavy = ms.MultiLabelModel().fit([[1.0]], [[1]], node_weight=[[1.0]])
named: list[str] = heavy.names()
tagged: list[NDArray[np.float64]] = ms.SequenceModel().potentials(X)
rooms: float = ms.RoommateModel(ordinal="q*").score([], [])
"""
REJECTED = """
import numpy as np
import mlestruct as ms

X, y = [np.zeros((2, 2, 1))], [[0, 1]]
ms.MatchingModel("both")
ms.GridModel(colour="red")
ms.MatchingModel().predict(X, decision="best")
ms.SequenceModel(solver="magic")
share: str = ms.MatchingModel().score(X, y)
ms.GraphModel(tables="diagonal")
ms.GridModel(neighbours=6)
ms.SequenceModel(unseen="skip")
ms.GridModel(tables={})
"""
SOLVERS = """
from mlestruct.structures.batch import Batch
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
MISFITS = """
from mlestruct.structures.batch import Batch
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


def test_right_uses_pass_and_wrong_ones_are_errors_at_their_lines(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    texts = {"accepted": ACCEPTED, "rejected": REJECTED, "solvers": SOLVERS, "misfits": MISFITS}
    for name, text in texts.items():
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    output, errors, _ = api.run(
        [
            f"--config-file={ROOT / 'pyproject.toml'}",
            f"--cache-dir={ROOT / '.mypy_cache'}",
            "--follow-imports=silent",
            "--no-error-summary",
            *(f"{name}.py" for name in texts),
        ]
    )
    assert not errors
    found = {tuple(line.split(":")[:2]) for line in output.splitlines() if ": error:" in line}
    expected = {("rejected.py", str(line)) for line in range(6, 15)}
    assert found == expected | {("misfits.py", line) for line in ("9", "11", "12")}, output

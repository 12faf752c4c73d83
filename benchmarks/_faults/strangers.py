"""Strange things in the place of an example, an outcome, a weight or alpha, at every estimator."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd

import mlestruct as ms
from benchmarks._faults.refusal import Bad, bad

RNG = np.random.default_rng(0)
TABLES = [RNG.normal(size=(3, 3, 2)) for _ in range(4)]
ROWS = [RNG.permutation(3) for _ in TABLES]
WORDS = [RNG.normal(size=(4, 2)) for _ in range(4)]
TAGS = [(x[:, 0] > 0).astype(int) for x in WORDS]
IMAGES = [RNG.normal(size=(3, 2, 2)) for _ in range(4)]
PIXELS = [(x[..., 0] > 0).astype(int) for x in IMAGES]
GRAPHS = [(x, [(0, 1), (1, 2)]) for x in WORDS]
BAGS, SETS = np.stack([x[0] for x in WORDS]), np.stack([t[:2] for t in TAGS])
PARTS = [x[:, 0] for x in TABLES]
DOORS: dict[str, tuple[Callable[..., Any], list[Any], list[Any]]] = {
    "matching": (ms.MatchingModel, TABLES, ROWS),
    "sequence": (ms.SequenceModel, WORDS, TAGS),
    "grid": (ms.GridModel, IMAGES, PIXELS),
    "graph": (ms.GraphModel, GRAPHS, TAGS),
    "several labels": (ms.MultiLabelModel, list(BAGS), list(SETS)),
    "own solver": (
        lambda **own: ms.StructuredModel(oracle=lambda s: np.eye(3)[s.argmax()], **own),
        PARTS,
        [np.eye(3)[k] for k in (0, 1, 2, 0)],
    ),
}


class Alike:
    """What looks like an array and is none."""

    shape, ndim = (3, 2), 2

    def __len__(self) -> int:
        return 3


STRANGE: dict[str, Callable[[Any], Any]] = {
    "a generator": lambda x: (v for v in [1.0]),
    "rows of other lengths": lambda x: [[1.0, 2.0], [3.0]],
    "numbers beside lists": lambda x: [1.0, [2.0, 3.0]],
    "a group of a frame": lambda x: ("a", pd.DataFrame({"a": [1.0, 2.0]})),
    "a time": lambda x: [[pd.Timestamp(0)] * 2] * 3,
    "a function": lambda x: len,
    "a text": lambda x: "a sentence of words",
    "texts": lambda x: ["a", "b", "c"],
    "a set": lambda x: {1.0, 2.0},
    "bytes": lambda x: b"abc",
    "an object": lambda x: object(),
    "what looks like an array": lambda x: Alike(),
    "a number": lambda x: 3.0,
    "nothing": lambda x: None,
    "a dict": lambda x: {0: 1.0},
    "dicts of dicts": lambda x: [{"a": {}}],
    "a class": lambda x: dict,
    "a range": lambda x: range(3),
    "a slice": lambda x: slice(2),
    "bits of a structure": lambda x: np.zeros(3, dtype=[("a", float), ("b", int)]),
}


def strange() -> Iterator[Bad]:
    """Every strange thing at every door."""
    for door, (make, X, y) in DOORS.items():
        for name, form in STRANGE.items():
            fit = make(tol=0.1).fit
            yield bad(f"{door}, X: {name}", ".", fit, [*X[:2], form(X[2]), X[3]], y)
            if (door, name) not in RIGHT:
                yield bad(f"{door}, y: {name}", ".", fit, X, [*y[:2], form(y[2]), y[3]])
        for name in ("a text", "a function", "a dict", "a time", "an object"):
            given = STRANGE[name](None)
            yield bad(f"{door}, weights: {name}", "sample_weight", make(tol=0.1).fit, X, y, given)
            yield bad(f"{door}, alpha: {name}", "alpha", make(tol=0.1, alpha=given).fit, X, y)
        for value in (-1.0, 0.0, np.nan, np.inf, 1e-200):
            yield bad(f"{door}, alpha", "^alpha is ", make(tol=0.1, alpha=value).fit, X, y)


RIGHT = {("matching", "a range"), *((d, "a dict") for d in ("sequence", "grid", "graph"))}
"""Outcomes that are right: a permutation, and labels by the numbers of their nodes."""
